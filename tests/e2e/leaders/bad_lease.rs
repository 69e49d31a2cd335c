//! A Lease that is forbidden, edited, deleted or used by others: each is reported, and nothing is done twice.

use std::sync::Arc;

use anyhow::ensure;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::{LEASE, is_leader};
use crate::permissions::deploy;
use crate::startup::{Bare, Program, instances_role, machine, rules_without_leases, shipped_definition};

pub(crate) fn tests() -> Vec<Test> {
    tests![a_lease_that_is_forbidden_or_written_by_others_is_reported]
}

/// A short duration of the Lease, so that the test is short.
const FLAGS: [&str; 3] =
    ["--enable-leader-election", "--lease-duration-secs=6", "--lease-renew-deadline-secs=4"];

async fn a_lease_that_is_forbidden_or_written_by_others_is_reported(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("lease").await?;
    let rules = Value::Array(rules_without_leases()?);
    let identity = bare.account("5spot-controller", &rules).await?;
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    bare.apply(&machine("desk")).await?;

    // No access to Leases: the replica is ready, reports what is missing, and does no work.
    let one = Program::start(bare.directory(), &identity, "one", &FLAGS).await?;
    one.logged_with("The Lease could not be", &["5spot-system/5spot-leader", "forbidden"]).await?;
    one.answers("/ready", 200, &["remark: the Lease 5spot-system/5spot-leader could not be"]).await?;
    ensure!(!is_leader(&one).await?, "a replica leads without a Lease");
    let writes = written(&bare, &identity)?;
    ensure!(writes.is_empty(), "a standby has written {writes:?}");
    let mut grants = manifests::read(&deploy("ha/rbac.yaml"))?;
    grants.extend(instances_role()?);
    manifests::Applier::new(bare.admin()).apply_all(&grants, SYSTEM_NAMESPACE).await?;
    one.logged("Became the leader").await?;
    one.answers("/ready", 200, &["ok\n"]).await?;

    // Another deployment with the same Lease waits.
    let other = Program::start(bare.directory(), &identity, "other", &FLAGS).await?;
    other.logged_with("Standing by", &["one_"]).await?;
    ensure!(!is_leader(&other).await?, "there is one leader");

    // Another program takes the Lease: its holder has no random part, and it has no duration.
    // Not typed: no type holds every time that the API server accepts.
    let resource = ApiResource::erase::<Lease>(&());
    let leases: Api<DynamicObject> = Api::namespaced_with(bare.admin(), SYSTEM_NAMESPACE, &resource);
    let taken = json!({"spec": {"holderIdentity": "some-operator", "leaseDurationSeconds": null}});
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(taken)).await?;
    one.logged_with("Lost the Lease: it names another holder", &["some-operator"]).await?;
    for program in [&one, &other] {
        program
            .logged_with("The holder of the Lease has no random part", &["some-operator", "--lease-name"])
            .await?;
        program.logged_with("The Lease has no usable duration", &["some-operator"]).await?;
    }
    ensure!(
        !is_leader(&one).await? && !is_leader(&other).await?,
        "a replica leads although another program holds the Lease"
    );

    // Invalid data that the API server accepts, and then no Lease at all.
    let garbage = json!({"spec": {
        "holderIdentity": "\u{1F980}_".repeat(200), "leaseDurationSeconds": 1, "leaseTransitions": 2_000_000_000,
        "acquireTime": "1970-01-01T00:00:00.000000Z", "renewTime": "9999-12-31T23:59:59.999999Z",
    }});
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(garbage)).await?;
    leases.delete(LEASE, &DeleteParams::default()).await?;
    one.logged("Another client has deleted the Lease").await?;
    let mut leading = 0;
    while leading == 0 {
        let both = [is_leader(&one).await?, is_leader(&other).await?];
        leading = both.iter().filter(|leads| **leads).count();
        ensure!(leading < 2, "both lead");
    }
    one.stop().await?;
    other.stop().await?;
    bare.stop().await
}

/// The writes to `ScheduledMachines` and Machines.
fn written(
    bare: &Bare,
    by: &five_spot_testenv::identity::ServiceAccountIdentity,
) -> anyhow::Result<Vec<String>> {
    let records = bare.asked(by)?;
    let is_write = |record: &&five_spot_testenv::audit::AuditRecord| {
        matches!(record.object.resource.as_str(), "scheduledmachines" | "machines")
            && !matches!(record.verb.as_str(), "get" | "list" | "watch")
    };
    Ok(records.iter().filter(is_write).map(ToString::to_string).collect())
}
