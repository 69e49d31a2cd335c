//! Compares each write to an object with the Leases of all instances at the moment at which the API server carries it out.

use crate::cluster::object_of;
use crate::instance::Shared;
use crate::seeds::Random;
use five_spot_core::shard::Shard;
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";

/// The longest time that a request takes in one direction, in milliseconds.
const LONGEST_DELAY: u64 = 200;

/// Delays requests, and finds writes that their sender had no right to.
pub struct Referee {
    random: Mutex<Random>,
    violations: Mutex<Vec<String>>,
}

/// The Lease of an instance, as the API server has stored it.
struct InstanceLease {
    shard: Shard,
    holder: String,
    expires_at: Timestamp,
    yields_to: Vec<Shard>,
}

impl InstanceLease {
    fn new(lease: &Value) -> Option<Self> {
        let (metadata, spec) = (&lease["metadata"], &lease["spec"]);
        let id = metadata["name"].as_str()?.strip_prefix("5spot-leader-instance-")?.parse().ok()?;
        let count = metadata["labels"]["5spot.finos.org/instance-count"].as_str()?.parse().ok()?;
        let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
        let yields = metadata["annotations"]["5spot.finos.org/yields-to"].as_str().unwrap_or_default();
        Some(Self {
            shard: Shard::new(id, count)?,
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            expires_at: renewed + SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64()?),
            yields_to: yields.split(',').filter_map(|shard| shard.parse().ok()).collect(),
        })
    }

    fn is_live(&self, now: Timestamp) -> bool {
        !self.holder.is_empty() && now < self.expires_at
    }
}

/// The reason why this instance must not write this object now, if there is one.
fn objection(
    leases: &[InstanceLease],
    (shard, process): (Shard, usize),
    name: &str,
    now: Timestamp,
) -> Option<String> {
    if !shard.owns("shop", name) {
        return Some("it belongs to another instance".to_owned());
    }
    let Some(own) = leases.iter().find(|lease| lease.shard.id() == shard.id()) else {
        return Some("its Lease does not exist".to_owned());
    };
    if !own.is_live(now) || own.holder != format!("5spot-controller-{}_{process}", shard.id()) {
        return Some(format!("its Lease is that of '{}' until {}", own.holder, own.expires_at));
    }
    let others = leases.iter().filter(|lease| lease.shard.id() != shard.id() && lease.is_live(now));
    others.filter(|other| other.shard.owns("shop", name)).find_map(|other| {
        let is_permitted = if shard.is_outranked_by(other.shard) {
            !own.yields_to.contains(&other.shard)
        } else {
            other.shard.is_outranked_by(shard) && other.yields_to.contains(&shard)
        };
        (!is_permitted).then(|| format!("{} works on it", other.shard))
    })
}

impl Referee {
    pub fn new(seed: u64) -> Self {
        Self { random: Mutex::new(Random(seed)), violations: Mutex::default() }
    }

    /// The time that the next request takes in one direction.
    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.random.lock().expect("no panic").below(LONGEST_DELAY))
    }

    /// Notes a write that its sender had no right to, at the moment at which it lands.
    pub async fn judge(&self, server: &Shared, sender: (Shard, usize), method: Method, path: &str) {
        let Some(name) = object_of(path).filter(|_| method != Method::GET) else { return };
        let list = Request::get(LEASES).body(Vec::new()).expect("a request");
        let leases: Value = server.api.client("5spot-system").request(list).await.expect("a list");
        let leases: Vec<InstanceLease> =
            leases["items"].as_array().into_iter().flatten().filter_map(InstanceLease::new).collect();
        let now = server.clock.now();
        if let Some(reason) = objection(&leases, sender, name, now) {
            let (shard, process) = sender;
            let violation = format!("{now}: {method} {path} by {shard} (process {process}): {reason}");
            self.violations.lock().expect("no panic").push(violation);
        }
    }

    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().expect("no panic").clone()
    }
}
