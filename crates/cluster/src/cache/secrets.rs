//! Secrets with kubeconfigs: of each namespace one watch, of metadata alone, and of each Secret that an object names a read by
//! name whenever its version changes.
//!
//! A watch for each Secret would cost a connection each, also for those that do not exist, and a tenant names as many as
//! there are objects. A watch of whole Secrets would bring every other Secret of the namespace into this process. Both ways
//! need the verbs `list` and `watch`, and so does this one: the read is a list of one name.

use super::fleet::{Inner, lock};
use crate::cache::cause::Cause;
use crate::cache::store::{Condition, Failure, Shelf};
use crate::cache::watch::{News, Origin, fill};
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig::{self, SecretFacts};
use crate::view::observe::{needs, secret_keys};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PartialObjectMeta, VersionMatch};
use kube::runtime::watcher::Config;
use kube::{Api, ResourceExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::DropGuard;

/// Secrets of one namespace whose versions are kept. A namespace with more has other worries.
const MOST_SECRETS: usize = 20_000;

/// Secrets of one namespace that are read at the same time.
const READS: usize = 4;

/// The time after which a Secret that could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(5);

/// The Secrets of one namespace. Clones are the same.
#[derive(Clone)]
pub(crate) struct NamespaceSecrets {
    state: Arc<State>,
    _ends_with_us: Arc<DropGuard>,
}

struct State {
    namespace: Arc<str>,
    /// The versions of all Secrets there are.
    versions: Shelf<String>,
    used: Mutex<BTreeMap<Arc<str>, Used>>,
    /// Secrets that have to be read.
    pending: Mutex<BTreeSet<Arc<str>>>,
    wake: Notify,
}

/// A Secret that objects name.
struct Used {
    shelf: Shelf<SecretFacts>,
    /// The keys that objects name. Nothing else is kept of it.
    keys: BTreeSet<String>,
}

impl State {
    fn read_later(&self, names: impl IntoIterator<Item = Arc<str>>) {
        lock(&self.pending).extend(names);
        self.wake.notify_one();
    }

    fn key(&self, name: &Arc<str>) -> ObjectKey {
        ObjectKey::new(self.namespace.clone(), name.clone())
    }

    /// News of the watch: what is used of it has to be read.
    fn hear(&self, news: &News) {
        let used = lock(&self.used);
        let names: Vec<Arc<str>> = match news {
            News::Changed(key) => used.keys().filter(|name| **name == key.name).cloned().collect(),
            News::Condition | News::NotServed => used.keys().cloned().collect(),
        };
        drop(used);
        if !names.is_empty() {
            self.read_later(names);
        }
    }
}

impl NamespaceSecrets {
    /// Forgets the Secrets that nobody names any more. True if some are left.
    pub(super) fn retain(&self, is_used: impl Fn(&ObjectKey) -> bool) -> bool {
        let mut used = lock(&self.state.used);
        used.retain(|name, _| is_used(&self.state.key(name)));
        !used.is_empty()
    }
}

impl Inner {
    /// A Secret, which is read, and read again whenever it changes, from the first time that it is asked for.
    pub(crate) fn secret(self: &Arc<Self>, key: &ObjectKey) -> Shelf<SecretFacts> {
        let namespace = {
            let mut namespaces = lock(&self.secrets);
            namespaces
                .entry(key.namespace.clone())
                .or_insert_with(|| self.watch_secrets(key.namespace.clone()))
                .clone()
        };
        if let Some(used) = lock(&namespace.state.used).get(&key.name) {
            return used.shelf.clone();
        }
        let keys = self.keys_of_secret(key);
        let mut used = lock(&namespace.state.used);
        let entry = used.entry(key.name.clone()).or_insert_with(|| Used { shelf: Shelf::new([None]), keys });
        let shelf = entry.shelf.clone();
        drop(used);
        namespace.state.read_later([key.name.clone()]);
        shelf
    }

    /// An object may name another key of a Secret than before: it is read anew then, and is unknown until it has been.
    pub(super) fn note_secrets(&self, key: &ObjectKey) {
        let Some(namespace) = lock(&self.secrets).get(&key.namespace).cloned() else { return };
        let Some(object) = self.objects.view(key) else { return };
        let mut reread = Vec::new();
        for (secret, named) in secret_keys(key, &object) {
            if let Some(used) = lock(&namespace.state.used).get_mut(&secret.name)
                && used.keys.insert(named)
            {
                used.shelf = Shelf::new([None]);
                reread.push(secret.name.clone());
            }
        }
        if !reread.is_empty() {
            namespace.state.read_later(reread);
        }
    }

    fn keys_of_secret(&self, secret: &ObjectKey) -> BTreeSet<String> {
        let keys = self
            .objects
            .select(|key, object| (key.namespace == secret.namespace).then(|| secret_keys(key, object)));
        keys.into_iter().flatten().filter(|(name, _)| name == secret).map(|(_, key)| key).collect()
    }

    fn watch_secrets(self: &Arc<Self>, namespace: Arc<str>) -> NamespaceSecrets {
        let stop = self.stop.child_token();
        let state = Arc::new(State {
            namespace,
            versions: Shelf::new([None]),
            used: Mutex::default(),
            pending: Mutex::default(),
            wake: Notify::new(),
        });
        let origin = self.origin.with_most_objects(MOST_SECRETS);
        let (fleet, watched) = (Arc::downgrade(self), state.clone());
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &watched.namespace);
        let metadata = Api::namespaced(self.client.clone(), &watched.namespace);
        let ends_with_us = Arc::new(stop.clone().drop_guard());
        tokio::spawn(async move {
            let work = async {
                tokio::join!(watch_versions(&origin, metadata, &watched), async {
                    loop {
                        watched.wake.notified().await;
                        let Some(fleet) = fleet.upgrade() else { return };
                        fleet.read_secrets(&api, &watched).await;
                    }
                });
            };
            stop.run_until_cancelled(work).await;
        });
        NamespaceSecrets { state, _ends_with_us: ends_with_us }
    }

    /// Reads the Secrets that have to be read, and wakes the objects that name those that have changed.
    async fn read_secrets(&self, api: &Api<Secret>, state: &Arc<State>) {
        let names = std::mem::take(&mut *lock(&state.pending));
        let reads = names.into_iter().map(|name| async move {
            let changed = read_secret(api, state, &name).await;
            (name, changed)
        });
        let read: Vec<(Arc<str>, Read)> = stream::iter(reads).buffer_unordered(READS).collect().await;
        let changed: BTreeSet<&Arc<str>> =
            read.iter().filter(|(_, read)| read.changed).map(|(name, _)| name).collect();
        if !changed.is_empty() {
            self.tell_where(Cause::Secret, |key, object| {
                let names_one = |secret: &ObjectKey| changed.contains(&secret.name);
                key.namespace == state.namespace && needs(key, object).secrets.iter().any(names_one)
            });
        }
        let again: Vec<Arc<str>> =
            read.iter().filter(|(_, read)| read.again).map(|(name, _)| name.clone()).collect();
        if !again.is_empty() {
            let state = Arc::downgrade(state);
            tokio::spawn(async move {
                tokio::time::sleep(READ_AGAIN).await;
                if let Some(state) = state.upgrade() {
                    state.read_later(again);
                }
            });
        }
    }
}

