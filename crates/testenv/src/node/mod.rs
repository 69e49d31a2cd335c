//! A real node: kubelet and containerd as plain processes of this machine, in their own namespaces and cgroup, joined
//! to the workload cluster.
//!
//! The node shares the machine's pid and network namespaces, because the kernel sends process events only there.
//! Therefore only one can run per machine at a time, plus another one for pods that do not use process events.
//! Everything is removed when the test program ends, however it ends: the guard ends the processes that were started
//! here, and the janitor removes everything in the node's cgroup, which contains the containers, and the bridge of the
//! pod network.

mod binaries;
mod configuration;
mod namespaces;
mod support;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

pub use binaries::NodeBinaries;
pub use five_spot_image::Image;
pub use support::{Unsupported, check};

use crate::cluster::Side;
use crate::control_plane::ControlPlane;
use crate::kubeconfig::Credentials;
use crate::pki::PkiError;
use crate::process::{Process, log_tail};
use crate::wait::{self, WaitError};
use crate::{link, ports, run_directory};
use configuration::{CONTAINERD_SOCKET, KubeletSettings, PAUSE_IMAGE, PodNetwork};
use namespaces::Namespaces;

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

/// A container runtime on this machine, and a kubelet that joins and leaves the workload cluster.
pub struct HostNode {
    label: &'static str,
    network: PodNetwork,
    binaries: NodeBinaries,
    directory: PathBuf,
    run_directory: PathBuf,
    machine_id: String,
    bridge: String,
    containerd: Mutex<Process>,
    kubelet: Mutex<Option<Process>>,
    namespaces: Namespaces,
    // Released last: from then on, another node can start.
    machine: Arc<File>,
}

impl HostNode {
    /// Starts the container runtime. Waits while another node of this kind is running on this machine.
    pub async fn start(control_plane: &ControlPlane, binaries: NodeBinaries) -> Result<Self, NodeError> {
        check()?;
        let missing = binaries.missing();
        if !missing.is_empty() {
            return Err(NodeError::NotBuilt(missing));
        }
        let machine = Arc::new(lock_machine().await?);
        Self::start_on(control_plane, binaries, "node", 0, machine).await
    }

    /// Starts a second container runtime beside this one, for another kubelet.
    pub async fn start_beside(&self, control_plane: &ControlPlane) -> Result<Self, NodeError> {
        Self::start_on(control_plane, self.binaries.clone(), "second-node", 1, self.machine.clone()).await
    }

    async fn start_on(
        control_plane: &ControlPlane,
        binaries: NodeBinaries,
        label: &'static str,
        number: u8,
        machine: Arc<File>,
    ) -> Result<Self, NodeError> {
        let network = PodNetwork::number(number);
        let run_directory = control_plane.directory().to_path_buf();
        let directory = run_directory.join(label);
        let machine_id = random_machine_id()?;
        write(&directory.join("etc/machine-id"), &format!("{machine_id}\n"))?;
        write(&directory.join("etc/resolv.conf"), "")?;
        let bridge = format!("5spot{}-{number}", std::process::id());
        run_directory::record_link(&run_directory, &bridge)
            .and_then(|()| link::create_bridge(&bridge, &network.bridge_address()))
            .map_err(io_error("make the bridge of the pod network"))?;
        let plugins = directory.join("network");
        write(&plugins.join("5spot.conflist"), &configuration::pod_network(&bridge, network).to_string())?;
        let settings = directory.join("containerd.toml");
        write(&settings, &configuration::containerd(&binaries, &plugins))?;
        let path = search_path(&binaries);
        let namespaces = Namespaces::create(&run_directory, &directory, label, path).await?;
        let arguments = vec!["--config".into(), settings.into()];
        let spec = namespaces.spec(&format!("{label}-containerd"), &binaries.containerd, arguments);
        let containerd = Process::start(&spec).map_err(io_error("start containerd"))?;
        let node = Self {
            label,
            network,
            binaries,
            directory,
            run_directory,
            machine_id,
            bridge,
            containerd: Mutex::new(containerd),
            kubelet: Mutex::new(None),
            namespaces,
            machine,
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
        let kubeconfig = self.directory.join("kubelet.kubeconfig");
        write(&kubeconfig, &cluster.kubeconfig_for(&Credentials::Certificate(identity), None))?;
        let certificate_authority = self.directory.join("ca.crt");
        write(&certificate_authority, &control_plane.authority().identity().certificate)?;
        let settings = configuration::kubelet(&KubeletSettings {
            certificate_authority: &certificate_authority,
            resolv_conf: &self.directory.join("etc/resolv.conf"),
            provider_id,
            address: &self.address(),
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
            flag("node-ip", self.address().into()),
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

    /// Stops the kubelet, as if the machine were switched off. Its Node and its containers stay.
    pub async fn leave(&self) {
        if let Some(mut kubelet) = self.kubelet.lock().await.take() {
            kubelet.kill().await;
        }
    }

    /// Stops and removes everything of the node. Stopping the control plane has the same effect.
    pub async fn stop(self) -> Result<(), NodeError> {
        self.leave().await;
        self.containerd.lock().await.kill().await;
        self.namespaces.remove().await.map_err(io_error("end the containers"))?;
        link::delete(&self.bridge).map_err(io_error("delete the bridge of the pod network"))
    }

    /// The machine id that the kubelet reports and that pods see in `/etc/machine-id`.
    pub fn machine_id(&self) -> &str {
        &self.machine_id
    }

    /// The address of the machine in the pod network.
    pub fn address(&self) -> String {
        self.network.node_address()
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
