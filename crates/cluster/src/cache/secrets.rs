//! Secrets with kubeconfigs: one watch for each namespace, of metadata alone, and a read by name of each Secret that an
//! object names, whenever its version changes.
//!
//! A watch for each Secret would cost a connection each, also for those that do not exist, and a tenant names as many as
//! there are objects. A watch of whole Secrets would bring every other Secret of the namespace into this process. Both ways
//! need the verbs `list` and `watch`, and so does this one: the read is a list of one name. A Secret that changes without end
//! is read once a second after a burst.

use crate::cache::caches::Caches;
use crate::cache::change_cause::ChangeCause;
use crate::cache::lock::lock;
use crate::cache::references::{references, secret_keys};
use crate::cache::secret_store::{NamespaceSecrets, ReadPermit, SecretVersions, UsedSecret};
use crate::cache::store::{Store, SyncState};
use crate::cache::watch::{WatchSignal, WatchSource, fill};
use crate::transport::error::ReadFailure;
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig::{self, SecretFacts};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PartialObjectMeta, VersionMatch};
use kube::runtime::watcher::Config;
use kube::{Api, ResourceExt};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Secrets of one namespace whose versions are kept: far more than any namespace should have.
const MOST_SECRETS: usize = 20_000;

/// Secrets of one namespace that are read at the same time.
const READS: usize = 4;

/// The time after which a Secret that could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(5);

/// The store of a Secret. The Secret is read from the first call on, and again whenever it changes.
pub(crate) fn secret(caches: &Arc<Caches>, key: &ObjectKey) -> Store<SecretFacts> {
    let namespace = {
        let mut namespaces = lock(&caches.secrets);
        namespaces
            .entry(key.namespace.clone())
            .or_insert_with(|| watch_secrets(caches, key.namespace.clone()))
            .clone()
    };
    let secrets = &namespace.secrets;
    if let Some(used) = lock(&secrets.used).get(&key.name) {
        return used.store.clone();
    }
    let keys = keys_of_secret(caches, key);
    let mut used = lock(&secrets.used);
    let entry = used.entry(key.name.clone()).or_insert_with(|| UsedSecret::new(keys));
    let store = entry.store.clone();
    drop(used);
    secrets.read_later([key.name.clone()]);
    store
}

/// Notes the Secrets that an object names. One of which it names a new key is read again, and is unknown until then.
pub(super) fn note_secrets(caches: &Caches, key: &ObjectKey) {
    let Some(namespace) = lock(&caches.secrets).get(&key.namespace).cloned() else { return };
    let Some(object) = caches.objects.view(key) else { return };
    let mut reread = Vec::new();
    for (secret, named) in secret_keys(key, &object) {
        if let Some(used) = lock(&namespace.secrets.used).get_mut(&secret.name)
            && used.keys.insert(named)
        {
            used.store = Store::new([None]);
            reread.push(secret.name.clone());
        }
    }
    if !reread.is_empty() {
        namespace.secrets.read_later(reread);
    }
}

/// The keys of a Secret that objects name.
pub(super) fn keys_of_secret(caches: &Caches, secret: &ObjectKey) -> BTreeSet<String> {
    let keys = caches
        .objects
        .select(|key, object| (key.namespace == secret.namespace).then(|| secret_keys(key, object)));
    keys.into_iter().flatten().filter(|(name, _)| name == secret).map(|(_, key)| key).collect()
}

fn watch_secrets(caches: &Arc<Caches>, namespace: Arc<str>) -> NamespaceSecrets {
    let stop = caches.stop.child_token();
    let secrets = Arc::new(SecretVersions::new(namespace));
    let namespace_secrets = NamespaceSecrets::new(secrets.clone(), stop.clone().drop_guard());
    if !caches.is_watched {
        return namespace_secrets;
    }
    let source = caches.source.with_most_objects(MOST_SECRETS);
    let api: Api<Secret> = Api::namespaced(caches.client.clone(), &secrets.namespace);
    let metadata = Api::namespaced(caches.client.clone(), &secrets.namespace);
    let caches = Arc::downgrade(caches);
    tokio::spawn(async move {
        let work = async {
            tokio::join!(watch_versions(&source, metadata, &secrets), async {
                loop {
                    secrets.wake.notified().await;
                    let Some(caches) = caches.upgrade() else { return };
                    read_secrets(&caches, &api, &secrets).await;
                }
            });
        };
        stop.run_until_cancelled(work).await;
    });
    namespace_secrets
}

