//! The API reference: a page that describes every field of the schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use std::fmt::Write as _;

/// The page in Markdown.
pub(super) fn page(crd: &CustomResourceDefinition) -> String {
    let names = &crd.spec.names;
    let mut page = format!(
        "<!-- Written by `cargo xtask generate`. Do not edit. -->\n\n# API reference: {}\n\n",
        names.kind
    );
    for version in &crd.spec.versions {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let Some(schema) = schema else { continue };
        let _ = writeln!(page, "{}\n", schema.description.as_deref().unwrap_or_default());
        let _ = writeln!(
            page,
            "- API version: `{}/{}`, {}",
            crd.spec.group,
            version.name,
            crd.spec.scope.to_lowercase()
        );
        let _ = writeln!(
            page,
            "- `kubectl get {}`; short: `{}`",
            names.plural,
            words(names.short_names.as_deref())
        );
        let _ = writeln!(page, "- Categories: `{}`", words(names.categories.as_deref()));
        for message in messages(schema) {
            let _ = writeln!(page, "- `metadata.name` {message}");
        }
        page.push_str(COMMON);
        for part in ["spec", "status"] {
            if let Some(object) = schema.properties.as_ref().and_then(|properties| properties.get(part)) {
                section(&mut page, part, object);
            }
        }
        columns(&mut page, version.additional_printer_columns.as_deref().unwrap_or_default());
    }
    page
}

const COMMON: &str = "
The API server fills in defaults, refuses what is not allowed with a message that names the field, and under
strict field validation (the default of `kubectl`) refuses fields that are not listed here. A field that is
neither required nor has a default may be left out; `null` is the same as leaving it out.
";

fn words(words: Option<&[String]>) -> String {
    words.unwrap_or_default().join("`, `")
}

/// A table of an object's fields, followed by sections for the objects among them.
fn section(page: &mut String, path: &str, object: &JSONSchemaProps) {
    let _ = write!(page, "\n## `{path}`\n\n{}\n", object.description.as_deref().unwrap_or_default());
    for message in messages(object) {
        let _ = write!(page, "\n- {message}\n");
    }
    let Some(properties) = &object.properties else {
        return;
    };
    page.push_str("\n| Field | Type | Default | Meaning | Allowed |\n|---|---|---|---|---|\n");
    for (name, field) in properties {
        let required = object.required.iter().flatten().any(|required| required == name);
        row(page, path, name, field, required);
    }
    for (name, field) in properties {
        let path = format!("{path}.{name}");
        match nested(field) {
            Some((object, true)) => section(page, &format!("{path}[]"), object),
            Some((object, false)) => section(page, &path, object),
            None => {}
        }
    }
}

fn row(page: &mut String, path: &str, name: &str, field: &JSONSchemaProps, required: bool) {
    let default = match (&field.default, required) {
        (Some(default), _) => format!("`{}`", default.0),
        (None, true) => "required".to_owned(),
        (None, false) => String::new(),
    };
    let description = field.description.as_deref().unwrap_or_default().replace('\n', " ");
    let _ = writeln!(
        page,
        "| `{name}` | {} | {default} | {} | {} |",
        type_of(&format!("{path}.{name}"), field),
        cell(&description),
        cell(&allowed(field).join("; "))
    );
}

/// Escapes vertical bars, which would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The object of a field, or of the items of a list, if it has its own section.
fn nested(field: &JSONSchemaProps) -> Option<(&JSONSchemaProps, bool)> {
    match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => item.properties.as_ref().map(|_| (&**item, true)),
        Some(JSONSchemaPropsOrArray::Schemas(_)) | None => field.properties.as_ref().map(|_| (field, false)),
    }
}

fn type_of(path: &str, field: &JSONSchemaProps) -> String {
    let link = |path: &str| format!("[object](#{})", path.replace(['.', '[', ']'], "").to_lowercase());
    match (nested(field), item(field), entry(field)) {
        (Some((_, true)), _, _) => format!("list of {}", link(path)),
        (Some((_, false)), _, _) => link(path),
        (None, Some(item), _) => format!("list of {}", plain_type(item)),
        (None, None, Some(entry)) => format!("map of {}", plain_type(entry)),
        (None, None, None) => plain_type(field),
    }
}

fn plain_type(field: &JSONSchemaProps) -> String {
    match (field.type_.as_deref(), field.format.as_deref()) {
        (Some("string"), Some("date-time")) => "time".to_owned(),
        (Some(name), _) => name.to_owned(),
        (None, _) => "any".to_owned(),
    }
}

fn item(field: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => Some(item),
        Some(JSONSchemaPropsOrArray::Schemas(_)) | None => None,
    }
}

fn entry(field: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &field.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(entry)) => Some(entry),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => None,
    }
}

/// The messages of a schema's validation rules.
fn messages(schema: &JSONSchemaProps) -> impl Iterator<Item = String> {
    schema.x_kubernetes_validations.iter().flatten().filter_map(|rule| {
        let message = rule.message.as_ref()?;
        let field = rule.field_path.as_deref().unwrap_or_default().trim_start_matches('.');
        Some(match field {
            "" | "metadata.name" => message.clone(),
            field => format!("`{field}` {message}"),
        })
    })
}

/// Bounds, allowed values and rules, of the field and of its items.
fn allowed(field: &JSONSchemaProps) -> Vec<String> {
    let mut allowed = bounds(field);
    allowed.extend(messages(field).filter(|_| field.properties.is_none()));
    let part =
        item(field).map(|item| ("each", item)).or_else(|| entry(field).map(|entry| ("each value", entry)));
    if let Some((each, part)) = part.filter(|(_, part)| part.properties.is_none()) {
        allowed.extend(bounds(part).into_iter().chain(messages(part)).map(|text| format!("{each}: {text}")));
    }
    allowed
}

fn bounds(field: &JSONSchemaProps) -> Vec<String> {
    let words: Vec<String> =
        field.enum_.iter().flatten().map(|value| format!("`{}`", value.0).replace('"', "")).collect();
    let limits = [
        range(field.minimum.map(|n| n.to_string()), field.maximum.map(|n| n.to_string()), ""),
        range(text(field.min_length), text(field.max_length), " characters"),
        range(text(field.min_items), text(field.max_items), " items"),
        range(text(field.min_properties), text(field.max_properties), " entries"),
    ];
    let words = (!words.is_empty()).then(|| words.join(", "));
    words.into_iter().chain(limits.into_iter().flatten()).collect()
}

fn text(number: Option<i64>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn range(min: Option<String>, max: Option<String>, unit: &str) -> Option<String> {
    match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}{unit}")),
        (Some(min), None) => Some(format!("at least {min}{unit}")),
        (None, Some(max)) => Some(format!("at most {max}{unit}")),
        (None, None) => None,
    }
}

fn columns(page: &mut String, columns: &[CustomResourceColumnDefinition]) {
    page.push_str("\n## Columns of `kubectl get`\n\n| Column | From | Shown |\n|---|---|---|\n");
    for column in columns {
        let shown = if column.priority.unwrap_or_default() == 0 { "always" } else { "with `-o wide`" };
        let _ = writeln!(page, "| {} | `{}` | {shown} |", column.name, column.json_path);
    }
}
