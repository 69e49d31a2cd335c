//! The objects that the event loop works on, and the end of its work on those that another instance takes over.

use super::driver::Follower;
use super::ownership_log::OwnershipLog;
use super::view::{Ownership, View};
use crate::metrics::{Metrics, ShardObjects};
use five_spot_cluster::ObjectKey;
use five_spot_cluster::cache::Caches;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time that a reconcile in flight has to end when another instance takes over its object. It is cancelled
/// afterwards, which is as safe as a crash; but a request that was already sent cannot be recalled.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);

/// The objects that this instance works on. Without shards: all.
#[derive(Default)]
pub(crate) struct Assignment {
    shards: Option<Shards>,
}

struct Shards {
    follower: Follower,
    view: View,
    /// The objects whose reconcile in flight has to end.
    stopping: BTreeSet<ObjectKey>,
    cut_off_at: Option<Instant>,
    log: OwnershipLog,
}

impl Assignment {
    pub(super) fn new(mut follower: Follower) -> Self {
        let view = follower.views.borrow_and_update().clone();
        let shards = Shards {
            follower,
            view,
            stopping: BTreeSet::new(),
            cut_off_at: None,
            log: OwnershipLog::default(),
        };
        Self { shards: Some(shards) }
    }

    /// Counts the objects for the metrics, whenever they are read.
    pub(crate) fn count_for(&self, metrics: &Metrics, caches: &Arc<Caches>) {
        let views = self.shards.as_ref().map(|shards| shards.follower.views.clone());
        // The metrics outlive the controller.
        let caches = Arc::downgrade(caches);
        metrics.count_objects(Arc::new(move || {
            let keys = caches.upgrade().map(|caches| caches.keys()).unwrap_or_default();
            let Some(views) = &views else {
                return ShardObjects { owned: keys.len(), ..ShardObjects::default() };
            };
            let view = views.borrow().clone();
            keys.iter().fold(ShardObjects::default(), |mut objects, key| {
                match view.ownership(key) {
                    Ownership::Owned => objects.owned += 1,
                    Ownership::Foreign => objects.foreign += 1,
                    Ownership::Waiting => objects.waiting += 1,
                }
                objects
            })
        }));
    }

    /// A function that returns whether this instance works on an object at the time of the call.
    pub(crate) fn watched(&self) -> Arc<dyn Fn(&ObjectKey) -> bool + Send + Sync> {
        let views = self.shards.as_ref().map(|shards| shards.follower.views.clone());
        Arc::new(move |key| views.as_ref().is_none_or(|views| views.borrow().owns(key)))
    }

    /// Waits until this instance may work on other objects; forever without shards.
    pub(crate) async fn changed(&mut self) -> View {
        if let Some(shards) = &mut self.shards
            && shards.follower.views.changed().await.is_ok()
        {
            return shards.follower.views.borrow_and_update().clone();
        }
        std::future::pending().await
    }

    pub(crate) fn is_standby(&self) -> bool {
        self.shards.as_ref().is_some_and(|shards| !shards.view.works())
    }

    /// Returns true if this instance works on an object. If not, that is logged once.
    pub(crate) fn owns(&mut self, key: &ObjectKey, caches: &Caches) -> bool {
        let Some(shards) = &mut self.shards else { return true };
        match shards.view.ownership(key) {
            Ownership::Owned => true,
            ownership @ (Ownership::Foreign | Ownership::Waiting) => {
                if caches.contains(key) {
                    shards.log.not_owned(&shards.view, key, ownership);
                } else {
                    shards.log.forget(key);
                }
                false
            }
        }
    }

    /// Replaces the view, and returns the one before.
    pub(crate) fn replace(&mut self, view: View) -> View {
        match &mut self.shards {
            Some(shards) => std::mem::replace(&mut shards.view, view),
            None => view,
        }
    }

    /// The objects that this instance owns under its view and not under the previous one, and vice versa.
    pub(crate) fn changes(
        &mut self,
        before: &View,
        keys: Vec<ObjectKey>,
    ) -> (Vec<ObjectKey>, Vec<ObjectKey>) {
        let Some(shards) = &mut self.shards else { return (Vec::new(), Vec::new()) };
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        for key in keys {
            let (was, is) = (before.ownership(&key), shards.view.ownership(&key));
            if was == is {
                continue;
            }
            shards.log.forget(&key);
            if is == Ownership::Owned {
                gained.push(key);
            } else {
                shards.log.not_owned(&shards.view, &key, is);
                if was == Ownership::Owned {
                    lost.push(key);
                }
            }
        }
        (gained, lost)
    }

    /// Requires the reconcile of this object to end soon.
    pub(crate) fn stops_soon(&mut self, key: ObjectKey) {
        if let Some(shards) = &mut self.shards {
            shards.stopping.insert(key);
            shards.cut_off_at.get_or_insert(Instant::now() + LEAVE_WITHIN);
        }
    }

    /// The time at which reconciles that should have ended are cancelled.
    pub(crate) fn cut_off_at(&self) -> Option<Instant> {
        self.shards.as_ref()?.cut_off_at
    }

    /// The objects whose reconcile should have ended by now.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<ObjectKey> {
        let Some(shards) =
            self.shards.as_mut().filter(|shards| shards.cut_off_at.is_some_and(|at| at <= now))
        else {
            return Vec::new();
        };
        shards.cut_off_at = None;
        shards.stopping.iter().cloned().collect()
    }

    /// Records the end of a reconcile. True if this instance no longer works on its object.
    pub(crate) fn has_left(&mut self, key: &ObjectKey) -> bool {
        let Some(shards) = &mut self.shards else { return false };
        shards.stopping.remove(key);
        if shards.stopping.is_empty() {
            shards.cut_off_at = None;
        }
        !shards.view.owns(key)
    }

    /// Records that no reconcile is in flight.
    pub(crate) fn all_stopped(&mut self) {
        if let Some(shards) = &mut self.shards {
            shards.stopping.clear();
            shards.cut_off_at = None;
        }
    }

    /// Reports that all work outside of the current view has stopped, if it has.
    pub(crate) fn report_stopped(&self) {
        if let Some(shards) = self.shards.as_ref().filter(|shards| shards.stopping.is_empty()) {
            shards.follower.stopped.send_replace(shards.view.number());
        }
    }
}
