//! Namespaces. Their conditions name the kinds and finalizers that remain, so that nothing else has to be listed.

use super::answer::CauseFix;
use super::facts::{Filter, ResourceId};
use super::finalizer_table::Controller;
use super::live::Live;
use super::remaining::{self, LIMIT, Place};
use super::walk::Walk;
use super::{api_service, finalizer, refusal, words};
use crate::shell::quoted;
use jiff::SignedDuration;

/// The finalizer of the namespace controller, in the spec.
const KUBERNETES: &str = "kubernetes";

/// The time after which the namespace controller should have looked at a deleted namespace.
const NOTICED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The number of kinds that are examined.
const KINDS: usize = 20;

/// Examines a namespace that is being deleted.
pub(super) fn deletion<'f>(walk: &mut Walk<'f>, namespace: Live<'f>, step: usize) {
    let causes = walk.causes_so_far();
    for condition in namespace.conditions().iter().filter(|it| it.status == "True") {
        walk.note(step, words::condition(condition));
    }
    let is_true = |kind| namespace.condition(kind).filter(|condition| condition.status == "True");
    if let Some(condition) = is_true("NamespaceDeletionDiscoveryFailure") {
        api_service::unavailable(walk, step, condition.message);
    }
    if let Some(condition) = is_true("NamespaceDeletionContentFailure") {
        refusal::explain(walk, &[condition.message]);
    }
    let remaining = is_true("NamespaceContentRemaining").map_or("", |condition| condition.message);
    let refused = is_true("NamespaceDeletionContentFailure").map_or("", |condition| condition.message);
    contents(walk, namespace, step, kinds(remaining, refused));
    foreign_finalizers(walk, namespace);
    for finalizer in namespace.finalizers() {
        finalizer::held(walk, namespace, finalizer);
    }
    if walk.is_complete() && walk.causes_so_far() == causes {
        unexplained(walk, namespace);
    }
}

/// The kinds that remain, as plural and group. Pods are deleted before everything else, and as long as they remain the conditions
/// may say that all content was removed.
fn kinds<'m>(remaining: &'m str, refused: &'m str) -> Vec<(&'m str, &'m str)> {
    let mut kinds: Vec<(&str, &str)> = resources(remaining).collect();
    for kind in failed_resources(refused).chain([("pods", "")]) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.truncate(KINDS);
    kinds
}

/// Examines what remains.
fn contents<'f>(walk: &mut Walk<'f>, namespace: Live<'f>, step: usize, kinds: Vec<(&str, &str)>) {
    let place = Place {
        whole: namespace,
        step,
        relation: "remains in the namespace",
        deleter: "the namespace controller",
    };
    for (plural, group) in kinds {
        match walk.list(ResourceId::plural(group, plural), Some(namespace.name()), Filter::All, LIMIT) {
            Some(Ok(listed)) => {
                if listed.more > 0 {
                    let objects = words::count(listed.more + listed.items.len() as u64, "object");
                    walk.note(
                        step,
                        format!(
                            "{plural}: {objects}, of which the first {} were examined",
                            listed.items.len()
                        ),
                    );
                }
                remaining::examine(walk, place, listed);
            }
            Some(Err(reason)) => walk.note_unread(step, plural, reason),
            None => {}
        }
    }
}

/// The kinds in the message of `NamespaceDeletionContentFailure`: `... for gvr: apps/v1, Resource=deployments`.
fn failed_resources(message: &str) -> impl Iterator<Item = (&str, &str)> {
    message.split("gvr: ").skip(1).filter_map(|part| {
        let (version, rest) = part.split_once(", Resource=")?;
        let plural = rest
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .next()
            .filter(|it| !it.is_empty())?;
        Some((plural, version.split_once('/').map_or("", |(group, _)| group)))
    })
}

