//! The program, run with nothing around it that a test did not put there.

use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the program had to say.
#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// Every line as JSON.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

/// The root of the workspace, so that `examples/...` is where the documentation says.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run of `5spot` without terminal, locale or other settings.
pub fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_5spot"));
    command.args(line.split_whitespace()).current_dir(root()).env_clear();
    command
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
    let mut child = command(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It may refuse the command line before it reads anything.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the program ends");
    Answer {
        code: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
    }
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
