//! The objects of a large fleet.

use five_spot_api::names::SYSTEM_NAMESPACE;
use jiff::{SignedDuration, Timestamp, Zoned, tz::TimeZone};
use serde_json::{Value, json};

/// The weekly window of an object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Window {
    /// It opens at this minute, and stays open for six days.
    OpensAt(Timestamp),
    /// It opens at the first of these minutes, and closes at the second.
    OpensAndCloses(Timestamp, Timestamp),
    /// It opens in three days.
    Closed,
}

impl Window {
    fn schedule(self) -> Value {
        let days = |days: i64| SignedDuration::from_hours(24 * days);
        let (from, to) = match self {
            Self::OpensAt(time) => (time, time + days(6)),
            Self::OpensAndCloses(from, to) => (from, to),
            Self::Closed => (Timestamp::now() + days(3), Timestamp::now() + days(4)),
        };
        json!({"windows": [{"from": minute_of_week(from), "to": minute_of_week(to)}]})
    }
}

fn minute_of_week(time: Timestamp) -> String {
    Zoned::new(time, TimeZone::UTC).strftime("%a %H:%M").to_string().to_lowercase()
}

/// The name of an object. All names have the same length.
pub(super) fn name(number: usize) -> String {
    format!("desk-{number:06}")
}

/// The object that a name of something that belongs to it begins with.
pub(super) fn number(text: &str) -> Option<usize> {
    text.strip_prefix("desk-")?.get(..6)?.parse().ok()
}

/// An object with a machine of its own.
pub(super) fn scheduled_machine(namespace: &str, number: usize, window: &Window) -> Value {
    let [_, a, b, c] = u32::try_from(number).unwrap_or_default().to_be_bytes();
    // Machines of different namespaces are different ones.
    let port = 1024 + namespace.bytes().map(u32::from).sum::<u32>();
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": name(number), "namespace": namespace},
        "spec": {
            "schedule": window.schedule(),
            "clusterName": "edge",
            // Here a Node joins late or never.
            "joinTimeout": "24h",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig",
                "spec": {"version": "v1.36.4+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                "spec": {"address": format!("10.{a}.{b}.{c}"), "port": port, "user": "root"},
            },
        },
    })
}

/// The objects that every namespace needs: a Cluster, and the kubeconfig of the cluster of its Nodes.
pub(super) fn namespace_objects(namespace: &str, kubeconfig: &str) -> Vec<Value> {
    let names = [namespace, SYSTEM_NAMESPACE];
    let namespaces =
        names.map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let objects = [
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "edge", "namespace": namespace}, "spec": {},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "edge-kubeconfig", "namespace": namespace},
            "stringData": {"value": kubeconfig},
        }),
    ];
    namespaces.into_iter().chain(objects).collect()
}
