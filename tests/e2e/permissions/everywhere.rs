//! A controller that watches all namespaces, as the shipped Deployment starts it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use five_spot_api::ScheduledMachine;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests, wait};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::condition;
use crate::scenarios::{controller_identity, kubeconfig_reader};
use crate::startup::{Program, machine};

pub(crate) fn tests() -> Vec<Test> {
    // Alone: the objects of others would have two controllers.
    tests![
        #[alone]
        all_namespaces_are_looked_after
    ]
}

const WITHIN: Duration = Duration::from_mins(1);

async fn all_namespaces_are_looked_after(context: Arc<TestContext>) -> TestResult {
    let identity = controller_identity(&context).await?;
    let admin = context.management().admin();
    let mut applier = manifests::Applier::new(admin.clone());
    // It also manages objects that other tests have left behind, and may need their kubeconfigs.
    let all: Api<ScheduledMachine> = Api::all(admin.clone());
    let left =
        all.list(&ListParams::default()).await?.items.into_iter().filter_map(|one| one.metadata.namespace);
    for place in left.collect::<BTreeSet<String>>() {
        applier.apply(&kubeconfig_reader(), &place).await?;
    }
    let program = Program::start(context.directory(), &identity, context.namespace(), &[]).await?;
    program.is_ready().await?;
    let namespace = |paused: Option<&str>| {
        let annotations = json!({"5spot.finos.org/paused": paused});
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": context.cluster_scoped("new"), "annotations": if paused.is_some() { annotations } else { json!({}) }},
        })
    };
    // A namespace that is created later, whose annotation pauses its object.
    applier.apply(&namespace(Some("true")), "").await?;
    let place = context.cluster_scoped("new");
    applier.apply(&kubeconfig_reader(), &place).await?;
    let mut object = machine("desk");
    object["metadata"]["namespace"] = place.clone().into();
    applier.apply(&object, &place).await?;
    let objects: Api<ScheduledMachine> = Api::namespaced(admin, &place);
    let paused_is = |wanted: &'static str| {
        move |object: &ScheduledMachine| condition(object, "Paused").is_some_and(|it| it.status == wanted)
    };
    wait::until_present(&objects, "desk", "to be paused", WITHIN, paused_is("True")).await?;
    applier.apply(&namespace(None), "").await?;
    wait::until_present(&objects, "desk", "to go on", WITHIN, paused_is("False")).await?;
    program.stop().await
}
