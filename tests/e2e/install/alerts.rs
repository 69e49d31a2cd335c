//! A real Prometheus with the shipped alert rules, which scrapes a controller. Its times are a sixtieth of the shipped ones.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use five_spot_testenv::prometheus::{Prometheus, get, shortened};

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
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring/alerts.yaml");
        let rules = std::fs::read_to_string(rules)?;
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
