//! Causes for which the controller cannot use the new kubeconfig, or not for as long as expected.

use std::net::IpAddr;

/// The part of the lifetime that may be missing without a warning: clocks differ, and the request takes a while.
const TOLERANCE_SECONDS: i64 = 600;

/// The warnings about the address of the cluster and the lifetime of the token, in seconds.
pub(super) fn warnings(server: &str, requested: i64, granted: i64) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_own_machine(server) {
        warnings.push(format!(
            "{server} is the machine of whoever connects to it, so that a controller in a pod cannot reach the workload \
             cluster. Name its address with --server. A controller that runs on that machine needs --workload-cidr"
        ));
    }
    if granted + TOLERANCE_SECONDS < requested {
        warnings.push(format!(
            "the API server has shortened the lifetime of the token from {}h to {}h. Run this command again as often, for \
             example in a CronJob. The alert FiveSpotWorkloadCredentialExpiring fires while less than 7 days are left",
            requested / 3600,
            (granted + TOLERANCE_SECONDS) / 3600
        ));
    }
    warnings
}

/// True for addresses that mean another machine wherever they are used.
fn is_own_machine(server: &str) -> bool {
    let authority = server.trim_start_matches("https://").split('/').next().unwrap_or_default();
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) => host,
        Some(_) | None => authority,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_own = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    #[test]
    fn an_address_of_the_own_machine_is_reported() {
        for server in [
            "https://127.0.0.1:36443",
            "https://0.0.0.0:40001",
            "https://localhost:6443",
            "https://[::1]:6443",
            "https://[::1]",
            "https://127.0.0.1/k8s/clusters/c-1",
        ] {
            let found = warnings(server, HOUR, HOUR);
            assert!(found.len() == 1 && found[0].contains("--server"), "{server}: {found:?}");
        }
        for server in ["https://172.18.0.3:6443", "https://api.example", "https://[fd00::7]:6443"] {
            assert_eq!(warnings(server, HOUR, HOUR), [""; 0], "{server}");
        }
    }

    #[test]
    fn a_shortened_lifetime_is_reported_with_both_numbers() {
        let found = warnings("https://api.example", 2160 * HOUR, 24 * HOUR - 2);
        assert!(found.len() == 1 && found[0].contains("from 2160h to 24h"), "{found:?}");
        assert_eq!(warnings("https://api.example", 2160 * HOUR, 2160 * HOUR - 2), [""; 0]);
    }
}
