//! A real node: kubelet and containerd as plain processes of this machine, in their own namespaces and cgroup, joined
//! to a cluster. There are two kinds.
//!
//! A node on the host ([`RealNode::on_host`]) shares the machine's pid and network namespaces, because the kernel sends
//! process events only there. Therefore only one can run per machine at a time.
//!
//! An isolated node ([`RealNode::isolated`]) has pid and network namespaces of its own. Several can run at the same time, and
//! their agents see their own processes only, by polling. Its pods find the API server at the address that the kubelet tells
//! them, as in every cluster: it is an address of the node, and what arrives there is passed to the API server of the machine.
//! A pair of interfaces connects the node to the machine, so that the API server reaches the kubelet.
//!
//! Everything is removed when the test program ends, however it ends: the guard ends the processes that were started
//! here, and the janitor removes everything in the node's cgroup, which contains the containers, and the interfaces of the
//! machine.

mod binaries;
mod configuration;
mod namespaces;
mod network;
mod support;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

pub use binaries::NodeBinaries;
pub use five_spot_image::Image;
pub use support::{Unsupported, check};

use crate::cluster::{Cluster, Side};
use crate::control_plane::ControlPlane;
use crate::kubeconfig::Credentials;
use crate::pki::PkiError;
use crate::ports;
use crate::process::{Process, log_tail};
use crate::proxy::Proxy;
use crate::wait::{self, WaitError};
use configuration::{CONTAINERD_SOCKET, KubeletSettings, PAUSE_IMAGE};
use namespaces::Namespaces;
use network::{Network, SERVICE};

/// The variable that skips the tests that need a real node, for machines that cannot run one.
pub const WITHOUT_NODE_VARIABLE: &str = "FIVE_SPOT_E2E_WITHOUT_NODE";

/// Returns true if the tests that need a real node are disabled.
pub fn is_left_out() -> bool {
    std::env::var_os(WITHOUT_NODE_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// The start timeout: a start takes a second, and longer during a build on the same machine.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// The polling interval: there is no event for a new socket.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// The number of log lines in an error.
const LOG_LINES: usize = 40;

/// The reason why there is no node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The machine cannot run one.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The programs have not been built.
    #[error("{} programs of the node are missing, {} among them: run `cargo xtask e2e`",
        .0.len(), .0.first().map(|path| path.display().to_string()).unwrap_or_default())]
    NotBuilt(Vec<PathBuf>),
    /// Certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The node never became ready.
    #[error("{source}; the end of the kubelet's log:\n{log}")]
    NotReady {
        /// The expected state.
        source: WaitError,
        /// The last lines of the log.
        log: String,
    },
    /// A file operation or the start of a process failed.
    #[error("failed to {action}: {source}")]
    Io {
        /// The attempted operation.
        action: String,
        /// The cause.
        source: io::Error,
    },
    /// A component ended or did not become ready.
    #[error("{component} {what}; the end of its log:\n{log}")]
    Component {
        /// Its name.
        component: &'static str,
        /// The cause.
        what: String,
        /// The last lines of its log.
        log: String,
    },
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With the processes and the network of the machine.
    Host,
    /// With processes and a network of its own.
    Isolated,
}

impl Kind {
    /// Its name for the script that prepares the namespaces.
    fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Isolated => "isolated",
        }
    }
}

/// A container runtime on this machine, and a kubelet that joins and leaves a cluster.
pub struct RealNode {
    kind: Kind,
    label: String,
    network: Network,
    binaries: NodeBinaries,
    directory: PathBuf,
    run_directory: PathBuf,
    machine_id: String,
    containerd: Mutex<Process>,
    kubelet: Mutex<Option<Process>>,
    /// The address of the API server in an isolated node.
    service: Mutex<Option<Proxy>>,
    namespaces: Namespaces,
    // Released last: from then on, another node can have the place.
    _place: File,
}

impl RealNode {
    /// Starts the container runtime of a node on the host. Waits while another one is running on this machine.
    pub async fn on_host(control_plane: &ControlPlane, binaries: NodeBinaries) -> Result<Self, NodeError> {
        check()?;
        let place = lock_machine().await?;
        Self::start(control_plane, binaries, Kind::Host, 0, place).await
    }

