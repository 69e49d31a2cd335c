//! Access to a cluster with the caller's own kubeconfig, as `kubectl` does it.

use five_spot_cluster::{Connection, WorkloadRules};
use five_spot_diagnose::shell::quoted;
use http::Uri;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::error::Error;
use std::path::PathBuf;

/// The name of the program in its User-Agent.
const PROGRAM: &str = "5spot";

/// The flags that choose the cluster, named as in `kubectl`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// The kubeconfig file [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// The flags that choose the namespace, named as in `kubectl`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct NamespaceArgs {
    /// The namespace [default: that of the context]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = object_name)]
    pub namespace: Option<String>,
}

/// The flags that choose one namespace or all of them, named as in `kubectl`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct ScopeArgs {
    /// The namespace [default: that of the context]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = object_name, conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,

    /// All namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

/// Reads the name of a namespace or a `ScheduledMachine`. It becomes part of the path of a request.
pub fn object_name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let is_framed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if text.contains('/') {
        return Err("a name alone is expected here; -n names the namespace".to_owned());
    }
    if text.chars().all(is_allowed)
        && text.starts_with(is_framed)
        && text.ends_with(is_framed)
        && text.len() <= 253
    {
        return Ok(text.to_owned());
    }
    Err("names in Kubernetes consist of lower-case letters, digits, '-' and '.'".to_owned())
}

impl NamespaceArgs {
    /// The namespace that the flags choose.
    pub fn resolve(&self, access: &CallerCluster) -> String {
        self.namespace.clone().unwrap_or_else(|| access.default_namespace.clone())
    }
}

impl ScopeArgs {
    /// The namespace that the flags choose; `None` for all namespaces.
    pub fn resolve(&self, access: &CallerCluster) -> Option<String> {
        if self.all_namespaces {
            return None;
        }
        Some(self.namespace.clone().unwrap_or_else(|| access.default_namespace.clone()))
    }
}

/// The cluster of the caller.
#[derive(Clone, Debug)]
pub struct CallerCluster {
    /// The way to the management cluster, and from there to the workload clusters.
    pub connection: Connection,
    /// The namespace of the context.
    pub default_namespace: String,
    /// The kubeconfig, context and server, for the messages of failed connections.
    pub description: String,
}

/// A kubeconfig that leads to no cluster, in one line that says which one it is.
#[derive(Debug, thiserror::Error)]
pub enum NoAccess {
    /// The kubeconfig cannot be read, or lacks what it should name.
    #[error("{what}: {cause}. Choose another with --kubeconfig or --context")]
    Kubeconfig {
        /// The kubeconfig and context.
        what: String,
        /// The error, without any content of the file.
        cause: String,
    },
}

impl ClusterArgs {
    /// The cluster that the flags choose. Nothing is asked of it yet.
    pub async fn access(&self) -> Result<CallerCluster, NoAccess> {
        let (config, what) = self.config().await?;
        let description = format!("{what}, server {}", without_credentials(&config.cluster_url));
        let default_namespace = config.default_namespace.clone();
        // The caller chose the kubeconfig and could reach any of these addresses without this program. Certificates are
        // verified all the same.
        let everywhere = ["0.0.0.0/0", "::/0"].into_iter().filter_map(|cidr| cidr.parse().ok()).collect();
        let rules = WorkloadRules { allowed: everywhere, ..WorkloadRules::default() };
        let connection = Connection::network(config, PROGRAM).with_workload_rules(rules);
        Ok(CallerCluster { connection, default_namespace, description })
    }

    /// The configuration of the client, and the kubeconfig and context that it comes from. Without a kubeconfig, a pod uses
    /// its service account, as `kubectl` does.
    async fn config(&self) -> Result<(Config, String), NoAccess> {
        let file = self.file();
        let refused = |error: KubeconfigError| NoAccess::Kubeconfig {
            what: self.what(&file, None),
            cause: describe(&error),
        };
        let kubeconfig = self.read();
        let kubeconfig = match kubeconfig {
            Err(_) if self.kubeconfig.is_none() && self.context.is_none() => match Config::incluster() {
                Ok(config) => return Ok((config, "the service account of this pod".to_owned())),
                Err(_) => kubeconfig,
            },
            Ok(_) | Err(_) => kubeconfig,
        }
        .map_err(refused)?;
        let what = self.what(&file, kubeconfig.current_context.as_deref());
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        Ok((config.map_err(refused)?, what))
    }

