//! Names and versions of objects, checked before they are used: they enter URLs, keys and log lines.
//!
//! An API server holds its objects to these rules. One that is not what it says may send `../../..` as the name of a pod.

use kube::Resource;

/// The longest resource version or UID. Those of Kubernetes have at most 36 bytes.
const IDENTIFIER: usize = 128;

/// True if a text is a DNS subdomain (RFC 1123), as the names of most objects are.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_plain_label)
}

/// True if a text is a DNS label (RFC 1123), as the names of namespaces are.
pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_plain_label(text)
}

fn is_plain_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(allowed)
}

/// True if a text can be a UID or a resource version.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.len() <= IDENTIFIER
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':'))
}

/// True if name, namespace, UID and version of an object are what an API server would have accepted.
pub(crate) fn identifies(object: &impl Resource) -> bool {
    let metadata = object.meta();
    let all = |text: &Option<String>, check: fn(&str) -> bool| text.as_deref().is_none_or(check);
    metadata.name.as_deref().is_some_and(is_subdomain)
        && all(&metadata.namespace, is_label)
        && all(&metadata.resource_version, is_identifier)
        && all(&metadata.uid, is_identifier)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn names_of_kubernetes_are_names() {
        for name in ["a", "0", "web-0", "ip-10-0-0-1.eu-central-1.compute.internal", "kube-root-ca.crt"] {
            assert!(is_subdomain(name), "{name}");
        }
        assert!(is_subdomain(&"a".repeat(253)));
        assert!(is_label(&"a".repeat(63)));
    }

    #[test]
    fn a_path_is_not_a_valid_name() {
        for name in [
            "",
            ".",
            "..",
            "../..",
            "a/b",
            "a/../../secrets",
            "%2e%2e",
            "a?b",
            "a#b",
            "a b",
            "A",
            "a_b",
            "-a",
            "a-",
            "a..b",
            ".a",
            "a.",
            "a\n",
            "\u{1b}[31m",
            "ä",
            "a\0",
        ] {
            assert!(!is_subdomain(name), "{name:?}");
        }
        assert!(!is_subdomain(&"a".repeat(254)));
        assert!(!is_label(&"a".repeat(64)));
        assert!(!is_label("a.b"));
    }

    fn pod(metadata: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": metadata})).expect("a pod")
    }

    #[test]
    fn every_part_of_an_identity_is_checked() {
        let fine = json!({"name": "a", "namespace": "b", "resourceVersion": "12", "uid": "1-2"});
        assert!(identifies(&pod(&fine)));
        let long = "1".repeat(1_000_000);
        for (field, value) in [
            ("name", json!("../a")),
            ("name", json!(null)),
            ("namespace", json!("a/b")),
            ("resourceVersion", json!(long)),
            ("uid", json!(long)),
            ("resourceVersion", json!("1&x=y")),
        ] {
            let mut metadata = fine.clone();
            metadata[field] = value;
            assert!(!identifies(&pod(&metadata)), "{field}");
        }
    }

    proptest! {
        #[test]
        fn a_name_stays_within_its_segment_of_a_url(name in ".*") {
            if is_subdomain(&name) {
                let url = format!("https://host/api/v1/nodes/{name}");
                let uri: http::Uri = url.parse().expect("a URL");
                prop_assert_eq!(uri.path().split('/').count(), 5);
                prop_assert!(uri.query().is_none());
            }
        }
    }
}
