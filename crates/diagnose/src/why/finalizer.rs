//! Finalizers: who should remove them, and why that has not happened.

use super::answer::CauseFix;
use super::controllers::{self, Liveness};
use super::facts::{Filter, ResourceId};
use super::finalizer_table::{self, Controller, KnownFinalizer, Pace, UNKNOWN_LEAVES};
use super::live::Live;
use super::walk::Walk;
use super::{cluster_api, definition, dependents, events, refusal, scheduled_machine, volume, words};
use five_spot_api::names;
use jiff::SignedDuration;

/// The time that the controller of an unknown finalizer gets.
const UNKNOWN_WAIT_LIMIT: SignedDuration = SignedDuration::from_mins(2);

/// The number of workloads of each kind that are searched for a controller.
const WORKLOADS: u32 = 500;

/// The length from which the name of a workload inside that of a manager is no coincidence.
const TELLING_NAME: usize = 4;

/// Field managers that say nothing about the controller behind them.
const VAGUE_MANAGERS: [&str; 8] =
    ["manager", "controller", "main", "unknown", "kubectl", "curl", "Go-http-client", "before-first-apply"];

/// Examines an object that is being deleted.
pub(super) fn deletion<'f>(walk: &mut Walk<'f>, object: Live<'f>, step: usize) {
    let finalizers = object.finalizers();
    if finalizers.is_empty() {
        let cause = "nothing holds it any more: the API server is removing it".to_owned();
        walk.waiting(&object.id(), cause, Vec::new());
    }
    for finalizer in finalizers {
        let is_explained = match finalizer {
            "foregroundDeletion" => dependents::blocking(walk, object, step),
            "kubernetes.io/pvc-protection" => volume::users(walk, object, step),
            "kubernetes.io/pv-protection" => volume::claim(walk, object, step),
            "customresourcecleanup.apiextensions.k8s.io" => definition::instances(walk, object, step),
            "machine.cluster.x-k8s.io" => cluster_api::machine_deletion(walk, object, step),
            "cluster.cluster.x-k8s.io" => cluster_api::cluster_deletion(walk, object, step),
            names::FINALIZER => scheduled_machine::deletion(walk, object, step),
            _ => cluster_api::pause(walk, object),
        };
        if !is_explained {
            held(walk, object, finalizer);
        }
    }
}

/// Adds the cause that a finalizer is still there.
pub(super) fn held<'f>(walk: &mut Walk<'f>, object: Live<'f>, finalizer: &str) {
    let known = finalizer_table::find(finalizer);
    let Some(remover) = remover(walk, object, finalizer, known) else { return };
    let Some(warnings) = events::warnings(walk, object) else { return };
    let conditions = object.conditions();
    let messages: Vec<&str> =
        warnings.iter().map(|event| event.message).chain(conditions.iter().map(|it| it.message)).collect();
    if refusal::explain(walk, &messages) {
        return;
    }
    let unchanged = walk.unchanged(object);
    let mut evidence = remover.evidence;
    if let Some((at, _)) =
        object.last_change().filter(|(at, _)| object.deletion_time().is_some_and(|due| *at > due))
    {
        evidence.push(format!("the object last changed {}", words::ago(at, walk.now)));
    }
    let telling = conditions
        .iter()
        .filter(|it| it.status != "True" || it.kind == "Deleting" || it.kind == "Terminating");
    evidence.extend(telling.filter(|it| !it.message.is_empty()).take(3).map(words::condition));
    evidence.extend(events::as_evidence(&warnings, walk.now));
    let id = object.id();
    if !remover.is_away && unchanged < remover.wait_limit {
        let cause = format!(
            "{} has to remove the finalizer {finalizer}; nothing indicates that it will not",
            remover.name
        );
        walk.waiting(&id, cause, evidence);
        return;
    }
    let why = if remover.is_away {
        "it is not running".to_owned()
    } else {
        format!("nothing has happened for {}", words::duration(unchanged))
    };
    let cause = format!("{} has to remove the finalizer {finalizer}, and {why}", remover.name);
    let leaves = known.map_or(UNKNOWN_LEAVES, |known| known.leaves);
    let mut fix = remover.restart;
    fix.push(CauseFix::harmful(
        walk.kubectl.remove_finalizer(object, finalizer),
        format!("if you remove it, {leaves}"),
    ));
    walk.blocked(&id, cause, evidence, fix);
}

