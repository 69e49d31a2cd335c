//! Creation and server-side apply of single objects.

use super::KubeconfigFailure;
use super::cause::cause;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::Value;

/// The field manager of this command.
const FIELD_MANAGER: &str = "5spot-kubeconfig";

/// Creates an object, and returns its kind and name. Returns `None` if it exists, which changes nothing.
pub(super) async fn create(
    client: &Client,
    document: &Value,
    cluster: &str,
) -> Result<Option<String>, KubeconfigFailure> {
    let Target { api, title, plural, .. } = Target::of(client, document);
    let failure = |cause: String, fix: String| KubeconfigFailure {
        step: format!("create the {title} in {cluster}"),
        cause,
        fix,
    };
    let object: DynamicObject = serde_json::from_value(document.clone())
        .map_err(|error| failure(error.to_string(), "Report this error".into()))?;
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    match api.create(&params, &object).await {
        Ok(_) => Ok(Some(format!("{title} in {cluster}"))),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(failure(cause(&error), fix(&error, &plural, cluster))),
    }
}

/// Creates or updates an object, and returns its kind and name.
pub(super) async fn apply(
    client: &Client,
    document: &Value,
    cluster: &str,
) -> Result<String, KubeconfigFailure> {
    let Target { api, name, title, plural } = Target::of(client, document);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(&name, &params, &Patch::Apply(document)).await.map_err(|error| KubeconfigFailure {
        step: format!("apply the {title} in {cluster}"),
        cause: cause(&error),
        fix: fix(&error, &plural, cluster),
    })?;
    Ok(format!("{title} in {cluster}"))
}

/// The place of an object in a cluster.
struct Target {
    api: Api<DynamicObject>,
    name: String,
    /// The kind and the name with its namespace.
    title: String,
    plural: String,
}

impl Target {
    fn of(client: &Client, document: &Value) -> Self {
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
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &kind), &plural);
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        Self { api, name, title, plural }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::environment::SandboxEnvironment;
    use k8s_openapi::api::core::v1::Namespace;
    use kube::ResourceExt as _;
    use serde_json::json;

    #[tokio::test]
    async fn a_namespace_that_exists_keeps_its_labels() {
        let start = "2026-11-16T08:00:00Z".parse().expect("a time");
        let environment = SandboxEnvironment::new(start, 0).expect("a sandbox");
        let client = environment.api.client("admin");
        let namespace = |level: &str| {
            let metadata = json!({"name": "edge-system", "labels": {"level": level}});
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        };
        let created = create(&client, &namespace("restricted"), "the cluster").await.expect("created");
        assert_eq!(created.as_deref(), Some("Namespace edge-system in the cluster"));
        let created = create(&client, &namespace("privileged"), "the cluster").await.expect("left alone");
        assert_eq!(created, None);
        let kept = Api::<Namespace>::all(client).get("edge-system").await.expect("a namespace");
        assert_eq!(kept.labels()["level"], "restricted");
    }
}
