//! Manifests: reads the sources that were given with `-f` and returns their objects as raw values. Validation
//! is done elsewhere.

mod documents;
mod location;
mod problem;
mod source;

pub use location::Location;
pub use problem::Problem;
pub use source::Source;

use five_spot_api::names;
use serde_json::Value;
use source::Unreadable;

/// An object with an apiVersion and a kind.
#[derive(Debug)]
pub struct Object {
    pub location: Location,
    pub value: Value,
}

/// One result of reading the input, in input order.
#[derive(Debug)]
pub enum ManifestItem {
    /// A `ScheduledMachine`, still to be validated.
    Object(Object),
    /// An object of another kind.
    Other(Object),
    Problem(Problem),
}

/// Reads a source to its end.
pub fn read(source: &Source) -> Vec<ManifestItem> {
    match source.read() {
        Ok(text) => findings(source, &text),
        Err(Unreadable::Io(error)) => vec![ManifestItem::Problem(Problem::Unreadable(source.clone(), error))],
        Err(Unreadable::NotText(message)) => {
            vec![ManifestItem::Problem(Problem::BadSource(source.clone(), message))]
        }
    }
}

fn findings(source: &Source, text: &str) -> Vec<ManifestItem> {
    let documents = documents::parse(text);
    if documents.is_empty() {
        let message = format!("it contains no document; expected {API_VERSION} {}", names::KIND);
        return vec![ManifestItem::Problem(Problem::BadSource(source.clone(), message))];
    }
    let mut findings = Vec::new();
    for document in documents {
        let name = document.value.as_ref().ok().and_then(name_of);
        let location =
            Location { source: source.clone(), document: document.number, path: String::new(), name };
        match document.value {
            Ok(value) => sort(location, value, &mut findings),
            Err(message) => findings.push(ManifestItem::Problem(Problem::BadDocument(location, message))),
        }
    }
    findings
}

/// Expands Lists and separates other kinds, because manifests often contain several kinds.
fn sort(location: Location, value: Value, findings: &mut Vec<ManifestItem>) {
    let identity = match Identity::of(&value) {
        Ok(identity) => identity,
        Err(message) => return findings.push(ManifestItem::Problem(Problem::BadDocument(location, message))),
    };
    let kind = names::KIND;
    findings.push(match identity.role() {
        Role::List => return open_list(&location, value, findings),
        Role::ScheduledMachine => ManifestItem::Object(Object { location, value }),
        Role::OtherVersion => {
            let found = &identity.api_version;
            let message = format!("apiVersion: {found:?} has no {kind}; only {API_VERSION:?} has");
            ManifestItem::Problem(Problem::BadDocument(location, message))
        }
        Role::OtherKind => ManifestItem::Other(Object { location, value }),
    });
}

fn open_list(location: &Location, mut list: Value, findings: &mut Vec<ManifestItem>) {
    let items = match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        None | Some(Value::Null) => Vec::new(),
        Some(other) => {
            let message = format!("items: must be a list of objects, not {}", describe(&other));
            return findings.push(ManifestItem::Problem(Problem::BadDocument(location.clone(), message)));
        }
    };
    for (index, item) in items.into_iter().enumerate() {
        let path = format!("{}.items[{index}]", location.path);
        sort(Location { path, name: name_of(&item), ..location.clone() }, item, findings);
    }
}

const API_VERSION: &str = "5spot.finos.org/v1alpha1";

/// The kind and version that an object declares.
struct Identity {
    api_version: String,
    kind: String,
}

/// The treatment of an object.
enum Role {
    ScheduledMachine,
    /// A `ScheduledMachine` of an unknown group or version.
    OtherVersion,
    List,
    OtherKind,
}

