//! The program, its endpoints and its output.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::process::{Process, ProcessSpec};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The timeout, which is only reached if the program fails: long enough for a busy machine.
const GUARD: Duration = Duration::from_secs(100);
/// The variable with settings of jemalloc, the only one of this process that the program gets.
const ALLOCATOR_SETTINGS: &str = "MALLOC_CONF";
/// The polling interval for ports and logs.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The program as a process.
pub(crate) struct Program {
    spec: ProcessSpec,
    process: Process,
    health: u16,
    metrics: u16,
}

/// The controller: `cargo xtask e2e` builds both programs into one directory.
pub(crate) fn controller_program() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("5spot-controller"))
}

impl Program {
    /// Starts the program with an identity, and waits until it serves.
    pub(crate) async fn start(
        directory: &Path,
        identity: &ServiceAccountIdentity,
        name: &str,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let program = controller_program()?;
        Self::start_file(&program, directory, identity, name, flags).await
    }

    /// The same with another program file.
    pub(crate) async fn start_file(
        program: &Path,
        directory: &Path,
        identity: &ServiceAccountIdentity,
        name: &str,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        Self::start_as(program, directory, &identity.kubeconfig(None), name, flags).await
    }

    /// Starts the program with the token in a file.
    pub(crate) async fn start_by_file(
        directory: &Path,
        identity: &ServiceAccountIdentity,
        token: &Path,
        name: &str,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let program = controller_program()?;
        Self::start_as(&program, directory, &identity.kubeconfig_by_file(token), name, flags).await
    }

    /// Starts the program with a kubeconfig.
    pub(crate) async fn start_with(
        directory: &Path,
        kubeconfig: &str,
        name: &str,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        Self::start_as(&controller_program()?, directory, kubeconfig, name, flags).await
    }

    /// Starts another program file with a kubeconfig.
    pub(crate) async fn start_as(
        program: &Path,
        directory: &Path,
        config: &str,
        name: &str,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let kubeconfig = directory.join(format!("{name}.kubeconfig"));
        std::fs::write(&kubeconfig, config)?;
        ensure!(program.exists(), "{} is not built: run `cargo xtask e2e`", program.display());
        // The workload cluster of the tests is on this machine.
        let arguments = ["--metrics-port=0", "--health-port=0", "--workload-cidr=127.0.0.0/8"];
        let mut arguments: Vec<OsString> = arguments.map(Into::into).into();
        // Each is a separate deployment with its own Lease, unless several elect a leader or share the objects.
        if flags
            .iter()
            .all(|flag| !flag.starts_with("--enable-leader-election") && !flag.starts_with("--instance"))
        {
            arguments.push(format!("--lease-name={name}").into());
        }
        arguments.extend(flags.iter().map(Into::into));
        let mut environment = vec![
            ("KUBECONFIG", kubeconfig.into()),
            ("POD_NAME", name.into()),
            ("POD_NAMESPACE", five_spot_api::names::SYSTEM_NAMESPACE.into()),
        ];
        // For benchmarks that compare settings of the allocator.
        environment.extend(std::env::var_os(ALLOCATOR_SETTINGS).map(|value| (ALLOCATOR_SETTINGS, value)));
        let spec = ProcessSpec {
            name: format!("5spot-controller-{name}"),
            program: program.to_path_buf(),
            arguments,
            environment,
            directory: directory.to_path_buf(),
        };
        // The output of an earlier process is removed.
        let _ = std::fs::remove_file(spec.log());
        let process = Process::start(&spec).context("failed to start the program")?;
        let mut program = Self { spec, process, health: 0, metrics: 0 };
        let serving = program.logged("Serving metrics and health").await?;
        let port = |name: &str| anyhow::Ok(serving[name].as_u64().context("a port")?.try_into()?);
        (program.health, program.metrics) = (port("health_port")?, port("metrics_port")?);
        Ok(program)
    }

