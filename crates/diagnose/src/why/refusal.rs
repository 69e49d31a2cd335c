//! Webhooks and policies that refuse requests, found in the messages of conditions and events.

use super::answer::CauseFix;
use super::facts::{Filter, ObjectId, ResourceId};
use super::live::Live;
use super::walk::Walk;
use super::words;

const GROUP: &str = "admissionregistration.k8s.io";

/// The number of webhook configurations that are searched for a name.
const LIMIT: u32 = 500;

/// A refusal in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal<'a> {
    /// A webhook has denied the request.
    Denied(&'a str),
    /// A webhook could not be called.
    Unreachable(&'a str),
    /// An admission policy has denied the request.
    Policy(&'a str),
}

/// Looks for a refusal in messages about an object, and adds its cause. Returns true if there is one.
pub(super) fn explain(walk: &mut Walk<'_>, messages: &[&str]) -> bool {
    let found = messages.iter().find_map(|message| Some((*message, refusal_in(message)?)));
    let Some((message, refusal)) = found else { return false };
    match refusal {
        Refusal::Denied(webhook) => denied(walk, webhook, message),
        Refusal::Unreachable(webhook) => unreachable(walk, webhook, message),
        Refusal::Policy(policy) => {
            let id = ObjectId::cluster_scoped(GROUP, "ValidatingAdmissionPolicy", policy);
            let cause =
                format!("the admission policy {policy} refuses the deletion: do what its message asks for");
            walk.blocked(&id, cause, vec![words::quoted(message)], Vec::new());
        }
    }
    true
}

fn refusal_in(message: &str) -> Option<Refusal<'_>> {
    let between = |start: &str, end: char| {
        let (_, rest) = message.split_once(start)?;
        rest.split_once(end).map(|(name, _)| name)
    };
    between("failed calling webhook \"", '"')
        .map(Refusal::Unreachable)
        .or_else(|| between("admission webhook \"", '"').map(Refusal::Denied))
        .or_else(|| between("ValidatingAdmissionPolicy '", '\'').map(Refusal::Policy))
}

fn denied(walk: &mut Walk<'_>, webhook: &str, message: &str) {
    let Some(id) = configuration(walk, webhook) else { return };
    let cause = format!("the webhook {webhook} refuses the deletion: do what its message asks for");
    walk.blocked(&id, cause, vec![words::quoted(message)], Vec::new());
}

fn unreachable(walk: &mut Walk<'_>, webhook: &str, message: &str) {
    let Some(id) = configuration(walk, webhook) else { return };
    let cause = format!(
        "the webhook {webhook} has to allow the deletion but cannot be called: restart the program that \
         serves it"
    );
    let warning = "until you apply the saved file again, nothing is checked or changed by any webhook in this configuration";
    let fix = vec![CauseFix::harmful(walk.kubectl.save_and_delete(&id), warning)];
    walk.blocked(&id, cause, vec![words::quoted(message)], fix);
}

/// The configuration with a webhook of that name; `None` while it is unknown.
fn configuration(walk: &mut Walk<'_>, webhook: &str) -> Option<ObjectId> {
    let mut fallback = ObjectId::cluster_scoped(GROUP, "ValidatingWebhookConfiguration", webhook);
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        let listed = walk.list(ResourceId::kind(GROUP, kind), None, Filter::All, LIMIT)?;
        let Ok(listed) = listed else { continue };
        let named = |it: &&serde_json::Value| Live(it).list("/webhooks").any(|hook| hook["name"] == webhook);
        if let Some(found) = listed.items.iter().find(named) {
            fallback = Live(found).id();
            break;
        }
    }
    Some(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_recognised_in_messages_of_the_api_server() {
        let cases = [
            (
                "admission webhook \"guard.example.org\" denied the request: keep it",
                Some(Refusal::Denied("guard.example.org")),
            ),
            (
                "Internal error occurred: failed calling webhook \"guard.example.org\": failed to call webhook: Post",
                Some(Refusal::Unreachable("guard.example.org")),
            ),
            (
                "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: no",
                Some(Refusal::Policy("keep")),
            ),
            ("admission webhook \"", None),
            ("everything is fine", None),
        ];
        for (message, expected) in cases {
            assert_eq!(refusal_in(message), expected, "{message}");
        }
    }
}
