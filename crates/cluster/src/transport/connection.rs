//! Connections to clusters: to the management cluster by the configuration of the program, to a workload cluster by a
//! kubeconfig.

use crate::transport::credential::CredentialExpiries;
use crate::transport::http::{
    AddressRules, Cidr, ConnectRules, NamespaceShare, NamespaceShares, RequestObserver, Transport, WriteGuard,
};
use crate::transport::key::ObjectKey;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use jiff::Timestamp;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tower::util::BoxCloneSyncService;

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A service that answers requests, in this process or elsewhere.
pub type Raw = BoxCloneSyncService<
    Request<Body>,
    Response<UnsyncBoxBody<bytes::Bytes, tower::BoxError>>,
    tower::BoxError,
>;

/// The destination of a kubeconfig.
pub enum Route {
    /// To a server on the network.
    Network(Box<Config>),
    /// To a service in this process.
    Embedded(Raw),
}

/// The error of a kubeconfig that leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// It cannot be understood. What is wrong with it is not repeated: kube shows the lines around the mistake, and a
    /// credential may be in them.
    #[error("the kubeconfig names a context, cluster, user or certificate that is missing or cannot be read")]
    Kubeconfig(#[source] kube::config::KubeconfigError),
    /// A client cannot be made of it.
    #[error("failed to create a client: {0}")]
    Client(#[from] kube::Error),
    /// It asks for something that is not permitted.
    #[error("{0}")]
    Refused(&'static str),
    /// There is no cluster at that address.
    #[error("no cluster answers at {0}")]
    Unknown(String),
}

/// The rules for the kubeconfigs of workload clusters, which tenants write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadRules {
    /// Networks that are permitted although workload clusters are not in them as a rule, such as loopback.
    pub allowed: Vec<Cidr>,
    /// True if a kubeconfig may switch off the verification of the server's certificate.
    pub allow_insecure: bool,
    /// The most connections to all workload clusters together. Each is a file descriptor.
    pub connections: usize,
}

impl Default for WorkloadRules {
    /// The defaults fit into the 1,024 descriptors that most systems give a process.
    fn default() -> Self {
        Self { allowed: Vec::new(), allow_insecure: false, connections: 768 }
    }
}

/// Finds the way that a kubeconfig describes.
pub trait Dial: Send + Sync + 'static {
    /// The way to the cluster.
    fn dial(&self, kubeconfig: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>>;

    /// The addresses and the number of connections that servers on the network may have.
    fn reach(&self) -> ConnectRules {
        let connections = Arc::new(Semaphore::new(WorkloadRules::default().connections));
        ConnectRules::workload(AddressRules::Workload { allowed: Arc::default() }, connections)
    }
}

/// Stands for no proxy. It is never connected to.
const NO_PROXY: &str = "http://none.invalid";

/// Every cluster is on the network.
struct Network {
    rules: WorkloadRules,
    connections: Arc<Semaphore>,
}

impl Dial for Network {
    fn dial(&self, mut kubeconfig: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(async {
            for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
                // An empty value counts as absent, here and in kube.
                if cluster.proxy_url.as_ref().is_some_and(|proxy| !proxy.is_empty()) {
                    return Err(DialError::Refused("it uses proxy-url, which is refused"));
                }
                // Without a proxy of its own, kube would read one from the environment of this process.
                cluster.proxy_url = Some(NO_PROXY.to_owned());
            }
            let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(DialError::Kubeconfig)?;
            config.proxy_url = None;
            self.check(&config)?;
            Ok(Route::Network(Box::new(config)))
        })
    }

    fn reach(&self) -> ConnectRules {
        ConnectRules::workload(self.addresses(), self.connections.clone())
    }
}

impl Network {
    fn new(rules: WorkloadRules) -> Self {
        Self { connections: Arc::new(Semaphore::new(rules.connections)), rules }
    }

    fn addresses(&self) -> AddressRules {
        AddressRules::Workload { allowed: self.rules.allowed.as_slice().into() }
    }

