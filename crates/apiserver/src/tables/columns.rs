//! The columns of built-in kinds.

use super::Column;
use super::duration::age;
use super::workloads;
use crate::kinds::{BuiltinKind, Resource};
use crate::object;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) type Cell = fn(&Value, Timestamp) -> Value;

/// Name, OpenAPI type, priority (0: always shown, 1: with `-o wide`), cell.
pub(super) type Row = (&'static str, &'static str, i64, Cell);

pub(super) const NAME: Row = ("Name", "string", 0, |object, _| object::name(object).into());
pub(super) const AGE: Row =
    ("Age", "string", 0, |object, now| age(object::meta_str(object, "creationTimestamp"), now).into());

pub(super) fn columns(resource: &Resource) -> Vec<Column> {
    let Some(kind) = resource.builtin() else {
        return Vec::new();
    };
    rows(kind)
        .into_iter()
        .map(|(name, kind, priority, cell)| Column {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: if name == "Name" { "name".to_owned() } else { String::new() },
            description: String::new(),
            priority,
            cell: Box::new(cell),
        })
        .collect()
}

fn rows(kind: BuiltinKind) -> Vec<Row> {
    match kind {
        BuiltinKind::ConfigMap => vec![
            NAME,
            ("Data", "string", 0, |object, _| {
                (entries(object, "data") + entries(object, "binaryData")).into()
            }),
            AGE,
        ],
        BuiltinKind::Secret => vec![
            NAME,
            ("Type", "string", 0, |object, _| object["type"].clone()),
            ("Data", "string", 0, |object, _| entries(object, "data").into()),
            AGE,
        ],
        BuiltinKind::ServiceAccount => vec![NAME, AGE],
        BuiltinKind::Namespace => {
            vec![NAME, ("Status", "string", 0, |object, _| text(&object["status"]["phase"], "").into()), AGE]
        }
        BuiltinKind::Lease => vec![
            NAME,
            ("Holder", "string", 0, |object, _| text(&object["spec"]["holderIdentity"], "").into()),
            AGE,
        ],
        BuiltinKind::CustomResourceDefinition => {
            vec![NAME, ("Created At", "date", 0, |object, _| object["metadata"]["creationTimestamp"].clone())]
        }
        BuiltinKind::PodDisruptionBudget => budget(),
        BuiltinKind::Node => node(),
        BuiltinKind::Pod => pod(),
        BuiltinKind::CoreEvent | BuiltinKind::Event => event(),
        BuiltinKind::Deployment => workloads::deployment(),
        BuiltinKind::DaemonSet => workloads::daemon_set(),
        BuiltinKind::ReplicaSet => workloads::replica_set(),
    }
}

fn entries(object: &Value, field: &str) -> usize {
    object[field].as_object().map_or(0, serde_json::Map::len)
}

pub(super) fn text(value: &Value, absent: &str) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            absent.to_owned()
        }
    }
}

pub(super) fn number(value: &Value) -> Value {
    json!(value.as_i64().unwrap_or(0))
}

fn budget() -> Vec<Row> {
    vec![
        NAME,
        ("Min Available", "string", 0, |object, _| text(&object["spec"]["minAvailable"], "N/A").into()),
        ("Max Unavailable", "string", 0, |object, _| text(&object["spec"]["maxUnavailable"], "N/A").into()),
        ("Allowed Disruptions", "integer", 0, |object, _| number(&object["status"]["disruptionsAllowed"])),
        AGE,
    ]
}

fn node() -> Vec<Row> {
    vec![
        NAME,
        ("Status", "string", 0, |object, _| node_status(object).into()),
        ("Roles", "string", 0, |object, _| node_roles(object).into()),
        AGE,
        ("Version", "string", 0, |object, _| {
            text(&object["status"]["nodeInfo"]["kubeletVersion"], "").into()
        }),
        ("Internal-IP", "string", 1, |object, _| node_address(object, "InternalIP").into()),
        ("External-IP", "string", 1, |object, _| node_address(object, "ExternalIP").into()),
        ("OS-Image", "string", 1, |object, _| {
            text(&object["status"]["nodeInfo"]["osImage"], "<unknown>").into()
        }),
        ("Kernel-Version", "string", 1, |object, _| {
            text(&object["status"]["nodeInfo"]["kernelVersion"], "<unknown>").into()
        }),
        ("Container-Runtime", "string", 1, |object, _| {
            text(&object["status"]["nodeInfo"]["containerRuntimeVersion"], "<unknown>").into()
        }),
    ]
}

