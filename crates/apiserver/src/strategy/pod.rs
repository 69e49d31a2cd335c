//! Pods and pod templates: their defaults, and the changes by the default admission plugins.

use super::Admission;
use super::defaults::default_to;
use crate::object;
use serde_json::{Value, json};

/// Defaults of a Pod.
pub(super) fn apply_pod_defaults(pod: &mut Value) {
    apply_spec_defaults(&mut pod["spec"]);
    default_to(pod, &["spec", "enableServiceLinks"], json!(true));
    if let Some(ip) = pod["status"].get("podIP").cloned() {
        default_to(pod, &["status", "podIPs"], json!([{"ip": ip}]));
    }
}

/// Defaults of the template in `spec.template`.
pub(super) fn apply_template_defaults(workload: &mut Value) {
    let spec = &mut workload["spec"]["template"]["spec"];
    if spec.is_object() {
        apply_spec_defaults(spec);
    }
}

fn apply_spec_defaults(spec: &mut Value) {
    for (field, default) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        default_to(spec, &[field], default);
    }
    for list in ["containers", "initContainers"] {
        for container in object::list_mut(spec, list) {
            apply_container_defaults(container);
        }
    }
}

fn apply_container_defaults(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    let image = container["image"].as_str().unwrap_or_default();
    // Without a tag, or with `latest`, the image may change.
    let name_and_tag = image.rsplit('/').next().unwrap_or_default();
    let is_latest =
        !image.contains('@') && (!name_and_tag.contains(':') || name_and_tag.ends_with(":latest"));
    let pull_policy = if is_latest { "Always" } else { "IfNotPresent" };
    for (field, default) in [
        ("resources", json!({})),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
        ("imagePullPolicy", json!(pull_policy)),
    ] {
        default_to(container, &[field], default);
    }
    for port in object::list_mut(container, "ports") {
        default_to(port, &["protocol"], json!("TCP"));
    }
    default_requests(&mut container["resources"]);
}

/// A limit without a request sets the request too.
fn default_requests(resources: &mut Value) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    for (name, limit) in limits {
        default_to(resources, &["requests", &name], limit);
    }
}

/// Service account, token volume, priority, tolerations, and the status of a new pod.
pub(super) fn admit(pod: &mut Value, admission: &mut Admission<'_>) {
    let spec = &mut pod["spec"];
    default_to(spec, &["serviceAccountName"], json!("default"));
    spec["serviceAccount"] = spec["serviceAccountName"].clone();
    if spec["automountServiceAccountToken"] != false {
        mount_token(spec, &format!("kube-api-access-{}", admission.ids.suffix()));
    }
    default_to(spec, &["priority"], json!(0));
    default_to(spec, &["preemptionPolicy"], json!("PreemptLowerPriority"));
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate(spec, key);
    }
    if admission.topology.as_object().is_some_and(|labels| !labels.is_empty()) {
        merge_texts(&mut pod["metadata"]["labels"], &admission.topology);
    }
    let quality = quality_of_service(&pod["spec"]);
    pod["status"] = json!({"phase": "Pending", "qosClass": quality});
}

/// Adds or replaces labels or annotations.
pub(crate) fn merge_texts(existing: &mut Value, brought: &Value) {
    for (key, value) in brought.as_object().into_iter().flatten() {
        existing[key] = value.clone();
    }
}

fn mount_token(spec: &mut Value, volume: &str) {
    const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        for container in object::list_mut(spec, list) {
            let mounts = &mut container["volumeMounts"];
            let has_own = mounts.as_array().into_iter().flatten().any(|one| one["mountPath"] == MOUNT_PATH);
            if !has_own {
                push(mounts, json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
                needed = true;
            }
        }
    }
    if needed {
        push(
            &mut spec["volumes"],
            json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                ]}},
            ]}}),
        );
    }
}

fn tolerate(spec: &mut Value, key: &str) {
    let tolerations = &mut spec["tolerations"];
    let covers = |one: &Value| {
        (one["key"] == key || (one["key"].is_null() && one["operator"] == "Exists"))
            && (one["effect"] == "NoExecute" || one["effect"].is_null())
    };
    if !tolerations.as_array().into_iter().flatten().any(covers) {
        push(
            tolerations,
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
        );
    }
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *list = Value::Array(vec![item]);
        }
    }
}

/// `Guaranteed` if the CPU and memory limits of every container equal its requests, `BestEffort` if no
/// container has any.
fn quality_of_service(spec: &Value) -> &'static str {
    let containers: Vec<&Value> = ["initContainers", "containers"]
        .iter()
        .flat_map(|list| spec[*list].as_array().into_iter().flatten())
        .collect();
    let counted = |container: &&Value, field: &str| {
        ["cpu", "memory"].iter().filter(|name| !container["resources"][field][**name].is_null()).count()
    };
    if containers.iter().all(|one| counted(one, "limits") == 0 && counted(one, "requests") == 0) {
        return "BestEffort";
    }
    let is_guaranteed = containers.iter().all(|one| {
        counted(one, "limits") == 2
            && ["cpu", "memory"]
                .iter()
                .all(|name| one["resources"]["limits"][*name] == one["resources"]["requests"][*name])
    });
    if is_guaranteed { "Guaranteed" } else { "Burstable" }
}
