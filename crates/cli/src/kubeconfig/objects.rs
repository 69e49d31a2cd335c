//! Server-side apply of single objects.

use super::Failure;
use super::cause::cause;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;

/// The field manager of this command.
const FIELD_MANAGER: &str = "5spot-kubeconfig";

/// Creates or updates an object, and returns its kind and name.
pub(super) async fn apply(client: &Client, document: &Value, cluster: &str) -> Result<String, Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&document["kind"]), text(&document["metadata"]["name"]));
    let namespace = document["metadata"]["namespace"].as_str();
    let title = match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    };
    let version = text(&document["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", version.as_str()));
    // The kinds of this command have regular plurals.
    let plural = format!("{}s", kind.to_lowercase());
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &kind), &plural);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(&name, &params, &Patch::Apply(document)).await.map_err(|error| Failure {
        step: format!("apply the {title} in {cluster}"),
        cause: cause(&error),
        fix: fix(&error, &plural, cluster),
    })?;
    Ok(format!("{title} in {cluster}"))
}

/// The next thing to try after an error.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other error of kube is one of the connection")]
fn fix(error: &kube::Error, plural: &str, cluster: &str) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!(
                "This needs the verbs create and patch on {plural} in {cluster}, and for roles and bindings every \
                 permission that they grant"
            )
        }
        // The namespace exists: it contains the Secret that was applied before.
        kube::Error::Api(status) if status.code == 404 && plural == "rolebindings" => {
            "Apply deploy/rbac, which contains the ClusterRole that it refers to. With the Roles in \
             deploy/rbac-namespaced the controller can read the Secret already"
                .to_owned()
        }
        kube::Error::Api(status) if status.code == 404 => {
            "Create the namespace first, or choose another with --namespace".to_owned()
        }
        kube::Error::Api(_) => "Correct what the API server rejects, and try again".to_owned(),
        _ => format!("Check that {cluster} can be reached from here, and try again"),
    }
}
