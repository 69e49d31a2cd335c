//! Custom resources as the API server admits them: defaults filled in, unknown fields pruned or named,
//! values checked against the structural schema, rules in CEL run.
//!
//! Everything here is pure. The answers are those of kube-apiserver v1.36: the same field paths, reasons and
//! messages, so that whoever meets them offline or in the sandbox reads what a cluster would say. What an
//! HTTP request adds to it (decoding, strictness, status codes) is left to the caller. Of `metadata` only
//! the name is checked.
//!
//! Not imitated: the cost limits of CEL, the metadata of embedded resources, the replica counts of a scale
//! subresource, and formats of strings that Kubernetes inherited and nobody uses (`isbn`, `creditcard` and the
//! like). Of an API server that keeps its time zones in files one message differs: it calls `Europe` a directory.

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

pub use cause::{Cause, CauseReason};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use path::Path;
use rules::Change;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use structural::Schema;

/// Why a CRD cannot be used for validation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The CRD has no such version.
    #[error("the definition has no version {0}")]
    NoSuchVersion(String),
    /// The version has no schema.
    #[error("version {0} of the definition has no schema")]
    NoSchema(String),
    /// A type that JSON does not have.
    #[error("the schema uses the unknown type {0}")]
    Type(String),
    /// A list with a schema for each position, which a structural schema may not have.
    #[error("the schema gives the items of a list one schema each")]
    ItemsPerPosition,
    /// A pattern that is no regular expression.
    #[error("failed to read a pattern of the schema")]
    Pattern(#[source] regex::Error),
    /// A rule that is no CEL expression.
    #[error("failed to compile the rule {expression}")]
    Rule {
        /// The expression.
        expression: String,
        /// What the parser says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// One version of a custom resource, ready to be checked. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Validator {
    schema: Arc<Schema>,
    has_rules: bool,
}

impl Validator {
    /// Reads the schema of a version of a CRD and compiles its rules.
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

    /// The `ScheduledMachine` of this build.
    ///
    /// # Panics
    ///
    /// Never: our own definition has a schema and rules that compile, which every test of it shows.
    pub fn scheduled_machine() -> Self {
        static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
            Validator::for_crd(&five_spot_api::crd(), five_spot_api::names::VERSION)
                .expect("our own definition is well formed")
        });
        VALIDATOR.clone()
    }

    /// Fills in what the object leaves out and the schema has a default for. A `null` where none is allowed
    /// counts as left out.
    pub fn apply_defaults(&self, object: &mut Value) {
        defaults::drop_nulls(object, &self.schema);
        defaults::fill_in(object, &self.schema);
    }

    /// The paths of fields that the schema does not know, such as `spec.schedule.dayOfWeek`, sorted. Under
    /// strict field validation the API server refuses an object that has any.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        unknown::find(object, &self.schema)
    }

    /// Removes the fields that the schema does not know, and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let unknown = unknown::find(object, &self.schema);
        unknown::remove(object, &self.schema);
        unknown
    }

    /// Everything that is wrong with an object: `details.causes` of the API server's answer. Empty: it is
    /// accepted. `old` is the object that is to be replaced, for rules on changes, and so that faults
    /// which were there before do not count. Defaults are expected to be filled in.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let schema = &*self.schema;
        let mut causes = Vec::new();
        if old.is_none() {
            metadata::check(object, &mut causes);
        }
        values::check(object, old, schema, &Path::ROOT, &mut causes);
        // One old pair of equal items excuses all new ones: the API server is no stricter.
        if old.is_none_or(|old| !lists::has_duplicates(old, schema)) {
            lists::check(object, schema, &Path::ROOT, &mut causes);
        }
        if !self.has_rules {
            return causes;
        }
        if causes.iter().any(|cause| cause.reason.stops_rules()) {
            causes.push(Cause::rules_not_checked());
        } else {
            rules::check(Change::of(object, old), schema, &Path::ROOT, &mut causes);
        }
        causes
    }
}

#[cfg(test)]
mod tests;
