//! CEL rules: compiled once, and evaluated on every value that they apply to.

use super::SchemaError;
use super::cause::StatusCause;
use super::cel_functions;
use super::cel_value::to_cel;
use super::path::{Path, join};
use super::structural::Schema;
use super::values::old_item;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;
use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{ExecutionError, Program, Value as CelValue};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A rule of `x-kubernetes-validations`.
pub(super) struct CompiledRule {
    program: Program,
    message_program: Option<Program>,
    /// The message of the rule, or its expression if it has none.
    text: String,
    has_message: bool,
    /// The field that the error refers to, relative to the value: `metadata.name`.
    field: String,
    reason: Option<String>,
    uses_old_self: bool,
    optional_old_self: bool,
}

impl fmt::Debug for CompiledRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledRule").field("text", &self.text).finish_non_exhaustive()
    }
}

impl CompiledRule {
    pub(super) fn compile(rule: &ValidationRule) -> Result<Self, SchemaError> {
        let program = compile(&rule.rule)?;
        let message = rule.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
        Ok(Self {
            uses_old_self: program.references().has_variable("oldSelf"),
            program,
            message_program: rule.message_expression.as_deref().map(compile).transpose()?,
            text: message.unwrap_or(rule.rule.trim()).to_owned(),
            has_message: message.is_some(),
            field: normalized(rule.field_path.as_deref().unwrap_or_default()),
            reason: rule.reason.clone(),
            optional_old_self: rule.optional_old_self.unwrap_or_default(),
        })
    }
}

fn compile(expression: &str) -> Result<Program, SchemaError> {
    Program::compile(expression)
        .map_err(|source| SchemaError::Rule { expression: expression.to_owned(), source: Box::new(source) })
}

/// Converts `.metadata.name` to `metadata.name`, and `.labels['a.b']` to `labels[a.b]`.
fn normalized(field_path: &str) -> String {
    field_path.trim_start_matches('.').replace("['", "[").replace("']", "]")
}

/// A value, its old value, and whether its errors are old.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    new: &'a Value,
    old: Option<&'a Value>,
    /// If this value cannot be compared with an old one, the closest enclosing value that can.
    around: Option<(&'a Value, &'a Value)>,
}

impl<'a> Change<'a> {
    pub(super) fn of(new: &'a Value, old: Option<&'a Value>) -> Self {
        Self { new, old, around: None }
    }

    fn to(self, new: &'a Value, old: Option<&'a Value>) -> Self {
        Self { new, old, around: self.old.map(|old| (self.new, old)).or(self.around) }
    }

    /// Returns true if the value is unchanged; rules that were added later do not check it.
    fn is_none(self) -> bool {
        match (self.old, self.around) {
            (Some(old), _) => old == self.new,
            (None, Some((new, old))) => old == new,
            (None, None) => false,
        }
    }
}

/// Evaluates the rules of `schema` and of all schemas below it.
pub(super) fn check(change: Change<'_>, schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    if change.new.is_null() {
        return;
    }
    check_here(change, schema, path, causes);
    for branch in &schema.all_of {
        check(change, branch, path, causes);
    }
    match change.new {
        Value::Object(fields) => {
            for (name, value) in fields {
                let old = change.old.and_then(|old| old.get(name));
                if let Some(property) = schema.properties.get(name) {
                    check(change.to(value, old), property, &path.field(name), causes);
                } else if let Some(entries) = &schema.entries {
                    check(change.to(value, old), entries, &path.key(name), causes);
                }
            }
        }
        Value::Array(values) => {
            let Some(items) = &schema.items else { return };
            for (index, value) in values.iter().enumerate() {
                let old = old_item(value, change.old, &schema.list);
                check(change.to(value, old), items, &path.index(index), causes);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_here(change: Change<'_>, schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    if schema.rules.is_empty() {
        return;
    }
    cel_functions::with_context(|functions| {
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("self", to_cel(change.new, schema));
        let old = change.old.map(|old| to_cel(old, schema));
        for rule in &schema.rules {
            match &old {
                _ if rule.optional_old_self => {
                    context.add_variable_from_value("oldSelf", optional(old.clone()));
                }
                Some(old) => context.add_variable_from_value("oldSelf", old.clone()),
                // Transition rules do not apply to new values.
                None if rule.uses_old_self => continue,
                None => {}
            }
            let verdict = rule.program.execute(&context);
            if verdict == Ok(CelValue::Bool(true)) {
                continue;
            }
            let message = rule.message_program.as_ref().and_then(|program| program.execute(&context).ok());
            if let Some(cause) = rule.cause(verdict, message, change, schema, path) {
                causes.push(cause);
            }
        }
    });
}

fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

impl CompiledRule {
    fn cause(
        &self,
        verdict: Result<CelValue, ExecutionError>,
        message: Option<CelValue>,
        change: Change<'_>,
        schema: &Schema,
        path: &Path<'_>,
    ) -> Option<StatusCause> {
        let mut field = path.bracketed();
        if let Err(error) = verdict {
            let detail = format!("{} evaluating rule: {}", error_text(&error), self.text);
            let type_name = schema.types.first().copied().unwrap_or_default();
            return Some(StatusCause::invalid(field, &type_name.into(), &detail));
        }
        if !self.uses_old_self && change.is_none() {
            return None;
        }
        let detail = match message {
            Some(CelValue::String(message)) if !message.trim().is_empty() => message.trim().to_owned(),
            _ if self.has_message => self.text.clone(),
            _ => format!("failed rule: {}", self.text),
        };
        if !self.field.is_empty() {
            join(&mut field, &self.field);
        }
        Some(match self.reason.as_deref() {
            Some("FieldValueForbidden") => StatusCause::forbidden(field, &detail),
            Some("FieldValueRequired") => StatusCause::required(field, &detail),
            Some("FieldValueDuplicate") => StatusCause::duplicate(field, change.new),
            Some(_) | None if schema.is_compound() => StatusCause::invalid_compound(field, &detail),
            Some(_) | None => StatusCause::invalid(field, change.new, &detail),
        })
    }
}

/// An error in the wording of the API server's CEL.
fn error_text(error: &ExecutionError) -> String {
    if let ExecutionError::FunctionError { function, message } = error {
        let wanted = match function.as_str() {
            "duration" => "google.protobuf.Duration",
            "timestamp" => "google.protobuf.Timestamp",
            _ => return message.clone(),
        };
        format!("type conversion error from 'string' to '{wanted}'")
    } else if let ExecutionError::NoSuchKey(key) = error {
        format!("no such key: {key}")
    } else {
        error.to_string()
    }
}
