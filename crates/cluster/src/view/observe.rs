//! One look at an object: the world from the caches, and the lookups that the decision about it needs.

use crate::cache::caches::Caches;
use crate::transport::error::CallError;
use crate::transport::key::ObjectKey;
use crate::view::assemble::{Cached, assemble};
use crate::view::lookup::look_up;
use crate::view::observed::Observed;
use five_spot_core::Evidence;
use five_spot_core::world::{Failures, NodeView};
use jiff::Timestamp;
use std::sync::Arc;

/// The most rounds of lookups: the rules of a drain come first, and may need more.
const LOOKUPS: u32 = 3;

/// Observes an object from the caches. Opens the watches that it needs, and reads what only a drain needs. Returns
/// `None` if the object is gone, or if something has not been read yet: the watches report when it has.
///
/// `failures` are those of the last attempts, which only the caller knows. An emergency waits for no reads.
pub async fn observe(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    failures: &Failures,
) -> Result<Option<Box<Observed>>, CallError> {
    let Some(mut observed) = glance(caches, key, failures).await else { return Ok(None) };
    for _ in 0..LOOKUPS {
        let needs_drain_rules = observed.world.node.found().is_some_and(NodeView::needs_drain_rules);
        if !needs_drain_rules || !observed.decide(caches.now()).resolve_drain_rules {
            break;
        }
        look_up(caches, key, &observed).await?;
        let Some(closer) = glance(caches, key, failures).await else { return Ok(None) };
        observed = closer;
    }
    Ok(Some(observed))
}

/// Observes an object from the caches alone: the same as [`observe`] without the lookups for a drain.
pub async fn glance(caches: &Arc<Caches>, key: &ObjectKey, failures: &Failures) -> Option<Box<Observed>> {
    let Cached::Known(observed) = assemble(caches, key, failures).await else { return None };
    let is_enough = !observed.incomplete || observed.decide(caches.now()).evidence == Evidence::BestEffort;
    is_enough.then_some(observed)
}

/// The time at which an object has to be observed even if nothing changes: a reclaim and a deletion have time limits, and they
/// end whether everything has been read or not. `None` if it has none.
pub async fn time_limit(caches: &Arc<Caches>, key: &ObjectKey, failures: &Failures) -> Option<Timestamp> {
    let Cached::Known(observed) = assemble(caches, key, failures).await else { return None };
    let decision = observed.decide(caches.now());
    decision.wake_at.filter(|_| decision.has_time_limit)
}
