//! `cargo xtask dashboard`: draws the Grafana dashboard. A real Prometheus answers its queries with the
//! metrics of a sandbox run. The panels are drawn at their positions in the dashboard, in a simplified form.

mod draw;
mod series;

use crate::tools::{Tool, install_missing};
use anyhow::{Context as _, ensure};
use five_spot_testenv::prometheus::Prometheus;
use series::{Database, Panel};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOOLS: [Tool; 2] = [
    Tool { check: &["promtool", "--version"], package: "prometheus" },
    Tool { check: &["prometheus", "--version"], package: "prometheus" },
];

/// Flags of `dashboard`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File that `5spot sandbox --metrics-out` has written.
    #[arg(long, value_name = "FILE")]
    metrics: PathBuf,
    /// File for the image.
    #[arg(long, value_name = "FILE", default_value = "docs/images/dashboard.svg")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    install_missing(&TOOLS)?;
    let directory = std::env::temp_dir().join(format!("5spot-dashboard-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let drawn = draw_in(&directory, &args.metrics);
    // If the removal fails, the system cleans its temporary directory up later.
    let _ = std::fs::remove_dir_all(&directory);
    let picture = drawn?;
    std::fs::write(&args.output, picture)
        .with_context(|| format!("failed to write {}", args.output.display()))?;
    println!("wrote {}", args.output.display());
    Ok(())
}

fn draw_in(directory: &Path, metrics: &Path) -> anyhow::Result<String> {
    let data = directory.join("data");
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .arg(metrics)
        .arg(&data)
        .output()
        .context("failed to run promtool")?;
    ensure!(made.status.success(), "promtool: {}", String::from_utf8_lossy(&made.stderr));
    let config = directory.join("prometheus.yaml");
    std::fs::write(&config, "scrape_configs: []\n")?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _prometheus = Prometheus::start(&config, &data, port)?;
    let database = Database::open(port, metrics)?;
    let panels = panels()?;
    let mut drawn = Vec::new();
    for panel in &panels {
        drawn.push((panel, database.series(panel)?));
    }
    Ok(draw::picture(&drawn, database.span()))
}

/// The panels of the dashboard.
fn panels() -> anyhow::Result<Vec<Panel>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/monitoring/dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let panels = dashboard["panels"].as_array().context("the dashboard has no panels")?;
    panels.iter().map(Panel::read).collect()
}
