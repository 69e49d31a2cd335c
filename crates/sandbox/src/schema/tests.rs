use super::*;
use serde_json::json;

fn machine() -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": { "name": "desk-17", "namespace": "default" },
        "spec": {
            "schedule": { "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"] },
            "clusterName": "edge",
            "bootstrapSpec": { "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {} },
            "infrastructureSpec": { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine", "spec": {} },
        },
    })
}

#[test]
fn a_plain_object_is_accepted_and_completed() {
    let validator = Validator::scheduled_machine();
    let mut object = machine();
    validator.apply_defaults(&mut object);
    assert_eq!(object.pointer("/spec/schedule/timezone"), Some(&json!("UTC")));
    assert_eq!(
        object.pointer("/spec/drain"),
        Some(&json!({ "onTimeout": "Error", "cordonBefore": "0s" }))
    );
    assert_eq!(validator.validate(&object, None), []);
}

#[test]
fn a_zone_that_does_not_exist_is_reported_by_name() {
    let mut object = machine();
    object["spec"]["schedule"]["timezone"] = json!("Mars/Base");
    let causes = Validator::scheduled_machine().validate(&object, None);
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert!(
        causes[0]
            .message
            .contains("unknown time zone Mars/Base evaluating rule: must be the name"),
        "{}",
        causes[0]
    );
}
