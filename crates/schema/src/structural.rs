//! The schema of a CRD, parsed once: patterns and rules are compiled, and keywords have the form that the
//! checks need.

use super::SchemaError;
use super::pattern::Pattern;
use super::rules::CompiledRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// One node of a structural schema.
#[derive(Debug, Default)]
pub(super) struct Schema {
    /// The allowed types; any if empty.
    pub(super) types: Vec<&'static str>,
    pub(super) nullable: bool,
    pub(super) format: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) bounds: Bounds,
    /// The allowed values; any if absent.
    pub(super) allowed: Vec<Value>,
    pub(super) properties: BTreeMap<String, Schema>,
    pub(super) required: Vec<String>,
    /// The schema of map entries.
    pub(super) entries: Option<Box<Schema>>,
    pub(super) items: Option<Box<Schema>>,
    pub(super) list: ListKind,
    pub(super) preserve_unknown_fields: bool,
    pub(super) embedded_resource: bool,
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
    pub(super) rules: Vec<CompiledRule>,
}

/// Limits of a value.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) minimum: Option<Limit>,
    pub(super) maximum: Option<Limit>,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<i64>,
    pub(super) max_length: Option<i64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) min_items: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) min_properties: Option<i64>,
    pub(super) max_properties: Option<i64>,
}

/// A limit of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) value: f64,
    pub(super) exclusive: bool,
}

/// The identity of the items of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum ListKind {
    /// None: the list is one value.
    #[default]
    Atomic,
    /// Their whole value.
    Set,
    /// The values of these fields.
    Map(Vec<String>),
}

impl Schema {
    /// Parses a schema of a CRD.
    pub(super) fn read(props: &JSONSchemaProps) -> Result<Self, SchemaError> {
        let types = types(props)?;
        Ok(Self {
            format: props.format.clone().filter(|format| format_is_known(&types, format)),
            types,
            nullable: props.nullable.unwrap_or_default(),
            default: props.default.as_ref().map(|default| default.0.clone()),
            bounds: Bounds::read(props)?,
            allowed: props.enum_.iter().flatten().map(|value| value.0.clone()).collect(),
            properties: read_map(props.properties.as_ref())?,
            required: props.required.clone().unwrap_or_default(),
            entries: entries(props)?,
            items: items(props)?,
            list: list_kind(props),
            preserve_unknown_fields: props.x_kubernetes_preserve_unknown_fields.unwrap_or_default(),
            embedded_resource: props.x_kubernetes_embedded_resource.unwrap_or_default(),
            all_of: read_list(props.all_of.as_deref())?,
            any_of: read_list(props.any_of.as_deref())?,
            one_of: read_list(props.one_of.as_deref())?,
            not: props.not.as_deref().map(Self::read).transpose()?.map(Box::new),
            rules: props
                .x_kubernetes_validations
                .iter()
                .flatten()
                .map(CompiledRule::compile)
                .collect::<Result<_, _>>()?,
        })
    }

    /// The schema of a field or a map entry, if there is one.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.entries.as_deref())
    }

    /// Returns true if this schema or one below it has a rule.
    pub(super) fn has_rules(&self) -> bool {
        let below = self.properties.values().chain(self.entries.as_deref()).chain(self.items.as_deref());
        !self.rules.is_empty() || below.chain(&self.all_of).any(Self::has_rules)
    }

    /// Returns true if values of this schema are objects or lists.
    pub(super) fn is_compound(&self) -> bool {
        matches!(self.types.as_slice(), ["object" | "array"])
    }
}

impl Bounds {
    fn read(props: &JSONSchemaProps) -> Result<Self, SchemaError> {
        let limit = |value: Option<f64>, exclusive: Option<bool>| {
            value.map(|value| Limit { value, exclusive: exclusive.unwrap_or_default() })
        };
        let pattern = props.pattern.as_deref().filter(|pattern| !pattern.is_empty());
        Ok(Self {
            minimum: limit(props.minimum, props.exclusive_minimum),
            maximum: limit(props.maximum, props.exclusive_maximum),
            multiple_of: props.multiple_of,
            min_length: props.min_length,
            max_length: props.max_length,
            pattern: pattern.map(Pattern::new).transpose().map_err(SchemaError::Pattern)?,
            min_items: props.min_items,
            max_items: props.max_items,
            unique_items: props.unique_items.unwrap_or_default(),
            min_properties: props.min_properties,
            max_properties: props.max_properties,
        })
    }
}

fn types(props: &JSONSchemaProps) -> Result<Vec<&'static str>, SchemaError> {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    if props.x_kubernetes_int_or_string == Some(true) {
        return Ok(vec!["integer", "string"]);
    }
    match props.type_.as_deref() {
        None | Some("") => Ok(Vec::new()),
        Some(name) => match TYPES.iter().find(|known| **known == name) {
            Some(known) => Ok(vec![known]),
            None => Err(SchemaError::Type(name.to_owned())),
        },
    }
}

/// The API server ignores unknown formats, and those that do not belong to the type.
fn format_is_known(types: &[&str], format: &str) -> bool {
    match types {
        [] | ["string"] => super::formats::is_known(format),
        ["integer"] => matches!(format, "int32" | "int64"),
        ["number"] => matches!(format, "float" | "double"),
        _ => false,
    }
}

fn entries(props: &JSONSchemaProps) -> Result<Option<Box<Schema>>, SchemaError> {
    match &props.additional_properties {
        None | Some(JSONSchemaPropsOrBool::Bool(false)) => Ok(None),
        // Any value is allowed, and nothing in it is pruned.
        Some(JSONSchemaPropsOrBool::Bool(true)) => {
            Ok(Some(Box::new(Schema { preserve_unknown_fields: true, ..Schema::default() })))
        }
        Some(JSONSchemaPropsOrBool::Schema(schema)) => Ok(Some(Box::new(Schema::read(schema)?))),
    }
}

fn items(props: &JSONSchemaProps) -> Result<Option<Box<Schema>>, SchemaError> {
    match &props.items {
        None => Ok(None),
        Some(JSONSchemaPropsOrArray::Schema(schema)) => Ok(Some(Box::new(Schema::read(schema)?))),
        Some(JSONSchemaPropsOrArray::Schemas(_)) => Err(SchemaError::ItemsPerPosition),
    }
}

fn list_kind(props: &JSONSchemaProps) -> ListKind {
    match props.x_kubernetes_list_type.as_deref() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(props.x_kubernetes_list_map_keys.clone().unwrap_or_default()),
        Some(_) | None => ListKind::Atomic,
    }
}

fn read_map(
    props: Option<&BTreeMap<String, JSONSchemaProps>>,
) -> Result<BTreeMap<String, Schema>, SchemaError> {
    props.into_iter().flatten().map(|(name, props)| Ok((name.clone(), Schema::read(props)?))).collect()
}

fn read_list(props: Option<&[JSONSchemaProps]>) -> Result<Vec<Schema>, SchemaError> {
    props.into_iter().flatten().map(Schema::read).collect()
}
