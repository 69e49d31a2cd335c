//! The flags of `5spot kubeconfig`.

use crate::answer::AnswerArgs;
use crate::cluster_access::{ClusterArgs, NamespaceArgs};
use std::path::PathBuf;

/// Give the controller access to a workload cluster
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Create(CreateArgs),
}

/// Create an identity for the controller in a workload cluster, and the Secret with its kubeconfig
///
/// Creates in the workload cluster the ServiceAccount 5spot-system/5spot-controller with the permissions in
/// deploy/rbac-nodes and a token; and in the management cluster the Secret with the kubeconfig, and a RoleBinding that lets
/// the controller read the Secrets of the namespace. Run it again before the token expires: everything is updated in place.
/// Afterwards name the Secret in spec.kubeconfigSecretRef of the ScheduledMachines.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are the help text")]
pub struct CreateArgs {
    /// The name of the cluster, as in spec.clusterName
    #[arg(value_name = "CLUSTER")]
    pub cluster: String,

    /// An administrator's kubeconfig of the workload cluster [default: the Secret CLUSTER-kubeconfig of Cluster API]
    #[arg(long, value_name = "FILE")]
    pub workload_kubeconfig: Option<PathBuf>,

    /// The context of that kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME", requires = "workload_kubeconfig")]
    pub workload_context: Option<String>,

    /// The address of the workload cluster for the controller [default: that in the administrator's kubeconfig]
    #[arg(long, value_name = "URL", value_parser = parse_server)]
    pub server: Option<String>,

    /// The lifetime of the token, such as 720h; the API server may shorten it
    #[arg(long, value_name = "HOURS", default_value = "2160h", value_parser = parse_hours)]
    pub duration: u32,

    /// The name of the Secret [default: CLUSTER-5spot-kubeconfig]
    #[arg(long, value_name = "NAME")]
    pub secret: Option<String>,

    #[command(flatten)]
    pub cluster_args: ClusterArgs,

    #[command(flatten)]
    pub namespace: NamespaceArgs,

    #[command(flatten)]
    pub answer: AnswerArgs,
}

impl CreateArgs {
    /// The name of the Secret.
    pub fn secret_name(&self) -> String {
        self.secret.clone().unwrap_or_else(|| format!("{}-5spot-kubeconfig", self.cluster))
    }

    /// Refuses the Secret that Cluster API itself uses: the controllers of the cluster would lose their kubeconfig.
    pub fn check(&self) -> Result<(), String> {
        let secret = self.secret_name();
        if secret == format!("{}-kubeconfig", self.cluster) {
            return Err(format!(
                "the Secret {secret} belongs to Cluster API, which needs it. Choose another name with --secret"
            ));
        }
        Ok(())
    }

    /// The lifetime of the token.
    pub fn duration_seconds(&self) -> i64 {
        i64::from(self.duration) * 3600
    }
}

fn parse_hours(text: &str) -> Result<u32, String> {
    let hours = text.strip_suffix('h').and_then(|hours| hours.parse().ok());
    match hours {
        Some(hours @ 1..=87_600) => Ok(hours),
        Some(_) | None => Err("a number of hours from 1h to 87600h is expected, such as 720h".to_owned()),
    }
}

fn parse_server(text: &str) -> Result<String, String> {
    let is_url = text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty());
    if is_url { Ok(text.trim_end_matches('/').to_owned()) } else { Err("https:// is expected".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    #[test]
    fn lifetimes_are_hours() {
        assert_eq!(parse_hours("720h"), Ok(720));
        for wrong in ["0h", "720", "30d", "", "h", "87601h", "-1h"] {
            assert!(parse_hours(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_secret_of_cluster_api_is_refused() {
        let check = |flags: &str| {
            let words = std::iter::once("create").chain(flags.split(' '));
            let args = CreateArgs::augment_args(clap::Command::new("create")).get_matches_from(words);
            CreateArgs::from_arg_matches(&args).expect("arguments").check()
        };
        assert_eq!(check("edge"), Ok(()));
        assert_eq!(check("edge --secret nodes"), Ok(()));
        let refused = check("edge --secret edge-kubeconfig").expect_err("the Secret of Cluster API");
        assert!(refused.contains("edge-kubeconfig belongs to Cluster API"), "{refused}");
    }

    #[test]
    fn servers_are_https() {
        assert_eq!(parse_server("https://api.example:6443/"), Ok("https://api.example:6443".to_owned()));
        for wrong in ["http://api.example", "api.example", "https://"] {
            assert!(parse_server(wrong).is_err(), "{wrong}");
        }
    }
}
