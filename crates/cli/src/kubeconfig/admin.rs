//! The administrator of the workload cluster, who creates the identity.

use super::KubeconfigFailure;
use super::args::CreateArgs;
use super::cause::cause;
use k8s_openapi::api::core::v1::Secret;
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Config};

/// The workload cluster with an administrator's rights, and how others reach it.
pub(super) struct Admin {
    pub(super) client: Client,
    pub(super) server: String,
    /// Base64, as in kubeconfigs. Absent if the certificate is of a known authority.
    pub(super) certificate_authority: Option<String>,
    /// The name to verify the certificate by, if it is not that of the server.
    pub(super) tls_server_name: Option<String>,
}

/// Reads the file that the flags name, or the Secret of Cluster API.
pub(super) async fn find(
    args: &CreateArgs,
    management: &Client,
    namespace: &str,
) -> Result<Admin, KubeconfigFailure> {
    let (kubeconfig, origin) = match &args.workload_kubeconfig {
        Some(path) => (from_file(path)?, path.display().to_string()),
        None => from_secret(management, namespace, &args.cluster).await?,
    };
    let broken = |cause: String| KubeconfigFailure {
        step: format!("use the kubeconfig of the workload cluster in {origin}"),
        cause,
        fix: "Choose another with --workload-kubeconfig and --workload-context".into(),
    };
    let cluster = chosen(&kubeconfig, args.workload_context.as_deref()).map_err(broken)?;
    let server = args.server.clone().or_else(|| cluster.server.clone());
    let certificate_authority = authority(&cluster).map_err(broken)?;
    let options =
        KubeConfigOptions { context: args.workload_context.clone(), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = Client::try_from(config.map_err(|error| broken(error.to_string()))?)
        .map_err(|error| broken(error.to_string()))?;
    Ok(Admin {
        client,
        server: server.ok_or_else(|| broken("it names no server".into()))?,
        certificate_authority,
        tls_server_name: cluster.tls_server_name,
    })
}

fn from_file(path: &std::path::Path) -> Result<Kubeconfig, KubeconfigFailure> {
    Kubeconfig::read_from(path).map_err(|error| KubeconfigFailure {
        step: format!("read {}", path.display()),
        cause: if let KubeconfigError::ReadConfig(cause, _) = error {
            cause.to_string()
        } else {
            // The message of a parser shows the lines around a mistake, which may contain a credential.
            "it is not a kubeconfig".into()
        },
        fix: "Name an administrator's kubeconfig of the workload cluster".into(),
    })
}

async fn from_secret(
    management: &Client,
    namespace: &str,
    cluster: &str,
) -> Result<(Kubeconfig, String), KubeconfigFailure> {
    let name = format!("{cluster}-kubeconfig");
    let failure = |cause: String| KubeconfigFailure {
        step: format!("read the Secret {namespace}/{name} of Cluster API"),
        cause,
        fix: "Name an administrator's kubeconfig of the workload cluster with --workload-kubeconfig".into(),
    };
    let secrets: Api<Secret> = Api::namespaced(management.clone(), namespace);
    let secret = secrets.get(&name).await.map_err(|error| {
        let failed = failure(cause(&error));
        if matches!(error, kube::Error::Api(_)) {
            return failed;
        }
        // Another kubeconfig does not help if the management cluster does not respond.
        KubeconfigFailure {
            fix: "Check that the management cluster can be reached from here, and try again".into(),
            ..failed
        }
    })?;
    let value = secret.data.unwrap_or_default().remove("value");
    let value = value.ok_or_else(|| failure("it has no key value".into()))?;
    let text = String::from_utf8(value.0).map_err(|_| failure("it is not text".into()))?;
    let kubeconfig = Kubeconfig::from_yaml(&text).map_err(|_| failure("it is not a kubeconfig".into()))?;
    Ok((kubeconfig, format!("the Secret {namespace}/{name}")))
}

/// The cluster of a context.
fn chosen(kubeconfig: &Kubeconfig, context: Option<&str>) -> Result<Cluster, String> {
    let name = context.or(kubeconfig.current_context.as_deref()).ok_or("it has no current context")?;
    let context = kubeconfig.contexts.iter().find(|one| one.name == name);
    let context = context.and_then(|one| one.context.as_ref());
    let context = context.ok_or_else(|| format!("it has no context {name}"))?;
    let cluster = kubeconfig.clusters.iter().find(|one| one.name == context.cluster);
    let cluster = cluster.and_then(|one| one.cluster.clone());
    cluster.ok_or_else(|| format!("it has no cluster {}", context.cluster))
}

/// The certificate authority, from wherever it is.
fn authority(cluster: &Cluster) -> Result<Option<String>, String> {
    use base64::Engine as _;
    match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => Ok(Some(data.clone())),
        (None, Some(path)) => {
            let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
            Ok(Some(base64::engine::general_purpose::STANDARD.encode(bytes)))
        }
        (None, None) => Ok(None),
    }
}
