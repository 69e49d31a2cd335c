//! The formats of names, label keys and label values.

/// The rule for the names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameRule {
    /// At most 253 characters of DNS labels, joined by dots.
    Subdomain,
    /// At most 63 characters of one DNS label.
    Label,
}

pub(super) const SUBDOMAIN_HELP: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

pub(super) fn fits(rule: NameRule, name: &str) -> bool {
    match rule {
        NameRule::Subdomain => is_subdomain(name),
        NameRule::Label => is_label(name),
    }
}

pub(super) fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && !name.is_empty() && name.split('.').all(is_dns_part)
}

pub(super) fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_dns_part(name)
}

fn is_dns_part(part: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    !bytes.is_empty()
        && inner(bytes[0])
        && inner(bytes[bytes.len() - 1])
        && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
}

/// A key: `name` or `prefix/name`.
pub(super) fn is_qualified_name(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name_part(name),
        None => is_name_part(key),
    }
}

/// The value of a label: empty, or like the name part of a key.
pub(super) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name_part(value)
}

fn is_name_part(part: &str) -> bool {
    let bytes = part.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= 63
        && bytes[0].is_ascii_alphanumeric()
        && bytes[bytes.len() - 1].is_ascii_alphanumeric()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// A key of a `ConfigMap` or Secret.
pub(super) fn is_config_key(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= 253
        && key != "."
        && key != ".."
        && !key.starts_with("..")
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_and_invalid_names_are_distinguished() {
        for good in ["a", "a-b.c", "0", "web-1"] {
            assert!(is_subdomain(good), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a..b", "a_b", "a/b"] {
            assert!(!is_subdomain(bad), "{bad}");
        }
        assert!(is_qualified_name("example.org/App_1"));
        assert!(!is_qualified_name("example.org/"));
        assert!(!is_qualified_name("a/b/c"));
    }
}
