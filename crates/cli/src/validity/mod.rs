//! An object that has been found valid: first by the rules of the API server, whose words people know, then
//! by the core, which the controller asks.

mod known_fields;

use five_spot_api::{ScheduleSpec, ScheduledMachineSpec};
use five_spot_core::schedule::Schedule;
use five_spot_core::{FieldError, ValidSpec};
use five_spot_schema::{CauseReason, StatusCause, Validator};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::LazyLock;

/// A valid `ScheduledMachine`.
#[derive(Debug)]
pub struct Checked {
    pub name: String,
    pub namespace: String,
    pub spec: ValidSpec,
    /// The schedule as it was written, to be read in another zone.
    pub schedule: ScheduleSpec,
}

const SCHEDULE: &str = "spec.schedule";

/// The field path that the API server uses for errors of the whole object.
const NOWHERE: &str = "<nil>";

/// The namespace of an object that names none.
const DEFAULT_NAMESPACE: &str = "default";

/// The rules of the `ScheduledMachine` of this build.
static SCHEDULED_MACHINE: LazyLock<Validator> = LazyLock::new(|| {
    Validator::for_crd(&five_spot_api::crd(), five_spot_api::names::VERSION)
        .expect("the definition of this build is well formed")
});

impl Checked {
    /// Checks everything, and says everything that is wrong.
    pub fn new(mut object: Value) -> Result<Self, Vec<FieldError>> {
        // What the controller once reported is neither the user's to write nor ours to judge.
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let mut faults = Faults::default();
        faults.api_server(&mut object);
        let metadata = faults.metadata(&object);
        let understood = faults.core(object);
        let (Some(metadata), Some((spec, schedule)), true) = (metadata, understood, faults.0.is_empty())
        else {
            return Err(faults.0);
        };
        Ok(Self {
            name: metadata.name.unwrap_or_default(),
            namespace: metadata.namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            spec,
            schedule,
        })
    }
}

/// The problems found so far.
#[derive(Default)]
struct Faults(Vec<FieldError>);

impl Faults {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError::new(field, message));
    }

    /// Adds the problems that `kubectl apply` would report.
    fn api_server(&mut self, object: &mut Value) {
        let validator = &*SCHEDULED_MACHINE;
        for field in validator.unknown_fields(object) {
            let message = known_fields::beside(&field);
            self.add(field, message);
        }
        validator.apply_defaults(object);
        let causes = validator.validate(object, None);
        for cause in &causes {
            // What has the wrong type is also reported as missing.
            let has_wrong_type = |other: &StatusCause| {
                other.field == cause.field && other.reason == CauseReason::FieldValueTypeInvalid
            };
            if cause.reason == CauseReason::FieldValueRequired && causes.iter().any(has_wrong_type) {
                continue;
            }
            // It says only that rules were not checked, which the core makes up for as far as it can.
            if cause.field != NOWHERE {
                self.add(&cause.field, &cause.message);
            }
        }
    }

    /// Checks the metadata, which the schema does not describe.
    fn metadata(&mut self, object: &Value) -> Option<ObjectMeta> {
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let mut metadata: ObjectMeta = match serde_json::from_value(metadata) {
            Ok(metadata) => metadata,
            Err(error) => {
                if !self.0.iter().any(|fault| fault.field.starts_with("metadata")) {
                    self.add("metadata", error.to_string());
                }
                return None;
            }
        };
        // To the API server, an empty namespace is none.
        metadata.namespace = metadata.namespace.filter(|namespace| !namespace.is_empty());
        if let Some(namespace) = metadata.namespace.as_deref().filter(|namespace| !is_dns_label(namespace)) {
            let message = format!(
                "Invalid value: {namespace:?}: must be 1 to 63 lower-case letters, digits and '-', \
                 with no '-' at either end"
            );
            self.add("metadata.namespace", message);
        }
        Some(metadata)
    }

    /// Adds the problems that the controller would report. If the spec has wrong types, at least the readable part of
    /// the schedule is checked.
    fn core(&mut self, mut object: Value) -> Option<(ValidSpec, ScheduleSpec)> {
        let spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
        let schedule = spec.get("schedule").cloned().unwrap_or_default();
        match serde_json::from_value::<ScheduledMachineSpec>(spec) {
            Ok(spec) => match ValidSpec::parse(&spec) {
                Ok(valid) => return Some((valid, spec.schedule)),
                Err(errors) => self.add_new(errors),
            },
            Err(error) => {
                self.readable_part_of_schedule(schedule);
                if self.0.is_empty() {
                    self.add("spec", error.to_string());
                }
            }
        }
        None
    }

    fn readable_part_of_schedule(&mut self, mut schedule: Value) {
        if let Some(fields) = schedule.as_object_mut() {
            let is_faulty = |name: &str| {
                let path = format!("{SCHEDULE}.{name}");
                self.0.iter().any(|fault| fault.field.starts_with(&path))
            };
            fields.retain(|name, _| !is_faulty(name));
        }
        if let Ok(schedule) = serde_json::from_value(schedule) {
            let mut errors = Schedule::parse(&schedule, SCHEDULE).err().unwrap_or_default();
            // Of the schedule as a whole nothing can be said without the rest.
            errors.retain(|error| error.field != SCHEDULE);
            self.add_new(errors);
        }
    }

    /// A field is reported once.
    fn add_new(&mut self, errors: Vec<FieldError>) {
        let known: Vec<String> = self.0.iter().map(|fault| fault.field.clone()).collect();
        self.0.extend(errors.into_iter().filter(|error| !known.contains(&error.field)));
    }
}

fn is_dns_label(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}
