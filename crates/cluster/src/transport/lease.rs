//! The Lease that a leader is elected with: read, written and watched by its name.

use crate::transport::core_kinds::Lease;
use crate::transport::error::{explain, is_absent};
use crate::transport::http::TransportError;
use five_spot_core::text;
use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{self, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use std::time::Duration;

/// The longest holder identity that is kept: anybody who may write the Lease can write anything into it. An identity of ours
/// is the name of a pod, up to 253 bytes, and a random part. It must be kept whole, or an instance would not recognise its
/// own.
const MAX_HOLDER: usize = 512;

/// The content of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The identity of the holder; empty if there is none.
    pub holder: String,
    /// For how many seconds it is held after it was renewed. Absent or 0 if the Lease does not say.
    pub duration_seconds: u32,
    /// The time at which the holder acquired it, by the holder's clock.
    pub acquired: Option<Timestamp>,
    /// The time at which the holder renewed it last, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// The number of times that the holder has changed.
    pub transitions: u32,
}

impl LeaseRecord {
    /// Returns true if the Lease was acquired, renewed or released since `known`. A change of the duration alone is none of
    /// these: a holder writes the same one each time, so somebody else has edited it.
    pub fn renews(&self, known: &Self) -> bool {
        Self { duration_seconds: known.duration_seconds, ..self.clone() } != *known
    }

    /// The record with which `holder` takes the Lease or renews it at `now`; `before` is the stored one.
    pub fn held_by(holder: &str, duration: Duration, before: Option<&Self>, now: Timestamp) -> Self {
        let renewed = before.filter(|before| before.holder == holder);
        Self {
            holder: holder.to_owned(),
            duration_seconds: u32::try_from(duration.as_secs()).unwrap_or(u32::MAX),
            acquired: renewed.and_then(|before| before.acquired).or(Some(now)),
            renewed: Some(now),
            transitions: before
                .map_or(0, |before| before.transitions.saturating_add(u32::from(renewed.is_none()))),
        }
    }
}

/// A Lease as the API server has stored it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLease {
    /// The parsed content.
    pub record: LeaseRecord,
    /// Its resource version, with which a write fails if the Lease has changed since.
    pub version: String,
}

/// An event of the watch of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedLease {
    /// The Lease is there, and this is what it says.
    Present(StoredLease),
    /// There is no such Lease.
    Absent,
    /// The watch failed. It continues when it is polled again.
    Failed(String),
}

/// A failed read or write of a Lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another writer has written, created or deleted it first.
    #[error("another client has changed the Lease")]
    Conflict,
    /// This instance may not, or the namespace does not exist.
    #[error("the API server rejected the request: {0}")]
    Refused(String),
    /// A guard of this instance does not permit writes at this moment.
    #[error("this instance may not write: {0}")]
    Guarded(String),
    /// There was no answer, or none that can be used.
    #[error("{0}")]
    Failed(String),
}

/// The Lease of one name.
#[derive(Clone, Debug)]
pub struct LeaseApi {
    api: Api<Lease>,
    /// The same for writes, whose answers have no other times than those that were written.
    written: Api<v1::Lease>,
    namespace: String,
    name: String,
}

impl LeaseApi {
    /// The Lease of this name, by a client whose writes need not hold it.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self {
            api: Api::namespaced(client.clone(), namespace),
            written: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Reads the Lease. Nothing if there is none.
    pub async fn read(&self) -> Result<Option<StoredLease>, LeaseError> {
        match self.api.get(&self.name).await {
            Ok(lease) => Ok(Some(stored(&lease))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(classified(&error)),
        }
    }

    /// Writes the Lease, if it is still at `version`; creates it if there was none. Labels and annotations that others
    /// have put on it are lost, as with client-go.
    pub async fn write(
        &self,
        record: &LeaseRecord,
        version: Option<&str>,
    ) -> Result<StoredLease, LeaseError> {
        let lease = v1::Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                resource_version: version.map(str::to_owned),
                ..ObjectMeta::default()
            },
            spec: Some(lease_spec(record)),
        };
        let parameters = PostParams::default();
        let answer = match version {
            Some(_) => self.written.replace(&self.name, &parameters, &lease).await,
            None => self.written.create(&parameters, &lease).await,
        };
        match answer {
            Ok(lease) => Ok(stored(&Lease::from(lease))),
            // A Lease that was deleted cannot be replaced; its namespace may be gone as well, which a create shows.
            Err(error) if version.is_some() && is_absent(&error) => Err(LeaseError::Conflict),
            Err(error) => Err(classified(&error)),
        }
    }

    /// Watches the Lease for as long as it is polled.
    pub fn watch(&self) -> impl Stream<Item = WatchedLease> + Send + use<> {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let events = watcher::watcher(self.api.clone(), config);
        // A list without the Lease has no event but its end.
        let seen = events.scan(false, |is_listed, event| {
            let report = match event {
                Ok(Event::Init) => {
                    *is_listed = false;
                    None
                }
                Ok(Event::InitApply(lease)) => {
                    *is_listed = true;
                    Some(WatchedLease::Present(stored(&lease)))
                }
                Ok(Event::InitDone) => (!*is_listed).then_some(WatchedLease::Absent),
                Ok(Event::Apply(lease)) => Some(WatchedLease::Present(stored(&lease))),
                Ok(Event::Delete(_)) => Some(WatchedLease::Absent),
                Err(error) => Some(WatchedLease::Failed(
                    text::bounded(&error.to_string(), text::MAX_MESSAGE).into_owned(),
                )),
            };
            futures::future::ready(Some(stream::iter(report)))
        });
        seen.flatten()
    }
}

