//! What is allowed in each field, beyond its type.

use super::ProviderKind;
use crate::field::FieldError;
use crate::schedule::{DurationBounds, parse_duration};
use five_spot_api::names::{MAX_NAME_LENGTH, PROVIDER_GROUPS, is_reserved_key};
use five_spot_api::{KubeconfigSecretRef, MachineTemplate, NodeTaint, OverrideSpec, ProviderObject};
use jiff::SignedDuration;
use std::collections::{BTreeMap, BTreeSet};

/// The default of both shutdown timeouts, for a spec whose own cannot be read.
pub(super) const DEFAULT_SHUTDOWN: SignedDuration = SignedDuration::from_mins(5);

/// Collects what is wrong, so that a person sees all of it at once.
#[derive(Default)]
pub(super) struct Checks {
    errors: Vec<FieldError>,
}

impl Checks {
    pub(super) fn one<T>(&mut self, result: Result<T, FieldError>) -> Option<T> {
        result.map_err(|error| self.errors.push(error)).ok()
    }

    pub(super) fn all<T>(&mut self, result: Result<T, Vec<FieldError>>) -> Option<T> {
        result.map_err(|errors| self.errors.extend(errors)).ok()
    }

    pub(super) fn finish(mut self) -> Vec<FieldError> {
        self.errors.sort();
        self.errors
    }

    fn require(&mut self, holds: bool, field: &str, message: impl FnOnce() -> String) {
        if !holds {
            self.errors.push(FieldError::new(field, message()));
        }
    }

    pub(super) fn cluster_name(&mut self, name: &str) {
        self.require(is_dns_label(name), "spec.clusterName", || {
            format!("{name:?} is not a cluster name: use 1 to 63 lower-case letters, digits and '-'")
        });
    }

    pub(super) fn provider(&mut self, object: &ProviderObject, path: &str) -> ProviderKind {
        let group = object.api_version.split_once('/').map(|(group, _)| group);
        let version = object.api_version.split_once('/').map_or("", |(_, version)| version);
        self.require(group.is_some_and(|group| PROVIDER_GROUPS.contains(&group)), &format!("{path}.apiVersion"), || {
            let groups = PROVIDER_GROUPS.join(", ");
            format!("{:?} is not allowed: use group/version with a group of {groups}", object.api_version)
        });
        self.require(group.is_none() || is_version(version), &format!("{path}.apiVersion"), || {
            format!("{version:?} is not a version: use one such as v1beta2")
        });
        self.require(is_kind(&object.kind), &format!("{path}.kind"), || {
            format!("{:?} is not a kind: use 1 to 63 letters and digits that begin with a capital", object.kind)
        });
        ProviderKind { api_version: object.api_version.clone(), kind: object.kind.clone() }
    }

    pub(super) fn machine_template(&mut self, template: &MachineTemplate) {
        let path = "spec.machineTemplate";
        self.keys(&template.labels, &format!("{path}.labels"));
        self.keys(&template.annotations, &format!("{path}.annotations"));
        for (key, value) in &template.labels {
            self.require(is_label_value(value), &format!("{path}.labels"), || {
                format!("{value:?}, the value of {key:?}, is not a label value: use at most 63 letters, digits, '-', '_' and '.'")
            });
        }
        for (key, value) in &template.annotations {
            self.require(value.chars().count() <= 1024, &format!("{path}.annotations"), || {
                format!("the value of {key:?} is longer than 1024 characters")
            });
        }
        let texts = [("version", &template.version, 63), ("failureDomain", &template.failure_domain, 256)];
        for (field, text, longest) in texts {
            let fits = text.as_ref().is_none_or(|text| (1..=longest).contains(&text.chars().count()));
            self.require(fits, &format!("{path}.{field}"), || format!("use 1 to {longest} characters"));
        }
    }

    fn keys(&mut self, map: &BTreeMap<String, String>, path: &str) {
        self.require(map.len() <= 32, path, || format!("{} entries: use at most 32", map.len()));
        for key in map.keys() {
            self.require(is_qualified_name(key), path, || format!("{key:?} is not a valid key"));
            self.require(!is_reserved_key(key), path, || format!("{key:?} lies in a reserved domain"));
        }
    }

    pub(super) fn priority(&mut self, priority: i32) -> u8 {
        let valid = u8::try_from(priority).ok().filter(|priority| *priority <= 100);
        self.require(valid.is_some(), "spec.priority", || format!("{priority} is not a priority: use 0 to 100"));
        valid.unwrap_or_default()
    }

