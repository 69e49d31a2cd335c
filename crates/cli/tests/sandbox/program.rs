//! Runs the program and collects its output.

pub use crate::running::{Answer, root};

use crate::running::{self, five_spot_of};
use serde_json::Value;
use std::process::Command;

impl Answer {
    /// Every line as JSON.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

/// A run of `5spot` with the words of a line.
pub fn command(line: &str) -> Command {
    running::command(&words(line))
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// `5spot sandbox` with the words of a line.
pub fn sandbox(line: &str) -> Answer {
    sandbox_of("", line)
}

/// The same with something on standard input.
pub fn sandbox_of(input: &str, line: &str) -> Answer {
    five_spot(input, &format!("sandbox {line}"))
}

/// `5spot` with the words of a line.
pub fn five_spot(input: &str, line: &str) -> Answer {
    five_spot_of(input, &words(line))
}

/// A machine with this schedule, and these fields of its spec besides.
pub fn machine(name: &str, schedule: &str, further: &str) -> String {
    format!(
        "---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {{name: {name}, namespace: lab}}
spec:
  schedule: {schedule}
  clusterName: lab
  bootstrapSpec: {{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: K0sWorkerConfig, spec: {{version: v1.36.4+k0s.0}}}}
  infrastructureSpec: {{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: RemoteMachine, spec: {{address: 192.0.2.1}}}}
  {further}
"
    )
}

/// The lines of one type about one object, in order.
pub fn about<'a>(lines: &'a [Value], kind: &str, name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind && line["name"] == name).collect()
}

/// The time of a line, to the second.
pub fn second(line: &Value) -> String {
    let time = line["time"].as_str().expect("a time");
    format!("{}Z", time.trim_end_matches('Z').split('.').next().unwrap_or_default())
}
