//! Signs of life of the controllers that remove finalizers.

use super::facts::{Filter, ObjectId, ResourceId};
use super::finalizer_table::Controller;
use super::live::Live;
use super::walk::{Missing, Walk};
use super::words;
use crate::controller_config::ControllerConfig;
use five_spot_api::names;
use five_spot_core::world::Policy;
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// The label of the controller's pods.
const FIVE_SPOT_PODS: &str = "app=5spot-controller";

/// The Lease that kube-controller-manager renews.
const CONTROLLER_MANAGER_LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

/// The Lease that Cluster API renews, where `clusterctl` installs it.
const CLUSTER_API_LEASE: (&str, &str) = ("capi-system", "controller-leader-election-capi");

/// The time for which a Lease may be expired before its holder counts as away: another replica takes over within seconds.
const EXPIRED_FOR: SignedDuration = SignedDuration::from_mins(1);

/// A sign of life, with its evidence.
#[derive(Clone, Debug)]
pub(super) enum Liveness {
    Running(String),
    Away(String),
    /// Nothing tells, for the reason in the evidence, if there is one.
    Unknown(Option<String>),
}

/// Looks for a sign of life; `None` while the facts are missing.
pub(super) fn liveness(walk: &mut Walk<'_>, controller: Controller) -> Option<Liveness> {
    match controller {
        Controller::BuiltIn(_) => lease(walk, "kube-controller-manager", CONTROLLER_MANAGER_LEASE),
        Controller::ClusterApi => lease(walk, "Cluster API", CLUSTER_API_LEASE),
        Controller::FiveSpot => pods(walk),
        Controller::ApiServer => Some(Liveness::Running("the API server answers".to_owned())),
        Controller::Other(_) => Some(Liveness::Unknown(None)),
    }
}

fn lease(walk: &mut Walk<'_>, program: &str, (namespace, name): (&str, &str)) -> Option<Liveness> {
    let id = ObjectId::namespaced("coordination.k8s.io", "Lease", namespace, name);
    let lease = match walk.object(&id)? {
        Ok(lease) => lease,
        Err(Missing::Absent) => {
            let evidence =
                format!("there is no Lease {namespace}/{name} that shows whether {program} is running");
            return Some(Liveness::Unknown(Some(evidence)));
        }
        Err(Missing::Unreadable(reason)) => {
            let evidence = format!("Lease {namespace}/{name} could not be read: {}", reason.in_words());
            return Some(Liveness::Unknown(Some(words::quoted(&evidence))));
        }
    };
    let Some(renewed) = lease.time("/spec/renewTime") else {
        return Some(Liveness::Unknown(Some(format!("Lease {namespace}/{name} was never renewed"))));
    };
    let lasts =
        lease.0.pointer("/spec/leaseDurationSeconds").and_then(serde_json::Value::as_i64).unwrap_or(15);
    let evidence = format!("Lease {namespace}/{name} was renewed {}", words::ago(renewed, walk.now));
    let idle = walk.now.duration_since(renewed);
    let limit = SignedDuration::from_secs(lasts.clamp(0, 3600)) + EXPIRED_FOR;
    Some(if idle > limit { Liveness::Away(evidence) } else { Liveness::Running(evidence) })
}

fn pods(walk: &mut Walk<'_>) -> Option<Liveness> {
    let namespace = names::SYSTEM_NAMESPACE;
    let filter = Filter::Labels(FIVE_SPOT_PODS.to_owned());
    Some(match walk.list(ResourceId::kind("", "Pod"), Some(namespace), filter, 20)? {
        Ok(listed) => {
            let ready = listed
                .items
                .iter()
                .map(Live)
                .find(|pod| pod.condition("Ready").is_some_and(|ready| ready.status == "True"));
            match (ready, listed.items.len()) {
                (Some(pod), _) => Liveness::Running(format!("Pod {namespace}/{} is Ready", pod.name())),
                (None, 0) => Liveness::Away(format!(
                    "there is no pod with the label {FIVE_SPOT_PODS} in namespace {namespace}"
                )),
                (None, count) => {
                    let pods = words::count(count as u64, "pod");
                    Liveness::Away(format!(
                        "{pods} of the controller in namespace {namespace}, none of them Ready"
                    ))
                }
            }
        }
        Err(reason) => Liveness::Unknown(Some(words::quoted(&format!(
            "the pods of the controller could not be read: {}",
            reason.in_words()
        )))),
    })
}

/// The settings of the controller for the end of a cleanup.
#[derive(Clone, Copy, Debug)]
pub(super) struct CleanupSettings {
    pub(super) policy: Policy,
    /// False if they could not be read, and these are the defaults.
    pub(super) is_known: bool,
}

/// Reads the settings from a pod of the controller and its `ConfigMaps`; `None` while facts are missing.
pub(super) fn cleanup_settings(walk: &mut Walk<'_>) -> Option<CleanupSettings> {
    let namespace = names::SYSTEM_NAMESPACE;
    let filter = Filter::Labels(FIVE_SPOT_PODS.to_owned());
    let listed = walk.list(ResourceId::kind("", "Pod"), Some(namespace), filter, 20)?;
    let Some(pod) = listed.ok().and_then(|listed| listed.items.first()) else {
        return Some(CleanupSettings { policy: Policy::default(), is_known: false });
    };
    let mut config_maps = BTreeMap::new();
    let mut is_known = true;
    for name in ControllerConfig::config_maps_of(pod) {
        match walk.object(&ObjectId::namespaced("", "ConfigMap", namespace, &name))? {
            Ok(map) => drop(config_maps.insert(name, map.0.clone())),
            Err(Missing::Absent) => {}
            Err(Missing::Unreadable(_)) => is_known = false,
        }
    }
    Some(CleanupSettings { policy: ControllerConfig::of_pod(pod, &config_maps).policy, is_known })
}

impl Liveness {
    /// The evidence, if there is any.
    pub(super) fn evidence(&self) -> Option<String> {
        match self {
            Self::Running(evidence) | Self::Away(evidence) => Some(evidence.clone()),
            Self::Unknown(evidence) => evidence.clone(),
        }
    }

    pub(super) const fn is_away(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}
