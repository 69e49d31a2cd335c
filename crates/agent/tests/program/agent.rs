//! A running agent, and programs for it to find.

use crate::server::{MACHINE_ID, NODE, Server};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The time within which everything happens that a test waits for.
pub const SOON: Duration = Duration::from_mins(1);

/// The command line of the agent, with credentials and a machine id in a folder of its own.
pub struct Host {
    folder: TempDir,
}

impl Host {
    pub fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        server.write_credentials(folder.path());
        let host = Self { folder };
        host.set_machine_id(MACHINE_ID);
        host
    }

    pub fn set_machine_id(&self, id: &str) {
        std::fs::write(self.folder.path().join("machine-id"), format!("{id}\n")).expect("a file");
    }

    /// Lets an agent of any user read its files and make its socket.
    pub fn open_to_everybody(&self) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(self.folder.path(), permissions).expect("permissions");
    }

    /// Writes the token that the server accepts now.
    pub fn renew_token(&self, server: &Server) {
        server.write_credentials(self.folder.path());
    }

    /// The agent with these arguments, run by `wrapper` if it is not empty.
    pub fn command(&self, server: &Server, wrapper: &[&str], arguments: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_5spot-reclaim-agent");
        let line: Vec<&str> =
            wrapper.iter().copied().chain([program]).chain(arguments.iter().copied()).collect();
        let mut command = Command::new(line[0]);
        command
            .args(&line[1..])
            .env_clear()
            .env("NODE_NAME", NODE)
            .env("MACHINE_ID_PATH", self.folder.path().join("machine-id"))
            .env("RECLAIM_STATE_DIR", self.folder.path())
            .env("RECLAIM_SERVICE_ACCOUNT_DIR", self.folder.path())
            .env("KUBERNETES_SERVICE_HOST", server.address().ip().to_string())
            .env("KUBERNETES_SERVICE_PORT", server.address().port().to_string())
            .env("RUST_LOG", "debug")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub fn start(&self, server: &Server, arguments: &[&str]) -> Agent {
        Agent::new(self.command(server, &[], arguments))
    }

    /// The exit code and output of `5spot-reclaim-agent probe`.
    pub async fn probe(&self, server: &Server) -> (Option<i32>, Value) {
        let output = self.command(server, &[], &["probe"]).output().await.expect("a process");
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
    }
}

/// A running agent. It is killed when it is dropped.
pub struct Agent {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<Value>,
}

impl Agent {
    pub fn new(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the agent");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for a log line whose message contains `message`, after those that were waited for before.
    pub async fn logs(&mut self, message: &str) -> Value {
        let find = async {
            while let Some(line) = self.lines.next_line().await.expect("output") {
                let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                let found = line["fields"]["message"].as_str().is_some_and(|text| text.contains(message));
                self.seen.push(line.clone());
                if found {
                    return Some(line);
                }
            }
            None
        };
        let found = tokio::time::timeout(SOON, find).await.ok().flatten();
        found.unwrap_or_else(|| panic!("no line with {message:?} in {:#?}", self.seen))
    }

    /// Ends the agent as the kubelet does, and returns its exit code.
    pub async fn terminate(mut self) -> Option<i32> {
        let pid = i32::try_from(self.child.id().expect("running")).expect("a process id");
        let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
        self.wait().await
    }

    /// Ends the agent without a warning, and waits until it has ended.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("a process that is killed");
    }

    pub async fn wait(&mut self) -> Option<i32> {
        let status = tokio::time::timeout(SOON, self.child.wait()).await.expect("an end");
        status.expect("a status").code()
    }
}

/// Copies a program in a process of its own. If this process had the copy open for writing, a child that another test starts
/// at that moment would have it open as well until it runs its own program, and the copy could not be started meanwhile.
pub fn copy_program(from: &str, to: &Path) {
    let status = std::process::Command::new("cp").arg(from).arg(to).status().expect("cp");
    assert!(status.success(), "{status}");
}

/// A copy of `sleep` under another name. It ends when it is dropped.
pub struct OwnersProgram {
    _folder: TempDir,
    child: Child,
}

impl OwnersProgram {
    pub fn start(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        copy_program("/bin/sleep", &path);
        let child = Command::new(&path).arg("600").kill_on_drop(true).spawn().expect("a process");
        Self { _folder: folder, child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("running")
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_none()
    }
}
