//! The flags of `5spot why`.

use crate::answer::AnswerArgs;
use crate::cluster_access::{ClusterArgs, NamespaceArgs};
use five_spot_diagnose::shell::with_flags;

/// Show what blocks the deletion of any object
///
/// Follows the deletion timestamp, finalizers, conditions, owners and users of an object to what actually blocks its
/// deletion, and says whether that is stuck or still in progress. For a pod that does not start it shows why. Each fix says
/// what it leaves behind; the least harmful comes first. It changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The object, such as pod/web-0, namespace/shop or machine.cluster.x-k8s.io/desk-17
    ///
    /// The kind may be any that the cluster serves: singular, plural, short name, and with .GROUP where it is ambiguous.
    #[arg(value_name = "KIND/NAME")]
    pub object: String,

    #[command(flatten)]
    pub namespace: NamespaceArgs,

    #[command(flatten)]
    pub cluster: ClusterArgs,

    #[command(flatten)]
    pub answer: AnswerArgs,
}

const EXAMPLES: &str = "\
Examples:
  5spot why namespace/shop
  5spot why pvc/data-web-0 -n shop
  5spot why machine.cluster.x-k8s.io/desk-17-machine -n desks --context management
  5spot why sm/desk-17 -o json | jq -r '.causes[].fix[] | select(.safe).command'

Exit status: 0 whatever it finds, 1 if there is no such object or the cluster cannot be queried,
2 if the command line is invalid or names no kind of the cluster.";

impl Args {
    /// `kubectl` with the flags that lead to the same cluster, for the commands in the answer.
    pub fn kubectl(&self) -> String {
        with_flags("kubectl ", &self.cluster.flags()).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args as TopArgs, Command};
    use clap::Parser;

    fn parse(line: &str) -> Args {
        let words = ["5spot", "why"].into_iter().chain(line.split_whitespace());
        let Command::Why(args) = TopArgs::try_parse_from(words).expect("valid").command else {
            panic!("another command")
        };
        args
    }

    #[test]
    fn the_commands_of_the_answer_use_the_same_cluster() {
        assert_eq!(parse("pod/a").kubectl(), "kubectl");
        let line = "pod/a --kubeconfig /tmp/k --context admin@lab -n shop";
        assert_eq!(parse(line).kubectl(), "kubectl --kubeconfig /tmp/k --context admin@lab");
    }
}
