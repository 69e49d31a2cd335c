//! Kubeconfigs of workload clusters. A tenant may write the Secret that one comes from, so that anything in it which
//! would make this program run a command, read a file or talk to a stranger is refused.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;
use serde_saphyr::Options;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The longest kubeconfig. One with two certificates and a key has 6 KB.
const LONGEST: usize = 64 << 10;

/// Values of a kubeconfig and the marks around them. One with a hundred contexts has about 4,000; unknown fields are parsed as
/// well, and every value takes memory.
const MOST_EVENTS: usize = 20_000;

/// The facts that are kept of a Secret: the keys that objects name, and nothing else. They are never printed.
#[derive(Clone, PartialEq)]
pub(crate) struct SecretFacts {
    data: Arc<BTreeMap<String, Value>>,
}

/// The value of a key.
#[derive(Clone, PartialEq)]
enum Value {
    Text(Arc<[u8]>),
    /// More than [`LONGEST`].
    TooLong,
}

impl fmt::Debug for SecretFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFacts").finish_non_exhaustive()
    }
}

/// The facts of a Secret of which objects name these keys.
pub(crate) fn secret(object: &Secret, keys: &BTreeSet<String>) -> SecretFacts {
    let named = object.data.iter().flatten().filter(|(key, _)| keys.contains(*key));
    let kept = |bytes: &ByteString| {
        if bytes.0.len() <= LONGEST { Value::Text(bytes.0.as_slice().into()) } else { Value::TooLong }
    };
    SecretFacts { data: Arc::new(named.map(|(key, bytes)| (key.clone(), kept(bytes))).collect()) }
}

/// Reads the kubeconfig under a key of a Secret that was just read. What the controller refuses is refused here too. The
/// message never repeats what is in it.
pub fn workload_kubeconfig(object: &Secret, key: &str) -> Result<Kubeconfig, String> {
    read(&secret(object, &BTreeSet::from([key.to_owned()])), key)
}

/// Reads the kubeconfig under a key of a Secret. The message never repeats what is in it.
pub(crate) fn read(facts: &SecretFacts, key: &str) -> Result<Kubeconfig, String> {
    let bytes = match facts.data.get(key) {
        Some(Value::Text(bytes)) => bytes,
        Some(Value::TooLong) => return Err(format!("key {key} has more than {LONGEST} bytes")),
        None => return Err(format!("has no key {key}")),
    };
    let text = std::str::from_utf8(bytes).map_err(|_| format!("key {key} is not text"))?;
    let kubeconfig: Kubeconfig = serde_saphyr::from_str_with_options(text, options())
        .map_err(|_| format!("key {key} is not a kubeconfig"))?;
    check(&kubeconfig)?;
    Ok(kubeconfig)
}