/// The content of a Lease as it is written.
pub(super) fn lease_spec(record: &LeaseRecord) -> LeaseSpec {
    let time = |time: Option<Timestamp>| time.map(MicroTime);
    LeaseSpec {
        holder_identity: Some(record.holder.clone()),
        lease_duration_seconds: i32::try_from(record.duration_seconds).ok(),
        acquire_time: time(record.acquired),
        renew_time: time(record.renewed),
        lease_transitions: i32::try_from(record.transitions).ok(),
        ..LeaseSpec::default()
    }
}

/// The content and the version of a Lease that was read.
pub(super) fn stored(lease: &Lease) -> StoredLease {
    let spec = lease.spec.clone().unwrap_or_default();
    let number = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let holder = spec.holder_identity.unwrap_or_default();
    StoredLease {
        record: LeaseRecord {
            holder: text::bounded(&holder, MAX_HOLDER).into_owned(),
            duration_seconds: number(spec.lease_duration_seconds),
            acquired: spec.acquire_time,
            renewed: spec.renew_time,
            transitions: number(spec.lease_transitions),
        },
        version: lease.resource_version().unwrap_or_default(),
    }
}

pub(super) fn classified(error: &kube::Error) -> LeaseError {
    if let kube::Error::Api(status) = error {
        return match status.code {
            409 => LeaseError::Conflict,
            401 | 403 | 404 | 422 => LeaseError::Refused(explain(error)),
            _ => LeaseError::Failed(explain(error)),
        };
    }
    if let kube::Error::Service(source) = error
        && let Some(TransportError::Guarded(why)) = source.downcast_ref()
    {
        return LeaseError::Guarded((*why).to_owned());
    }
    LeaseError::Failed(explain(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(holder: &str) -> String {
        let record = LeaseRecord { holder: holder.to_owned(), ..LeaseRecord::default() };
        let lease = v1::Lease { metadata: ObjectMeta::default(), spec: Some(lease_spec(&record)) };
        stored(&Lease::from(lease)).record.holder
    }

    #[test]
    fn a_holder_is_kept_as_it_was_written_up_to_a_bound() {
        let longest = format!("{}_0123456789abcdef", "a".repeat(253));
        assert_eq!(held_by(&longest), longest);
        assert!(held_by(&"a".repeat(100_000)).len() <= MAX_HOLDER);
        assert_eq!(held_by("a\nb"), "a\\nb");
    }

    #[test]
    fn a_renewal_keeps_the_acquisition_and_a_takeover_counts() {
        let [first, later] = ["2026-11-16T09:00:00Z", "2026-11-16T09:00:10Z"]
            .map(|at| at.parse::<Timestamp>().expect("an instant"));
        let duration = Duration::from_secs(15);
        let taken = LeaseRecord::held_by("a", duration, None, first);
        assert_eq!((taken.acquired, taken.renewed, taken.transitions), (Some(first), Some(first), 0));
        let renewed = LeaseRecord::held_by("a", duration, Some(&taken), later);
        assert_eq!((renewed.acquired, renewed.renewed, renewed.transitions), (Some(first), Some(later), 0));
        let replaced = LeaseRecord::held_by("b", duration, Some(&taken), later);
        assert_eq!(
            (replaced.acquired, replaced.duration_seconds, replaced.transitions),
            (Some(later), 15, 1)
        );
    }
}
