//! The Leases of all instances of the controller, by which they agree on who owns which object.
//!
//! A Lease is found by its label, so that one list and one watch cover all of them. `kubectl get leases -L
//! 5spot.finos.org/instance-count` shows the number of instances that each was started with.

use crate::transport::error::explain;
use crate::transport::lease::{LeaseError, LeaseRecord, StoredLease, classified, lease_spec, stored};
use five_spot_api::names::{annotation, label};
use five_spot_core::Fingerprint;
use five_spot_core::shard::Shard;
use five_spot_core::text;
use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use std::collections::BTreeSet;

/// The most shards of an annotation that are read: anybody who may write the Lease can write anything into it.
const MAX_YIELDS: usize = 256;

/// The longest value of a label.
const MAX_LABEL: usize = 63;

/// The statement of one instance in its Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The number of instances that it was started with; absent if that cannot be read.
    pub count: Option<u32>,
    /// The shards for whose objects it has stopped working.
    pub yields_to: BTreeSet<Shard>,
    /// The UID of the pod of the holder, if it runs in one.
    pub pod_uid: Option<String>,
    /// The holder as a process of its machine, if it runs in no pod.
    pub process: Option<String>,
}

/// The Lease of one instance, as the API server has stored it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceLease {
    /// The number of the instance.
    pub id: u32,
    /// Its holder and times, and its version.
    pub stored: StoredLease,
    /// The statement of its holder.
    pub announcement: Announcement,
}

/// An event of the watch of the Leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedInstance {
    /// All Leases that exist, at the start of the watch and whenever it starts again.
    Listed(Vec<InstanceLease>),
    /// A Lease was written.
    Present(InstanceLease),
    /// The Lease of this instance was deleted, or has lost its label.
    Absent(u32),
    /// The watch failed. It continues when it is polled again.
    Failed {
        /// The reason.
        error: String,
        /// True if the API server refuses it: a person has to grant it.
        is_refused: bool,
    },
}

/// The Leases of all instances.
#[derive(Clone, Debug)]
pub struct InstanceLeases {
    api: Api<Lease>,
    namespace: String,
    lease_name: String,
}