    /// All lines of its log.
    pub(crate) fn lines(&self) -> anyhow::Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.spec.log())?;
        let whole = text.lines().filter(|line| line.ends_with('}'));
        whole.map(|line| serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))).collect()
    }

    /// Waits for a line with this message, and returns its fields.
    pub(crate) async fn logged(&self, message: &str) -> anyhow::Result<Value> {
        self.logged_with(message, &[]).await
    }

    /// Waits for a line whose message starts with this text and whose fields contain these words.
    pub(crate) async fn logged_with(&self, message: &str, words: &[&str]) -> anyhow::Result<Value> {
        let is_it = |fields: &Value| {
            let text = fields.to_string();
            fields["message"].as_str().is_some_and(|text| text.starts_with(message))
                && words.iter().all(|word| text.contains(word))
        };
        let found = async {
            loop {
                let lines = self.lines()?;
                if let Some(line) = lines.iter().find(|line| is_it(&line["fields"])) {
                    return anyhow::Ok(line["fields"].clone());
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        match timeout(GUARD, found).await {
            Ok(found) => found,
            Err(_) => bail!("the log has no line {message:?} with {words:?}:\n{}", self.log()),
        }
    }

    /// Its name, which is that of its pod.
    pub(crate) fn name(&self) -> &str {
        self.spec.name.strip_prefix("5spot-controller-").unwrap_or(&self.spec.name)
    }

    /// The current status and body of `/ready`.
    pub(crate) async fn ready(&self) -> io::Result<(u16, String)> {
        get(self.health, "/ready").await
    }

    /// Waits until a path returns a status and a body that contains all of these texts. Returns the body.
    pub(crate) async fn answers(&self, path: &str, status: u16, parts: &[&str]) -> anyhow::Result<String> {
        let mut last = String::new();
        let answered = async {
            loop {
                if let Ok((found, body)) = get(self.health, path).await {
                    if found == status && parts.iter().all(|part| body.contains(part)) {
                        return body;
                    }
                    last = format!("{found}\n{body}");
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        match timeout(GUARD, answered).await {
            Ok(body) => Ok(body),
            Err(_) => bail!("{path} is never {status} with {parts:?}, but {last}\nthe log:\n{}", self.log()),
        }
    }

    /// Checks that it is alive, not ready, and reports the reason.
    pub(crate) async fn is_not_ready(&self, reasons: &[&str]) -> anyhow::Result<String> {
        let body = self.answers("/ready", 503, reasons).await?;
        self.answers("/health", 200, &["ok\n"]).await?;
        Ok(body)
    }

    /// All responses of `/health` other than 200 while a future runs.
    pub(crate) async fn liveness_failures_during<T>(
        &self,
        something: impl Future<Output = T>,
    ) -> (T, Vec<String>) {
        let mut something = std::pin::pin!(something);
        let mut liveness_failures = Vec::new();
        loop {
            match get(self.health, "/health").await {
                Ok((200, _)) => {}
                other => liveness_failures.push(format!("{other:?}")),
            }
            if let Ok(done) = timeout(ASK_EVERY, &mut something).await {
                return (done, liveness_failures);
            }
        }
    }

    /// Waits until it is ready.
    pub(crate) async fn is_ready(&self) -> anyhow::Result<String> {
        self.answers("/ready", 200, &["ok\n"]).await
    }

    /// SIGTERM: it has to exit successfully and must not cancel reconciles, which it would log after a second and a
    /// half.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let status = self.process.terminate().await.context("the exit status is unknown")?;
        ensure!(status.code() == Some(0), "it ended with {status}; the log:\n{}", self.log());
        let messages: Vec<Value> =
            self.lines()?.iter().map(|line| line["fields"]["message"].clone()).collect();
        ensure!(messages.contains(&"Stopped".into()), "it was cut off; the log:\n{}", self.log());
        Ok(())
    }

    /// SIGSTOP; returns when it has stopped.
    pub(crate) async fn freeze(&self) {
        self.process.freeze().await;
    }

    /// SIGCONT.
    pub(crate) fn thaw(&self) {
        self.process.thaw();
    }

    /// SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.process.kill().await;
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.identity().pid
    }

    /// The port of its metrics.
    pub(crate) fn metrics_port(&self) -> u16 {
        self.metrics
    }

    /// Its metrics.
    pub(crate) async fn metrics(&self) -> anyhow::Result<String> {
        Ok(get(self.metrics, "/metrics").await?.1)
    }

    /// Its whole output.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.spec.log()).unwrap_or_default()
    }
}

/// The status and the body of a response.
async fn get(port: u16, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    Ok((status, body.to_owned()))
}