    /// Checks of a kubeconfig for a server on the network: nobody on the way may read the credentials or answer in the
    /// cluster's place.
    fn check(&self, config: &Config) -> Result<(), DialError> {
        let host = config.cluster_url.host().unwrap_or_default().trim_matches(['[', ']']);
        let address: Option<IpAddr> = host.parse().ok();
        if address.is_some_and(|address| !self.addresses().permits(address)) {
            return Err(DialError::Refused(
                "the address of its server is not allowed for workload clusters; to allow it, start the \
                 controller with --workload-cidr",
            ));
        }
        // What the operator has named on this machine is a sandbox: nothing of it leaves the machine.
        let is_here = address.is_some_and(|address| address.to_canonical().is_loopback());
        if config.cluster_url.scheme_str() != Some("https") && !is_here {
            return Err(DialError::Refused(
                "its server does not use https, which is refused: the credentials would be sent unencrypted",
            ));
        }
        if config.accept_invalid_certs && !self.rules.allow_insecure {
            return Err(DialError::Refused(
                "it uses insecure-skip-tls-verify, which is refused: give certificate-authority-data, or start the \
                 controller with --allow-insecure-workloads",
            ));
        }
        Ok(())
    }
}

type MakeClient = Arc<dyn Fn(&Transport) -> Result<Client, kube::Error> + Send + Sync>;

/// The management cluster, the way to workload clusters, the clock, and the transport of all requests.
#[derive(Clone)]
pub struct Connection {
    management: MakeClient,
    dial: Arc<dyn Dial>,
    now: Now,
    transport: Transport,
    namespace_shares: NamespaceShares,
    credential_expiries: CredentialExpiries,
}

impl Connection {
    /// Clusters on the network and the wall clock.
    pub fn network(config: Config, program: &str) -> Self {
        Self {
            management: Arc::new(move |transport| transport.client_for(&config, ConnectRules::management())),
            dial: Arc::new(Network::new(WorkloadRules::default())),
            now: Arc::new(Timestamp::now),
            transport: Transport::new(program).with_clock(Arc::new(Timestamp::now)),
            namespace_shares: NamespaceShares::new(WorkloadRules::default().connections),
            credential_expiries: CredentialExpiries::default(),
        }
    }

    /// A management cluster in this process, with a clock of its own.
    pub fn embedded(management: Raw, dial: Arc<dyn Dial>, now: Now, program: &str) -> Self {
        Self {
            management: Arc::new(move |transport| Ok(transport.client_over(management.clone()))),
            dial,
            transport: Transport::new(program).with_clock(now.clone()),
            now,
            namespace_shares: NamespaceShares::new(WorkloadRules::default().connections),
            credential_expiries: CredentialExpiries::default(),
        }
    }

    /// The same with other rules for the kubeconfigs of workload clusters on the network.
    #[must_use]
    pub fn with_workload_rules(self, rules: WorkloadRules) -> Self {
        let namespace_shares = NamespaceShares::new(rules.connections);
        Self { dial: Arc::new(Network::new(rules)), namespace_shares, ..self }
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(self, now: Now) -> Self {
        Self { now, ..self }
    }

    /// The same with an observer of every request.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn RequestObserver>) -> Self {
        Self { transport: self.transport.with_observer(observer), ..self }
    }

    /// The same with one more write guard.
    #[must_use]
    pub fn with_write_guard(self, guard: Arc<dyn WriteGuard>) -> Self {
        Self { transport: self.transport.with_write_guard(guard), ..self }
    }

    /// A client of the management cluster.
    pub fn management(&self) -> Result<Client, kube::Error> {
        (self.management)(&self.transport)
    }

    /// A client of the cluster that a kubeconfig leads to. `cluster` names it in log lines.
    pub async fn workload(&self, kubeconfig: Kubeconfig, cluster: &str) -> Result<Client, DialError> {
        let (transport, rules) = (self.transport.workload(cluster), self.dial.reach());
        self.client(kubeconfig, &transport, rules).await
    }

    /// A client of the cluster that the kubeconfig of a Secret leads to, within the share of its namespace.
    pub async fn workload_of(&self, secret: &ObjectKey, kubeconfig: Kubeconfig) -> Result<Client, DialError> {
        let namespace = self.namespace_shares.of(&secret.namespace);
        let rules = self.dial.reach().within(&namespace);
        let transport = self.transport.workload(&secret.to_string()).within(namespace);
        self.client(kubeconfig, &transport, rules).await
    }

