//! The management cluster, found by the kubeconfig or by the service account of the pod.

use kube::Config;
use kube::config::{InClusterError, KubeConfigOptions, KubeconfigError};
use std::io::ErrorKind;

/// There is no cluster, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoCluster {
    /// Nothing names a cluster.
    #[error(
        "No cluster is configured: there is no kubeconfig, and the program does not run in a pod with a service \
         account. Set KUBECONFIG, or try `5spot sandbox`, which needs no cluster."
    )]
    NotConfigured { kubeconfig: Box<KubeconfigError>, in_cluster: Box<InClusterError> },
    /// A kubeconfig names one, and cannot be used. The pod's own cluster is no substitute: it may be another one.
    #[error(
        "The kubeconfig cannot be used. Correct KUBECONFIG, or try `5spot sandbox`, which needs no cluster."
    )]
    Unusable(#[source] Box<KubeconfigError>),
}

impl NoCluster {
    /// The details of the error.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::NotConfigured { kubeconfig, in_cluster } => {
                format!("{}; {in_cluster}", describe(kubeconfig))
            }
            Self::Unusable(kubeconfig) => describe(kubeconfig),
        }
    }
}

/// Describes an error without any content of the kubeconfig, which may be a credential.
fn describe(error: &KubeconfigError) -> String {
    // Its message shows the lines around the mistake.
    if matches!(error, KubeconfigError::Parse(_)) {
        return "failed to parse kubeconfig YAML".to_owned();
    }
    error.to_string()
}

/// Finds the cluster by the kubeconfig or, if there is none, by the service account of the pod.
pub(super) async fn find() -> Result<Config, NoCluster> {
    let mut config = match Config::from_kubeconfig(&KubeConfigOptions::default()).await {
        Ok(config) => config,
        Err(error) if is_absent(&error) => Config::incluster().map_err(|in_cluster| {
            NoCluster::NotConfigured { kubeconfig: Box::new(error), in_cluster: Box::new(in_cluster) }
        })?,
        Err(error) => return Err(NoCluster::Unusable(Box::new(error))),
    };
    config.apply_debug_overrides();
    Ok(config)
}

/// True if there is no kubeconfig, or one with nothing in it.
fn is_absent(error: &KubeconfigError) -> bool {
    let no_file = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
    matches!(error, KubeconfigError::FindPath | KubeconfigError::CurrentContextNotSet)
        || matches!(error, KubeconfigError::ReadConfig(error, _) if no_file(error))
}

/// The address of the API server, without anything else that a URL may contain, such as a password.
pub(super) fn address(config: &Config) -> String {
    let url = &config.cluster_url;
    let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme_str().unwrap_or("https"), url.host().unwrap_or_default())
}