/// Limits of the parser. Its own permit a million values by way of aliases, which no kubeconfig needs.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: MOST_EVENTS,
            max_nodes: MOST_EVENTS,
            max_aliases: 0,
        },
        with_snippet: false,
    }
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
        // With impersonation a kubeconfig could stand for any user: it should hold the identity itself.
        let impersonates = [
            (user.impersonate.is_some(), "as"),
            (user.impersonate_uid.is_some(), "as-uid"),
            (user.impersonate_groups.is_some(), "as-groups"),
            (user.impersonate_user_extra.is_some(), "as-user-extra"),
        ];
        if let Some((_, field)) = impersonates.iter().find(|(found, _)| *found) {
            return Err(format!("uses {field}, which is refused: give the credentials of the user itself"));
        }
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
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kubeconfig(cluster: &str, user: &str) -> SecretFacts {
        facts(&text(cluster, user))
    }

    fn text(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: a, cluster: {{{cluster}}}}}]\n\
             users: [{{name: a, user: {{{user}}}}}]\ncontexts: []\ncurrent-context: a\n"
        )
    }

    fn facts(text: &str) -> SecretFacts {
        let data = BTreeMap::from([("value".to_owned(), ByteString(text.into()))]);
        secret(&Secret { data: Some(data), ..Secret::default() }, &["value".to_owned()].into())
    }

    #[test]
    fn only_named_keys_are_kept_and_only_if_they_are_short() {
        let value = |length| ByteString(vec![b'a'; length]);
        let data = BTreeMap::from([
            ("value".to_owned(), value(LONGEST + 1)),
            ("short".to_owned(), value(LONGEST)),
            ("other".to_owned(), value(1)),
        ]);
        let object = Secret { data: Some(data), ..Secret::default() };
        let facts = secret(&object, &["value".to_owned(), "short".to_owned(), "absent".to_owned()].into());
        assert_eq!(facts.data.keys().collect::<Vec<_>>(), ["short", "value"]);
        assert!(facts.data["value"] == Value::TooLong);
        assert!(read(&facts, "value").unwrap_err().contains("more than 65536 bytes"));
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
    fn commands_files_proxies_and_impersonation_are_refused() {
        let server = "server: 'https://10.0.0.1:6443'";
        check_refused(server, "exec: {command: s3cret, apiVersion: v1}", "exec");
        check_refused(server, "auth-provider: {name: x, config: {}}", "auth-provider");
        check_refused(server, "tokenFile: /s3cret", "tokenFile");
        check_refused(server, "client-certificate: /s3cret", "client-certificate");
        check_refused(server, "client-key: /s3cret", "client-key");
        check_refused(&format!("{server}, certificate-authority: /s3cret"), "", "certificate-authority");
        check_refused(&format!("{server}, proxy-url: 'http://s3cret'"), "", "proxy-url");
        check_refused(server, "as: s3cret", "as,");
        check_refused(server, "as-uid: s3cret", "as-uid");
        check_refused(server, "as-groups: [s3cret]", "as-groups");
        check_refused(server, "as-user-extra: {a: [s3cret]}", "as-user-extra");
    }

    #[test]
    fn a_small_text_that_would_grow_is_refused() {
        let valid = text("server: 'https://10.0.0.1:6443'", "token: s3cret");
        assert!(read(&facts(&valid), "value").is_ok());
        // Every level is ten times the one before. Unknown fields and extensions are parsed too.
        let line = |level: usize| {
            let refers = if level == 0 { "x".to_owned() } else { format!("*a{}", level - 1) };
            format!("a{level}: &a{level} [{}]\n", vec![refers; 10].join(", "))
        };
        for levels in [2, 5, 12] {
            let bomb: String = (0..levels).map(line).collect();
            assert!(read(&facts(&format!("{valid}{bomb}")), "value").is_err(), "{levels} levels");
        }
        let values = vec!["0"; MOST_EVENTS].join(",");
        for many in
            [format!("a: [{values}]\n"), format!("extensions: [{{name: a, extension: [{values}]}}]\n")]
        {
            assert!(read(&facts(&format!("{valid}{many}")), "value").is_err());
        }
    }

    #[test]
    fn a_kubeconfig_of_a_hundred_clusters_is_taken() {
        let entries = |field: &str, inner: &str| {
            let entry = |number: usize| format!("  - {{name: a{number}, {inner}}}\n");
            format!("{field}:\n{}", (0..100).map(entry).collect::<String>())
        };
        let clusters = entries("clusters", "cluster: {server: 'https://10.0.0.1:6443'}");
        let users = entries("users", "user: {token: s3cret}");
        let contexts = entries("contexts", "context: {cluster: a1, user: a1, namespace: shop}");
        let text = format!("apiVersion: v1\nkind: Config\n{clusters}{users}{contexts}current-context: a1\n");
        assert_eq!(read(&facts(&text), "value").unwrap().clusters.len(), 100);
    }

    proptest! {
        #[test]
        fn any_text_is_a_kubeconfig_or_refused(text in ".{0,200}") {
            let _ = read(&facts(&text), "value");
        }

        #[test]
        fn any_part_of_a_kubeconfig_is_one_or_refused(cut in 0usize..200, junk in ".{0,8}") {
            let text = text("server: 'https://10.0.0.1:6443'", "token: s3cret");
            let text = format!("{}{junk}", &text[..cut.min(text.len())]);
            if let Err(error) = read(&facts(&text), "value") {
                prop_assert!(!error.contains("s3cret"));
            }
        }
    }

    #[test]
    fn an_invalid_kubeconfig_is_reported_without_its_content() {
        assert!(read(&facts("s3cret: ["), "value").unwrap_err().contains("not a kubeconfig"));
        assert!(read(&facts("x"), "other").unwrap_err().contains("no key other"));
        assert!(!format!("{:?}", facts("s3cret")).contains("s3cret"));
    }
}
