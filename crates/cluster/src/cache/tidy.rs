//! What nobody needs any more is closed and forgotten, a while after something has changed: whoever is gone may not have
//! been the last, and to look through everything for each of ten thousand that go would take longer than their going.

use super::fleet::{Fleet, Inner, lock, owner};
use crate::cache::workload::WorkloadKey;
use crate::transport::key::ObjectKey;
use crate::view::observe::needs;
use five_spot_api::names;
use five_spot_core::world::NodeName;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long after a change it is looked for.
const TIDY_AFTER: Duration = Duration::from_secs(10);

impl Fleet {
    /// Tidies after changes, for as long as the fleet is watched.
    pub(super) fn keep_tidy(&self) {
        let fleet = self.inner.clone();
        self.inner.spawn(async move {
            loop {
                fleet.untidy.notified().await;
                tokio::time::sleep(TIDY_AFTER).await;
                fleet.tidy();
            }
        });
    }
}

impl Inner {
    /// Something may not be needed any more.
    pub(super) fn may_be_untidy(&self) {
        self.untidy.notify_one();
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        lock(&self.memories).remove(key);
        self.may_be_untidy();
    }

    fn tidy(&self) {
        self.close_unused();
        self.forget_nodes();
    }

    /// Closes watches and links that no object needs any more.
    fn close_unused(&self) {
        let mut kinds = BTreeSet::new();
        let mut secrets = BTreeSet::new();
        let mut is_empty = true;
        for needs in self.objects.select(|key, object| Some(needs(key, object))) {
            is_empty = false;
            kinds.extend(needs.kinds);
            secrets.extend(needs.secrets);
        }
        lock(&self.providers).retain(|kind, _| kinds.contains(kind));
        lock(&self.secrets).retain(|_, namespace| namespace.retain(|secret| secrets.contains(secret)));
        lock(&self.links).retain(|key, _| match key {
            WorkloadKey::Management => !is_empty,
            WorkloadKey::Kubeconfig { secret, .. } => secrets.contains(secret),
        });
    }

    /// Notes which node a Machine has, so that news of the node find its object.
    pub(super) fn note_node(&self, machine: &ObjectKey) {
        let Some(owner) = owner(machine) else { return };
        match self.machines.view(machine).and_then(|machine| machine.node) {
            Some(node) => self.note_user(node, owner),
            None => self.may_be_untidy(),
        }
    }

    /// Notes which node an object has on record: it may have outlived its Machine.
    pub(super) fn note_recorded_node(&self, key: &ObjectKey) {
        if let Some(node) = self.objects.view(key).and_then(|object| object.record.node) {
            self.note_user(node, key.clone());
        }
    }

    fn note_user(&self, node: NodeName, user: ObjectKey) {
        let mut users_of_node = lock(&self.users_of_node);
        let users = users_of_node.entry(node).or_default();
        if !users.contains(&user) {
            // Nearly always one, and room for no more.
            users.reserve_exact(1);
            users.push(user);
        }
    }

    /// Forgets which nodes those objects had that are gone with their Machines. A Machine alone is enough: at the start it
    /// may be known before its object is, which is then not gone but on its way.
    fn forget_nodes(&self) {
        let is_known = |user: &ObjectKey| {
            self.objects.has(user) || self.machines.has(&user.beside(names::machine(&user.name)))
        };
        lock(&self.users_of_node).retain(|_, users| {
            users.retain(is_known);
            !users.is_empty()
        });
    }
}
