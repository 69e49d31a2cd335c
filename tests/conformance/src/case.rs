//! The cases, in the format of their files.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The reason why the suite could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file or directory could not be read.
    #[error("failed to read {path}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file has invalid content.
    #[error("failed to parse {path}: {message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
}

/// Everything under `tests/conformance`.
#[derive(Debug)]
pub struct Suite {
    /// Objects that exist before the first case: CRDs.
    pub setup: Vec<Value>,
    /// The cases, in the order of their files.
    pub cases: Vec<Case>,
}

/// A sequence of requests to a server, in its own namespace.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file that it is in, without its extension.
    pub area: String,
    /// The name.
    pub name: String,
    /// Requests, in order.
    pub steps: Vec<Step>,
    /// Collections whose watch events are compared at the end.
    pub watch: Vec<String>,
}

impl Case {
    /// The identifier of this case in recordings and differences.
    pub fn id(&self) -> String {
        format!("{}: {}", self.area, self.name)
    }
}

/// A request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Method and path: `GET /api/v1/namespaces/{ns}/pods`.
    pub send: String,
    /// The body, if it is JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// The body in any other format.
    #[serde(default)]
    pub raw: Option<String>,
    /// The content type of the body.
    #[serde(default)]
    pub content_type: Option<String>,
    /// The `Accept` header.
    #[serde(default)]
    pub accept: Option<String>,
    /// Values of the response that later steps use as `{name}`: JSON pointers.
    #[serde(default)]
    pub save: Map<String, Value>,
    /// The request is repeated until its response matches this.
    #[serde(default)]
    pub until: Option<Until>,
    /// Parts of the response that are not compared: JSON pointers, `*` for any element.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// True if the response is not compared: the step only prepares others.
    #[serde(default)]
    pub quiet: bool,
    /// True if the texts of messages are compared too.
    #[serde(default)]
    pub messages: bool,
}

/// The condition to wait for.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Until {
    /// Its status code.
    #[serde(default)]
    pub status: Option<u16>,
    /// The part of the response to check: a JSON pointer.
    #[serde(default)]
    pub at: Option<String>,
    /// The expected value; null means absent.
    #[serde(default)]
    pub is: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    cases: Vec<RawCase>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawCase {
    name: String,
    /// The case is repeated for each of these; `$name` in any text is replaced by its value.
    #[serde(default)]
    each: Vec<Map<String, Value>>,
    /// The name of a list in `kinds.yaml` to repeat the case for.
    #[serde(default)]
    each_of: Option<String>,
    /// Rows of that list to leave out, by their `group`.
    #[serde(default)]
    except: Vec<String>,
    steps: Value,
    #[serde(default)]
    watch: Vec<String>,
}

impl Suite {
    /// Reads every file of a directory: `setup.yaml`, `kinds.yaml`, and the areas.
    pub fn load(directory: &Path) -> Result<Self, CaseError> {
        let mut setup: Vec<Value> = parse(&directory.join("setup.yaml"))?;
        setup.extend(serde_json::to_value(five_spot_api::crd()));
        let lists: Map<String, Value> = parse(&directory.join("kinds.yaml"))?;
        let areas = directory.join("cases");
        let read = |source| CaseError::Read { path: areas.clone(), source };
        let mut files: Vec<PathBuf> = std::fs::read_dir(&areas)
            .map_err(read)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(read)?;
        files.sort();
        let mut cases = Vec::new();
        for path in files {
            let file: File = parse(&path)?;
            let area = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            for raw in file.cases {
                cases.extend(raw.expand(&area, &lists, &path)?);
            }
        }
        Ok(Self { setup, cases })
    }
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, CaseError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| CaseError::Read { path: path.to_owned(), source })?;
    serde_saphyr::from_str(&text)
        .map_err(|error| CaseError::Parse { path: path.to_owned(), message: error.to_string() })
}

impl RawCase {
    fn expand(self, area: &str, lists: &Map<String, Value>, path: &Path) -> Result<Vec<Case>, CaseError> {
        let bad = |message: String| CaseError::Parse { path: path.to_owned(), message };
        let mut each = self.each;
        if let Some(list) = &self.each_of {
            let rows = lists.get(list).and_then(Value::as_array);
            let rows = rows.ok_or_else(|| bad(format!("kinds.yaml has no list {list}")))?;
            let is_wanted =
                |row: &&Map<String, Value>| !self.except.iter().any(|name| row["group"] == name.as_str());
            each.extend(rows.iter().filter_map(Value::as_object).filter(is_wanted).cloned());
        }
        if each.is_empty() {
            each.push(Map::new());
        }
        each.iter()
            .map(|values| {
                let steps = substituted(&self.steps, values);
                let steps =
                    serde_json::from_value(steps).map_err(|error| bad(format!("{}: {error}", self.name)))?;
                let watch = self.watch.iter().map(|one| substituted_text(one, values)).collect();
                Ok(Case { area: area.to_owned(), name: substituted_text(&self.name, values), steps, watch })
            })
            .collect()
    }
}

/// Replaces `$name` by its value. A text that consists only of `$name` becomes the value itself.
fn substituted(value: &Value, values: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$').and_then(|name| values.get(name)) {
            Some(value) => value.clone(),
            None => substituted_text(text, values).into(),
        },
        Value::Array(list) => list.iter().map(|one| substituted(one, values)).collect(),
        Value::Object(map) => Value::Object(
            map.iter().map(|(key, one)| (substituted_text(key, values), substituted(one, values))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn substituted_text(text: &str, values: &Map<String, Value>) -> String {
    let mut result = text.to_owned();
    // Longer names first, so that `$name` does not match the start of `$namespace`.
    let mut names: Vec<&String> = values.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        let value = values[name].as_str().map_or_else(|| values[name].to_string(), str::to_owned);
        result = result.replace(&format!("${name}"), &value);
    }
    result
}
