//! `cargo xtask operator`: checks the controller's output with the tools that operators use. `promtool` and
//! Prometheus read its metrics and alerts, and `jq` its log, all recorded by the controller's operator tests.
//! `jeprof` reads the heap profile of a build with jemalloc.

mod heap;
mod prometheus;

use crate::cargo::cargo;
use crate::tools::{Tool, install_missing};
use anyhow::{Context as _, bail, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that read the controller's output.
const TOOLS: [Tool; 5] = [
    Tool { check: &["promtool", "--version"], package: "prometheus" },
    Tool { check: &["prometheus", "--version"], package: "prometheus" },
    Tool { check: &["jq", "--version"], package: "jq" },
    Tool { check: &["jeprof", "--version"], package: "libjemalloc-dev" },
    Tool { check: &["nm", "--version"], package: "binutils" },
];

/// The variable with the directory for the recorded output.
const RECORD_VARIABLE: &str = "FIVESPOT_OPERATOR_RECORD";

/// The only warning of `promtool` that is accepted: the name is part of the documented interface.
const EXCEPTION: &str =
    "fivespot_kill_switch_activations_total non-counter metrics should not have \"_total\" suffix";

/// The documented `jq` selections, each of which must match something in the recorded log.
const SELECTIONS: [&str; 6] = [
    r#"select(.fields.resource == "shift")"#,
    r#"select(.fields.to_phase == "Error")"#,
    r#"select(.fields.phase == "EmergencyRemove")"#,
    r#"select(.fields.resource == "refused") | {retry: .fields.retry_count, backoff: .fields.backoff_secs, error: .fields.error}"#,
    r#"select(.span."object.ref" | contains("shift"))"#,
    r#"select(.target == "audit" and .fields.to == "Error")"#,
];

pub(crate) fn run() -> anyhow::Result<()> {
    install_missing(&TOOLS)?;
    let record = Record::create()?;
    check_pages(&record.directory)?;
    check_rules()?;
    check_selections(&record.directory.join("log.json"))?;
    prometheus::check(&record.directory)?;
    heap::check(&record.directory)?;
    println!("promtool, Prometheus, jq and jeprof accept all output");
    Ok(())
}

/// The recorded output of a run; removed on drop.
struct Record {
    directory: PathBuf,
}

impl Record {
    fn create() -> anyhow::Result<Self> {
        let directory = std::env::temp_dir().join(format!("5spot-operator-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let record = Self { directory };
        // The whole workspace: a single package would be compiled again, with different features of its
        // dependencies.
        let status = cargo()
            .args(["test", "--quiet", "--workspace", "--test", "operator"])
            .env(RECORD_VARIABLE, &record.directory)
            .status()
            .context("failed to run cargo")?;
        ensure!(status.success(), "the operator tests failed: {status}");
        Ok(record)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // If the removal fails, the system cleans its temporary directory up later.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn check_pages(directory: &Path) -> anyhow::Result<()> {
    for page in ["fresh", "crowded", "busy", "empty"] {
        let file = File::open(directory.join(page).with_extension("prom"))?;
        let output = Command::new("promtool").args(["check", "metrics"]).stdin(file).output()?;
        let output_text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        ensure!(output_text.trim() == EXCEPTION, "promtool of the {page} page: {output_text}");
    }
    Ok(())
}

fn check_rules() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (way, file) in [("check", "deploy/monitoring/alerts.yaml"), ("test", "tests/monitoring/alerts.yaml")]
    {
        let output = Command::new("promtool").args([way, "rules"]).arg(root.join(file)).output()?;
        let output_text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "promtool {way} rules {file}: {output_text}");
    }
    Ok(())
}

fn check_selections(log: &Path) -> anyhow::Result<()> {
    for selection in SELECTIONS {
        let output = Command::new("jq").args(["-c", selection]).arg(log).output()?;
        if !output.status.success() || output.stdout.is_empty() {
            bail!("jq '{selection}' selects nothing: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    Ok(())
}
