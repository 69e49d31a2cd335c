//! A real Prometheus with the shipped alert rules, which scrapes a controller, and evaluates the expressions of the dashboard. The
//! times of the rules are a sixtieth of the shipped ones.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use five_spot_testenv::prometheus::{Prometheus, get, query, shortened};
use serde_json::Value;

/// The time limit. The rules wait for up to 30 s; the rest is for a busy machine.
const WITHIN: Duration = Duration::from_mins(2);

/// Alerts that never fire while the controller works.
const SILENT: [&str; 4] =
    ["FiveSpotMachinesInError", "FiveSpotNoLeader", "FiveSpotShardWithoutLeader", "FiveSpotWatchStale"];

/// The alerts of one controller.
pub(super) struct Alerts {
    // Ends with this.
    _prometheus: Prometheus,
    port: u16,
}

impl Alerts {
    /// Scrapes this port. The files of Prometheus are below `directory`.
    pub(super) fn start(directory: &Path, target: u16) -> anyhow::Result<Self> {
        let rules = shipped("alerts.yaml")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = directory.join("prometheus");
        std::fs::create_dir(&directory)?;
        let prometheus = Prometheus::scraping(&directory, target, &shortened(&rules), port)?;
        Ok(Self { _prometheus: prometheus, port })
    }

    /// Waits until an alert fires, or until it does not.
    pub(super) async fn until(&self, alert: &str, fires: bool) -> anyhow::Result<()> {
        let mut last = String::new();
        let reached = async {
            loop {
                match self.firing().await {
                    Ok(firing) if firing.contains(alert) == fires => return firing,
                    Ok(firing) => last = format!("{firing:?}"),
                    // It takes a moment to start.
                    Err(error) => last = error.to_string(),
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        let reached = tokio::time::timeout(WITHIN, reached).await;
        let Ok(firing) = reached else {
            bail!("{alert} should {}fire: {last}", if fires { "" } else { "not " });
        };
        ensure!(!SILENT.iter().any(|silent| firing.contains(*silent)), "{firing:?}");
        println!("alerts that fire: {firing:?}");
        Ok(())
    }

    /// Evaluates every expression of the dashboard. Returns those that have a result.
    pub(super) async fn evaluate_dashboard(&self) -> anyhow::Result<Vec<String>> {
        let expressions = expressions_of_dashboard()?;
        let mut with_result = Vec::new();
        for expression in &expressions {
            let (port, sent) = (self.port, expression.clone());
            let answer = tokio::task::spawn_blocking(move || query(port, &sent)).await??;
            ensure!(answer["status"] == "success", "{expression}: {answer}");
            if answer["data"]["result"].as_array().is_some_and(|result| !result.is_empty()) {
                with_result.push(expression.clone());
            }
        }
        println!(
            "dashboard: {} expressions evaluated, {} with a result",
            expressions.len(),
            with_result.len()
        );
        Ok(with_result)
    }

    /// The alerts that fire now.
    async fn firing(&self) -> anyhow::Result<BTreeSet<String>> {
        let port = self.port;
        let answer = tokio::task::spawn_blocking(move || get(port, "/api/v1/rules?type=alert")).await??;
        let groups = answer["data"]["groups"].as_array().context("the response has no rule groups")?;
        let rules: Vec<_> = groups.iter().filter_map(|group| group["rules"].as_array()).flatten().collect();
        ensure!(!rules.is_empty(), "no rules have been loaded");
        let broken = rules.iter().find(|rule| rule["health"] == "err");
        ensure!(broken.is_none(), "a rule cannot be evaluated: {broken:?}");
        let firing = rules.iter().filter(|rule| rule["state"] == "firing");
        Ok(firing.filter_map(|rule| Some(rule["name"].as_str()?.to_owned())).collect())
    }
}

/// A file of `deploy/monitoring`.
fn shipped(name: &str) -> std::io::Result<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring").join(name))
}

/// The expressions of all panels of the dashboard.
fn expressions_of_dashboard() -> anyhow::Result<Vec<String>> {
    let dashboard: Value = serde_json::from_str(&shipped("dashboard.json")?)?;
    let mut expressions = Vec::new();
    for panel in dashboard["panels"].as_array().context("the dashboard has no panels")? {
        // Rows have no targets.
        for target in panel["targets"].as_array().into_iter().flatten() {
            expressions.push(target["expr"].as_str().context("a target has no expression")?.to_owned());
        }
    }
    ensure!(!expressions.is_empty(), "the dashboard has no expressions");
    Ok(expressions)
}