/// Takes the pending Secrets that may be read now. The others are put off.
fn take_pending(secrets: &Arc<SecretVersions>) -> Vec<Arc<str>> {
    let mut names = std::mem::take(&mut *lock(&secrets.pending)).into_iter().collect::<Vec<_>>();
    names.retain(|name| {
        let permit = secrets.permit_read(name);
        if let ReadPermit::After(wait) = permit {
            let (secrets, name) = (Arc::downgrade(secrets), name.clone());
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                if let Some(secrets) = secrets.upgrade() {
                    secrets.end_wait(&name);
                }
            });
        }
        permit == ReadPermit::Now
    });
    names
}

/// Reads the pending Secrets, and notifies the objects that name those that have changed.
async fn read_secrets(caches: &Caches, api: &Api<Secret>, secrets: &Arc<SecretVersions>) {
    let reads = take_pending(secrets).into_iter().map(|name| async move {
        let result = read_secret(api, secrets, &name).await;
        (name, result)
    });
    let read: Vec<(Arc<str>, ReadResult)> = stream::iter(reads).buffer_unordered(READS).collect().await;
    let changed: BTreeSet<&Arc<str>> =
        read.iter().filter(|(_, read)| read.changed).map(|(name, _)| name).collect();
    if !changed.is_empty() {
        caches.notify_where(ChangeCause::Secret, |key, object| {
            let names_one = |secret: &ObjectKey| changed.contains(&secret.name);
            key.namespace == secrets.namespace && references(key, object).secrets.iter().any(names_one)
        });
    }
    let again: Vec<Arc<str>> =
        read.iter().filter(|(_, read)| read.again).map(|(name, _)| name.clone()).collect();
    if !again.is_empty() {
        let secrets = Arc::downgrade(secrets);
        tokio::spawn(async move {
            tokio::time::sleep(READ_AGAIN).await;
            if let Some(secrets) = secrets.upgrade() {
                secrets.read_later(again);
            }
        });
    }
}

async fn watch_versions(source: &WatchSource, api: Api<PartialObjectMeta<Secret>>, secrets: &SecretVersions) {
    let version = |secret: &PartialObjectMeta<Secret>| secret.resource_version().unwrap_or_default();
    let handle = |signal: WatchSignal| secrets.handle(&signal);
    fill(source, api, Config::default(), None, &secrets.versions, version, handle).await;
}

/// The result of reading a Secret.
#[derive(Clone, Copy, Default)]
struct ReadResult {
    changed: bool,
    again: bool,
}

async fn read_secret(api: &Api<Secret>, secrets: &SecretVersions, name: &Arc<str>) -> ReadResult {
    let Some((store, keys)) =
        lock(&secrets.used).get(name).map(|used| (used.store.clone(), used.keys.clone()))
    else {
        return ReadResult::default();
    };
    match secrets.versions.sync_state() {
        SyncState::Syncing => return ReadResult::default(),
        SyncState::Failed(failure) => return ReadResult { changed: store.fail(failure), again: false },
        SyncState::Synced => {}
    }
    let key = secrets.key(name);
    let found = if let Some(version) = secrets.versions.view(&key) {
        let one = ListParams::default()
            .fields(&format!("metadata.name={name}"))
            .at(&version)
            .matching(VersionMatch::NotOlderThan);
        match api.list(&one).await {
            Ok(found) if !found.items.is_empty() => found.items.into_iter().next(),
            // An answer from before the event, or the Secret has been deleted since: the watch shows which.
            Ok(_) => return ReadResult { changed: false, again: true },
            Err(error) => {
                return ReadResult { changed: store.fail(ReadFailure::of(&error)), again: true };
            }
        }
    } else {
        None
    };
    store.begin(&None);
    if let Some(secret) = found {
        let version = secret.resource_version().unwrap_or_default();
        store.listed(&None, key, &version, kubeconfig::secret(&secret, &keys));
    }
    let (changed, synced) = store.complete(&None);
    ReadResult { changed: synced || !changed.is_empty(), again: false }
}
