//! Reads `cases.yaml`, the table of good and bad objects, for the tests that run it: offline against the
//! sandbox's validation, and against the real API server. The format is described in the table's head.

use serde::Deserialize;
use serde_json::{Map, Value};

/// An object and what becomes of it.
#[derive(Debug)]
pub struct Case {
    /// Says what the case is about; no two cases have the same name.
    pub name: String,
    /// The whole object, in no particular namespace.
    pub object: Value,
    /// The answer of the API server to a create with strict field validation.
    pub expected: Expected,
}

/// The answer of the API server.
#[derive(Debug)]
pub enum Expected {
    /// The object is created. Each JSON pointer then leads to its value, or to nothing if that is `null`.
    Accepted { becomes: Map<String, Value> },
    /// The object is refused.
    Refused(Refusal),
}

/// The refusal of an object.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The field that is named in `details.causes`; under code 400 the unknown field in the message.
    pub field: String,
    /// The status code: 422, or 400 for unknown fields.
    pub code: u16,
    /// The reason of the cause.
    pub reason: String,
    /// A part of the message of the cause.
    pub message: String,
}

/// All cases of the table.
pub fn cases() -> Vec<Case> {
    let table: Table = serde_saphyr::from_str(include_str!("cases.yaml")).expect("cases.yaml is well formed");
    let base = table.base;
    let single = table.cases.iter().map(|case| case.read(&base));
    let by_field = table.fields.iter().flat_map(|field| field.cases(&base));
    single.chain(by_field).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    base: Value,
    cases: Vec<WrittenCase>,
    fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    name: String,
    patch: Value,
    #[serde(default)]
    accept: bool,
    #[serde(default)]
    becomes: Map<String, Value>,
    refuse: Option<WrittenRefusal>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRefusal {
    field: Option<String>,
    #[serde(default = "unprocessable")]
    code: u16,
    by: By,
    reason: Option<String>,
    message: Option<String>,
    #[serde(default)]
    values: Vec<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Rule,
    Schema,
}

const fn unprocessable() -> u16 {
    422
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    path: String,
    #[serde(default)]
    with: Value,
    #[serde(default)]
    accept: Vec<Value>,
    #[serde(default)]
    refuse: Vec<WrittenRefusal>,
}

impl WrittenCase {
    fn read(&self, base: &Value) -> Case {
        let expected = match (&self.refuse, self.accept) {
            (None, true) => Expected::Accepted { becomes: self.becomes.clone() },
            (Some(refusal), false) => Expected::Refused(refusal.read("", &self.name)),
            _ => panic!("{}: either `accept: true` or `refuse`", self.name),
        };
        Case { name: self.name.clone(), object: written_out(merged(base, &self.patch)), expected }
    }
}

impl Field {
    fn cases(&self, base: &Value) -> Vec<Case> {
        let base = if self.with.is_null() { base.clone() } else { merged(base, &self.with) };
        let case = |value: &Value, expected: Expected| {
            let mut object = base.clone();
            set(&mut object, &self.path, value.clone());
            let name = format!("{} = {value}", self.path);
            Case { name, object: written_out(object), expected }
        };
        let accepted =
            self.accept.iter().map(|value| case(value, Expected::Accepted { becomes: Map::new() }));
        let refused = self.refuse.iter().flat_map(|refusal| {
            let expected = refusal.read(&self.path, &self.path);
            refusal.values.iter().map(move |value| case(value, Expected::Refused(expected.clone())))
        });
        accepted.chain(refused).collect()
    }
}

impl WrittenRefusal {
    fn read(&self, default_field: &str, case: &str) -> Refusal {
        let reason = match (&self.reason, self.by) {
            (Some(reason), By::Schema) => reason.clone(),
            (None, By::Rule) => "FieldValueInvalid".to_owned(),
            (None, By::Schema) if self.code == 400 => String::new(),
            _ => panic!("{case}: a schema needs a reason, and a rule has one"),
        };
        assert!(self.message.is_some() || !matches!(self.by, By::Rule), "{case}: a rule has a message");
        Refusal {
            field: self.field.clone().unwrap_or_else(|| default_field.to_owned()),
            code: self.code,
            reason,
            message: self.message.clone().unwrap_or_default(),
        }
    }
}

/// A JSON merge patch.
fn merged(base: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut fields = base.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            let merged = merged(fields.get(name).unwrap_or(&Value::Null), value);
            fields.insert(name.clone(), merged);
        }
    }
    Value::Object(fields)
}

/// Puts a value at a path such as `spec.schedule.windows[0].from`, making objects and lists on the way.
fn set(object: &mut Value, path: &str, value: Value) {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    let (name, in_list) = match first.strip_suffix("[0]") {
        Some(name) => (name, true),
        None => (first, false),
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let mut place = &mut object[name];
    if in_list {
        if !place.is_array() {
            *place = Value::Array(vec![Value::Null]);
        }
        place = &mut place[0];
    }
    match rest {
        Some(rest) => set(place, rest, value),
        None => *place = value,
    }
}

/// Writes out the abbreviations of long values.
fn written_out(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            if let Some(value) = abbreviation(&fields) {
                return value;
            }
            fields.into_iter().map(|(name, value)| (name, written_out(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(written_out).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn abbreviation(fields: &Map<String, Value>) -> Option<Value> {
    let (word, content) =
        fields.iter().next().filter(|(word, _)| fields.len() == 1 && word.starts_with('$'))?;
    if word == "$null" {
        return Some(Value::Null);
    }
    let parts =
        content.as_array().filter(|parts| parts.len() == 2).expect("an abbreviation is [number, value]");
    let number = usize::try_from(parts[0].as_u64().expect("a number")).expect("a small number");
    let value = written_out(parts[1].clone());
    Some(match word.as_str() {
        "$text" => value.as_str().expect("a text").repeat(number).into(),
        "$list" => vec![value; number].into(),
        "$map" => (0..number).map(|index| (format!("key{index}"), value.clone())).collect(),
        word => panic!("{word} is no abbreviation"),
    })
}
