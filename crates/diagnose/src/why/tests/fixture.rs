//! A cluster that is a list of objects.

use crate::why::facts::{Fact, Facts, Filter, Listed, Need, ObjectId, ResourceId, Unreadable};
use crate::why::live::{Live, group_of};
use crate::why::{Answer, BlockingCause, DeletionState, MAX_FACTS, Question, WalkProgress, examine};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The time of every test.
pub(super) const NOW: &str = "2026-11-17T12:00:00Z";

/// Returns the time of the test, so many seconds ago.
pub(super) fn ago(seconds: i64) -> String {
    now().checked_sub(SignedDuration::from_secs(seconds)).expect("in range").to_string()
}

pub(super) fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

/// A cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterFixture {
    pub(super) objects: Vec<Value>,
    /// Lists of these kinds are refused.
    pub(super) forbidden: Vec<&'static str>,
    /// The number of facts that the last walk asked for.
    pub(super) asked: usize,
}

impl ClusterFixture {
    pub(super) fn with(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Asks about an object until there is an answer.
    pub(super) fn examine(&mut self, id: ObjectId) -> WalkProgress {
        let question = Question::about(id);
        let mut facts = Facts::at(now());
        for _ in 0..=MAX_FACTS {
            let progress = examine(&question, &facts);
            let WalkProgress::Needs(needs) = progress else {
                self.asked = facts.len();
                return progress;
            };
            assert!(!needs.is_empty(), "nothing is needed, and there is no answer");
            for need in needs {
                assert!(facts.get(&need).is_none(), "asked twice for {need:?}");
                let fact = self.answer(&need);
                facts.insert(need, fact);
            }
        }
        panic!("the walk does not end");
    }

    pub(super) fn why(&mut self, id: ObjectId) -> Answer {
        let progress = self.examine(id);
        let WalkProgress::Answer(answer) = progress else { panic!("no answer: {progress:?}") };
        answer
    }

    pub(super) fn answer(&self, need: &Need) -> Fact {
        match need {
            Need::Object(id) => {
                let found = self.objects.iter().find(|object| {
                    let found = Live(object).id();
                    // Cluster-scoped kinds ignore the namespace of the question.
                    found == *id
                        || (found.namespace.is_none() && ObjectId { namespace: None, ..id.clone() } == found)
                });
                if self.forbidden.contains(&id.kind.as_str()) {
                    return Fact::Unreadable(Unreadable::Forbidden(format!("get {}", id.kind)));
                }
                found.map_or(Fact::Absent, |object| Fact::Object(object.clone()))
            }
            Need::List { resource, namespace, filter, limit } => {
                let kind = match resource {
                    ResourceId::Kind { kind, .. } => kind.clone(),
                    ResourceId::Plural { plural, .. } => plural.clone(),
                };
                if self.forbidden.contains(&kind.as_str()) {
                    return Fact::Unreadable(Unreadable::Forbidden(format!("list {kind}")));
                }
                let all: Vec<&Value> = self
                    .objects
                    .iter()
                    .filter(|object| {
                        let object = Live(object);
                        is_of(object, resource)
                            && namespace.as_ref().is_none_or(|it| object.namespace() == it)
                            && matches(object, filter)
                    })
                    .collect();
                let limit = *limit as usize;
                Fact::List(Listed {
                    items: all.iter().take(limit).map(|it| (*it).clone()).collect(),
                    more: all.len().saturating_sub(limit) as u64,
                    unread: Vec::new(),
                })
            }
            Need::Dependents { owner, namespace } => {
                let names = |object: &&Value| {
                    Live(object).owners().iter().any(|it| match &owner.uid {
                        Some(uid) => it.uid == uid,
                        None => it.kind == owner.kind && it.name == owner.name,
                    })
                };
                let here =
                    |object: &&Value| namespace.as_ref().is_none_or(|it| Live(object).namespace() == it);
                let items = self.objects.iter().filter(names).filter(here).cloned().collect();
                Fact::List(Listed { items, ..Listed::default() })
            }
        }
    }
}

fn is_of(object: Live<'_>, resource: &ResourceId) -> bool {
    let group = group_of(object.text("/apiVersion"));
    let kind = object.text("/kind");
    match resource {
        ResourceId::Kind { group: wanted, kind: name } => group == wanted && kind == name,
        ResourceId::Plural { group: wanted, plural } => {
            group == wanted && format!("{}s", kind.to_lowercase()) == *plural
        }
    }
}

fn matches(object: Live<'_>, filter: &Filter) -> bool {
    match filter {
        Filter::All => true,
        Filter::Fields(selector) => selector.split(',').all(|part| {
            let (path, value) = part.split_once('=').expect("a field and a value");
            object.text(&format!("/{}", path.replace('.', "/"))) == value
        }),
        Filter::Labels(selector) => {
            let (key, value) = selector.split_once('=').expect("a label and a value");
            object.0.pointer("/metadata/labels").is_some_and(|labels| labels[key] == value)
        }
    }
}

/// An object without a namespace.
pub(super) fn cluster_scoped(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "uid": format!("uid-{kind}-{name}")},
    });
    merge(&mut object, rest);
    object
}

