//! The network of a node: that of the machine, or one of its own that is connected to the machine by a pair of interfaces.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde_json::{Value, json};

use super::Kind;
use crate::{link, run_directory};

/// The address of the API server in every cluster, which kubelets tell to pods. The certificate of the API server has it.
pub(super) const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 443);

/// The interface of an isolated node that leads to the machine.
const UPLINK: &str = "uplink";
/// The bridge of the pods of an isolated node.
const POD_BRIDGE: &str = "pods";

/// The network of one node. All addresses are in the range that is reserved for benchmarks (RFC 2544).
#[derive(Debug, Clone)]
pub(super) struct Network {
    kind: Kind,
    number: u8,
    /// The interface of the machine: the bridge of the pods, or the end of the pair whose other end is the uplink.
    link: String,
}

impl Network {
    /// The network of this number. Nodes that run at the same time have different ones.
    pub(super) fn new(kind: Kind, number: u8) -> Self {
        // Names of interfaces have at most 15 characters.
        let link = match kind {
            Kind::Host => format!("5spot{}-{number}", std::process::id()),
            Kind::Isolated => format!("5s{}i{number}", std::process::id()),
        };
        Self { kind, number, link }
    }

    /// The address of the node, by which the API server reaches its kubelet.
    pub(super) fn node_address(&self) -> Ipv4Addr {
        match self.kind {
            Kind::Host => Ipv4Addr::new(198, 19, self.number, 1),
            Kind::Isolated => Ipv4Addr::new(198, 18, self.number, 2),
        }
    }

    /// The address of the machine, by which the node and its pods reach it.
    pub(super) fn machine_address(&self) -> Ipv4Addr {
        match self.kind {
            Kind::Host => self.node_address(),
            Kind::Isolated => Ipv4Addr::new(198, 18, self.number, 1),
        }
    }

    fn pod_subnet(&self) -> String {
        match self.kind {
            Kind::Host => format!("198.19.{}.0/24", self.number),
            Kind::Isolated => format!("198.18.{}.64/26", self.number),
        }
    }

    /// Makes the interfaces. `holder` is a process in the network namespace of an isolated node.
    pub(super) fn connect(&self, run_directory: &Path, holder: u32) -> io::Result<()> {
        run_directory::record_link(run_directory, &self.link)?;
        match self.kind {
            Kind::Host => link::create_bridge(&self.link, &format!("{}/24", self.machine_address())),
            Kind::Isolated => {
                let (machine, node) = (self.machine_address(), self.node_address());
                link::create_pair(&self.link, &format!("{machine}/30"), UPLINK, holder)?;
                link::ip_in(holder, &["address", "add", &format!("{node}/30"), "dev", UPLINK])?;
                link::ip_in(holder, &["link", "set", "dev", UPLINK, "up"])?;
                link::ip_in(holder, &["route", "add", "default", "via", &machine.to_string()])?;
                link::add_route(&self.pod_subnet(), &node.to_string())
            }
        }
    }

    /// Deletes the interfaces of the machine; those of a namespace end with it.
    pub(super) fn disconnect(&self) -> io::Result<()> {
        link::delete(&self.link)
    }

    /// The configuration of the network of pods without host networking. On the machine it has no further routes: as a
    /// gateway, the plugin would enable IP forwarding on the machine. An isolated node forwards to the machine.
    pub(super) fn pods(&self) -> Value {
        let subnet = self.pod_subnet();
        let (bridge, is_gateway, range, routes) = match self.kind {
            Kind::Host => {
                let range = json!({"subnet": subnet, "gateway": self.machine_address()});
                (self.link.as_str(), false, range, json!([]))
            }
            Kind::Isolated => (POD_BRIDGE, true, json!({"subnet": subnet}), json!([{"dst": "0.0.0.0/0"}])),
        };
        json!({
            "cniVersion": "1.0.0",
            "name": "5spot",
            "plugins": [{
                "type": "bridge",
                "bridge": bridge,
                "isGateway": is_gateway,
                "ipMasq": false,
                "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[range]], "routes": routes},
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_run_at_the_same_time_have_different_addresses() {
        let of = |kind, number| {
            let network = Network::new(kind, number);
            assert!(network.link.len() <= 15, "{}", network.link);
            (network.node_address(), network.pod_subnet())
        };
        assert_ne!(of(Kind::Isolated, 254), of(Kind::Isolated, 255));
        assert_ne!(of(Kind::Isolated, 0), of(Kind::Host, 0));
        let network = Network::new(Kind::Isolated, 7);
        assert_eq!(network.machine_address(), Ipv4Addr::new(198, 18, 7, 1));
        assert_eq!(network.pods()["plugins"][0]["isGateway"], true);
        let host = Network::new(Kind::Host, 0);
        assert_eq!(host.node_address(), host.machine_address());
        assert_eq!(host.pods()["plugins"][0]["isGateway"], false);
    }
}
