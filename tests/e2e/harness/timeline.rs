//! The output of a failing test contains everything that the test observed.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wait::{self, WaitError};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use crate::cluster_api::machine::{MachinePlan, cluster, running};
use crate::cluster_api::workload::{evictions, pod_on};

pub(crate) fn tests() -> Vec<Test> {
    tests![timeline_shows_transitions_events_requests_and_logs, a_timeout_reports_the_last_state]
}

async fn timeline_shows_transitions_events_requests_and_logs(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    pod_on(&context, &made.node(), "web", &[]).await?;
    context.note("now it is deleted");
    made.delete().await?;
    made.until_gone(Duration::from_secs(90)).await?;
    ensure!(!evictions(&context, "web")?.is_empty());
    let timeline = context.timeline();
    let expected = [
        "Machine/m: created".to_owned(),
        "phase=Running (was".into(),
        "Machine/m: gone".into(),
        format!("Node/{}: created", made.node()),
        "event on Cluster/workload: Provisioned".into(),
        "note: now it is deleted".into(),
        "request: create pods/eviction web -> 201".into(),
        "request: delete machines m -> 200 by 5spot-testenv-admin".into(),
    ];
    for part in expected {
        ensure!(timeline.contains(&part), "{part:?} is not in\n{timeline}");
    }
    for component in Component::ALL {
        ensure!(timeline.contains(&format!("---- last 50 lines of {}\n", component.name())), "{component:?}");
    }
    ensure!(timeline.lines().count() > 150, "there are logs in it");
    Ok(())
}

async fn a_timeout_reports_the_last_state(context: Arc<TestContext>) -> TestResult {
    let objects: Api<ConfigMap> = Api::namespaced(context.management().admin(), context.namespace());
    let within = Duration::from_secs(1);
    let absent = wait::until_present(&objects, "nobody", "to exist", within, |_| true).await;
    let message = absent.expect_err("the object does not exist").to_string();
    assert_eq!(message, "waited 1s for nobody to exist; it was last seen absent");
    let never = wait::until_present(&objects, "kube-root-ca.crt", "to be blue", within, |_| false).await;
    let error = never.expect_err("it is not blue");
    ensure!(
        matches!(&error, WaitError::Deadline { last, .. } if last.contains("BEGIN CERTIFICATE")),
        "{error}"
    );
    Ok(())
}
