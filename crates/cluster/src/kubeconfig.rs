//! Kubeconfigs of workload clusters. A tenant may write the Secret that one comes from, so that anything in it which
//! would make this program run a command, read a file or talk to a stranger is refused.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// What is kept of a Secret. It is never printed.
#[derive(Clone, PartialEq)]
pub(crate) struct SecretFacts {
    pub(crate) data: Arc<BTreeMap<String, ByteString>>,
}

impl fmt::Debug for SecretFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFacts").finish_non_exhaustive()
    }
}

pub(crate) fn secret(object: &Secret) -> SecretFacts {
    SecretFacts { data: Arc::new(object.data.clone().unwrap_or_default()) }
}

/// Reads the kubeconfig under a key of a Secret. The message never repeats what is in it.
pub(crate) fn read(facts: &SecretFacts, key: &str) -> Result<Kubeconfig, String> {
    let Some(bytes) = facts.data.get(key) else {
        return Err(format!("has no key {key}"));
    };
    let text = std::str::from_utf8(&bytes.0).map_err(|_| format!("key {key} is not text"))?;
    let kubeconfig: Kubeconfig =
        serde_saphyr::from_str(text).map_err(|_| format!("key {key} is not a kubeconfig"))?;
    check(&kubeconfig)?;
    Ok(kubeconfig)
}

fn check(kubeconfig: &Kubeconfig) -> Result<(), String> {
    for named in &kubeconfig.auth_infos {
        let Some(user) = &named.auth_info else { continue };
        let offence = [
            (user.exec.is_some(), "exec"),
            (user.auth_provider.is_some(), "auth-provider"),
            (user.token_file.is_some(), "tokenFile"),
            (user.client_certificate.is_some(), "client-certificate"),
            (user.client_key.is_some(), "client-key"),
        ];
        if let Some((_, field)) = offence.iter().find(|(found, _)| *found) {
            return Err(format!("uses {field}, which is refused: give the credentials inline"));
        }
    }
    for named in &kubeconfig.clusters {
        let Some(cluster) = &named.cluster else { continue };
        if cluster.certificate_authority.is_some() {
            return Err(
                "uses certificate-authority, which is refused: give certificate-authority-data".to_owned()
            );
        }
        if cluster.proxy_url.is_some() {
            return Err("uses proxy-url, which is refused".to_owned());
        }
        if cluster.server.as_deref().is_some_and(is_link_local) {
            return Err("names a link-local server address, which is refused".to_owned());
        }
    }
    Ok(())
}

/// Link-local addresses are where clouds serve their instances' credentials.
fn is_link_local(server: &str) -> bool {
    let Ok(uri) = server.parse::<http::Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_link_local(),
        Ok(IpAddr::V6(address)) => {
            address.is_unicast_link_local()
                || address.to_ipv4_mapped().is_some_and(|address| address.is_link_local())
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(cluster: &str, user: &str) -> SecretFacts {
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: a, cluster: {{{cluster}}}}}]\n\
             users: [{{name: a, user: {{{user}}}}}]\ncontexts: []\ncurrent-context: a\n"
        );
        SecretFacts { data: Arc::new(BTreeMap::from([("value".to_owned(), ByteString(text.into_bytes()))])) }
    }

    #[track_caller]
    fn check_refused(cluster: &str, user: &str, word: &str) {
        let error = read(&kubeconfig(cluster, user), "value").unwrap_err();
        assert!(error.contains(word), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[test]
    fn inline_credentials_are_taken() {
        let facts = kubeconfig("server: 'https://10.0.0.1:6443'", "token: s3cret");
        assert_eq!(read(&facts, "value").unwrap().clusters.len(), 1);
    }

    #[test]
    fn what_runs_reads_or_strays_is_refused() {
        let server = "server: 'https://10.0.0.1:6443'";
        check_refused(server, "exec: {command: s3cret, apiVersion: v1}", "exec");
        check_refused(server, "auth-provider: {name: x, config: {}}", "auth-provider");
        check_refused(server, "tokenFile: /s3cret", "tokenFile");
        check_refused(server, "client-certificate: /s3cret", "client-certificate");
        check_refused(server, "client-key: /s3cret", "client-key");
        check_refused(&format!("{server}, certificate-authority: /s3cret"), "", "certificate-authority");
        check_refused(&format!("{server}, proxy-url: 'http://s3cret'"), "", "proxy-url");
        check_refused("server: 'http://169.254.169.254'", "", "link-local");
        check_refused("server: 'https://[fe80::1]:443'", "", "link-local");
        check_refused("server: 'https://[::ffff:169.254.1.1]'", "", "link-local");
    }

    #[test]
    fn what_is_no_kubeconfig_is_said_without_repeating_it() {
        let facts = |text: &str| SecretFacts {
            data: Arc::new(BTreeMap::from([("value".to_owned(), ByteString(text.into()))])),
        };
        assert!(read(&facts("s3cret: ["), "value").unwrap_err().contains("not a kubeconfig"));
        assert!(read(&facts("x"), "other").unwrap_err().contains("no key other"));
        assert!(!format!("{:?}", facts("s3cret")).contains("s3cret"));
    }
}
