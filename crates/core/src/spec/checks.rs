//! Checks of the fields beyond their types: the rules of the CRD with the same messages, because the CRD in a cluster may be
//! older than the program.

mod syntax;

use super::ProviderKind;
use crate::field::FieldError;
use crate::schedule::{DurationBounds, parse_duration};
use five_spot_api::names::{MAX_NAME_LENGTH, is_reserved_key};
use five_spot_api::rules::{self, Rule};
use five_spot_api::{
    KubeconfigSecretRef, MachineTemplate, NodeTaint, OverrideSpec, ProviderObject, ScheduleSpec,
};
use jiff::SignedDuration;
use std::collections::{BTreeMap, BTreeSet};

/// The default of both shutdown timeouts, for a spec in which they cannot be read.
pub(super) const DEFAULT_SHUTDOWN: SignedDuration = SignedDuration::from_mins(5);

/// The maximum length of the reason of an override or an exception.
const MAX_REASON: usize = 256;

/// A collector of errors, so that a person sees all of them at once.
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

    fn rule(&mut self, holds: bool, field: &str, found: &str, rule: &Rule) {
        if !holds {
            self.errors.push(FieldError::refused(field, found, rule));
        }
    }

    fn length(&mut self, text: &str, shortest: usize, longest: usize, field: &str) {
        let length = text.chars().count();
        if !(shortest..=longest).contains(&length) {
            let message = format!("found {length} characters; must have {shortest} to {longest}");
            self.errors.push(FieldError::new(field, message));
        }
    }

    fn count(&mut self, count: usize, most: usize, field: &str) {
        if count > most {
            self.errors
                .push(FieldError::new(field, format!("found {count} entries; must have at most {most}")));
        }
    }

    pub(super) fn cluster_name(&mut self, name: &str) {
        self.rule(syntax::is_dns_label(name), "spec.clusterName", name, &rules::CLUSTER_NAME);
    }

    pub(super) fn provider(&mut self, object: &ProviderObject, path: &str) -> ProviderKind {
        let ProviderObject { api_version, kind, .. } = object;
        let known = syntax::is_provider_version(api_version);
        self.rule(known, &format!("{path}.apiVersion"), api_version, &rules::PROVIDER_API_VERSION);
        self.rule(syntax::is_kind(kind), &format!("{path}.kind"), kind, &rules::PROVIDER_KIND);
        ProviderKind { api_version: api_version.clone(), kind: kind.clone() }
    }

    pub(super) fn machine_template(&mut self, template: &MachineTemplate) {
        self.keys(&template.labels, "spec.machineTemplate.labels");
        for (key, value) in &template.labels {
            let field = format!("spec.machineTemplate.labels[{key}]");
            self.rule(syntax::is_label_value(value), &field, value, &rules::LABEL_VALUE);
        }
        self.keys(&template.annotations, "spec.machineTemplate.annotations");
        for (key, value) in &template.annotations {
            self.length(value, 0, 4096, &format!("spec.machineTemplate.annotations[{key}]"));
        }
        if let Some(version) = &template.version {
            let known = syntax::is_kubernetes_version(version) && version.len() <= 128;
            self.rule(known, "spec.machineTemplate.version", version, &rules::KUBERNETES_VERSION);
        }
        if let Some(domain) = &template.failure_domain {
            self.length(domain, 1, 256, "spec.machineTemplate.failureDomain");
        }
    }

    fn keys(&mut self, map: &BTreeMap<String, String>, field: &str) {
        self.count(map.len(), 32, field);
        for key in map.keys() {
            self.rule(syntax::is_qualified_name(key), field, key, &rules::KEYS);
            self.rule(!is_reserved_key(key), field, key, &rules::KEYS_NOT_RESERVED);
        }
    }

    pub(super) fn priority(&mut self, priority: i32) -> u8 {
        let valid = u8::try_from(priority).ok().filter(|priority| *priority <= 100);
        if valid.is_none() {
            self.errors
                .push(FieldError::new("spec.priority", format!("found {priority}; must be from 0 to 100")));
        }
        valid.unwrap_or_default()
    }

    pub(super) fn machine_identity(&mut self, identity: Option<&str>) {
        if let Some(identity) = identity {
            self.length(identity, 1, 253, "spec.machineIdentity");
        }
    }

    pub(super) fn commands(&mut self, commands: &[String]) {
        self.count(commands.len(), 100, "spec.killIfCommands");
        for (index, command) in commands.iter().enumerate() {
            self.length(command, 1, 256, &format!("spec.killIfCommands[{index}]"));
        }
    }

    pub(super) fn taints(&mut self, taints: &[NodeTaint]) {
        self.count(taints.len(), 32, "spec.nodeTaints");
        let mut seen = BTreeSet::new();
        for (index, taint) in taints.iter().enumerate() {
            let (key, value) = (&taint.key, taint.value.as_deref().unwrap_or_default());
            let field = format!("spec.nodeTaints[{index}].key");
            self.rule(syntax::is_qualified_name(key), &field, key, &rules::TAINT_KEY);
            self.rule(!is_reserved_key(key), &field, key, &rules::TAINT_KEY_NOT_RESERVED);
            let field = format!("spec.nodeTaints[{index}].value");
            self.rule(syntax::is_label_value(value), &field, value, &rules::LABEL_VALUE);
            let identity = format!("{key}:{}", taint.effect.as_str());
            let is_new = seen.insert((key, taint.effect));
            self.rule(is_new, "spec.nodeTaints", &identity, &rules::TAINTS_UNIQUE);
        }
    }

    pub(super) fn secret(&mut self, secret: &KubeconfigSecretRef) {
        let KubeconfigSecretRef { name, key } = secret;
        self.rule(syntax::is_dns_subdomain(name), "spec.kubeconfigSecretRef.name", name, &rules::SECRET_NAME);
        self.rule(syntax::is_secret_key(key), "spec.kubeconfigSecretRef.key", key, &rules::SECRET_KEY);
    }

    pub(super) fn reasons(&mut self, schedule: &ScheduleSpec, forced: Option<&OverrideSpec>) {
        for (index, exception) in schedule.exceptions.iter().enumerate() {
            let reason = exception.reason.as_deref().unwrap_or_default();
            self.length(reason, 0, MAX_REASON, &format!("spec.schedule.exceptions[{index}].reason"));
        }
        let reason = forced.and_then(|forced| forced.reason.as_deref()).unwrap_or_default();
        self.length(reason, 0, MAX_REASON, "spec.override.reason");
    }
}

pub(super) fn name(name: &str) -> Result<(), FieldError> {
    if name.len() <= MAX_NAME_LENGTH && syntax::is_dns_subdomain(name) {
        Ok(())
    } else {
        Err(FieldError::refused("metadata.name", name, &rules::NAME))
    }
}

pub(super) fn lead_time(text: &str) -> Result<SignedDuration, FieldError> {
    parse_duration(text, "spec.schedule.leadTime", DurationBounds::OR_ZERO)
}

pub(super) fn cordon_before(text: &str) -> Result<SignedDuration, FieldError> {
    parse_duration(text, "spec.drain.cordonBefore", DurationBounds::OR_ZERO)
}

pub(super) fn timeout(text: &str, field: &str) -> Result<SignedDuration, FieldError> {
    parse_duration(text, field, DurationBounds::POSITIVE)
}

pub(super) fn pod_grace_period(text: &str) -> Result<SignedDuration, FieldError> {
    parse_duration(text, "spec.reclaim.podGracePeriod", DurationBounds::POD_GRACE)
}
