//! After the last test: compares the controller's requests to both API servers with the shipped roles.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::audit::{AuditQuery, AuditRecord};
use five_spot_testenv::cluster::{CONTROLLER_AGENT, Side};
use five_spot_testenv::grants::{Comparison, Deed, granted, used};
use five_spot_testenv::harness::TestResult;
use five_spot_testenv::manifests;
use five_spot_testenv::test_clusters::TestClusters;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use super::namespaced;

/// Scenarios that remove a permission or a namespace for a while, so that requests are refused on purpose.
/// The last six are cells of the emergency matrix, with the names as in their namespaces.
const REFUSED_ON_PURPOSE: [&str; 9] = [
    "double-loan-is-found",
    "taints-wait-and-fail",
    "namespace-deleted",
    "workload-403",
    "status-forbi",
    "events-refus",
    "leases-refus",
    "capi-webhook",
    "orphaning-deletion-stat",
];

/// Fails if a request was refused, if a request was not covered by the shipped roles, and, if every test has
/// run, if a granted permission was never used.
pub(crate) fn grants_are_used_and_enough(clusters: &TestClusters, whole: bool) -> BoxFuture<'_, TestResult> {
    compare(clusters, whole).boxed()
}

async fn compare(clusters: &TestClusters, whole: bool) -> TestResult {
    let nodes = granted(&manifests::read(&deploy("rbac-nodes/nodes.yaml"))?);
    let mut management = granted(&manifests::read(&deploy("rbac"))?);
    management.extend(nodes.iter().cloned());
    // Replicas that elect a leader have one additional Role.
    management.extend(granted(&manifests::read(&deploy("ha/rbac.yaml"))?));
    let everything = records(clusters)?;
    let by_tests = granted_by_tests(clusters, &management).await?;

    let mut in_management = used(by(&everything, Side::Management, |name| name == "5spot-controller"));
    let in_workload = used(by(&everything, Side::Workload, |_| true));
    let roles_only = used(by(&everything, Side::Management, |name| name == namespaced::ACCOUNT));
    // The shipped roles do not cover their kinds, and they were requested before they were granted.
    in_management.retain(|deed, _| !by_tests.contains(deed));
    if in_management.is_empty() && roles_only.is_empty() {
        // No test has run the controller.
        return Ok(());
    }
    // If the Nodes are in a separate cluster, the role for them is used there.
    management.retain(|deed| !nodes.contains(deed) || in_management.contains_key(deed) || shared(deed));
    let own = granted(&manifests::read(&deploy("rbac-namespaced"))?);

    let tables = [
        (
            "management cluster, deploy/rbac and deploy/ha/rbac.yaml",
            Comparison::of(&management, &in_management),
        ),
        ("workload cluster, deploy/rbac-nodes", Comparison::of(&nodes, &in_workload)),
        ("management cluster, deploy/rbac-namespaced", Comparison::of(&own, &roles_only)),
    ];
    let mut faults = Vec::new();
    for (name, table) in &tables {
        println!("\nrequests of the controller: {name}\n{table}");
        faults.extend(table.ungranted().into_iter().map(|fault| format!("{name}: not granted: {fault}")));
        if whole {
            faults.extend(
                table.unused().into_iter().map(|deed| format!("{name}: granted and never used: {deed}")),
            );
        }
    }
    if !whole {
        println!("not every test has run and passed: grants that were not used are not looked at");
    }
    ensure!(faults.is_empty(), "grants and uses differ:\n{}", faults.join("\n"));
    Ok(())
}

/// Grants that both roles have for separate reasons.
fn shared(deed: &Deed) -> bool {
    deed.resource == "namespaces"
}

/// The controller's requests by accounts of our namespace.
fn records(clusters: &TestClusters) -> anyhow::Result<Vec<AuditRecord>> {
    let query = AuditQuery::all().user_agent(CONTROLLER_AGENT);
    let mut records = Vec::new();
    for side in [Side::Management, Side::Workload] {
        records.extend(clusters.control_plane().cluster(side).audit_log().read(&query)?);
    }
    Ok(records)
}

fn by<'a>(
    records: &'a [AuditRecord],
    side: Side,
    is_wanted: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = &'a AuditRecord> {
    let prefix = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:");
    records.iter().filter(move |record| {
        let is_theirs =
            |scenario: &&str| record.user.contains(*scenario) || record.object.namespace.contains(*scenario);
        let on_purpose = record.code == Some(403) && REFUSED_ON_PURPOSE.iter().any(is_theirs);
        let name = record.user.strip_prefix(&prefix);
        record.side == side && name.is_some_and(&is_wanted) && !on_purpose
    })
}

/// The grants that tests added through the label for further providers.
async fn granted_by_tests(
    clusters: &TestClusters,
    shipped: &BTreeSet<Deed>,
) -> anyhow::Result<BTreeSet<Deed>> {
    let roles: Api<ClusterRole> = Api::all(clusters.control_plane().management().admin());
    let labelled = ListParams::default().labels("5spot.finos.org/aggregate-to-controller=true");
    let roles = roles.list(&labelled).await.context("failed to list the roles of providers")?;
    let documents = roles.items.into_iter().map(|role| {
        let mut document = serde_json::to_value(role)?;
        document["kind"] = "ClusterRole".into();
        Ok(document)
    });
    let documents: Vec<Value> = documents.collect::<Result<_, serde_json::Error>>()?;
    Ok(granted(&documents).difference(shipped).cloned().collect())
}

/// A shipped file or directory.
pub(crate) fn deploy(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(part)
}
