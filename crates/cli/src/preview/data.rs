//! The preview as JSON and YAML. The format is stable: fields may be added, but never changed or removed.

use crate::preview::forecast::{Forecast, Window};
use serde::Serialize;

/// The preview of one object.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    name: &'a str,
    namespace: &'a str,
    timezone: &'a str,
    from: String,
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    windows: Vec<Period>,
}

/// A window.
#[derive(Debug, Serialize)]
struct Period {
    start: String,
    end: String,
    reason: String,
}

impl<'a> From<&'a Forecast> for Entry<'a> {
    fn from(forecast: &'a Forecast) -> Self {
        Self {
            name: &forecast.name,
            namespace: &forecast.namespace,
            timezone: &forecast.timezone,
            // The range has whole seconds, so this is RFC 3339 without a fraction.
            from: forecast.range.from.to_string(),
            to: forecast.range.to.to_string(),
            note: forecast.note.as_deref(),
            windows: forecast.windows.iter().map(Period::from).collect(),
        }
    }
}

impl From<&Window> for Period {
    fn from(window: &Window) -> Self {
        Self {
            start: window.start.to_string(),
            end: window.end.to_string(),
            reason: window.causes.to_string(),
        }
    }
}

/// JSON: always an array, for a single object too.
pub fn json(forecasts: &[Forecast]) -> anyhow::Result<String> {
    let entries: Vec<Entry<'_>> = forecasts.iter().map(Entry::from).collect();
    Ok(serde_json::to_string_pretty(&entries)? + "\n")
}

/// The same data as YAML.
pub fn yaml(forecasts: &[Forecast]) -> anyhow::Result<String> {
    let entries: Vec<Entry<'_>> = forecasts.iter().map(Entry::from).collect();
    Ok(serde_saphyr::to_string(&entries)?)
}
