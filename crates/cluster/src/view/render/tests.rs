//! The objects as they are applied, whole.

use super::{CapiVersion, Source, agent_config, bootstrap, infrastructure, machine};
use crate::transport::key::ObjectKey;
use five_spot_api::ScheduledMachineSpec;
use five_spot_core::ValidSpec;
use five_spot_core::action::NodeRef;
use five_spot_core::world::{NodeName, Uid};
use serde_json::{Value, json};

fn spec() -> ScheduledMachineSpec {
    serde_json::from_value(json!({
        "schedule": {"daysOfWeek": ["mon-fri"]},
        "clusterName": "edge",
        "nodeDrainTimeout": "2m",
        "killIfCommands": ["java", "say \"hi\""],
        "machineTemplate": {
            "labels": {"team": "render"}, "annotations": {"note": "x"}, "version": "v1.36.4", "failureDomain": "hall-2",
        },
        "bootstrapSpec": {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {"version": "v1"},
        },
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
            "spec": {"address": "10.0.0.17", "port": 22},
        },
    }))
    .unwrap()
}

fn rendered(version: CapiVersion, render: impl Fn(&Source<'_>) -> Value) -> Value {
    let raw = spec();
    let spec = ValidSpec::parse(&raw).unwrap();
    let uid = Uid::from("u-1");
    render(&Source {
        namespace: "shop",
        name: "desk-17",
        uid: &uid,
        raw: &raw,
        spec: &spec,
        capi_version: version,
    })
}

fn hashes() -> (String, String) {
    let spec = ValidSpec::parse(&spec()).unwrap();
    (spec.machine_hash.to_string(), spec.applied_hash.to_string())
}

#[test]
fn a_machine_in_the_current_version() {
    let (machine_hash, applied_hash) = hashes();
    let expected = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": "desk-17-machine",
            "namespace": "shop",
            "labels": {
                "team": "render",
                "5spot.finos.org/scheduled-machine": "desk-17",
                "cluster.x-k8s.io/cluster-name": "edge",
            },
            "annotations": {
                "note": "x",
                "5spot.finos.org/machine-hash": machine_hash,
                "5spot.finos.org/applied-hash": applied_hash,
            },
            "ownerReferences": [{
                "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "name": "desk-17", "uid": "u-1",
                "controller": true,
            }],
        },
        "spec": {
            "clusterName": "edge",
            "version": "v1.36.4",
            "failureDomain": "hall-2",
            "bootstrap": {"configRef": {
                "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "K0sWorkerConfig", "name": "desk-17-bootstrap",
            }},
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "desk-17-infra",
            },
            "deletion": {"nodeDrainTimeoutSeconds": 120, "nodeDeletionTimeoutSeconds": 3600},
        },
    });
    assert_eq!(rendered(CapiVersion::V1Beta2, machine), expected);
}

#[test]
fn a_v1beta1_machine_has_the_same_content() {
    let object = rendered(CapiVersion::V1Beta1, machine);
    assert_eq!(object["apiVersion"], "cluster.x-k8s.io/v1beta1");
    assert_eq!(object["spec"]["nodeDrainTimeout"], "120s");
    assert_eq!(object["spec"]["nodeDeletionTimeout"], "3600s");
    assert_eq!(object["spec"]["deletion"], Value::Null);
    let reference = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine", "name": "desk-17-infra",
        "namespace": "shop",
    });
    assert_eq!(object["spec"]["infrastructureRef"], reference);
}

#[test]
fn provider_objects_have_two_plain_owners() {
    let object = rendered(CapiVersion::V1Beta2, |source| infrastructure(source, &Uid::from("c-1")));
    assert_eq!(object["metadata"]["name"], "desk-17-infra");
    assert_eq!(object["spec"], json!({"address": "10.0.0.17", "port": 22}));
    let owners = json!([
        {"apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "name": "desk-17", "uid": "u-1"},
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "edge", "uid": "c-1"},
    ]);
    assert_eq!(object["metadata"]["ownerReferences"], owners);
    let other = rendered(CapiVersion::V1Beta2, |source| bootstrap(source, &Uid::from("c-1")));
    assert_eq!(other["metadata"]["name"], "desk-17-bootstrap");
    assert_eq!(other["metadata"]["ownerReferences"], owners);
}

#[test]
fn commands_are_quoted_for_the_agent() {
    let spec = ValidSpec::parse(&spec()).unwrap();
    let node = NodeRef { name: NodeName::from("node-1"), uid: Uid::from("n-1") };
    let object = agent_config(&ObjectKey::new("shop", "desk-17"), &node, &spec);
    let toml = "match_commands = [\"java\",\"say \\\"hi\\\"\"]\nmatch_argv_substrings = []\npoll_interval_ms = 250\n";
    assert_eq!(object["data"]["reclaim.toml"], toml);
    assert_eq!(object["metadata"]["name"], "reclaim-agent-node-1");
    assert_eq!(object["metadata"]["annotations"]["5spot.finos.org/made-for"], "shop/desk-17");
    assert_eq!(object["metadata"]["annotations"]["5spot.finos.org/node-uid"], "n-1");
}
