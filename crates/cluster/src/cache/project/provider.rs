//! Bootstrap and infrastructure objects, of any provider: nothing but metadata is looked at.

use super::terminating;
use crate::cache::managed_fields::Digest;
use five_spot_api::names::annotation;
use five_spot_core::Fingerprint;
use five_spot_core::world::Uid;
use kube::ResourceExt;
use kube::api::DynamicObject;

/// The facts that are kept of an object of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderFacts {
    pub(crate) made_for: Option<String>,
    pub(crate) uid: Uid,
    pub(crate) terminating: bool,
    pub(crate) machine_hash: Option<Fingerprint>,
    pub(crate) digest: Digest,
}

pub(crate) fn provider(object: &DynamicObject) -> ProviderFacts {
    ProviderFacts {
        made_for: super::made_for(object),
        uid: Uid::from(object.uid().unwrap_or_default()),
        terminating: terminating(object),
        machine_hash: object.annotations().get(annotation::MACHINE_HASH).map(|hash| Fingerprint::read(hash)),
        digest: Digest::of(object),
    }
}
