//! Aggregated APIs. While one of them is unavailable, nobody can tell whether objects of it remain in a namespace.

use super::answer::CauseFix;
use super::facts::{Filter, ObjectId, ResourceId};
use super::live::Live;
use super::walk::{Missing, Walk};
use super::words;

/// The number of `APIServices` that are read. A cluster has one for each group and version.
const LIMIT: u32 = 1000;

/// Examines the unavailable APIs. `message` is what the namespace controller says about them.
pub(super) fn unavailable(walk: &mut Walk<'_>, step: usize, message: &str) {
    let resource = ResourceId::kind("apiregistration.k8s.io", "APIService");
    let listed = match walk.list(resource, None, Filter::All, LIMIT) {
        Some(Ok(listed)) => listed,
        Some(Err(reason)) => return walk.note_unread(step, "APIServices", reason),
        None => return,
    };
    let mut found = false;
    for service in listed.items.iter().map(Live).filter(|it| is_unavailable(*it)) {
        found = true;
        walk.visit(service, "an API whose objects cannot be listed");
    }
    if !found {
        // It may have come back since; the namespace controller tries again.
        let cause = "the last discovery of all APIs failed, and every API is available now: the namespace \
                     controller retries";
        let id = ObjectId::cluster_scoped("apiregistration.k8s.io", "APIService", "all");
        walk.waiting(&id, cause.to_owned(), vec![words::quoted(message)]);
    }
}

fn is_unavailable(service: Live<'_>) -> bool {
    service.condition("Available").is_none_or(|available| available.status != "True")
}

/// Examines one `APIService`.
pub(super) fn availability<'f>(walk: &mut Walk<'f>, service: Live<'f>) {
    let Some(condition) = service.condition("Available").filter(|it| it.status != "True") else { return };
    let mut evidence = vec![words::condition(&condition)];
    let (namespace, name) = (service.text("/spec/service/namespace"), service.text("/spec/service/name"));
    let behind = if name.is_empty() {
        "the server behind it".to_owned()
    } else {
        let id = ObjectId::namespaced("", "Service", namespace, name);
        match walk.object(&id) {
            Some(Err(Missing::Absent)) => evidence.push(format!("Service {namespace}/{name} does not exist")),
            Some(Ok(_) | Err(Missing::Unreadable(_))) => {}
            None => return,
        }
        format!("the program behind Service {namespace}/{name}")
    };
    let group = format!("{}/{}", service.text("/spec/group"), service.text("/spec/version"));
    let cause = format!(
        "the API {group} is unavailable, so it is unknown whether objects of it remain: start {behind} \
         again, or remove the API if it is no longer used"
    );
    let id = service.id();
    let warning = format!(
        "clients of {group} get errors until you apply the saved file again; objects that its server stores are not deleted \
         with the namespace"
    );
    let fix = vec![CauseFix::harmful(walk.kubectl.save_and_delete(&id), warning)];
    walk.blocked(&id, cause, evidence, fix);
}
