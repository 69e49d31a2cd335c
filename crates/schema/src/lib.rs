//! Offline validation of custom resources, with the results of a real kube-apiserver.
//!
//! A [`Validator`] is created from one version of a `CustomResourceDefinition`. It sets defaults, finds or
//! prunes unknown fields, validates values against the structural schema and evaluates the CEL rules. Field
//! paths, reasons and messages are those of kube-apiserver v1.36, so users get the same errors offline as
//! from the cluster. All functions are pure: there is no I/O, no clock and no client.
//!
//! ```
//! use five_spot_schema::Validator;
//! use serde_json::json;
//!
//! let crd = json!({
//!     "metadata": {"name": "backups.example.org"},
//!     "spec": {
//!         "group": "example.org",
//!         "names": {"kind": "Backup", "plural": "backups"},
//!         "scope": "Namespaced",
//!         "versions": [{
//!             "name": "v1", "served": true, "storage": true,
//!             "schema": {"openAPIV3Schema": {
//!                 "type": "object",
//!                 "properties": {"spec": {
//!                     "type": "object",
//!                     "properties": {
//!                         "keep": {"type": "integer", "default": 7},
//!                         "keepAtMost": {"type": "integer", "maximum": 90},
//!                     },
//!                     "x-kubernetes-validations": [{
//!                         "rule": "!has(self.keepAtMost) || self.keep <= self.keepAtMost",
//!                         "message": "keep must not exceed keepAtMost",
//!                     }],
//!                 }},
//!             }},
//!         }],
//!     },
//! });
//! let validator = Validator::for_crd(&serde_json::from_value(crd)?, "v1")?;
//!
//! let mut backup = json!({
//!     "apiVersion": "example.org/v1", "kind": "Backup", "metadata": {"name": "nightly"},
//!     "spec": {"keepAtMost": 5, "keeep": 3},
//! });
//! assert_eq!(validator.prune(&mut backup), ["spec.keeep"]);
//! validator.apply_defaults(&mut backup);
//! assert_eq!(backup["spec"]["keep"], 7);
//!
//! let causes = validator.validate(&backup, None);
//! assert_eq!(causes.len(), 1);
//! assert_eq!(causes[0].to_string(), "spec: Invalid value: keep must not exceed keepAtMost");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Supported
//!
//! - Structural schemas: types, `nullable`, `enum`, bounds of numbers, strings, lists and maps, `pattern`, the formats
//!   that Kubernetes checks, `required`, `allOf`, `anyOf`, `oneOf`, `not`, `x-kubernetes-int-or-string`,
//!   `x-kubernetes-preserve-unknown-fields`, `x-kubernetes-embedded-resource`.
//! - `x-kubernetes-list-type: set` and `map`: duplicates are refused.
//! - Defaults, including those in lists and maps, and `null` where no `null` is allowed.
//! - Unknown fields: reported (strict field validation) or pruned.
//! - CEL rules (`x-kubernetes-validations`) with `message`, `messageExpression`, `reason`, `fieldPath`, `oldSelf` and
//!   `optionalOldSelf`, and with the function libraries of Kubernetes.
//! - Updates: transition rules, and ratcheting (an error that the old object had already is not reported again).
//!
//! # Not supported
//!
//! - The handling of HTTP requests: decoding, strictness levels and status codes are up to the caller.
//! - `metadata` other than the name.
//! - The cost limits of CEL, the metadata of embedded resources, the replica counts of a scale subresource, and string
//!   formats that Kubernetes inherited from OpenAPI and that are hardly used, such as `isbn` and `creditcard`.
//! - One message differs from that of an API server which reads its time zones from files: it calls `Europe` a directory.

mod cause;
mod cel_functions;
mod cel_value;
mod defaults;
mod formats;
mod lists;
mod metadata;
mod path;
mod pattern;
mod rules;
mod structural;
mod unknown;
mod values;

pub use cause::{CauseReason, StatusCause};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use path::Path;
use rules::Change;
use serde_json::Value;
use std::sync::Arc;
use structural::Schema;

/// The reason why a CRD cannot be used for validation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The CRD has no such version.
    #[error("the CRD has no version {0}")]
    NoSuchVersion(String),
    /// The version has no schema.
    #[error("version {0} of the CRD has no schema")]
    NoSchema(String),
    /// The schema has an unknown type.
    #[error("the schema uses the unknown type {0}")]
    Type(String),
    /// A list has a schema for each position, which structural schemas do not allow.
    #[error("the schema has a separate schema for each item of a list")]
    ItemsPerPosition,
    /// A pattern is not a valid regular expression.
    #[error("failed to compile a pattern of the schema")]
    Pattern(#[source] regex::Error),
    /// A rule is not a valid CEL expression.
    #[error("failed to compile the rule {expression}")]
    Rule {
        /// The expression.
        expression: String,
        /// The error of the parser.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// One version of a custom resource, ready for validation. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Validator {
    schema: Arc<Schema>,
    has_rules: bool,
}

impl Validator {
    /// Parses the schema of a version of a CRD and compiles its rules.
    pub fn for_crd(crd: &CustomResourceDefinition, version: &str) -> Result<Self, SchemaError> {
        let found = crd
            .spec
            .versions
            .iter()
            .find(|candidate| candidate.name == version)
            .ok_or_else(|| SchemaError::NoSuchVersion(version.to_owned()))?;
        let props = found
            .schema
            .as_ref()
            .and_then(|schema| schema.open_api_v3_schema.as_ref())
            .ok_or_else(|| SchemaError::NoSchema(version.to_owned()))?;
        let schema = Schema::read(props)?;
        Ok(Self { has_rules: schema.has_rules(), schema: Arc::new(schema) })
    }

    /// Sets the defaults of the schema for absent fields. A `null` that the schema does not allow counts as
    /// absent.
    pub fn apply_defaults(&self, object: &mut Value) {
        defaults::drop_nulls(object, &self.schema);
        defaults::fill_in(object, &self.schema);
    }

    /// The paths of unknown fields, such as `spec.schedule.dayOfWeek`, sorted. With strict field validation,
    /// the API server refuses an object that has any.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        unknown::find(object, &self.schema)
    }

    /// Removes unknown fields and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let unknown = unknown::find(object, &self.schema);
        unknown::remove(object, &self.schema);
        unknown
    }

    /// Validates an object and returns all errors: `details.causes` of the API server's response. An empty
    /// list means that the object is valid. `old` is the object to be replaced; transition rules use it, and
    /// errors that it already had are not reported. Defaults must have been set before.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<StatusCause> {
        let schema = &*self.schema;
        let mut causes = Vec::new();
        if old.is_none() {
            metadata::check(object, &mut causes);
        }
        values::check(object, old, schema, &Path::ROOT, &mut causes);
        // One pair of equal items in the old list allows all duplicates in the new one: the API server is not
        // stricter.
        if old.is_none_or(|old| !lists::has_duplicates(old, schema)) {
            lists::check(object, schema, &Path::ROOT, &mut causes);
        }
        if !self.has_rules {
            return causes;
        }
        if causes.iter().any(|cause| cause.reason.stops_rules()) {
            causes.push(StatusCause::rules_not_checked());
        } else {
            rules::check(Change::of(object, old), schema, &Path::ROOT, &mut causes);
        }
        causes
    }
}

#[cfg(test)]
mod tests;
