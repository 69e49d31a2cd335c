//! Impairments in force, as the controller sees them.

use super::transport::refusal;
use crate::environment::Impairment;
use crate::kinds::{MACHINE, SCHEDULED_MACHINE};
use five_spot_apiserver::ResponseBody;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time of each request to a slow management cluster.
const SLOW: Duration = Duration::from_secs(1);

/// The time of a request that is not answered: longer than any client waits.
const UNANSWERED: Duration = Duration::from_hours(1);

/// The impairments that are in force.
#[derive(Debug, Default)]
pub(super) struct Impairments {
    active: Mutex<BTreeSet<Impairment>>,
}

impl Impairments {
    /// Starts or ends an impairment.
    pub(super) fn set(&self, what: Impairment, is_impaired: bool) {
        let mut active = self.lock();
        if is_impaired {
            active.insert(what);
        } else {
            active.remove(&what);
        }
    }

    /// Returns true if the workload cluster allows nothing.
    pub(super) fn forbid_workload(&self) -> bool {
        self.lock().contains(&Impairment::WorkloadForbidden)
    }

    /// The delay of a request to the management cluster.
    pub(super) fn delay(&self, request: &Request<Body>) -> Duration {
        let active = self.lock();
        let target = Target::of(request);
        let hangs = |what: &Impairment| match what {
            Impairment::MachinePatchesHang => target == Some(Target::MachinePatch),
            Impairment::StatusHangs => target == Some(Target::Status),
            Impairment::EventsHang => target == Some(Target::Event),
            Impairment::WorkloadForbidden
            | Impairment::MachinePatches
            | Impairment::StatusTooLarge
            | Impairment::StatusInvalid
            | Impairment::StatusForbidden
            | Impairment::Events
            | Impairment::Leases
            | Impairment::ClusterApi
            | Impairment::SlowManagement => false,
        };
        if active.iter().any(hangs) {
            UNANSWERED
        } else if active.contains(&Impairment::SlowManagement) {
            SLOW
        } else {
            Duration::ZERO
        }
    }

    /// The refusal that the management cluster has for a request.
    pub(super) fn refuse(&self, request: &Request<Body>) -> Option<Response<ResponseBody>> {
        self.lock().iter().find_map(|active| refused_under(*active, request))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Impairment>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writes that an impairment can affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// A patch of a Machine.
    MachinePatch,
    /// The status of our object.
    Status,
    /// An event.
    Event,
    /// A Lease.
    Lease,
}

impl Target {
    fn of(request: &Request<Body>) -> Option<Self> {
        let (path, method) = (request.uri().path(), request.method());
        let has = |plural: &str| path.contains(&format!("/{plural}/"));
        let is_about = |plural: &str| path.ends_with(&format!("/{plural}")) || has(plural);
        if *method == Method::GET {
            None
        } else if has(SCHEDULED_MACHINE.plural) && path.ends_with("/status") {
            Some(Self::Status)
        } else if *method == Method::PATCH && has(MACHINE.plural) {
            Some(Self::MachinePatch)
        } else if is_about("events") {
            Some(Self::Event)
        } else if is_about("leases") {
            Some(Self::Lease)
        } else {
            None
        }
    }
}

fn refused_under(active: Impairment, request: &Request<Body>) -> Option<Response<ResponseBody>> {
    let (refused, code, reason) = match active {
        Impairment::StatusTooLarge => {
            (Target::Status, StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge")
        }
        Impairment::StatusInvalid => (Target::Status, StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
        Impairment::StatusForbidden => (Target::Status, StatusCode::FORBIDDEN, "Forbidden"),
        Impairment::Events => (Target::Event, StatusCode::FORBIDDEN, "Forbidden"),
        Impairment::Leases => (Target::Lease, StatusCode::FORBIDDEN, "Forbidden"),
        Impairment::MachinePatches => {
            (Target::MachinePatch, StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
        }
        Impairment::WorkloadForbidden
        | Impairment::MachinePatchesHang
        | Impairment::StatusHangs
        | Impairment::EventsHang
        | Impairment::ClusterApi
        | Impairment::SlowManagement => return None,
    };
    (Target::of(request) == Some(refused)).then(|| refusal(code, reason))
}