    /// The share of the namespace of a Secret. It is the same for as long as there is a client of one of its clusters.
    pub(crate) fn namespace_share(&self, secret: &ObjectKey) -> Arc<NamespaceShare> {
        self.namespace_shares.of(&secret.namespace)
    }

    async fn client(
        &self,
        kubeconfig: Kubeconfig,
        transport: &Transport,
        rules: ConnectRules,
    ) -> Result<Client, DialError> {
        Ok(match self.dial.dial(kubeconfig).await? {
            Route::Network(config) => transport.client_for(&config, rules)?,
            Route::Embedded(service) => transport.client_over(service),
        })
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// The expiries of the credentials of workload clusters that are in use.
    pub const fn credential_expiries(&self) -> &CredentialExpiries {
        &self.credential_expiries
    }

    /// The transport, for the status of its watches.
    pub const fn transport(&self) -> &Transport {
        &self.transport
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("transport", &self.transport).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(server: &str, more: &str) -> Kubeconfig {
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: a, cluster: {{server: '{server}'{more}}}}}]\n\
             users: [{{name: a, user: {{token: s3cret}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             current-context: a\n"
        );
        Kubeconfig::from_yaml(&text).expect("a kubeconfig")
    }

    async fn dial(server: &str, more: &str, rules: WorkloadRules) -> Result<(), String> {
        let network = Network::new(rules);
        network.dial(kubeconfig(server, more)).await.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn check(server: &str, more: &str, word: &str) {
        let error = dial(server, more, WorkloadRules::default()).await.expect_err("it is refused");
        assert!(error.contains(word), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[tokio::test]
    async fn a_token_is_never_sent_in_clear() {
        check("http://10.0.0.1:6443", "", "not use https").await;
        check("http://cluster.example.com", "", "not use https").await;
    }

    #[tokio::test]
    async fn addresses_where_no_cluster_is_are_refused_at_once() {
        for server in ["https://127.0.0.1", "https://[fe80::1]:443", "https://[::ffff:169.254.169.254]"] {
            check(server, "", "--workload-cidr").await;
        }
        let rules =
            WorkloadRules { allowed: vec!["127.0.0.0/8".parse().unwrap()], ..WorkloadRules::default() };
        dial("https://127.0.0.1:6443", "", rules.clone()).await.expect("the operator has named it");
        dial("http://127.0.0.1:6443", "", rules.clone()).await.expect("a sandbox on this machine");
        dial("http://10.0.0.1:6443", "", rules).await.expect_err("that is another machine");
        dial("https://10.0.0.1:6443", "", WorkloadRules::default()).await.expect("a private network");
    }

    #[tokio::test]
    async fn a_proxy_of_the_environment_is_not_used() {
        const VARIABLE: &str = "HTTPS_PROXY";
        const PROXY: &str = "http://proxy-user:s3cret@proxy.example.com:3128";
        if std::env::var(VARIABLE).ok().as_deref() != Some(PROXY) {
            // The environment of this process is that of all tests: another process runs this one with the variable.
            let test = "transport::connection::tests::a_proxy_of_the_environment_is_not_used";
            let this = std::env::current_exe().expect("the path of this program");
            let mut child = std::process::Command::new(this);
            let output = child.args(["--exact", test]).env(VARIABLE, PROXY).output().expect("it runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            return;
        }
        let kubeconfig = kubeconfig("https://10.0.0.1:6443", "");
        let connection = Connection::network(Config::new("https://10.0.0.2".parse().expect("a URL")), "test");
        let secret = ObjectKey::new("shop", "demo");
        connection.workload_of(&secret, kubeconfig).await.expect("a client that connects by itself");
    }

    #[tokio::test]
    async fn another_server_name_does_not_hide_the_address() {
        check("https://127.0.0.1", ", tls-server-name: cluster.example.com", "--workload-cidr").await;
    }

    #[tokio::test]
    async fn certificates_are_verified_unless_the_operator_says_otherwise() {
        let insecure = ", insecure-skip-tls-verify: true";
        check("https://10.0.0.1", insecure, "--allow-insecure-workloads").await;
        let rules = WorkloadRules { allow_insecure: true, ..WorkloadRules::default() };
        dial("https://10.0.0.1", insecure, rules).await.expect("the operator has said so");
    }
}
