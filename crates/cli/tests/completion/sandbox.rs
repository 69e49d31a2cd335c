//! A sandbox with machines of our own, as the cluster whose names are completed.

use crate::running::command;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// A running sandbox, ended with the test.
pub struct Sandbox {
    child: Child,
    kubeconfig: String,
    _directory: TempDir,
}

impl Sandbox {
    /// Starts a sandbox with three machines in the namespace `lab`, which is that of the kubeconfig.
    pub fn start() -> Self {
        let directory = TempDir::new().expect("a directory");
        let (fleet, kubeconfig) = (directory.path().join("fleet.yaml"), directory.path().join("kubeconfig"));
        let machines: String = ["desk-17", "desk-18", "bench-1"].into_iter().map(machine).collect();
        fs::write(&fleet, machines).expect("a file");
        let mut child = command(&["sandbox", "--speed", "1", "-o", "json", "-f"])
            .arg(&fleet)
            .arg("--kubeconfig-out")
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        // Its first line comes when the machines are there.
        let mut first = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
        let text = fs::read_to_string(&kubeconfig).expect("the kubeconfig");
        let mut config: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        config["contexts"][0]["context"]["namespace"] = "lab".into();
        fs::write(&kubeconfig, config.to_string()).expect("a file");
        let kubeconfig = kubeconfig.to_str().expect("UTF-8").to_owned();
        Self { child, kubeconfig, _directory: directory }
    }

    /// The path of its kubeconfig.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn machine(name: &str) -> String {
    format!(
        "---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {{name: {name}, namespace: lab}}
spec:
  schedule: {{daysOfWeek: [mon-sun]}}
  clusterName: lab
  bootstrapSpec: {{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: K0sWorkerConfig, spec: {{version: v1.36.4+k0s.0}}}}
  infrastructureSpec:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
    kind: RemoteMachine
    spec: {{address: {name}.example}}
"
    )
}