async fn watch_versions(origin: &Origin, api: Api<PartialObjectMeta<Secret>>, state: &State) {
    let version = |secret: &PartialObjectMeta<Secret>| secret.resource_version().unwrap_or_default();
    let hear = |news: News| state.hear(&news);
    fill(origin, api, Config::default(), None, &state.versions, version, hear).await;
}

/// What came of reading a Secret.
#[derive(Clone, Copy, Default)]
struct Read {
    changed: bool,
    again: bool,
}

async fn read_secret(api: &Api<Secret>, state: &State, name: &Arc<str>) -> Read {
    let Some((shelf, keys)) = lock(&state.used).get(name).map(|used| (used.shelf.clone(), used.keys.clone()))
    else {
        return Read::default();
    };
    match state.versions.condition() {
        Condition::Filling => return Read::default(),
        Condition::Failing(failure) => return Read { changed: shelf.fail(failure), again: false },
        Condition::Filled => {}
    }
    let key = state.key(name);
    let found = if let Some(version) = state.versions.view(&key) {
        let one = ListParams::default()
            .fields(&format!("metadata.name={name}"))
            .at(&version)
            .matching(VersionMatch::NotOlderThan);
        match api.list(&one).await {
            Ok(found) if !found.items.is_empty() => found.items.into_iter().next(),
            // An answer from before the watch's news, or it has gone since: the watch tells which.
            Ok(_) => return Read { changed: false, again: true },
            Err(error) => return Read { changed: shelf.fail(Failure::of(&error)), again: true },
        }
    } else {
        None
    };
    shelf.begin(&None);
    if let Some(secret) = found {
        let version = secret.resource_version().unwrap_or_default();
        shelf.listed(&None, key, &version, kubeconfig::secret(&secret, &keys));
    }
    let (changed, filled) = shelf.complete(&None);
    Read { changed: filled || !changed.is_empty(), again: false }
}
