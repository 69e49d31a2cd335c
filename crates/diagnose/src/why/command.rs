//! Commands that can be pasted into a shell.

use super::facts::ObjectId;
use super::live::Live;
use crate::shell::{object, quoted, with_flags};
use serde_json::{Value, json};

/// The program and the flags that lead to the cluster in question: `kubectl --context lab`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kubectl<'a>(pub(super) &'a str);

impl Kubectl<'_> {
    /// A verb on an object: `kubectl delete pod web-0 -n shop`.
    pub(super) fn on(self, verb: &str, id: &ObjectId) -> String {
        let namespace = id.namespace.as_deref().map(|it| format!(" -n {}", quoted(it))).unwrap_or_default();
        format!("{} {verb} {}{namespace}", self.0, object(&resource(id), &id.name))
    }

    /// A command of this program for the same cluster: `5spot explain --context lab desk-17`.
    pub(super) fn five_spot(self, command: &str) -> String {
        let flags = self.0.strip_prefix("kubectl").unwrap_or_default().trim_start();
        with_flags(&format!("5spot {command}"), flags)
    }

    /// The deletion of an object after it was saved to a file of its name, so that it can be applied again.
    pub(super) fn save_and_delete(self, id: &ObjectId) -> String {
        let file = quoted(&format!("{}.yaml", id.name));
        format!("{} -o yaml > {file} && {}", self.on("get", id), self.on("delete", id))
    }

    /// The removal of an annotation.
    pub(super) fn remove_annotation(self, id: &ObjectId, key: &str) -> String {
        format!("{} {}", self.on("annotate", id), quoted(&format!("{key}-")))
    }

    /// An annotation.
    pub(super) fn annotate(self, id: &ObjectId, key: &str, value: &str) -> String {
        format!("{} {}", self.on("annotate", id), quoted(&format!("{key}={value}")))
    }

    /// A merge patch.
    pub(super) fn merge(self, id: &ObjectId, patch: &Value) -> String {
        format!("{} --type=merge -p {}", self.on("patch", id), quoted(&patch.to_string()))
    }

    /// The removal of one finalizer, which fails if another has taken its place meanwhile.
    pub(super) fn remove_finalizer(self, object: Live<'_>, finalizer: &str) -> String {
        let position = object.finalizers().iter().position(|it| *it == finalizer).unwrap_or_default();
        let path = format!("/metadata/finalizers/{position}");
        let operations = json!([
            {"op": "test", "path": path, "value": finalizer},
            {"op": "remove", "path": path},
        ]);
        format!("{} --type=json -p {}", self.on("patch", &object.id()), quoted(&operations.to_string()))
    }
}

/// The kind as an argument: the group is left out where every cluster knows the kind.
fn resource(id: &ObjectId) -> String {
    let kind = id.kind.to_lowercase();
    if id.group.is_empty() { quoted(&kind) } else { quoted(&format!("{kind}.{}", id.group)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_kind_group_and_namespace() {
        let kubectl = Kubectl("kubectl --context lab");
        let pod = ObjectId::namespaced("", "Pod", "shop", "web-0");
        assert_eq!(kubectl.on("delete", &pod), "kubectl --context lab delete pod web-0 -n shop");
        assert_eq!(kubectl.five_spot("explain a -n b"), "5spot explain --context lab a -n b");
        assert_eq!(Kubectl("kubectl").five_spot("explain a -n b"), "5spot explain a -n b");
        let widget = ObjectId::cluster_scoped("example.org", "Widget", "a");
        assert_eq!(
            kubectl.annotate(&widget, "x.io/a", "b c"),
            "kubectl --context lab annotate widget.example.org a 'x.io/a=b c'"
        );
        assert_eq!(
            kubectl.remove_annotation(&widget, "x.io/a"),
            "kubectl --context lab annotate widget.example.org a x.io/a-"
        );
    }

    #[test]
    fn what_is_deleted_is_saved_first() {
        let api = ObjectId::cluster_scoped("apiregistration.k8s.io", "APIService", "v1.x.io");
        assert_eq!(
            Kubectl("kubectl").save_and_delete(&api),
            "kubectl get apiservice.apiregistration.k8s.io v1.x.io -o yaml > v1.x.io.yaml && \
             kubectl delete apiservice.apiregistration.k8s.io v1.x.io"
        );
    }

    #[test]
    fn only_the_named_finalizer_is_removed() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "b", "finalizers": ["x.io/a", "x.io/b"]},
        });
        assert_eq!(
            Kubectl("kubectl").remove_finalizer(Live(&object), "x.io/b"),
            "kubectl patch configmap a -n b --type=json -p \
             '[{\"op\":\"test\",\"path\":\"/metadata/finalizers/1\",\"value\":\"x.io/b\"},\
             {\"op\":\"remove\",\"path\":\"/metadata/finalizers/1\"}]'"
        );
    }
}
