//! `5spot doctor`: collects facts with the caller's kubeconfig, judges them, and shows what was found.

mod collect;
mod text;

#[cfg(test)]
pub(crate) mod tests;

use crate::answer::{AnswerArgs, AnswerFormat};
use crate::args::Outcome;
use crate::cluster_access::{CallerCluster, ClusterArgs, ScopeArgs, object_name};
use crate::environment::ProcessEnvironment;
use crate::output::{complain, show_next};
use anyhow::Context as _;
use clap::ValueEnum;
pub use collect::Scope;
use five_spot_diagnose::doctor::{CrdState, DoctorFacts, Report, Severity, examine};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use std::time::Duration;

/// Find out what is wrong with 5-Spot and its machines
///
/// Reads the controller, its machines and what they depend on with your own kubeconfig, and says what is wrong, why, and what
/// to do about it. It changes nothing. It lists what you may not read, and checks everything else.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Check this machine only [default: all of the namespace]
    #[arg(value_name = "NAME", value_parser = object_name, conflicts_with = "all_namespaces")]
    name: Option<String>,

    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    answer: AnswerArgs,

    /// Print one line for each finding, for a ticket
    #[arg(long)]
    short: bool,

    /// Repeat the checks every five seconds, and print the findings whenever they change
    #[arg(long)]
    watch: bool,

    /// The lowest severity for which the exit status is 1
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Error)]
    fail_on: FailOn,
}

const EXAMPLES: &str = "\
Examples:
  5spot doctor                      check the machines of the context's namespace, and 5-Spot itself
  5spot doctor desk-17 -n desks     check one machine
  5spot doctor -A --short           one line for each finding in all namespaces
  5spot doctor -A -o json | jq -r '.findings[] | select(.severity == \"error\") | .fix[].command'
  5spot doctor -A --fail-on=warning in a pipeline

Exit status: 0 if nothing of the severity of --fail-on or above was found, 1 if something was, or if
the cluster cannot be queried, 2 if the command line is invalid.";

/// The severity from which on the exit status is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Never,
}

/// The time between two looks of `--watch`.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);

/// A report, and what could not be read for it.
pub struct Diagnosis {
    pub report: Report,
    pub not_read: Vec<String>,
    /// The name that was asked for, if there is no such object.
    pub absent: bool,
}

/// Runs the command.
pub fn run(args: &Args, process_environment: &ProcessEnvironment) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answer = runtime
        .context("failed to start")
        .and_then(|runtime| runtime.block_on(ask(args, process_environment)));
    answer.unwrap_or_else(|error| {
        complain(&format!("error: {error:#}"));
        Outcome::Failed
    })
}

async fn ask(args: &Args, process_environment: &ProcessEnvironment) -> anyhow::Result<Outcome> {
    let access = args.cluster.access().await?;
    let described = access.clone();
    let by_server_time = access.by_server_time().await;
    let (access, difference) =
        by_server_time.map_err(|error| anyhow::anyhow!("{}", described.failure(&error)))?;
    let scope = Scope { namespace: args.scope.resolve(&access), name: args.name.clone() };
    let mut shown: Option<String> = None;
    let mut failure: Option<String> = None;
    loop {
        let look = look(args, &access, &scope, difference).await;
        let diagnosis = match (look, &shown) {
            (Ok(diagnosis), _) => {
                failure = None;
                diagnosis
            }
            // A cluster that does not answer for a while is a reason to continue watching.
            (Err(error), Some(_)) => {
                let words = format!("error: {error:#}");
                if failure.as_ref() != Some(&words) {
                    complain(&words);
                }
                failure = Some(words);
                tokio::time::sleep(BETWEEN_LOOKS).await;
                continue;
            }
            (Err(error), None) => return Err(error),
        };
        let answer = render(args, process_environment, &diagnosis)?;
        let mut is_read = true;
        if shown.as_ref() != Some(&answer) {
            report_unread(args, &diagnosis.not_read);
            let heading = heading(args.answer.output, shown.is_none(), access.connection.now());
            is_read = show_next(&format!("{heading}{answer}")).context("failed to write the answer")?;
            shown = Some(answer);
        }
        if !args.watch || !is_read {
            return Ok(conclude(args, &diagnosis));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// Collects, judges, and adds the caller's own flags to the commands.
async fn look(
    args: &Args,
    access: &CallerCluster,
    scope: &Scope,
    difference: SignedDuration,
) -> anyhow::Result<Diagnosis> {
    let diagnosis = diagnose(access, scope, difference).await?;
    if diagnosis.report.checked == 0
        && let Some(namespace) = &scope.namespace
        && is_absent_namespace(access, namespace).await
    {
        anyhow::bail!("there is no namespace {namespace} ({})", access.description);
    }
    if diagnosis.absent {
        anyhow::bail!("there is no ScheduledMachine {} ({})", scope.object(), access.description);
    }
    Ok(Diagnosis { report: diagnosis.report.with_flags(&args.cluster.flags()), ..diagnosis })
}

/// True if the API server says that there is no such namespace. One that may not be read may be there.
async fn is_absent_namespace(access: &CallerCluster, namespace: &str) -> bool {
    let Ok(client) = access.connection.management() else { return false };
    let namespaces: Api<Namespace> = Api::all(client);
    matches!(namespaces.get_opt(namespace).await, Ok(None))
}

/// The line between two answers of `--watch`: the time for people, the mark between two documents in YAML.
fn heading(format: AnswerFormat, is_first: bool, now: Timestamp) -> String {
    if is_first {
        return String::new();
    }
    match format {
        AnswerFormat::Text => format!("\n--- {now:.0}\n"),
        AnswerFormat::Json => String::new(),
        AnswerFormat::Yaml => "---\n".to_owned(),
    }
}

/// Collects and judges. `difference` is the server's clock minus this computer's.
pub async fn diagnose(
    access: &CallerCluster,
    scope: &Scope,
    difference: SignedDuration,
) -> anyhow::Result<Diagnosis> {
    let facts = collect::collect(access, scope, difference).await;
    let facts = facts.map_err(|error| anyhow::anyhow!("{}", access.failure(&error)))?;
    let absent = is_absent(&facts, scope);
    Ok(Diagnosis { report: examine(&facts), not_read: facts.not_read, absent })
}

/// True if the object that was asked for does not exist, and that is known.
fn is_absent(facts: &DoctorFacts, scope: &Scope) -> bool {
    let is_defined = !matches!(facts.definition, CrdState::Absent(_));
    scope.name.is_some() && facts.machines.is_empty() && facts.known.is_some() && is_defined
}

fn render(
    args: &Args,
    process_environment: &ProcessEnvironment,
    diagnosis: &Diagnosis,
) -> anyhow::Result<String> {
    let is_named = args.name.is_some();
    args.answer.render(&diagnosis.report, process_environment, |report, style| {
        if args.short {
            text::short(report)
        } else {
            text::render(report, &diagnosis.not_read, is_named, style)
        }
    })
}

/// Names what could not be read. The long text has that itself.
fn report_unread(args: &Args, not_read: &[String]) {
    if args.short || args.answer.output != AnswerFormat::Text {
        for note in not_read {
            complain(&format!("note: not checked: {note}"));
        }
    }
}

fn conclude(args: &Args, diagnosis: &Diagnosis) -> Outcome {
    let gravest = diagnosis.report.gravest();
    let fails = match args.fail_on {
        FailOn::Error => gravest >= Some(Severity::Error),
        FailOn::Warning => gravest >= Some(Severity::Warning),
        FailOn::Never => false,
    };
    if fails { Outcome::Failed } else { Outcome::Fine }
}
