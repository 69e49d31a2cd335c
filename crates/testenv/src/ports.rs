//! Free ports on loopback, for servers that need their port before they start.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// The end of the port range: below the range from which the kernel assigns ports to outgoing connections
/// (32768 on Linux), so that the port of a restarted server is still free.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// Finds `N` different free ports.
pub fn free<const N: usize>() -> io::Result<[u16; N]> {
    // Each search starts at a different port, so that control planes that start at the same time do not
    // conflict.
    let width = u128::from(RANGE.end - RANGE.start);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seed =
        now.as_nanos().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u128::from(std::process::id()));
    let first = RANGE.start + u16::try_from((seed >> 16) % width).unwrap_or_default();
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    let mut candidates = (first..RANGE.end).chain(RANGE.start..first);
    for port in &mut ports {
        // Listeners are held until all are found, so that none is found twice.
        let (number, listener) = candidates
            .find_map(|number| Some((number, TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?)))
            .ok_or_else(|| io::Error::other(format!("no free port among {RANGE:?} on 127.0.0.1")))?;
        *port = number;
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_can_be_listened_on() {
        let ports = free::<12>().expect("free ports");
        let listeners: Vec<_> =
            ports.iter().map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).expect("free")).collect();
        assert_eq!(listeners.len(), 12);
        assert!(ports.iter().all(|port| RANGE.contains(port)));
    }
}
