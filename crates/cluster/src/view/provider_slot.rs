//! The bootstrap or infrastructure object of a `ScheduledMachine`, as far as the caches show it.

use crate::cache::caches::Caches;
use crate::cache::memory::{Memory, Part};
use crate::cache::project::{ProviderFacts, kind_of};
use crate::cache::store::SyncState;
use crate::cache::watches;
use crate::transport::error::{ReadFailure, ReadFailureKind};
use crate::transport::key::ObjectKey;
use five_spot_api::ObjectRef;
use five_spot_core::ProviderKind;
use five_spot_core::world::{ProviderView, ReferenceProblem, ReferenceProblemKind, Slot};
use std::sync::Arc;

/// The object under the name of a provider's object.
///
/// The kind in the status comes first: when the spec names another, the object that was made before still has to go. Only
/// a kind that is not served at all has no objects; a kind that cannot be listed is unknown.
pub(super) fn provider_slot(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    recorded: Option<&ObjectRef>,
    wanted: Option<(&'static str, &ProviderKind)>,
    (memory, part): (&Memory, Part),
) -> ProviderSlot {
    if let Some(owner) = memory.foreign.get(&part) {
        let slot = Slot::Foreign { owner: owner.clone() };
        return ProviderSlot { slot, problem: None, unproven: true, is_pending: false };
    }
    let mut found = ProviderSlot { slot: Slot::Absent, problem: None, unproven: false, is_pending: false };
    // The kind of the spec is checked even if an object of another kind exists: that one is not given up for one that
    // cannot be made. If an object of the spec's kind exists, a failed watch is no fault of the spec.
    if let Some((field, kind)) = wanted {
        let store = watches::provider(caches, kind);
        match store.sync_state() {
            SyncState::Syncing => found.is_pending = true,
            SyncState::Failed(failure) if store.view(key).is_none() => {
                found.problem = Some(problem_of(field, &failure));
            }
            SyncState::Failed(_) | SyncState::Synced => {}
        }
    }
    let wanted = wanted.map(|(_, kind)| kind.clone());
    for kind in recorded.map(kind_of).into_iter().chain(wanted) {
        let store = watches::provider(caches, &kind);
        if let Some(facts) = store.view(key) {
            found.unproven = !facts.terminating && !memory.is_compared(&facts.uid, &facts.digest);
            found.slot = Slot::Ours(provider_view(kind, facts, memory));
            return found;
        }
        match store.sync_state() {
            SyncState::Synced => {}
            SyncState::Syncing => {
                found.is_pending = true;
                found.slot = Slot::Unknown;
            }
            SyncState::Failed(failure) => {
                let is_gone =
                    failure.kind == ReadFailureKind::NoSuchKind && caches.kinds.known(&kind).is_none();
                if !is_gone {
                    found.slot = Slot::Unknown;
                }
            }
        }
    }
    found
}

/// The object of a provider, and what is known of its kind.
pub(super) struct ProviderSlot {
    pub(super) slot: Slot<ProviderView>,
    pub(super) problem: Option<ReferenceProblem>,
    pub(super) unproven: bool,
    /// The first list has not come yet.
    pub(super) is_pending: bool,
}

/// The problem with a field of the spec whose objects cannot be read.
pub(super) fn problem_of(field: &str, failure: &ReadFailure) -> ReferenceProblem {
    let (kind, message) = match failure.kind {
        ReadFailureKind::Forbidden => (
            ReferenceProblemKind::Forbidden,
            format!(
                "{}; grant get, list, watch, create, patch and delete on it to the controller",
                failure.message
            ),
        ),
        ReadFailureKind::NoSuchKind | ReadFailureKind::OtherVersion => {
            (ReferenceProblemKind::NotFound, failure.message.clone())
        }
        ReadFailureKind::Unreachable => (
            ReferenceProblemKind::NotFound,
            format!("objects of this kind cannot be listed: {}", failure.message),
        ),
    };
    ReferenceProblem { field: field.to_owned(), kind, message }
}

fn provider_view(kind: ProviderKind, facts: ProviderFacts, memory: &Memory) -> ProviderView {
    ProviderView {
        kind,
        intact: memory.is_intact(&facts.uid, &facts.digest),
        uid: facts.uid,
        terminating: facts.terminating,
        machine_hash: facts.machine_hash,
    }
}
