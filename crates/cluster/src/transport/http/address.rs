//! The addresses that a connection may lead to.
//!
//! A tenant writes the kubeconfig of a workload cluster. Its server may be this host, the credentials service of a
//! cloud, or a name that resolves to either. Therefore the actual address is checked at every connection, whatever
//! notation or name the kubeconfig uses for it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

/// IPv4 networks that no workload cluster is in.
const DENIED_V4: [(Ipv4Addr, u8); 10] = [
    // This host on this network, including the unspecified address: Linux connects to itself.
    (Ipv4Addr::UNSPECIFIED, 8),
    // Loopback.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, including the metadata services of AWS, Azure, Google Cloud, OpenStack and Oracle.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Metadata service of Alibaba Cloud.
    (Ipv4Addr::new(100, 100, 100, 200), 32),
    // Platform services of Azure.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Metadata service of Oracle Cloud, first generation.
    (Ipv4Addr::new(192, 0, 0, 192), 32),
    // Deprecated anycast of 6to4 relays.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Benchmarks of network devices.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Multicast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, including the broadcast address.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// IPv6 networks that no workload cluster is in.
const DENIED_V6: [(Ipv6Addr, u8); 7] = [
    (Ipv6Addr::UNSPECIFIED, 128),
    (Ipv6Addr::LOCALHOST, 128),
    // Link-local.
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    // Site-local, deprecated.
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10),
    // Multicast.
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
    // Services of AWS for its instances, including the metadata service at fd00:ec2::254.
    (Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0), 32),
    // Metadata service of Google Cloud, fd20:ce::254.
    (Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0), 32),
];

/// A network, such as `10.0.0.0/8`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

/// The error in the text of a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    /// It does not begin with an address.
    #[error("'{0}' is not an IP address or a network such as 10.0.0.0/8")]
    Address(String),
    /// The part after the slash is not a length.
    #[error("'{0}' is not a prefix length from 0 to {1}")]
    Prefix(String, u8),
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, rest)| (address, Some(rest)));
        let address: IpAddr = address.parse().map_err(|_| CidrError::Address(text.to_owned()))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(prefix) => prefix
                .parse()
                .ok()
                .filter(|length| *length <= longest)
                .ok_or_else(|| CidrError::Prefix(prefix.to_owned(), longest))?,
        };
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Cidr {
    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => is_in_v4(address, network, self.prefix),
            (IpAddr::V6(network), IpAddr::V6(address)) => is_in_v6(address, network, self.prefix),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

fn is_in_v4(address: Ipv4Addr, network: Ipv4Addr, prefix: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    address.to_bits() & mask == network.to_bits() & mask
}

fn is_in_v6(address: Ipv6Addr, network: Ipv6Addr, prefix: u8) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
    address.to_bits() & mask == network.to_bits() & mask
}

/// The addresses that a client may connect to. Clones share the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressRules {
    /// All of them: for the management cluster, whose address the operator has chosen.
    #[default]
    Any,
    /// All except those that no workload cluster uses, unless the operator has named them.
    Workload {
        /// The networks that the operator has named. They are permitted in addition to the others.
        allowed: Arc<[Cidr]>,
    },
}

impl AddressRules {
    /// True if a connection to this address is permitted.
    pub fn permits(&self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Workload { allowed } => {
                // 10.0.0.1 and ::ffff:10.0.0.1 are the same address.
                let address = address.to_canonical();
                allowed.iter().any(|network| network.contains(address)) || !is_denied(address)
            }
        }
    }
}

fn is_denied(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => DENIED_V4.iter().any(|(network, prefix)| is_in_v4(address, *network, *prefix)),
        IpAddr::V6(address) => {
            DENIED_V6.iter().any(|(network, prefix)| is_in_v6(address, *network, *prefix))
                || embedded(address).into_iter().flatten().any(|address| is_denied(IpAddr::V4(address)))
        }
    }
}

