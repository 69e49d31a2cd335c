//! References to objects in answers.

use serde::Serialize;
use std::fmt;

/// An object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ReportedObject {
    /// The kind.
    pub kind: String,
    /// The namespace; absent for cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ReportedObject {
    /// An object in a namespace.
    pub fn namespaced(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: Some(namespace.to_owned()), name: name.to_owned() }
    }

    /// A cluster-scoped object.
    pub fn cluster_scoped(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: None, name: name.to_owned() }
    }
}

impl fmt::Display for ReportedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_left_out_where_there_is_none() {
        let pod = ReportedObject::namespaced("Pod", "shop", "web-0");
        assert_eq!(pod.to_string(), "Pod shop/web-0");
        let json = serde_json::to_value(&pod).expect("JSON");
        assert_eq!(json, serde_json::json!({"kind": "Pod", "namespace": "shop", "name": "web-0"}));
        let node = ReportedObject::cluster_scoped("Node", "desk-17");
        assert_eq!(node.to_string(), "Node desk-17");
        let json = serde_json::to_value(&node).expect("JSON");
        assert_eq!(json, serde_json::json!({"kind": "Node", "name": "desk-17"}));
    }
}
