//! The panels of the dashboard and the answers of Prometheus to their queries.

use anyhow::{Context as _, ensure};
use five_spot_testenv::prometheus::{encoded, get};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of points of a line: about one for every two pixels.
const POINTS: i64 = 144;

/// The timeout for a Prometheus that never answers.
const GUARD: Duration = Duration::from_mins(1);

/// A panel.
pub(super) struct Panel {
    pub(super) kind: String,
    pub(super) title: String,
    pub(super) unit: String,
    pub(super) stacked: bool,
    /// The left edge, the upper edge, the width and the height, in the units of Grafana.
    pub(super) place: [i64; 4],
    /// Expressions, each with the format of its legend.
    targets: Vec<(String, String)>,
}

/// The name of a line, and its times and values.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(i64, f64)>,
}

impl Panel {
    pub(super) fn read(panel: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let place =
            |name: &str| panel["gridPos"][name].as_i64().with_context(|| format!("no {name} in {panel}"));
        let defaults = &panel["fieldConfig"]["defaults"];
        let targets = panel["targets"].as_array().into_iter().flatten();
        Ok(Self {
            kind: text(&panel["type"]),
            title: text(&panel["title"]),
            unit: text(&defaults["unit"]),
            stacked: defaults["custom"]["stacking"]["mode"] == "normal",
            place: [place("x")?, place("y")?, place("w")?, place("h")?],
            targets: targets.map(|target| (text(&target["expr"]), text(&target["legendFormat"]))).collect(),
        })
    }

    /// Returns true if the panel shows values over time.
    pub(super) fn has_time(&self) -> bool {
        self.kind == "timeseries"
    }
}

/// A Prometheus server with the metrics of one run.
pub(super) struct Database {
    port: u16,
    from: i64,
    to: i64,
}

impl Database {
    /// Waits until Prometheus answers.
    pub(super) fn open(port: u16, metrics: &Path) -> anyhow::Result<Self> {
        let (from, to) = span(metrics)?;
        let begun = Instant::now();
        while !get(port, "/api/v1/query?query=1").is_ok_and(|answer| answer["status"] == "success") {
            ensure!(begun.elapsed() < GUARD, "Prometheus did not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Self { port, from, to })
    }

    /// The first and the last second of the metrics.
    pub(super) fn span(&self) -> (i64, i64) {
        (self.from, self.to)
    }

    /// The answers to the queries of a panel.
    pub(super) fn series(&self, panel: &Panel) -> anyhow::Result<Vec<Series>> {
        let mut found = Vec::new();
        for (expression, legend) in &panel.targets {
            let query = encoded(expression);
            let path = if panel.has_time() {
                let step = ((self.to - self.from) / POINTS).max(1);
                format!("/api/v1/query_range?query={query}&start={}&end={}&step={step}", self.from, self.to)
            } else {
                format!("/api/v1/query?query={query}&time={}", self.to)
            };
            let answer = get(self.port, &path)?;
            ensure!(answer["status"] == "success", "{expression}: {answer}");
            for one in answer["data"]["result"].as_array().into_iter().flatten() {
                let name = name(legend, &one["metric"]);
                let points = if panel.has_time() {
                    points(&one["values"])
                } else {
                    points(&Value::Array(vec![one["value"].clone()]))
                };
                found.push(Series { name, points });
            }
        }
        Ok(found)
    }
}

/// The times of the first and the last sample of a file.
fn span(metrics: &Path) -> anyhow::Result<(i64, i64)> {
    let file = File::open(metrics).with_context(|| format!("failed to read {}", metrics.display()))?;
    let mut span = None;
    for line in BufReader::new(file).lines() {
        let line = line?;
        let Some(seconds) = line.rsplit(' ').next().and_then(|time| time.parse::<i64>().ok()) else {
            continue;
        };
        span = Some((span.map_or(seconds, |(from, _)| from), seconds));
    }
    span.context("the file has no samples")
}

/// Fills labels into a legend such as `{{phase}}`; without a legend, lists all labels.
fn name(legend: &str, labels: &Value) -> String {
    let labels: Vec<(String, String)> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    if legend.is_empty() {
        let values: Vec<&str> = labels.iter().map(|(_, value)| value.as_str()).collect();
        return values.join(" ");
    }
    labels
        .iter()
        .fold(legend.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
}

fn points(values: &Value) -> Vec<(i64, f64)> {
    #[expect(clippy::cast_possible_truncation, reason = "seconds fit")]
    let point = |point: &Value| Some((point[0].as_f64()? as i64, point[1].as_str()?.parse::<f64>().ok()?));
    values.as_array().into_iter().flatten().filter_map(point).filter(|(_, value)| value.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn legends_hold_the_values_of_labels() {
        let labels = json!({"phase": "Active", "shard": "0"});
        assert_eq!(name("{{phase}} of {{shard}}", &labels), "Active of 0");
        assert_eq!(name("", &labels), "Active 0");
    }

    #[test]
    fn values_that_are_not_numbers_are_left_out() {
        assert_eq!(points(&json!([[10, "1.5"], [20.0, "NaN"], [30, "+Inf"]])), [(10, 1.5)]);
    }
}