/// The IPv4 addresses to which a gateway may translate an IPv6 address.
#[allow(clippy::cast_possible_truncation)]
fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 4] {
    let bits = address.to_bits();
    let v4 = |shift: u32| Some(Ipv4Addr::from_bits((bits >> shift) as u32));
    // RFC 6052, section 2.2: bits 64 to 71 are no part of the address. A zero network is what is beside it.
    let without_octet = (bits >> 64) << 56 | bits & ((1 << 56) - 1);
    let local = |bits: u128, shift: u32| {
        let address = Ipv4Addr::from_bits((bits >> shift) as u32);
        (address.octets()[0] != 0).then_some(address)
    };
    match address.segments() {
        // IPv4-mapped, IPv4-compatible and IPv4-translated; NAT64 with the well-known prefix.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            [v4(0), None, None, None]
        }
        // NAT64 with a local prefix, whose length only its operator knows: 96, 64, 56 or 48.
        [0x64, 0xff9b, 1, ..] => {
            [local(bits, 0), local(without_octet, 24), local(without_octet, 32), local(without_octet, 40)]
        }
        // 6to4.
        [0x2002, ..] => [v4(80), None, None, None],
        // Teredo, which inverts the client's address.
        [0x2001, 0, ..] => [Some(Ipv4Addr::from_bits(!(bits as u32))), None, None, None],
        _ => [None; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(allowed: &[&str]) -> AddressRules {
        AddressRules::Workload { allowed: allowed.iter().map(|text| text.parse().unwrap()).collect() }
    }

    #[track_caller]
    fn check(address: &str, permitted: bool) {
        assert_eq!(rules(&[]).permits(address.parse().unwrap()), permitted, "{address}");
    }

    #[test]
    fn clusters_are_at_public_and_private_addresses() {
        for address in
            ["10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "8.8.8.8", "2a00::1", "fd12::1"]
        {
            check(address, true);
        }
        check("::ffff:10.0.0.1", true);
        check("64:ff9b::808:808", true);
        // 10.0.0.1 behind local NAT64 prefixes of 96 and 48 bits.
        check("64:ff9b:1::a00:1", true);
        check("64:ff9b:1:a00:0:100::", true);
    }

    #[test]
    fn this_host_metadata_services_and_groups_are_refused() {
        for address in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "::1",
            "169.254.169.254",
            "169.254.1.1",
            "fe80::1",
            "fec0::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "240.0.0.1",
        ] {
            check(address, false);
        }
    }

    #[test]
    fn addresses_inside_other_addresses_are_found() {
        for address in [
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:0:7f00:1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::7f00:1",
            // Behind local NAT64 prefixes of 48, 56 and 64 bits (RFC 6052, section 2.2), with a suffix that gateways ignore.
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1:a9fe:a9:fe00:808:808",
            "64:ff9b:1:12a9:fe:a9fe:808:808",
            "64:ff9b:1:1234:7f:0:108:808",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:0:0:0:0:0:80ff:fffe",
        ] {
            check(address, false);
        }
    }

    #[test]
    fn an_allowed_network_permits_only_itself() {
        let rules = rules(&["127.0.0.1", "169.254.0.0/16", "fe80::/64"]);
        for (address, permitted) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.2", false),
            ("169.254.7.7", true),
            ("fe80::7", true),
            ("fe80:0:0:1::7", false),
            ("10.0.0.1", true),
            ("::1", false),
        ] {
            assert_eq!(rules.permits(address.parse().unwrap()), permitted, "{address}");
        }
        assert!(AddressRules::Any.permits(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }

    #[test]
    fn networks_are_read_and_written() {
        for (text, expected) in [("10.0.0.0/8", "10.0.0.0/8"), ("::1", "::1/128"), ("1.2.3.4", "1.2.3.4/32")]
        {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), expected);
        }
        for text in ["", "10.0.0.0/33", "10.0.0.0/x", "10.0.0/8", "::/129", "/8", "10.0.0.0/-1", "localhost"]
        {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_address_is_judged_as_the_address_itself(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            let rules = rules(&[]);
            let mapped = IpAddr::V6(address.to_ipv6_mapped());
            prop_assert_eq!(rules.permits(IpAddr::V4(address)), rules.permits(mapped));
        }

        #[test]
        fn any_text_is_a_network_or_an_error(text in ".*") {
            if let Ok(network) = text.parse::<Cidr>() {
                prop_assert_eq!(network.to_string().parse::<Cidr>().unwrap(), network);
            }
        }
    }
}
