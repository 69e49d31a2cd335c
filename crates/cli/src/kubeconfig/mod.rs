//! `5spot kubeconfig create`: an identity with the least permissions in a workload cluster, and the Secret with its
//! kubeconfig in the management cluster.

mod admin;
mod args;
mod cause;
mod manifests;
mod objects;
mod report;
mod token;
mod warnings;

pub use args::Args;

use crate::args::Outcome;
use crate::environment::ProcessEnvironment;
use crate::output::{complain, show};
use args::{Command, CreateArgs};
use report::Created;

/// A step that failed, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("failed to {step}: {cause}. {fix}")]
pub struct KubeconfigFailure {
    /// The step, as in "failed to ...".
    step: String,
    /// The error.
    cause: String,
    /// The next thing to try.
    fix: String,
}

pub fn run(args: &Args, process_environment: &ProcessEnvironment) -> Outcome {
    let Command::Create(args) = &args.command;
    if let Err(problem) = args.check() {
        complain(&format!("error: {problem}"));
        return Outcome::Invalid;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("error: failed to start the runtime: {error}"));
            return Outcome::Failed;
        }
    };
    match runtime.block_on(create(args)) {
        Ok(created) => match args.answer.render(&created, process_environment, report::text) {
            Ok(text) if show(&text).is_ok() => Outcome::Fine,
            Ok(_) => Outcome::Failed,
            Err(error) => {
                complain(&format!("error: {error:#}"));
                Outcome::Failed
            }
        },
        Err(failure) => {
            complain(&format!("error: {failure}"));
            Outcome::Failed
        }
    }
}

/// All steps, in an order in which a second try continues where the first has failed.
async fn create(args: &CreateArgs) -> Result<Created, KubeconfigFailure> {
    let management = args.cluster_args.access().await.map_err(|error| KubeconfigFailure {
        step: "read the kubeconfig of the management cluster".into(),
        cause: error.to_string(),
        fix: "The management cluster is the one with the ScheduledMachines".into(),
    })?;
    let namespace = args.namespace.resolve(&management);
    let client = management.connection.management().map_err(|error| KubeconfigFailure {
        step: "connect to the management cluster".into(),
        cause: error.to_string(),
        fix: format!("Check {}", management.description),
    })?;
    let admin = admin::find(args, &client, &namespace).await?;
    let created = objects::create(&admin.client, &manifests::namespace()?, "the workload cluster").await?;
    let mut applied: Vec<String> = created.into_iter().collect();
    for document in manifests::workload()? {
        applied.push(objects::apply(&admin.client, &document, "the workload cluster").await?);
    }
    let token = token::request(&admin.client, args.duration_seconds()).await?;
    let secret = args.secret_name();
    let text = manifests::kubeconfig(&args.cluster, &admin, &token.text);
    for document in
        [manifests::secret(&namespace, &secret, &args.cluster, &text), manifests::reader(&namespace)]
    {
        applied.push(objects::apply(&client, &document, "the management cluster").await?);
    }
    let warnings = warnings::warnings(&admin.server, args.duration_seconds(), token.lifetime_seconds);
    Ok(Created {
        secret: report::SecretName { namespace, name: secret, key: manifests::KEY },
        server: admin.server,
        service_account: format!("{}/{}", manifests::NAMESPACE, manifests::ACCOUNT),
        expires_at: token.expires_at,
        applied,
        warnings,
    })
}
