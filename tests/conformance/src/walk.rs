//! Random walks: seeded sequences of operations, for which two servers must give the same responses.

use super::case::{Case, Step};
use five_spot_apiserver::ids::Ids;
use serde_json::{Map, Value, json};

/// The kinds of a walk: those that no controller of a cluster changes.
const KINDS: [(&str, &str, &str); 5] = [
    ("v1", "ConfigMap", "/api/v1/namespaces/{ns}/configmaps"),
    ("v1", "Secret", "/api/v1/namespaces/{ns}/secrets"),
    ("coordination.k8s.io/v1", "Lease", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"),
    ("conformance.example.org/v1", "Widget", "/apis/conformance.example.org/v1/namespaces/{ns}/widgets"),
    ("conformance.example.org/v1", "Gadget", "/apis/conformance.example.org/v1/namespaces/{ns}/gadgets"),
];

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The walk of a seed, with this many operations.
pub fn walk(seed: u64, operations: usize) -> Case {
    let mut walker = Walker { chance: Ids::new(seed) };
    let steps = (0..operations).map(|_| walker.operation()).collect();
    let watch = KINDS.iter().map(|(_, _, path)| (*path).to_owned()).collect();
    Case { area: "walk".to_owned(), name: format!("seed {seed}, {operations} operations"), steps, watch }
}

struct Walker {
    chance: Ids,
}

impl Walker {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = self.chance.below(from.len() as u64);
        from[usize::try_from(index).unwrap_or(0)]
    }

    fn operation(&mut self) -> Step {
        let (api_version, kind, path) = self.pick(&KINDS);
        let name = self.pick(&["a", "b", "c"]);
        let item = format!("{path}/{name}");
        match self.chance.below(20) {
            0..4 => {
                let object = self.object(api_version, kind, name);
                step("POST", path, Some((object, "application/json")))
            }
            4 => step("GET", &item, None),
            5 => {
                let selector = self.pick(&["app=web", "app!=web,app", "tier", "!tier,app"]);
                step("GET", &format!("{path}?labelSelector={selector}"), None)
            }
            6..9 => {
                let change = self.change(kind);
                step("PATCH", &item, Some((change, MERGE)))
            }
            9 => {
                let labels = self.labels();
                step("PATCH", &item, Some((json!({"metadata": {"labels": labels}}), MERGE)))
            }
            10 => {
                let value = self.pick(&["web", "db"]);
                let tested = json!([
                    {"op": "test", "path": "/metadata/labels/app", "value": value},
                    {"op": "add", "path": "/metadata/labels/tested", "value": "yes"},
                ]);
                step("PATCH", &item, Some((tested, JSON_PATCH)))
            }
            11..15 => {
                let manager = self.pick(&["one", "two"]);
                let force = self.pick(&["", "&force=true"]);
                let mut object = self.object(api_version, kind, name);
                object["metadata"]["labels"] = self.labels();
                step("PATCH", &format!("{item}?fieldManager={manager}{force}"), Some((object, APPLY)))
            }
            15 => {
                let finalizers =
                    self.pick(&["null", "[\"example.org/x\"]", "[\"example.org/x\",\"example.org/y\"]"]);
                let finalizers: Value = serde_json::from_str(finalizers).unwrap_or_default();
                step("PATCH", &item, Some((json!({"metadata": {"finalizers": finalizers}}), MERGE)))
            }
            16 => {
                let status = json!({"status": {"phase": self.pick(&["New", "Old"])}});
                step("PATCH", &format!("{item}/status"), Some((status, MERGE)))
            }
            17 => step("PATCH", &item, Some((json!({"metadata": {"resourceVersion": "1"}}), MERGE))),
            18 => step("DELETE", &format!("{item}?dryRun=All"), None),
            _ => step("DELETE", &item, None),
        }
    }

    fn labels(&mut self) -> Value {
        let mut labels = Map::new();
        for key in ["app", "tier"] {
            match self.chance.below(3) {
                0 => {}
                1 => {
                    labels.insert(key.to_owned(), "web".into());
                }
                _ => {
                    labels.insert(key.to_owned(), "db".into());
                }
            }
        }
        // An empty map is a deliberate difference.
        if labels.is_empty() {
            labels.insert("app".to_owned(), "web".into());
        }
        Value::Object(labels)
    }

    fn object(&mut self, api_version: &str, kind: &str, name: &str) -> Value {
        let mut object = self.change(kind);
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": name, "labels": self.labels()});
        object
    }

    /// The content of a kind, which is sometimes invalid.
    fn change(&mut self, kind: &str) -> Value {
        let small = self.chance.below(4);
        match kind {
            "ConfigMap" => json!({"data": {self.pick(&["x", "y", "bad key"]): small.to_string()}}),
            "Secret" => json!({"stringData": {self.pick(&["x", "y"]): small.to_string()}}),
            "Lease" => {
                json!({"spec": {"holderIdentity": self.pick(&["me", "you"]), "leaseTransitions": small}})
            }
            "Widget" => json!({"spec": {
                "colour": self.pick(&["red", "blue", "black", "pink"]), "size": small * 40,
                "tags": [self.pick(&["a", "b"]), "c"],
                "ports": [{"name": self.pick(&["web", "api"]), "number": small}],
            }}),
            _ => json!({"spec": {self.pick(&["x", "y"]): {"deep": [small]}}}),
        }
    }
}

fn step(method: &str, path: &str, body: Option<(Value, &str)>) -> Step {
    let (body, content_type) = body.map_or((None, None), |(body, kind)| (Some(body), Some(kind.to_owned())));
    Step {
        send: format!("{method} {path}"),
        body,
        raw: None,
        content_type,
        accept: None,
        save: Map::new(),
        until: None,
        ignore: Vec::new(),
        quiet: false,
        messages: false,
    }
}