/// The kinds in the message of `NamespaceContentRemaining`: `... pods. has 1 resource instances, widgets.example.org has 2 ...`.
fn resources(message: &str) -> impl Iterator<Item = (&str, &str)> {
    let list = message.split_once(": ").map_or("", |(_, list)| list);
    list.split(", ").filter_map(|item| {
        let (resource, _) = item.trim().split_once(" has ")?;
        // The group of core kinds is empty: `pods.`.
        resource.split_once('.').or(Some((resource, "")))
    })
}

/// Finalizers in the spec that are not Kubernetes' own.
fn foreign_finalizers<'f>(walk: &mut Walk<'f>, namespace: Live<'f>) {
    let finalizers: Vec<&str> =
        namespace.list("/spec/finalizers").filter_map(serde_json::Value::as_str).collect();
    for finalizer in finalizers.into_iter().filter(|it| *it != KUBERNETES) {
        let filter = format!("del(.spec.finalizers[] | select(. == {}))", serde_json::Value::from(finalizer));
        let path = format!("/api/v1/namespaces/{}/finalize", namespace.name());
        let command = format!(
            "{} -o json | jq {} | {} replace --raw {} -f -",
            walk.kubectl.on("get", &namespace.id()),
            quoted(&filter),
            walk.kubectl.0,
            quoted(&path)
        );
        let warning = format!("if you remove it, {}", super::finalizer_table::UNKNOWN_LEAVES);
        let cause = format!("its controller has to remove {finalizer} from spec.finalizers of the namespace");
        walk.blocked(&namespace.id(), cause, Vec::new(), vec![CauseFix::harmful(command, warning)]);
    }
}

/// Its contents remain, and none of them could be examined. Returns true if that is so.
fn unread_contents<'f>(walk: &mut Walk<'f>, namespace: Live<'f>) -> bool {
    let tell =
        ["NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure"];
    let conditions = namespace.conditions();
    let telling = conditions.iter().filter(|it| it.status == "True" && tell.contains(&it.kind));
    let evidence: Vec<String> = telling.map(words::condition).collect();
    if evidence.is_empty() {
        return false;
    }
    let cause = "objects remain in it that you may not read: ask someone who may".to_owned();
    let is_overdue = walk.overdue(namespace) > remaining::DELETED_WITHIN;
    walk.cause(&namespace.id(), cause, evidence, Vec::new(), is_overdue);
    true
}

/// No condition and no object explains it: the namespace controller has not come to it, or has just finished.
fn unexplained<'f>(walk: &mut Walk<'f>, namespace: Live<'f>) {
    if unread_contents(walk, namespace) {
        return;
    }
    let controller = Controller::BuiltIn("the namespace controller");
    let Some((is_away, evidence)) = finalizer::life_evidence(walk, controller) else { return };
    let id = namespace.id();
    let unchanged = walk.unchanged(namespace);
    if !is_away && unchanged < NOTICED_WITHIN {
        walk.waiting(&id, "the namespace controller is deleting its contents".to_owned(), evidence);
        return;
    }
    let cause = format!(
        "the namespace controller (kube-controller-manager) has not reported anything about it for {}: check that it runs",
        words::duration(unchanged)
    );
    walk.blocked(&id, cause, evidence, Vec::new());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_the_condition_names_the_kinds() {
        let message = "Some resources are remaining: persistentvolumeclaims. has 1 resource instances, pods. has 12 \
                       resource instances, widgets.example.org has 3 resource instances";
        let found: Vec<_> = resources(message).collect();
        assert_eq!(found, [("persistentvolumeclaims", ""), ("pods", ""), ("widgets", "example.org")]);
        let message = "Failed to delete all resource types, 2 remaining: unexpected items still remain in namespace: shop for gvr: \
                       /v1, Resource=pods, unexpected items still remain in namespace: shop for gvr: apps/v1, Resource=deployments";
        assert_eq!(failed_resources(message).collect::<Vec<_>>(), [("pods", ""), ("deployments", "apps")]);
        assert_eq!(failed_resources("gvr: , gvr: a, Resource=").count(), 0);
        assert_eq!(resources("All content successfully removed").count(), 0);
        assert_eq!(resources("garbage: , has, x").count(), 0);
    }
}
