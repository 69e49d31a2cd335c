//! The identity of a physical machine: what two objects have in common that lend the same one.

use crate::fingerprint::Fingerprint;
use crate::text;
use five_spot_api::{ScheduledMachineSpec, names};
use serde_json::{Map, Value};
use std::fmt;
use std::net::IpAddr;

/// The kind of infrastructure object whose `address` and `port` say which machine it is, and its API group.
const REMOTE_MACHINE: (&str, &str) = ("infrastructure.cluster.x-k8s.io", "RemoteMachine");

/// The port of a `RemoteMachine` that names none.
const SSH: u64 = 22;

/// The longest text that is shown of an identity, in bytes. A `machineIdentity` is no longer; an address may be.
const MAX_TEXT: usize = 260;

/// A physical machine, as a fingerprint of the text that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineIdentity(Fingerprint);

impl MachineIdentity {
    /// Returns the physical machine of a spec, if it says which one it is.
    pub fn of(spec: &ScheduledMachineSpec) -> Option<Self> {
        whole_text(spec).map(|text| Self(Fingerprint::of(&text)))
    }

    /// Returns the text that names the physical machine of a spec, for people.
    pub fn text(spec: &ScheduledMachineSpec) -> Option<String> {
        whole_text(spec).map(|whole| text::bounded(&whole, MAX_TEXT).into_owned())
    }

    /// Returns the machine that a Lease of this name claims, if it is such a Lease.
    pub fn of_lease(name: &str) -> Option<Self> {
        names::claimed_machine(name).map(Fingerprint::read).map(Self)
    }

    /// Returns the name of the Lease that claims the machine.
    pub fn lease(self) -> String {
        names::claim(&self.to_string())
    }
}

impl fmt::Display for MachineIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn whole_text(spec: &ScheduledMachineSpec) -> Option<String> {
    if let Some(named) = &spec.machine_identity {
        return Some(named.clone());
    }
    let infrastructure = &spec.infrastructure_spec;
    let group = infrastructure.api_version.split_once('/').map_or("", |(group, _)| group);
    ((group, infrastructure.kind.as_str()) == REMOTE_MACHINE)
        .then(|| remote_machine(&infrastructure.spec))
        .flatten()
}

/// Returns `address:port` of a `RemoteMachine`. Different notations of one address give the same text. Names are not
/// looked up: a name and the address that it stands for are two machines.
fn remote_machine(spec: &Map<String, Value>) -> Option<String> {
    let address = spec.get("address")?.as_str()?.trim();
    let port = spec.get("port").and_then(Value::as_u64).unwrap_or(SSH);
    let inner = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    if let Ok(ip) = inner.parse::<IpAddr>() {
        return Some(match ip.to_canonical() {
            IpAddr::V4(ip) => format!("{ip}:{port}"),
            IpAddr::V6(ip) => format!("[{ip}]:{port}"),
        });
    }
    let name = address.strip_suffix('.').unwrap_or(address).to_lowercase();
    (!name.is_empty()).then(|| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(kind: &str, infrastructure: &Value, named: Option<&str>) -> ScheduledMachineSpec {
        let mut spec = json!({
            "schedule": {"daysOfWeek": ["mon"]},
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind, "spec": infrastructure,
            },
        });
        if let Some(named) = named {
            spec["machineIdentity"] = named.into();
        }
        serde_json::from_value(spec).expect("a spec")
    }

    #[track_caller]
    fn check(infrastructure: &Value, text: Option<&str>) {
        let found = MachineIdentity::text(&spec("RemoteMachine", infrastructure, None));
        assert_eq!(found.as_deref(), text, "{infrastructure}");
    }

    #[test]
    fn notations_of_one_address_name_one_machine() {
        check(&json!({"address": "10.0.0.4"}), Some("10.0.0.4:22"));
        check(&json!({"address": " 10.0.0.4 ", "port": 22}), Some("10.0.0.4:22"));
        check(&json!({"address": "10.0.0.4", "port": 2222}), Some("10.0.0.4:2222"));
        check(&json!({"address": "::ffff:10.0.0.4"}), Some("10.0.0.4:22"));
        for address in ["2001:db8::1", "[2001:DB8:0:0::1]", "2001:0db8:0000:0000:0000:0000:0000:0001"] {
            check(&json!({"address": address}), Some("[2001:db8::1]:22"));
        }
        for address in ["Desk-4.Example.org", "desk-4.example.org."] {
            check(&json!({"address": address}), Some("desk-4.example.org:22"));
        }
    }

    #[test]
    fn a_machine_that_nothing_names_has_no_identity() {
        for unnamed in [json!({}), json!({"address": ""}), json!({"address": " . "}), json!({"address": 4})] {
            let found = MachineIdentity::text(&spec("RemoteMachine", &unnamed, None));
            assert_eq!(found, None, "{unnamed}");
        }
        assert_eq!(MachineIdentity::of(&spec("MetalMachine", &json!({"address": "10.0.0.4"}), None)), None);
        check(&json!({"pool": "desks"}), None);
    }

    #[test]
    fn a_named_machine_is_that_machine_whatever_its_provider() {
        let named = MachineIdentity::of(&spec("MetalMachine", &json!({}), Some("10.0.0.4:22")));
        let derived = MachineIdentity::of(&spec("RemoteMachine", &json!({"address": "10.0.0.4"}), None));
        assert!(named.is_some());
        assert_eq!(named, derived);
        let other = spec("RemoteMachine", &json!({"address": "10.0.0.4"}), Some("asset-7"));
        assert_eq!(MachineIdentity::text(&other).as_deref(), Some("asset-7"));
    }

    #[test]
    fn the_lease_of_a_machine_names_it_and_never_changes() {
        let machine = MachineIdentity::of(&spec("RemoteMachine", &json!({"address": "10.0.0.4"}), None));
        let lease = machine.expect("an identity").lease();
        assert_eq!(MachineIdentity::of_lease(&lease), machine);
        assert_eq!(MachineIdentity::of_lease("5spot-leader"), None);
        assert_eq!(lease, "5spot-machine-7bf02f5c2886f3a3");
    }

    #[test]
    fn a_long_address_is_cut_only_where_it_is_shown() {
        let of = |last: &str| {
            spec("RemoteMachine", &json!({"address": format!("{}{last}", "a".repeat(10_000))}), None)
        };
        assert!(MachineIdentity::text(&of("x")).expect("a text").len() < 300);
        assert_ne!(MachineIdentity::of(&of("x")), MachineIdentity::of(&of("y")));
    }
}