    /// Starts the container runtime of an isolated node.
    pub async fn isolated(control_plane: &ControlPlane, binaries: NodeBinaries) -> Result<Self, NodeError> {
        check()?;
        support::check_isolated()?;
        let (number, place) = lock_network()?;
        Self::start(control_plane, binaries, Kind::Isolated, number, place).await
    }

    async fn start(
        control_plane: &ControlPlane,
        binaries: NodeBinaries,
        kind: Kind,
        number: u8,
        place: File,
    ) -> Result<Self, NodeError> {
        let missing = binaries.missing();
        if !missing.is_empty() {
            return Err(NodeError::NotBuilt(missing));
        }
        let label = match kind {
            Kind::Host => "node".to_owned(),
            Kind::Isolated => format!("isolated-node-{number}"),
        };
        let network = Network::new(kind, number);
        let run_directory = control_plane.directory().to_path_buf();
        let directory = run_directory.join(&label);
        // What a former node in this place has left.
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error("remove the files of the former node")(error));
            }
            Ok(()) | Err(_) => {}
        }
        let machine_id = random_machine_id()?;
        write(&directory.join("etc/machine-id"), &format!("{machine_id}\n"))?;
        write(&directory.join("etc/resolv.conf"), "")?;
        let plugins = directory.join("network");
        write(&plugins.join("5spot.conflist"), &network.pods().to_string())?;
        let settings = directory.join("containerd.toml");
        write(&settings, &configuration::containerd(&binaries, &plugins))?;
        let path = search_path(&binaries);
        let namespaces = Namespaces::create(kind, &run_directory, &directory, &label, path).await?;
        network
            .connect(&run_directory, namespaces.holder())
            .map_err(io_error("make the interfaces of the node"))?;
        let arguments = vec!["--config".into(), settings.into()];
        let spec = namespaces.spec(&format!("{label}-containerd"), &binaries.containerd, arguments);
        let containerd = Process::start(&spec).map_err(io_error("start containerd"))?;
        let node = Self {
            kind,
            label,
            network,
            binaries,
            directory,
            run_directory,
            machine_id,
            containerd: Mutex::new(containerd),
            kubelet: Mutex::new(None),
            service: Mutex::new(None),
            namespaces,
            _place: place,
        };
        node.until_containerd_answers().await?;
        let pause = Image::new(PAUSE_IMAGE, &["/bin/pause"]).program("bin/pause", &node.binaries.pause);
        node.import(pause.map_err(io_error("read the pause program"))?).await?;
        Ok(node)
    }

    /// Imports an image, so that pods can use it by its name with `imagePullPolicy: Never`.
    pub async fn import(&self, image: Image) -> Result<(), NodeError> {
        let archive = self.directory.join("image.tar");
        fs::write(&archive, image.archive()).map_err(io_error("write an image"))?;
        self.import_archive(&archive).await
    }

    /// Imports the image of an OCI archive.
    pub async fn import_archive(&self, archive: &Path) -> Result<(), NodeError> {
        self.ctr(&["import".as_ref(), archive.as_os_str()]).await
    }

    /// Gives an image another name. Both are full names, such as `docker.io/library/x:latest`.
    pub async fn tag(&self, name: &str, other: &str) -> Result<(), NodeError> {
        self.ctr(&["tag".as_ref(), name.as_ref(), other.as_ref()]).await
    }

    /// Runs an image command of containerd.
    async fn ctr(&self, command: &[&OsStr]) -> Result<(), NodeError> {
        let output = tokio::process::Command::new(&self.binaries.ctr)
            .arg("--address")
            .arg(self.containerd_socket())
            .args(["--namespace", "k8s.io", "images"])
            .args(command)
            .kill_on_drop(true)
            .output()
            .await
            .map_err(io_error("run ctr"))?;
        if output.status.success() {
            return Ok(());
        }
        let what = format!("did not do {command:?}: {}", String::from_utf8_lossy(&output.stderr));
        Err(self.failed("containerd", what))
    }

    /// Starts the kubelet as the node `name` of the workload cluster with this provider id, and waits until
    /// the Node is Ready. A running kubelet is stopped first; the new one stops the containers of its pods.
    pub async fn join(
        &self,
        control_plane: &ControlPlane,
        name: &str,
        provider_id: &str,
    ) -> Result<Node, NodeError> {
        self.join_cluster(control_plane, Side::Workload, name, provider_id).await
    }

    /// The same for either cluster.
    pub async fn join_cluster(
        &self,
        control_plane: &ControlPlane,
        side: Side,
        name: &str,
        provider_id: &str,
    ) -> Result<Node, NodeError> {
        self.leave().await;
        let [port, health_port] = ports::free().map_err(io_error("find free ports"))?;
        let identity = control_plane.authority().client(&format!("system:node:{name}"), &["system:nodes"])?;
        let cluster = control_plane.cluster(side);
        let server = self.serve_api(cluster).await?;
        let kubeconfig = self.directory.join("kubelet.kubeconfig");
        let credentials = Credentials::Certificate(identity);
        write(&kubeconfig, &cluster.kubeconfig_for(&credentials, server.as_deref()))?;
        let certificate_authority = self.directory.join("ca.crt");
        write(&certificate_authority, &control_plane.authority().identity().certificate)?;
        let settings = configuration::kubelet(&KubeletSettings {
            certificate_authority: &certificate_authority,
            resolv_conf: &self.directory.join("etc/resolv.conf"),
            provider_id,
            address: &self.address().to_string(),
            port,
            health_port,
        });
        let config = self.directory.join("kubelet.json");
        write(&config, &settings.to_string())?;
        let flag = |name: &str, value: OsString| {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(value);
            flag
        };
        let arguments = vec![
            flag("config", config.into()),
            flag("kubeconfig", kubeconfig.into()),
            flag("hostname-override", name.into()),
            flag("node-ip", self.address().to_string().into()),
            flag("cert-dir", self.directory.join("kubelet-pki").into()),
        ];
        let log = format!("{}-kubelet", self.label);
        let spec = self.namespaces.spec(&log, &self.binaries.kubelet, arguments);
        let kubelet = Process::start(&spec).map_err(io_error("start the kubelet"))?;
        let mut exit = kubelet.exit_signal();
        *self.kubelet.lock().await = Some(kubelet);
        let nodes: Api<Node> = Api::all(cluster.admin());
        let ready = wait::until_present(&nodes, name, "to be Ready", READY_WITHIN, is_ready);
        tokio::select! {
            ready = ready => ready.map_err(|source| NodeError::NotReady { source, log: self.log("kubelet") }),
            _ = exit.wait_for(Option::is_some) => {
                Err(self.failed("kubelet", "ended before the node was ready".into()))
            }
        }
    }

    /// Passes connections to the address of the API server in an isolated node to this cluster. Returns that address; `None` on
    /// the host, which reaches the API server itself.
    async fn serve_api(&self, cluster: &Cluster) -> Result<Option<String>, NodeError> {
        if self.kind == Kind::Host {
            return Ok(None);
        }
        let mut service = self.service.lock().await;
        if let Some(former) = service.take() {
            former.close().await;
        }
        let port = cluster.server().rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| io::Error::other(format!("no port in {}", cluster.server())));
        let proxy = port.and_then(|port| Proxy::start_in(self.namespaces.holder(), SERVICE, port));
        *service = Some(proxy.map_err(io_error("listen in the network of the node"))?);
        Ok(Some(format!("https://{SERVICE}")))
    }

    /// Starts a program on the node, outside of every pod. It ends with the node at the latest.
    pub fn run(&self, name: &str, program: &Path, arguments: Vec<OsString>) -> Result<Process, NodeError> {
        let spec = self.namespaces.spec(&format!("{}-{name}", self.label), program, arguments);
        Process::start(&spec).map_err(io_error("start a program on the node"))
    }

    /// Stops the kubelet, as if the machine were switched off. Its Node and its containers stay.
    pub async fn leave(&self) {
        if let Some(mut kubelet) = self.kubelet.lock().await.take() {
            self.namespaces.kill(&mut kubelet).await;
        }
    }

    /// Stops and removes everything of the node. Stopping the control plane has the same effect.
    pub async fn stop(self) -> Result<(), NodeError> {
        self.leave().await;
        self.namespaces.kill(&mut *self.containerd.lock().await).await;
        self.namespaces.remove().await.map_err(io_error("end the containers"))?;
        self.network.disconnect().map_err(io_error("delete the interfaces of the node"))
    }

    /// The machine id that the kubelet reports and that pods see in `/etc/machine-id`.
    pub fn machine_id(&self) -> &str {
        &self.machine_id
    }

    /// The address of the node.
    pub fn address(&self) -> Ipv4Addr {
        self.network.node_address()
    }

    /// The address of this machine for the node and its pods.
    pub fn machine_address(&self) -> Ipv4Addr {
        self.network.machine_address()
    }

    /// The directory of the kubelet, as seen from outside the namespaces.
    pub fn kubelet_directory(&self) -> PathBuf {
        self.directory.join("var/lib/kubelet")
    }

    /// The last lines of the logs of kubelet and containerd.
    pub fn logs(&self) -> String {
        let logs = ["kubelet", "containerd"];
        let logs = logs.map(|name| format!("---- {}-{name}\n{}", self.label, self.log(name)));
        logs.join("\n")
    }

    fn log(&self, component: &str) -> String {
        log_tail(&self.run_directory, &format!("{}-{component}", self.label), LOG_LINES).join("\n")
    }

    fn failed(&self, component: &'static str, what: String) -> NodeError {
        NodeError::Component { component, what, log: self.log(component) }
    }

    /// The socket as seen from outside the namespaces.
    fn containerd_socket(&self) -> PathBuf {
        self.directory.join(CONTAINERD_SOCKET.trim_start_matches('/'))
    }

    async fn until_containerd_answers(&self) -> Result<(), NodeError> {
        let socket = self.containerd_socket();
        let answers = async {
            while UnixStream::connect(&socket).await.is_err() {
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        let mut exit = self.containerd.lock().await.exit_signal();
        let failed = |what: &str| self.failed("containerd", what.into());
        tokio::select! {
            () = answers => Ok(()),
            _ = exit.wait_for(Option::is_some) => Err(failed("ended")),
            () = tokio::time::sleep(READY_WITHIN) => Err(failed("did not answer in time")),
        }
    }
}

/// Returns true if a Node reports that it is Ready.
fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

/// Process events cover the whole machine, so two nodes of this kind would see each other's programs.
async fn lock_machine() -> Result<File, NodeError> {
    let path = std::env::temp_dir().join("5spot-host-node.lock");
    let lock = tokio::task::spawn_blocking(move || {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    });
    let file = lock.await.map_err(io::Error::other).and_then(std::convert::identity);
    file.map_err(io_error("wait for the other node of this machine"))
}

/// Finds a number that no isolated node on this machine has, and holds it.
fn lock_network() -> Result<(u8, File), NodeError> {
    let free = (0..=u8::MAX).find_map(|number| {
        let path = std::env::temp_dir().join(format!("5spot-isolated-node-{number}.lock"));
        let file = File::options().create(true).truncate(false).write(true).open(path).ok()?;
        file.try_lock().is_ok().then_some((number, file))
    });
    free.ok_or_else(|| io_error("find a network")(io::Error::other("256 isolated nodes are running")))
}

fn random_machine_id() -> Result<String, NodeError> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| io_error("make a machine id")(error.into()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// containerd finds its shim on the search path, and all programs find the commands of the system there.
fn search_path(binaries: &NodeBinaries) -> OsString {
    let mut path = binaries.containerd.parent().unwrap_or(Path::new("/")).as_os_str().to_owned();
    path.push(":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    path
}

fn io_error(action: &'static str) -> impl Fn(io::Error) -> NodeError {
    move |source| NodeError::Io { action: action.into(), source }
}

fn write(path: &Path, text: &str) -> Result<(), NodeError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .map_err(|source| NodeError::Io { action: format!("write {}", path.display()), source })
}