    /// The flags as a shell reads them, for commands that have to reach the same cluster; empty if there are none.
    pub fn flags(&self) -> String {
        let kubeconfig = self.kubeconfig.as_ref().map(|path| ("--kubeconfig", path.display().to_string()));
        let context = self.context.as_ref().map(|context| ("--context", context.clone()));
        let given = kubeconfig.into_iter().chain(context);
        given.map(|(flag, value)| format!("{flag} {}", quoted(&value))).collect::<Vec<_>>().join(" ")
    }

    /// The kubeconfig.
    pub fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        }
    }

    fn file(&self) -> String {
        match &self.kubeconfig {
            Some(path) => path.display().to_string(),
            None => match std::env::var("KUBECONFIG") {
                Ok(path) if !path.is_empty() => path,
                Ok(_) | Err(_) => "~/.kube/config".to_owned(),
            },
        }
    }

    /// The kubeconfig and the context, for messages.
    fn what(&self, file: &str, current: Option<&str>) -> String {
        match self.context.as_deref().or(current) {
            Some(context) if !context.is_empty() => format!("kubeconfig {file}, context {context}"),
            Some(_) | None => format!("kubeconfig {file}"),
        }
    }
}

impl CallerCluster {
    /// The line for a failed request: the kubeconfig, context and server, and the cause.
    pub fn failure(&self, error: &(dyn Error + 'static)) -> String {
        format!("failed to query the cluster ({}): {}", self.description, with_causes(error))
    }
}

/// An address without the user and password that it may have.
fn without_credentials(address: &Uri) -> String {
    let text = address.to_string();
    let authority = address.authority().map_or("", |authority| authority.as_str());
    match authority.rsplit_once('@') {
        Some((credentials, _)) => text.replacen(&format!("{credentials}@"), "", 1),
        None => text,
    }
}

/// An error in the words of the API server, or in its own. The client library shows a refusal as a dump of its fields, and
/// begins with the name of a variant, which says nothing to a user.
fn in_words(error: &(dyn Error + 'static)) -> String {
    if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
        return format!("{} ({})", status.message, status.code);
    }
    error.to_string().trim_start_matches("ServiceError: ").to_owned()
}

/// An error with everything that brought it about, in one line.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = in_words(error);
    // The rest of a refusal is the same again.
    let is_refusal = |error: &(dyn Error + 'static)| {
        matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(_)))
    };
    let mut source = if is_refusal(error) { None } else { error.source() };
    while let Some(cause) = source {
        let said = in_words(cause);
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = if is_refusal(cause) { None } else { cause.source() };
    }
    text.lines().collect::<Vec<_>>().join(" ")
}

