//! The syntax of names, keys, values and versions.

use five_spot_api::names::PROVIDER_GROUPS;

pub(super) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && has_alphanumeric_ends(text)
}

pub(super) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

pub(super) fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}

/// `group/version` with a group that is on the list.
pub(super) fn is_provider_version(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(group, version)| PROVIDER_GROUPS.contains(&group) && is_api_version(version))
}

/// `v1`, `v1beta2` and the like.
fn is_api_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    let (major, stage) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let numbered =
        |stage: &str| ["alpha", "beta"].iter().any(|word| stage.strip_prefix(word).is_some_and(is_positive));
    is_positive(major) && (stage.is_empty() || numbered(stage)) && text.len() <= 63
}

/// `v1.36.4`, `1.36.4-rc.1`, `v1.36.4+k0s.0` and the like.
pub(super) fn is_kubernetes_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (core, suffix) = match text.find(['-', '+']) {
        Some(place) => (&text[..place], Some(&text[place + 1..])),
        None => (text, None),
    };
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|number| *number == "0" || is_positive(number))
        && suffix.is_none_or(|suffix| {
            !suffix.is_empty() && suffix.chars().all(|c| c.is_ascii_alphanumeric() || "-+.".contains(c))
        })
}

fn is_positive(number: &str) -> bool {
    !number.is_empty() && !number.starts_with('0') && number.chars().all(|c| c.is_ascii_digit())
}

/// The form of keys of labels, annotations and taints: `[domain/]name`.
pub(super) fn is_qualified_name(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    domain.is_none_or(is_dns_subdomain) && !name.is_empty() && is_label_value(name)
}

pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty()
        || text.len() <= 63
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && has_alphanumeric_ends(text)
}

pub(super) fn is_secret_key(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn has_alphanumeric_ends(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}
