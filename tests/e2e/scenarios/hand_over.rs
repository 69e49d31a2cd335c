//! A machine that a day cluster and a night cluster share, on real Cluster API. The audit log shows when each
//! of them had it.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use five_spot_scenarios::kinds::SCHEDULED_MACHINE;
use five_spot_scenarios::{Environment, Subject};
use five_spot_testenv::audit::{AuditQuery, AuditRecord};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use serde_json::json;

use super::environment::{RealControlPlane, View};

pub(super) fn tests() -> Vec<Test> {
    let name = concat!(module_path!(), "::a_machine_goes_from_day_to_night_without_overlap");
    vec![Test::new(name, a_machine_goes_from_day_to_night_without_overlap)]
}

async fn a_machine_goes_from_day_to_night_without_overlap(context: Arc<TestContext>) -> TestResult {
    let real = RealControlPlane::start(Arc::clone(&context), View::Whole).await?;
    hand_over(&real, &context).await.with_context(|| real.failure_report())
}

async fn hand_over(real: &RealControlPlane, context: &TestContext) -> TestResult {
    let env: &dyn Environment = real;
    let address = env.address();
    for cluster in ["day", "night"] {
        env.make_cluster(cluster).await?;
    }
    let spec = |cluster: &str, enabled: bool| {
        json!({
            "clusterName": cluster,
            "infrastructureSpec": {"spec": {"address": address}},
            "schedule": {"enabled": enabled},
        })
    };
    let day = Subject::make_another(env, "day", spec("day", true)).await?;
    day.until_ready().await?;
    let night = Subject::make_another(env, "night", spec("night", true)).await?;
    night.until_condition("Ready", "False", "MachineInUse").await?;
    env.patch(SCHEDULED_MACHINE, "day", json!({"spec": {"schedule": {"enabled": false}}})).await?;
    night.until_ready().await?;
    day.until_phase("Disabled").await?;

    let records = infrastructure(context)?;
    let of = |name: &str| records.iter().filter(|record| record.object.name == name).collect::<Vec<_>>();
    let (before, after) = (of("day-infra"), of("night-infra"));
    let last = before.iter().map(|record| record.answered).max().context("no write of day-infra")?;
    let first = after.iter().map(|record| record.received).min().context("no write of night-infra")?;
    for record in before.iter().chain(&after) {
        context.note(format!("{} {record:?}", record.received));
    }
    println!("the last write of day-infra was answered at {last}, the first of night-infra came at {first}");
    ensure!(last <= first, "both had the machine: day until {last}, night from {first}");
    night.set(json!({"schedule": {"enabled": false}})).await?;
    night.until_phase("Disabled").await?;
    Ok(())
}

/// The effective writes of infrastructure objects by any client.
fn infrastructure(context: &TestContext) -> anyhow::Result<Vec<AuditRecord>> {
    let query = AuditQuery::all().writes().namespace(context.namespace());
    let mut records = context.management().audit_log().read(&query)?;
    records.retain(|record| {
        let is_done = record.code.is_some_and(|code| code < 300) && record.stage == "ResponseComplete";
        is_done && record.object.resource == "remotemachines"
    });
    Ok(records)
}