/// The program that should remove a finalizer.
struct Remover {
    name: String,
    is_away: bool,
    wait_limit: SignedDuration,
    evidence: Vec<String>,
    /// Commands that bring it back.
    restart: Vec<CauseFix>,
}

fn remover<'f>(
    walk: &mut Walk<'f>,
    object: Live<'f>,
    finalizer: &str,
    known: Option<&KnownFinalizer>,
) -> Option<Remover> {
    let Some(known) = known else { return unknown_remover(walk, object, finalizer) };
    let liveness = controllers::liveness(walk, known.controller)?;
    let restart = match (known.controller, liveness.is_away()) {
        (Controller::FiveSpot, true) => {
            let namespace = names::SYSTEM_NAMESPACE;
            vec![CauseFix::safe(format!(
                "{} rollout restart deployment/5spot-controller -n {namespace}",
                walk.kubectl.0
            ))]
        }
        (Controller::ClusterApi, true) => {
            let restart = "rollout restart deployment/capi-controller-manager -n capi-system";
            vec![CauseFix::safe(format!("{} {restart}", walk.kubectl.0))]
        }
        (
            Controller::FiveSpot
            | Controller::ClusterApi
            | Controller::BuiltIn(_)
            | Controller::ApiServer
            | Controller::Other(_),
            _,
        ) => Vec::new(),
    };
    Some(Remover {
        name: known.controller.in_words(),
        is_away: liveness.is_away(),
        wait_limit: known.pace.wait_limit(),
        evidence: liveness.evidence().into_iter().collect(),
        restart,
    })
}

/// A finalizer that is not in the table: the field manager that set it is usually its controller.
fn unknown_remover<'f>(walk: &mut Walk<'f>, object: Live<'f>, finalizer: &str) -> Option<Remover> {
    let unknown = |evidence: String| Remover {
        name: "its controller".to_owned(),
        is_away: false,
        wait_limit: UNKNOWN_WAIT_LIMIT,
        evidence: vec![words::quoted(&evidence)],
        restart: Vec::new(),
    };
    let Some(manager) = object.manager_of(finalizer) else {
        return Some(unknown(format!("the managed fields do not say who has set the finalizer {finalizer}")));
    };
    let set_by = format!("the finalizer {finalizer} was set by the field manager {manager}");
    if VAGUE_MANAGERS.iter().any(|vague| manager == *vague || manager.starts_with(&format!("{vague}-"))) {
        return Some(unknown(set_by));
    }
    let name = words::quoted(manager);
    Some(match workload_like(walk, manager)? {
        Search::Found(workload) => Remover {
            name,
            wait_limit: UNKNOWN_WAIT_LIMIT,
            evidence: vec![words::quoted(&set_by), format!("{workload} is probably its controller")],
            ..unknown(String::new())
        },
        Search::None => Remover {
            name,
            wait_limit: Pace::Cluster.wait_limit(),
            evidence: vec![
                words::quoted(&set_by),
                format!(
                    "there is no Deployment, StatefulSet or DaemonSet whose name contains {}",
                    words::quoted(manager)
                ),
            ],
            ..unknown(String::new())
        },
        Search::Unknown => Remover { name, ..unknown(set_by) },
    })
}

/// The result of a search for a workload.
enum Search {
    Found(String),
    None,
    /// Some of the workloads could not be read, or there are too many.
    Unknown,
}

/// Looks for a workload that is named like a field manager; `None` while the facts are missing.
fn workload_like(walk: &mut Walk<'_>, manager: &str) -> Option<Search> {
    let mut is_complete = true;
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let Ok(listed) = walk.list(ResourceId::kind("apps", kind), None, Filter::All, WORKLOADS)? else {
            is_complete = false;
            continue;
        };
        is_complete &= listed.more == 0;
        let resembles =
            |name: &str| name.contains(manager) || (name.len() >= TELLING_NAME && manager.contains(name));
        if let Some(workload) = listed.items.iter().map(Live).find(|it| resembles(it.name())) {
            return Some(Search::Found(words::quoted(&workload.id().to_ref().to_string())));
        }
    }
    Some(if is_complete { Search::None } else { Search::Unknown })
}

/// The evidence of a controller's sign of life, for causes that are reported elsewhere.
pub(super) fn life_evidence(walk: &mut Walk<'_>, controller: Controller) -> Option<(bool, Vec<String>)> {
    let liveness: Liveness = controllers::liveness(walk, controller)?;
    Some((liveness.is_away(), liveness.evidence().into_iter().collect()))
}