/// An object in the namespace `shop`.
pub(super) fn namespaced(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = cluster_scoped(api_version, kind, name, rest);
    object["metadata"]["namespace"] = "shop".into();
    object
}

pub(super) fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}

/// The same object, its deletion requested so many seconds ago, with finalizers.
pub(super) fn deleting(mut object: Value, seconds: i64, finalizers: &[&str]) -> Value {
    object["metadata"]["deletionTimestamp"] = ago(seconds).into();
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
    if !finalizers.is_empty() {
        object["metadata"]["finalizers"] = json!(finalizers);
    }
    object
}

/// A Node with a condition Ready.
pub(super) fn node(name: &str, ready: &str) -> Value {
    cluster_scoped(
        "v1",
        "Node",
        name,
        json!({"status": {"conditions": [{
            "type": "Ready", "status": ready, "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": ago(3600),
        }]}}),
    )
}

/// A namespace that is being deleted, with the message of `NamespaceContentRemaining`.
pub(super) fn terminating(seconds: i64, remaining: &str) -> Value {
    let namespace = cluster_scoped(
        "v1",
        "Namespace",
        "shop",
        json!({
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Terminating", "conditions": [
                {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "All resources successfully discovered"},
                {
                    "type": "NamespaceContentRemaining", "status": "True", "reason": "SomeResourcesRemain",
                    "message": format!("Some resources are remaining: {remaining}"),
                },
            ]},
        }),
    );
    deleting(namespace, seconds, &[])
}

pub(super) fn shop() -> ObjectId {
    ObjectId::cluster_scoped("", "Namespace", "shop")
}

pub(super) fn pod_id(name: &str) -> ObjectId {
    ObjectId::namespaced("", "Pod", "shop", name)
}

/// Checks the state and returns the only cause.
pub(super) fn only_cause(answer: &Answer, state: DeletionState) -> &BlockingCause {
    assert_eq!(answer.state, state, "{answer:#?}");
    let [cause] = answer.causes.as_slice() else { panic!("not one cause: {answer:#?}") };
    cause
}

/// A warning about an object.
pub(super) fn event(about: &Value, reason: &str, message: &str) -> Value {
    namespaced(
        "v1",
        "Event",
        &format!("{reason}-{}", about["metadata"]["name"]),
        json!({
            "type": "Warning", "reason": reason, "message": message, "lastTimestamp": ago(60), "count": 3,
            "involvedObject": {
                "apiVersion": about["apiVersion"], "kind": about["kind"], "name": about["metadata"]["name"],
                "uid": about["metadata"]["uid"],
            },
        }),
    )
}
