//! `5spot explain`: looks at one object as the controller does, decides as the controller does, and says why.

mod text;

#[cfg(test)]
pub(crate) mod tests;

use crate::answer::AnswerArgs;
use crate::args::Outcome;
use crate::cluster_access::{CallerCluster, ClusterArgs, NamespaceArgs, object_name};
use crate::controller_settings::controller_config;
use crate::environment::ProcessEnvironment;
use crate::output::{complain, show};
use anyhow::Context as _;
use five_spot_api::{ScheduledMachine, names};
use five_spot_cluster::ObjectKey;
use five_spot_cluster::cache::ClusterSettings;
use five_spot_cluster::view::{Looked, look};
use five_spot_diagnose::explain::{Explanation, Subject, explain};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube::{Api, Client};
use std::sync::Arc;
use text::Reader;

/// Explain why a machine is in its state, what happens next and what blocks it
///
/// Reads one ScheduledMachine and everything that it depends on with your own kubeconfig, and computes the decision that
/// the controller would make now. It changes nothing.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are the help text")]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The name of the ScheduledMachine
    #[arg(value_name = "NAME", value_parser = object_name)]
    name: String,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    answer: AnswerArgs,
}

const EXAMPLES: &str = "\
Examples:
  5spot explain desk-17
  5spot explain desk-17 -n desks --context management
  5spot explain desk-17 -o json | jq '.blockers[].fix'

Exit status: 0 whatever it finds, 1 if there is no such object or the cluster cannot be queried,
2 if the command line is invalid.";

/// An explanation, and the time zones in which people read it.
pub struct Explained {
    pub explanation: Explanation,
    /// The zone of the schedule, if it is valid.
    pub zone: Option<TimeZone>,
    pub now: Timestamp,
}

/// Runs the command.
pub fn run(args: &Args, process_environment: &ProcessEnvironment) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answer = runtime.context("failed to start").and_then(|runtime| {
        let explained = runtime.block_on(ask(args))?;
        args.answer.render(&explained.explanation, process_environment, |explanation, style| {
            text::render(explanation, &Reader::new(&explained, process_environment), style)
        })
    });
    match answer.and_then(|text| show(&text).context("failed to write the answer")) {
        Ok(()) => Outcome::Fine,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            Outcome::Failed
        }
    }
}

async fn ask(args: &Args) -> anyhow::Result<Explained> {
    let access = args.cluster.access().await?;
    let described = access.clone();
    let (access, _) =
        access.by_server_time().await.map_err(|error| anyhow::anyhow!("{}", described.failure(&error)))?;
    let key = ObjectKey::new(args.namespace.resolve(&access), args.name.clone());
    let explained = explain_one(&access, &key).await?;
    let explained =
        explained.with_context(|| format!("there is no ScheduledMachine {key} ({})", access.description))?;
    Ok(Explained { explanation: explained.explanation.with_flags(&args.cluster.flags()), ..explained })
}

/// Explains one object; `None` if there is no such object.
pub async fn explain_one(access: &CallerCluster, key: &ObjectKey) -> anyhow::Result<Option<Explained>> {
    let failed = |error: &(dyn std::error::Error + 'static)| anyhow::anyhow!("{}", access.failure(error));
    let client = access.connection.management().map_err(|error| failed(&error))?;
    let settings = settings(&client, key).await;
    let looked = look(&access.connection, key, &settings).await.map_err(|error| failed(&error))?;
    Ok(looked.map(|looked| of_look(&looked, access.connection.now())))
}

fn of_look(looked: &Looked, now: Timestamp) -> Explained {
    let observed = looked.observed();
    let decision = observed.decide(now);
    let spec = observed.spec.as_ref().map(Arc::as_ref).map_err(Arc::as_ref);
    let zone = spec.ok().map(|spec| spec.plan().schedule().timezone().clone());
    let subject = Subject { spec, world: &observed.world, decision: &decision, now };
    let explanation = explain(&subject);
    let explanation = match looked.unread() {
        Some(failure) => explanation.with_unread(failure),
        None => explanation,
    };
    Explained { explanation, zone, now }
}

/// The settings of the controller. If it cannot be seen, the defaults; then a Node is looked for in the management cluster
/// if the controller has recorded that it is there.
async fn settings(client: &Client, key: &ObjectKey) -> ClusterSettings {
    let config = controller_config(client).await;
    let management_nodes = match &config {
        Some(config) => config.management_nodes.clone(),
        None if nodes_may_be_here(client, key).await => vec![key.namespace.to_string()],
        None => Vec::new(),
    };
    let config = config.unwrap_or_default();
    ClusterSettings {
        policy: config.policy,
        namespaces: Vec::new(),
        management_nodes,
        instance: names::FIELD_MANAGER.to_owned(),
        controller_namespace: names::SYSTEM_NAMESPACE.to_owned(),
    }
}

/// True unless the status says that the kubeconfig of a workload cluster is used, or is missing.
async fn nodes_may_be_here(client: &Client, key: &ObjectKey) -> bool {
    let api: Api<ScheduledMachine> = Api::namespaced(client.clone(), &key.namespace);
    let Ok(object) = api.get(&key.name).await else { return false };
    let status = object.status.unwrap_or_default();
    match &status.workload_cluster {
        Some(cluster) => cluster.secret_name.is_none(),
        None => !status
            .conditions
            .iter()
            .any(|condition| condition.type_ == "ReferencesValid" && condition.status == "False"),
    }
}