impl Identity {
    fn of(value: &Value) -> Result<Self, String> {
        let Value::Object(_) = value else {
            return Err(format!(
                "it is {}; expected an object with apiVersion: {API_VERSION} and kind: {}",
                describe(value),
                names::KIND
            ));
        };
        let word = |field: &str, allowed: &str| match value.get(field) {
            Some(Value::String(word)) if !word.is_empty() => Ok(word.clone()),
            None | Some(Value::Null | Value::String(_)) => {
                Err(format!("{field}: required; a {} has {field}: {allowed}", names::KIND))
            }
            Some(other) => {
                Err(format!("{field}: must be a string such as {allowed}, not {}", describe(other)))
            }
        };
        Ok(Self { api_version: word("apiVersion", API_VERSION)?, kind: word("kind", names::KIND)? })
    }

    fn role(&self) -> Role {
        match (self.api_version.as_str(), self.kind.as_str()) {
            (API_VERSION, names::KIND) => Role::ScheduledMachine,
            (_, names::KIND) => Role::OtherVersion,
            ("v1", "List") | (API_VERSION, "ScheduledMachineList") => Role::List,
            _ => Role::OtherKind,
        }
    }
}

fn name_of(value: &Value) -> Option<String> {
    value.pointer("/metadata/name")?.as_str().map(str::to_owned)
}

/// The type of a value, with its article.
fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All items that `text` yields, one per line.
    fn check(text: &str, expected: &[&str]) {
        let lines: Vec<String> = findings(&Source::File("f.yaml".into()), text)
            .into_iter()
            .map(|finding| match finding {
                ManifestItem::Object(object) => format!("object {}", object.location),
                ManifestItem::Other(object) => format!("other {}", object.location),
                ManifestItem::Problem(problem) => problem.to_string(),
            })
            .collect();
        assert_eq!(lines, expected, "{text:?}");
    }

    #[test]
    fn the_api_version_is_that_of_the_api() {
        assert_eq!(API_VERSION, format!("{}/{}", names::GROUP, names::VERSION));
    }

    #[test]
    fn lists_are_expanded_and_other_kinds_separated() {
        check(
            "{apiVersion: v1, kind: List, items: [
               {apiVersion: v1, kind: ConfigMap, metadata: {name: c}},
               {apiVersion: 5spot.finos.org/v1alpha1, kind: ScheduledMachine, metadata: {name: m}},
               {apiVersion: v1, kind: List, items: [
                 {apiVersion: 5spot.finos.org/v1alpha1, kind: ScheduledMachine}]}]}",
            &[
                "other f.yaml: document 1.items[0] (c)",
                "object f.yaml: document 1.items[1] (m)",
                "object f.yaml: document 1.items[2].items[0]",
            ],
        );
        check("{apiVersion: v1, kind: List}", &[]);
        check(
            "{apiVersion: v1, kind: List, items: 3}",
            &["f.yaml: document 1: items: must be a list of objects, not a number"],
        );
    }

    #[test]
    fn malformed_objects_are_reported_with_the_expected_form() {
        check("", &["f.yaml: it contains no document; expected 5spot.finos.org/v1alpha1 ScheduledMachine"]);
        for (text, found) in
            [("hello", "a string"), ("[]", "a list"), ("42", "a number"), ("true", "a boolean")]
        {
            let message = format!(
                "f.yaml: document 1: it is {found}; expected an object with apiVersion: \
                 5spot.finos.org/v1alpha1 and kind: ScheduledMachine"
            );
            check(text, &[&message]);
        }
        check(
            "kind: ScheduledMachine",
            &["f.yaml: document 1: apiVersion: required; \
               a ScheduledMachine has apiVersion: 5spot.finos.org/v1alpha1"],
        );
        check(
            "{apiVersion: v1, kind: 7}",
            &["f.yaml: document 1: kind: must be a string such as ScheduledMachine, not a number"],
        );
    }

    #[test]
    fn an_unknown_version_of_our_kind_is_an_error() {
        check(
            "{apiVersion: 5spot.finos.org/v1, kind: ScheduledMachine, metadata: {name: m}}",
            &["f.yaml: document 1 (m): apiVersion: \"5spot.finos.org/v1\" has no ScheduledMachine; \
               only \"5spot.finos.org/v1alpha1\" has"],
        );
    }
}
