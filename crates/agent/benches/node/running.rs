//! A running agent: at rest, among many processes, and when a program starts.

use crate::measure::{cpu_percent, percentile, print_memory};
use crate::server::{MACHINE_ID, NODE, Server};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The interval of the controller.
const POLL: &str = "poll_interval_ms = 250";

/// A running agent and its API server.
pub struct Running {
    pub server: Server,
    pub child: Child,
    pub folder: TempDir,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts an agent that looks for `command`, and waits until it is armed.
    pub async fn start(agent: &Path, detector: &str, command: &str) -> Self {
        let server = Server::start().await;
        server.apply_config(&format!("match_commands = ['{command}']\n{POLL}")).await;
        let folder = tempfile::tempdir().expect("a folder");
        server.write_credentials(folder.path());
        std::fs::write(folder.path().join("machine-id"), MACHINE_ID).expect("a file");
        let mut child = Command::new(agent)
            .arg(format!("--detector={detector}"))
            .env_clear()
            .env("NODE_NAME", NODE)
            .env("MACHINE_ID_PATH", folder.path().join("machine-id"))
            .env("RECLAIM_STATE_DIR", folder.path())
            .env("RECLAIM_SERVICE_ACCOUNT_DIR", folder.path())
            .env("KUBERNETES_SERVICE_HOST", server.address().ip().to_string())
            .env("KUBERNETES_SERVICE_PORT", server.address().port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the agent");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut running = Self { server, child, folder, lines };
        running.logs("configmap applied").await;
        running
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("running")
    }

    /// Waits for a log line, and prints warnings on the way.
    pub async fn logs(&mut self, message: &str) -> Value {
        loop {
            let line = self.lines.next_line().await.expect("output").expect("a running agent");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["fields"]["message"].as_str().is_some_and(|text| text.contains(message)) {
                return line;
            }
            if line["level"] != "INFO" {
                println!("{line}");
            }
        }
    }
}

/// A copy of `sleep` called `name`.
pub fn program(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::copy("/bin/sleep", &path).expect("a copy");
    path
}

pub async fn idle(agent: PathBuf) {
    for detector in ["netlink", "poll"] {
        let running = Running::start(&agent, detector, "fsb-never").await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        print!("{detector}: ");
        print_memory(running.pid());
    }
}

pub async fn idle_processes(agent: PathBuf) {
    const COUNT: usize = 2000;
    let processes: Vec<Child> = (0..COUNT)
        .map(|_| Command::new("/bin/sleep").arg("600").kill_on_drop(true).spawn().expect("a process"))
        .collect();
    for detector in ["poll", "netlink"] {
        let running = Running::start(&agent, detector, "fsb-never").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let percent = cpu_percent(running.pid(), Duration::from_secs(20)).await;
        println!("{detector}: {percent:.3} % of a core beside {} idle processes", processes.len());
        print_memory(running.pid());
    }
}

pub async fn latency(agent: PathBuf) {
    const RUNS: usize = 300;
    let mut running = Running::start(&agent, "netlink", "fsb-latency").await;
    let path = program(running.folder.path(), "fsb-latency");
    let (mut matched_after, mut annotated_after) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        // The first look at all processes comes before the events; one that it finds has no such time.
        tokio::time::sleep(Duration::from_millis(60)).await;
        let mut child = Command::new(&path).arg("60").kill_on_drop(true).spawn().expect("a process");
        let matched = running.logs("process matched").await;
        matched_after.extend(matched["fields"]["exec_to_match_us"].as_u64());
        let annotated = running.logs("node annotated").await;
        annotated_after.extend(annotated["fields"]["match_to_annotated_ms"].as_u64());
        let _ = child.kill().await;
        running.server.apply_config(&format!("match_commands = ['fsb-latency']\n# {run}")).await;
        running.logs("configmap applied").await;
    }
    for (name, values, unit) in
        [("exec to match", &mut matched_after, "us"), ("match to annotated", &mut annotated_after, "ms")]
    {
        let (count, median) = (values.len(), percentile(values, 0.5));
        let (p99, max) = (percentile(values, 0.99), percentile(values, 1.0));
        println!("{name}: {count} runs, median {median} {unit}, p99 {p99} {unit}, most {max} {unit}");
    }
}
