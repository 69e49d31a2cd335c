//! An in-memory or real server, and the `kubectl` for it.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock, HttpServer, serve};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, probe};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A `ScheduledMachine` as users write it.
pub(crate) const SCHEDULED_MACHINE: &str = r#"
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata:
  name: one
spec:
  clusterName: prod
  schedule:
    daysOfWeek: [mon-fri]
    hoursOfDay: ["9-17"]
    timezone: Europe/Berlin
  bootstrapSpec:
    apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
    kind: K0sWorkerConfig
    spec: {version: v1.36.4+k0s.0}
  infrastructureSpec:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
    kind: RemoteMachine
    spec: {address: 10.0.0.1}
"#;

/// A server with our CRDs and an empty namespace.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) namespace: String,
    kubectl: PathBuf,
    /// The cache of `kubectl` for this server.
    home: PathBuf,
    serving: Option<(ApiServer, HttpServer)>,
    transcript: String,
}

impl Server {
    /// The in-memory API server on a loopback port.
    pub(crate) async fn embedded(context: &TestContext) -> anyhow::Result<Self> {
        let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
        for crd in our_crds()? {
            api.create(CRDS, &crd);
        }
        api.create("/api/v1/namespaces", &json!({"metadata": {"name": context.namespace()}}));
        let serving = serve(api.service(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let home = home(context, "embedded")?;
        let kubeconfig = home.join("kubeconfig");
        std::fs::write(&kubeconfig, serving.kubeconfig())?;
        Ok(Self::new(context, "embedded", kubeconfig, home, Some((api, serving))))
    }

    /// The management cluster's API server.
    pub(crate) async fn real(context: &TestContext) -> anyhow::Result<Self> {
        let (client, within) = (context.management().admin(), Duration::from_mins(1));
        manifests::apply_crds(&client, &our_crds()?, within).await?;
        let is_documented =
            probe::until_documented(&client, "5spot.finos.org/v1alpha1", "ScheduledMachine", within).await;
        ensure!(is_documented, "the server does not document our kinds");
        let kubeconfig = context.management().kubeconfig().to_owned();
        Ok(Self::new(context, "real", kubeconfig, home(context, "real")?, None))
    }

    fn new(
        context: &TestContext,
        name: &'static str,
        kubeconfig: PathBuf,
        home: PathBuf,
        serving: Option<(ApiServer, HttpServer)>,
    ) -> Self {
        let kubectl = context.clusters().control_plane().kubectl().to_owned();
        let namespace = context.namespace().to_owned();
        Self { name, kubeconfig, namespace, kubectl, home, serving, transcript: String::new() }
    }

    /// The in-memory API server itself.
    pub(crate) fn api(&self) -> &ApiServer {
        let (api, _) = self.serving.as_ref().expect("only an embedded server has it at hand");
        api
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", &self.namespace])
            .args(arguments.split_whitespace())
            .env("HOME", &self.home)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Starts a command that runs until it is dropped.
    pub(crate) fn begin(&self, arguments: &str) -> anyhow::Result<Child> {
        Ok(self.command(arguments).spawn()?)
    }

    /// Runs a command and records its output.
    pub(crate) async fn run(&mut self, arguments: &str) -> anyhow::Result<Finished> {
        let output = self.command(arguments).output().await?;
        self.keep(arguments, &output)
    }

    /// The same with an editor that makes this change to every file.
    pub(crate) async fn edit(&mut self, arguments: &str, editor: &str) -> anyhow::Result<Finished> {
        let output = self.command(arguments).env("KUBE_EDITOR", editor).output().await?;
        self.keep(arguments, &output)
    }

    /// The same with standard input.
    pub(crate) async fn run_with(&mut self, arguments: &str, input: &str) -> anyhow::Result<Finished> {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().context("kubectl has no input")?;
        stdin.write_all(input.as_bytes()).await?;
        drop(stdin);
        let output = child.wait_with_output().await?;
        self.keep(arguments, &output)
    }

    fn keep(&mut self, arguments: &str, output: &Output) -> anyhow::Result<Finished> {
        let finished = Finished {
            code: output.status.code(),
            text: String::from_utf8(output.stdout.clone())?
                + &without_client_log(std::str::from_utf8(&output.stderr)?),
        };
        let text = comparable(&finished.text);
        // Writing into a String cannot fail.
        let _ = writeln!(self.transcript, "$ kubectl {arguments}\n{text}=> {:?}", finished.code);
        Ok(finished)
    }

    /// Runs a command that has to succeed.
    pub(crate) async fn ok(&mut self, arguments: &str) -> anyhow::Result<String> {
        let finished = self.run(arguments).await?;
        self.check(arguments, finished)
    }

    /// The same with standard input.
    pub(crate) async fn ok_with(&mut self, arguments: &str, input: &str) -> anyhow::Result<String> {
        let finished = self.run_with(arguments, input).await?;
        self.check(arguments, finished)
    }

    /// Runs a command whose output depends on the speed of the server.
    pub(crate) async fn ok_unheard(&self, arguments: &str) -> anyhow::Result<()> {
        let output = self.command(arguments).output().await?;
        ensure!(output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// One field of an object.
    pub(crate) async fn field(&self, object: &str, path: &str) -> anyhow::Result<String> {
        let output = self.command(&format!("get {object} -o jsonpath={{{path}}}")).output().await?;
        ensure!(output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn check(&self, arguments: &str, finished: Finished) -> anyhow::Result<String> {
        ensure!(finished.code == Some(0), "{}: kubectl {arguments}: {}", self.name, finished.text);
        Ok(finished.text)
    }
}

/// The output and exit status of `kubectl`.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
}

/// Runs the same commands on the in-memory and on the real server; the output has to be the same.
pub(crate) async fn with_both(
    context: &TestContext,
    conversation: impl AsyncFn(&mut Server) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut embedded, mut real) = (Server::embedded(context).await?, Server::real(context).await?);
    for server in [&mut real, &mut embedded] {
        conversation(server).await.with_context(|| format!("with the {} server", server.name))?;
    }
    let (expected, found) = (&real.transcript, &embedded.transcript);
    let parting = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    ensure!(
        expected == found,
        "the servers differ at {parting:?}\n---- real\n{expected}\n---- embedded\n{found}"
    );
    Ok(())
}

/// The output of `kubectl` without the lines of its own log. It logs failed requests that it then retries or
/// does not need, such as a schema that a busy server did not send in time; these are unrelated to the
/// server's responses.
fn without_client_log(errors: &str) -> String {
    errors.split_inclusive('\n').filter(|line| !is_client_log(line)).collect()
}

/// Returns true for a line with klog's header, such as `E1118 05:38:09.198447   25493 request.go:1196] ...`.
fn is_client_log(line: &str) -> bool {
    let Some((severity, rest)) = line.split_at_checked(1) else { return false };
    let (date, rest) = rest.split_at_checked(4).unwrap_or_default();
    "IWEF".contains(severity)
        && date.len() == 4
        && date.bytes().all(|b| b.is_ascii_digit())
        && rest.split_once("] ").is_some_and(|(header, _)| header.contains(".go:"))
}

/// Masks values that differ between runs: ages, times, versions, UIDs, names of temporary files.
fn comparable(text: &str) -> String {
    const VARYING: [&str; 6] = [
        "UID:",
        "Resource Version:",
        "Creation Timestamp:",
        "uid:",
        "resourceVersion:",
        "creationTimestamp:",
    ];
    let mut comparable = String::new();
    for line in text.lines() {
        if ["diff -u", "---", "+++"].iter().any(|prefix| line.starts_with(prefix)) {
            continue;
        }
        // The same fields in the forms of `describe`, YAML, JSON and `diff`.
        let plain = line.replace('"', "");
        let field = plain.trim_start_matches(['+', '-', ' ']);
        if let Some(label) = VARYING.iter().find(|label| field.starts_with(**label)) {
            comparable += label;
        } else {
            let words = line.split_whitespace().map(|word| if is_age(word) { "AGE" } else { word });
            comparable += &words.collect::<Vec<&str>>().join(" ");
        }
        comparable.push('\n');
    }
    comparable
}

/// Returns true if a word is an age, such as `5s` or `2m10s`. Durations of specs are longer than any of these tests.
fn is_age(word: &str) -> bool {
    word.strip_suffix('s')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn home(context: &TestContext, name: &str) -> anyhow::Result<PathBuf> {
    let home = context.directory().join(format!("{}-{name}", context.namespace()));
    std::fs::create_dir_all(&home)?;
    Ok(home)
}

fn our_crds() -> anyhow::Result<Vec<Value>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    Ok(manifests::read(&directory)?)
}