/// Describes an error without any content of the kubeconfig, which may be a credential.
fn describe(error: &KubeconfigError) -> String {
    match error {
        // Its message shows the lines around the mistake.
        KubeconfigError::Parse(_) => "it is not valid YAML".to_owned(),
        KubeconfigError::ReadConfig(cause, _) => cause.to_string(),
        KubeconfigError::CurrentContextNotSet => "it has no current context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("it has no context {name}"),
        KubeconfigError::KindMismatch
        | KubeconfigError::ApiVersionMismatch
        | KubeconfigError::LoadClusterOfContext(_)
        | KubeconfigError::FindPath
        | KubeconfigError::MissingClusterUrl
        | KubeconfigError::ParseClusterUrl(_)
        | KubeconfigError::ParseProxyUrl(_)
        | KubeconfigError::LoadCertificateAuthority(_)
        | KubeconfigError::LoadClientCertificate(_)
        | KubeconfigError::LoadClientKey(_)
        | KubeconfigError::ParseCertificates(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn args(path: PathBuf, context: Option<&str>) -> ClusterArgs {
        ClusterArgs { kubeconfig: Some(path), context: context.map(str::to_owned) }
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_is_named() {
        let error = args("/nowhere/config".into(), Some("lab")).access().await.expect_err("there is none");
        let text = error.to_string();
        assert!(
            text.starts_with("kubeconfig /nowhere/config, context lab: No such file or directory"),
            "{text}"
        );
        assert!(text.contains("--kubeconfig"), "{text}");
    }

    #[test]
    fn names_that_would_change_a_request_are_refused() {
        for name in ["desk-17", "a", "desk.17"] {
            assert_eq!(object_name(name).as_deref(), Ok(name));
        }
        for name in
            ["", "a b", "Desk", "-a", "a-", "..", "a?watch=true", "a%2e", "x/y", "ä", &"a".repeat(254)]
        {
            assert!(object_name(name).is_err(), "{name}");
        }
        assert!(object_name("shop/desk").is_err_and(|words| words.contains("-n")));
    }

    #[test]
    fn flags_are_repeated_as_a_shell_reads_them() {
        assert_eq!(ClusterArgs::default().flags(), "");
        let flags = args("/tmp/my config".into(), Some("admin@lab")).flags();
        assert_eq!(flags, "--kubeconfig '/tmp/my config' --context admin@lab");
    }

    #[test]
    fn a_refusal_has_the_message_of_the_server() {
        let status = kube::core::Status::failure("pods is forbidden", "Forbidden").with_code(403);
        let error = anyhow::Error::new(kube::Error::Api(status.boxed())).context("get Pod shop/web-0");
        assert_eq!(with_causes(error.as_ref()), "get Pod shop/web-0: pods is forbidden (403)");
    }

    #[tokio::test]
    async fn nothing_of_a_malformed_kubeconfig_is_repeated() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(b"users: [{name: a, user: {token: s3cret]").expect("written");
        let error = args(file.path().to_owned(), None).access().await.expect_err("it is malformed");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[tokio::test]
    async fn a_password_in_the_address_is_not_repeated() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: lab\n\
                    clusters: [{name: a, cluster: {server: 'https://bob:s3cret@192.0.2.1:6443/k8s'}}]\n\
                    users: [{name: a, user: {}}]\ncontexts: [{name: lab, context: {cluster: a, user: a}}]\n";
        file.write_all(text.as_bytes()).expect("written");
        let access = args(file.path().to_owned(), None).access().await.expect("it is usable");
        let failure = access.failure(&std::io::Error::other("connection refused"));
        assert!(failure.contains("server https://192.0.2.1:6443/k8s)"), "{failure}");
        assert!(!failure.contains("s3cret"), "{failure}");
    }

    #[tokio::test]
    async fn the_namespace_of_the_context_is_the_default() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let text = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://192.0.2.1:6443'}}]\n\
                    users: [{name: a, user: {token: s3cret}}]\n\
                    contexts: [{name: lab, context: {cluster: a, user: a, namespace: desks}}]\n";
        file.write_all(text.as_bytes()).expect("written");
        let access = args(file.path().to_owned(), Some("lab")).access().await.expect("it is usable");
        assert_eq!(access.default_namespace, "desks");
        let unknown = args(file.path().to_owned(), Some("prod")).access().await.expect_err("no such context");
        assert!(unknown.to_string().contains("context prod: it has no context prod"), "{unknown}");
        let refused = kube::Error::Service("failed to connect".into());
        let failure = access.failure(&refused);
        assert!(failure.ends_with("): failed to connect"), "{failure}");
        assert!(access.description.contains("https://192.0.2.1:6443"), "{}", access.description);
        assert!(!access.description.contains("s3cret"));
        let failure = access.failure(&std::io::Error::other("connection refused"));
        assert!(failure.contains("context lab, server https://192.0.2.1:6443"), "{failure}");
        assert!(failure.ends_with("connection refused"), "{failure}");
        let scope = |namespace: Option<&str>, all_namespaces| {
            ScopeArgs { namespace: namespace.map(str::to_owned), all_namespaces }.resolve(&access)
        };
        assert_eq!(scope(None, false).as_deref(), Some("desks"));
        assert_eq!(scope(Some("shop"), false).as_deref(), Some("shop"));
        assert_eq!(scope(None, true), None);
        assert_eq!(NamespaceArgs::default().resolve(&access), "desks");
    }
}