fn node_status(node: &Value) -> String {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    let mut status = match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object();
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn node_address(node: &Value, kind: &str) -> String {
    let mut addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    addresses
        .find(|one| one["type"] == kind)
        .map_or_else(|| "<none>".to_owned(), |one| text(&one["address"], "<none>"))
}

fn pod() -> Vec<Row> {
    vec![
        NAME,
        ("Ready", "string", 0, |object, _| {
            let statuses = object["status"]["containerStatuses"].as_array().into_iter().flatten();
            let ready = statuses.filter(|status| status["ready"] == true).count();
            let all = object["spec"]["containers"].as_array().map_or(0, Vec::len);
            format!("{ready}/{all}").into()
        }),
        ("Status", "string", 0, |object, _| pod_status(object).into()),
        ("Restarts", "string", 0, |object, _| {
            let statuses = object["status"]["containerStatuses"].as_array().into_iter().flatten();
            statuses.filter_map(|status| status["restartCount"].as_i64()).sum::<i64>().to_string().into()
        }),
        AGE,
        ("IP", "string", 1, |object, _| text(&object["status"]["podIP"], "<none>").into()),
        ("Node", "string", 1, |object, _| text(&object["spec"]["nodeName"], "<none>").into()),
        ("Nominated Node", "string", 1, |object, _| {
            text(&object["status"]["nominatedNodeName"], "<none>").into()
        }),
        ("Readiness Gates", "string", 1, |_, _| "<none>".into()),
    ]
}

fn pod_status(pod: &Value) -> String {
    if object::is_terminating(pod) {
        let is_unreachable = pod["status"]["reason"] == "NodeLost";
        return if is_unreachable { "Unknown" } else { "Terminating" }.to_owned();
    }
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    for status in statuses {
        for (state, fallback) in [("waiting", ""), ("terminated", "Completed")] {
            let state = &status["state"][state];
            if state.is_object() {
                let reason = text(&state["reason"], fallback);
                if !reason.is_empty() {
                    return reason;
                }
            }
        }
    }
    text(&pod["status"]["reason"], &text(&pod["status"]["phase"], ""))
}

fn event() -> Vec<Row> {
    vec![
        ("Last Seen", "string", 0, |object, now| age(&event_time(object, true), now).into()),
        ("Type", "string", 0, |object, _| object["type"].clone()),
        ("Reason", "string", 0, |object, _| object["reason"].clone()),
        ("Object", "string", 0, |object, _| {
            let about = either(object, "involvedObject", "regarding");
            format!("{}/{}", text(&about["kind"], "").to_lowercase(), text(&about["name"], "")).into()
        }),
        ("Subobject", "string", 1, |object, _| {
            text(&either(object, "involvedObject", "regarding")["fieldPath"], "").into()
        }),
        ("Source", "string", 1, |object, _| {
            let source = either(object, "source", "deprecatedSource");
            let component = text(
                &source["component"],
                &text(either(object, "reportingComponent", "reportingController"), ""),
            );
            let host = text(&source["host"], &text(&object["reportingInstance"], ""));
            if host.is_empty() { component.into() } else { format!("{component}, {host}").into() }
        }),
        ("Message", "string", 0, |object, _| text(either(object, "message", "note"), "").trim().into()),
        ("First Seen", "string", 1, |object, now| age(&event_time(object, false), now).into()),
        ("Count", "string", 1, |object, _| {
            let count = object["series"]["count"]
                .as_i64()
                .or_else(|| either(object, "count", "deprecatedCount").as_i64());
            json!(count.unwrap_or(1))
        }),
        ("Name", "string", 1, |object, _| object::name(object).into()),
    ]
}

fn either<'a>(object: &'a Value, core: &str, modern: &str) -> &'a Value {
    object.get(core).unwrap_or(&object[modern])
}

fn event_time(event: &Value, is_last: bool) -> String {
    let series = &event["series"]["lastObservedTime"];
    if is_last && series.is_string() {
        return text(series, "");
    }
    let (core, modern) = if is_last {
        ("lastTimestamp", "deprecatedLastTimestamp")
    } else {
        ("firstTimestamp", "deprecatedFirstTimestamp")
    };
    text(either(event, core, modern), &text(&event["eventTime"], ""))
}
