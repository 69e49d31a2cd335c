//! `5spot why`: asks the cluster for the facts that the walk needs, until it has an answer.

mod args;
mod catalog;
mod collect;
mod progress;
mod target;
mod text;

pub use args::Args;
pub use catalog::{Catalog, Served};
pub use progress::ProgressLine;

use crate::args::Outcome;
use crate::cluster_access::CallerCluster;
use crate::environment::ProcessEnvironment;
use crate::output::{complain, show};
use anyhow::Context as _;
use collect::Collector;
use five_spot_diagnose::why::{Answer, Facts, Question, Unreadable, WalkProgress, examine};
pub use target::Target;
use target::TargetError;

/// A question that cannot be answered.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The words name no kind of this cluster.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Everything else, in one line.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

/// Runs the command.
pub fn run(args: &Args, process_environment: &ProcessEnvironment) -> Outcome {
    let target = match args.object.parse::<Target>() {
        Ok(target) => target,
        Err(error) => {
            complain(&format!("error: {error}"));
            return Outcome::Invalid;
        }
    };
    let result = ask(args, &target).and_then(|answer| {
        let text = args.answer.render(&answer, process_environment, text::render)?;
        Ok(show(&text).context("failed to write the answer")?)
    });
    match result {
        Ok(()) => Outcome::Fine,
        Err(failure) => {
            complain(&format!("error: {failure}"));
            match failure {
                Failure::Target(_) => Outcome::Invalid,
                Failure::Other(_) => Outcome::Failed,
            }
        }
    }
}

fn ask(args: &Args, target: &Target) -> Result<Answer, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("failed to start")?.block_on(async {
        let access = args.cluster.access().await.map_err(anyhow::Error::new)?;
        let described = access.clone();
        let by_server_time = access.by_server_time().await;
        let (access, _) = by_server_time.map_err(|error| anyhow::anyhow!("{}", described.failure(&error)))?;
        let namespace = args.namespace.resolve(&access);
        answer(&access, target, &namespace, &args.kubectl()).await
    })
}

/// Asks until there is an answer.
async fn answer(
    access: &CallerCluster,
    target: &Target,
    namespace: &str,
    kubectl: &str,
) -> Result<Answer, Failure> {
    let failed = |error: kube::Error| anyhow::anyhow!("{}", access.failure(&error));
    let client = access.connection.management().map_err(failed)?;
    let catalog = Catalog::discover(&client).await.map_err(failed)?;
    let object = target.resolve(&catalog, namespace)?;
    let question = Question { object, kubectl: kubectl.to_owned() };
    let collector = Collector::new(client, &catalog);
    let mut facts = Facts::at(access.connection.now());
    let progress = ProgressLine::on_stderr();
    loop {
        match examine(&question, &facts) {
            WalkProgress::Needs(needs) => {
                progress.show(&format!("{} facts read, {} more needed", facts.len(), needs.len()));
                facts.extend(collector.collect(needs).await);
            }
            WalkProgress::Answer(answer) => {
                report_unreadable(&facts);
                return Ok(answer);
            }
            WalkProgress::NeverSeen(id) => {
                let object = id.to_ref();
                return Err(anyhow::anyhow!(
                    "there is no {object}, and no event or dependent refers to one that existed ({}); check \
                     the name and the namespace",
                    access.description
                )
                .into());
            }
            WalkProgress::Unreadable(reason) => {
                let object = question.object.to_ref();
                return Err(anyhow::anyhow!("{object} cannot be read: {}", reason.in_words()).into());
            }
        }
    }
}

/// Names the missing permissions once. The answer has what could be found without them.
fn report_unreadable(facts: &Facts) {
    let mut permissions: Vec<&str> = facts
        .unreadable()
        .into_iter()
        .filter_map(|reason| match reason {
            Unreadable::Forbidden(permission) => Some(permission.as_str()),
            Unreadable::NotServed(_) | Unreadable::Failed(_) => None,
        })
        .collect();
    permissions.sort_unstable();
    permissions.dedup();
    if !permissions.is_empty() {
        complain(&format!(
            "note: the answer may be incomplete, because you may not: {}",
            permissions.join("; ")
        ));
    }
}