impl InstanceLeases {
    /// The Leases `<lease_name>-instance-<id>` of a namespace, by a client whose writes need not hold one.
    pub fn new(client: Client, namespace: &str, lease_name: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            lease_name: lease_name.to_owned(),
        }
    }

    /// The name of the Lease of an instance.
    pub fn name(&self, id: u32) -> String {
        five_spot_api::names::instance_lease(&self.lease_name, id)
    }

    /// Reads all Leases as they are at this moment.
    pub async fn list(&self) -> Result<Vec<InstanceLease>, LeaseError> {
        // Without a resource version the API server reads from its storage, not from its cache.
        let leases = self.api.list(&ListParams::default().labels(&self.selector())).await;
        let leases = leases.map_err(|error| classified(&error))?;
        Ok(leases.items.iter().filter_map(|lease| self.read(lease)).collect())
    }

    /// Reads the Lease of one instance, whatever labels it has.
    pub async fn find(&self, id: u32) -> Result<Option<InstanceLease>, LeaseError> {
        let fields = format!("metadata.name={}", self.name(id));
        let leases = self.api.list(&ListParams::default().fields(&fields)).await;
        let leases = leases.map_err(|error| classified(&error))?;
        Ok(leases.items.iter().find_map(|lease| self.read(lease)))
    }

    /// Writes the Lease of an instance, if it is still at `version`; creates it if there was none.
    pub async fn write(
        &self,
        id: u32,
        record: &LeaseRecord,
        announcement: &Announcement,
        version: Option<&str>,
    ) -> Result<InstanceLease, LeaseError> {
        let (name, lease) = (self.name(id), self.lease(id, record, announcement, version));
        let answer = match version {
            // A patch with a version fails like a replacement if the Lease has changed since, and keeps the labels of others.
            Some(_) => {
                let patch = Patch::Merge(with_removals(&lease));
                self.api.patch(&name, &PatchParams::default(), &patch).await
            }
            None => self.api.create(&PostParams::default(), &lease).await,
        };
        match answer {
            Ok(lease) => {
                self.read(&lease).ok_or_else(|| LeaseError::Failed(format!("{name} has another name")))
            }
            // A Lease that was deleted cannot be replaced; its namespace may be gone as well, which a create shows.
            Err(kube::Error::Api(status)) if version.is_some() && status.reason == "NotFound" => {
                Err(LeaseError::Conflict)
            }
            Err(error) => Err(classified(&error)),
        }
    }

    fn lease(
        &self,
        id: u32,
        record: &LeaseRecord,
        announcement: &Announcement,
        version: Option<&str>,
    ) -> Lease {
        let count = announcement.count.map(|count| (label::INSTANCE_COUNT.to_owned(), count.to_string()));
        let own = (label::INSTANCE_OF.to_owned(), self.label_value());
        let yields: Vec<String> = announcement.yields_to.iter().map(ToString::to_string).collect();
        let yields = (!yields.is_empty()).then(|| (annotation::YIELDS_TO.to_owned(), yields.join(",")));
        let named = |key: &str, value: &Option<String>| Some((key.to_owned(), value.clone()?));
        let pod = named(annotation::POD_UID, &announcement.pod_uid);
        let process = named(annotation::PROCESS, &announcement.process);
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name(id)),
                namespace: Some(self.namespace.clone()),
                labels: Some([own].into_iter().chain(count).collect()),
                annotations: Some(yields.into_iter().chain(pod).chain(process).collect()),
                resource_version: version.map(str::to_owned),
                ..ObjectMeta::default()
            },
            spec: Some(lease_spec(record)),
        }
    }

    /// Watches all Leases for as long as it is polled.
    pub fn watch(&self) -> impl Stream<Item = WatchedInstance> + Send + use<> {
        let config = watcher::Config::default().labels(&self.selector());
        let (events, leases) = (watcher::watcher(self.api.clone(), config), self.clone());
        let seen = events.scan(Vec::new(), move |listed, event| {
            let report = leases.report(listed, event);
            futures::future::ready(Some(futures::stream::iter(report)))
        });
        seen.flatten()
    }

    fn report(
        &self,
        listed: &mut Vec<InstanceLease>,
        event: Result<Event<Lease>, watcher::Error>,
    ) -> Option<WatchedInstance> {
        match event {
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(lease)) => {
                listed.extend(self.read(&lease));
                None
            }
            Ok(Event::InitDone) => Some(WatchedInstance::Listed(std::mem::take(listed))),
            Ok(Event::Apply(lease)) => self.read(&lease).map(WatchedInstance::Present),
            Ok(Event::Delete(lease)) => self.id(&lease).map(WatchedInstance::Absent),
            Err(watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) => {
                let is_refused = matches!(classified(&error), LeaseError::Refused(_));
                Some(WatchedInstance::Failed { error: bounded(&explain(&error)), is_refused })
            }
            Err(error) => {
                Some(WatchedInstance::Failed { error: bounded(&error.to_string()), is_refused: false })
            }
        }
    }

    fn selector(&self) -> String {
        format!("{}={}", label::INSTANCE_OF, self.label_value())
    }

    /// The value of the label. A name may be longer than a label.
    fn label_value(&self) -> String {
        if self.lease_name.len() <= MAX_LABEL {
            self.lease_name.clone()
        } else {
            Fingerprint::of(&self.lease_name).to_string()
        }
    }

    /// The number of the instance that a Lease belongs to. Nothing for a Lease with another name.
    fn id(&self, lease: &Lease) -> Option<u32> {
        let name = lease.name_any();
        let id = name.rsplit('-').next()?.parse().ok()?;
        (self.name(id) == name).then_some(id)
    }

    fn read(&self, lease: &Lease) -> Option<InstanceLease> {
        let yields = lease.annotations().get(annotation::YIELDS_TO).map_or("", String::as_str);
        let named = |key| {
            lease.annotations().get(key).map(|value| text::bounded(value, text::MAX_MESSAGE).into_owned())
        };
        let announcement = Announcement {
            count: lease.labels().get(label::INSTANCE_COUNT).and_then(|count| count.parse().ok()),
            // A shard that cannot be read is not yielded to.
            yields_to: yields.split(',').take(MAX_YIELDS).filter_map(|shard| shard.parse().ok()).collect(),
            pod_uid: named(annotation::POD_UID),
            process: named(annotation::PROCESS),
        };
        Some(InstanceLease { id: self.id(lease)?, stored: stored(lease), announcement })
    }
}

fn bounded(error: &str) -> String {
    text::bounded(error, text::MAX_MESSAGE).into_owned()
}

/// The Lease as a patch, which also removes the annotations that it no longer has.
fn with_removals(lease: &Lease) -> Value {
    let mut patch = serde_json::to_value(lease).unwrap_or_default();
    for key in [annotation::YIELDS_TO, annotation::POD_UID, annotation::PROCESS] {
        if patch["metadata"]["annotations"][key].is_null() {
            patch["metadata"]["annotations"][key] = Value::Null;
        }
    }
    patch
}