    pub(super) fn commands(&mut self, commands: &[String]) {
        self.require(commands.len() <= 100, "spec.killIfCommands", || "use at most 100 commands".to_owned());
        for (index, command) in commands.iter().enumerate() {
            let fits = (1..=256).contains(&command.chars().count());
            self.require(fits, &format!("spec.killIfCommands[{index}]"), || "use 1 to 256 characters".to_owned());
        }
    }

    pub(super) fn taints(&mut self, taints: &[NodeTaint]) {
        self.require(taints.len() <= 32, "spec.nodeTaints", || "use at most 32 taints".to_owned());
        let mut seen = BTreeSet::new();
        for (index, taint) in taints.iter().enumerate() {
            let path = format!("spec.nodeTaints[{index}]");
            let key = &taint.key;
            self.require(is_qualified_name(key), &format!("{path}.key"), || format!("{key:?} is not a valid key"));
            self.require(!is_reserved_key(key), &format!("{path}.key"), || format!("{key:?} lies in a reserved domain"));
            let value = taint.value.as_deref().unwrap_or_default();
            self.require(is_label_value(value), &format!("{path}.value"), || {
                format!("{value:?} is not a taint value: use at most 63 letters, digits, '-', '_' and '.'")
            });
            self.require(seen.insert((key, taint.effect)), "spec.nodeTaints", || {
                format!("key {key:?} with effect {} is there twice: use each pair once", taint.effect.as_str())
            });
        }
    }

    pub(super) fn secret(&mut self, secret: &KubeconfigSecretRef) {
        let path = "spec.kubeconfigSecretRef";
        self.require(is_dns_subdomain(&secret.name), &format!("{path}.name"), || {
            format!("{:?} is not the name of a Secret", secret.name)
        });
        let key_fits = (1..=253).contains(&secret.key.len())
            && secret.key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        self.require(key_fits, &format!("{path}.key"), || format!("{:?} is not a key of a Secret", secret.key));
    }

    pub(super) fn override_reason(&mut self, forced: Option<&OverrideSpec>) {
        let reason = forced.and_then(|forced| forced.reason.as_deref()).unwrap_or_default();
        self.require(reason.chars().count() <= 256, "spec.override.reason", || "use at most 256 characters".to_owned());
    }
}

pub(super) fn name(name: &str) -> Result<(), FieldError> {
    if name.len() > MAX_NAME_LENGTH {
        let message = format!("{} characters: use at most {MAX_NAME_LENGTH}", name.len());
        return Err(FieldError::new("metadata.name", message));
    }
    Ok(())
}

/// A day is the longest of all durations.
const DAY: SignedDuration = SignedDuration::from_hours(24);

pub(super) fn lead_time(text: &str) -> Result<SignedDuration, FieldError> {
    parse_duration(text, "spec.schedule.leadTime", DurationBounds { max: DAY, zero: true })
}

pub(super) fn cordon_before(text: &str) -> Result<SignedDuration, FieldError> {
    parse_duration(text, "spec.drain.cordonBefore", DurationBounds { max: DAY, zero: true })
}

pub(super) fn join_timeout(text: &str) -> Result<SignedDuration, FieldError> {
    timeout(text, "spec.joinTimeout")
}

pub(super) fn timeout(text: &str, field: &str) -> Result<SignedDuration, FieldError> {
    parse_duration(text, field, DurationBounds { max: DAY, zero: false })
}

pub(super) fn pod_grace_period(text: &str) -> Result<SignedDuration, FieldError> {
    let max = SignedDuration::from_secs(45);
    parse_duration(text, "spec.reclaim.podGracePeriod", DurationBounds { max, zero: true })
}

fn is_dns_label(text: &str) -> bool {
    text.len() <= 63
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && has_alphanumeric_ends(text)
}

fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_version(text: &str) -> bool {
    is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// The form of keys of labels, annotations and taints: `[domain/]name`.
fn is_qualified_name(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    domain.is_none_or(is_dns_subdomain) && !name.is_empty() && is_label_value(name)
}

fn is_label_value(text: &str) -> bool {
    text.is_empty()
        || text.len() <= 63
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && has_alphanumeric_ends(text)
}

fn has_alphanumeric_ends(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}
