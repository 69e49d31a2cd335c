//! The command line and the environment of the controller: a flag wins over its variable, a variable over the default.
//!
//! Flags whose feature does not exist yet are not offered: one that is accepted and does nothing is worse than one that
//! is refused. [`NOT_YET`] lists them.

mod effective;
mod explain;
mod values;

pub use explain::explain;

use crate::Settings;
use crate::logging::{Filter, Format};
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, Parser};
use five_spot_core::world::Policy;
use jiff::SignedDuration;
use values::{namespace, port, whole_number};

/// What `RUST_LOG` is when it is not set.
const DEFAULT_DIRECTIVES: &str = "info";

/// Flags and variables of features to come.
pub const NOT_YET: [(Option<&str>, &str); 8] = [
    (Some("--instance-id"), "OPERATOR_INSTANCE_ID"),
    (Some("--instance-count"), "OPERATOR_INSTANCE_COUNT"),
    (Some("--enable-leader-election"), "ENABLE_LEADER_ELECTION"),
    (Some("--lease-name"), "LEASE_NAME"),
    (Some("--lease-namespace"), "POD_NAMESPACE"),
    (Some("--lease-duration-secs"), "LEASE_DURATION_SECONDS"),
    (Some("--lease-renew-deadline-secs"), "LEASE_RENEW_DEADLINE_SECONDS"),
    (None, "LEASE_RETRY_PERIOD_SECONDS"),
];

/// Lends machines to Kubernetes clusters by the clock
///
/// Watches the scheduled machines of a management cluster, makes a machine when a window opens, and drains and removes it
/// when the window closes. The cluster is the one of the kubeconfig (KUBECONFIG or ~/.kube/config), or the one that it
/// runs in.
#[derive(Clone, Debug, Parser)]
#[command(name = "5spot-controller", version, after_help = AFTER_HELP)]
pub struct Args {
    /// Look after this namespace only; repeat it for more [addition]
    ///
    /// Without it all namespaces are looked after, which needs permissions for the whole cluster.
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace, help_heading = "Scope")]
    pub watch_namespace: Vec<String>,

    /// How many objects are reconciled at the same time, 1 to 1000 [addition]
    ///
    /// The same object is never reconciled twice at a time. When more wait, emergencies go first, then those with the
    /// higher priority. One that has waited for an answer for two seconds makes room for another, so that a cluster that
    /// does not answer keeps nobody else waiting; at most eight times as many wait like that.
    #[arg(
        long,
        value_name = "COUNT",
        env = "MAX_CONCURRENT_RECONCILES",
        default_value_t = 16,
        value_parser = whole_number::<1, 1000>,
        help_heading = "Work"
    )]
    pub max_concurrent_reconciles: u32,

    /// How long the cleanup of a deleted object may take, 1 to 86400 seconds
    ///
    /// Counted from the deletion, so that a restart does not extend it.
    #[arg(
        long,
        value_name = "SECS",
        env = "FINALIZER_CLEANUP_TIMEOUT_SECS",
        default_value_t = 600,
        value_parser = whole_number::<1, 86_400>,
        help_heading = "Deletion"
    )]
    pub finalizer_cleanup_timeout_secs: u32,

    /// Release an object whose cleanup took too long
    ///
    /// With =false it stays, and with it its namespace, until the cleanup succeeds or somebody removes the finalizer.
    #[arg(
        long,
        value_name = "true|false",
        env = "FORCE_FINALIZER_ON_TIMEOUT",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        help_heading = "Deletion"
    )]
    pub force_finalizer_on_timeout: bool,

    /// Port for Prometheus metrics, at /metrics; 0 for any that is free
    #[arg(
        long,
        value_name = "PORT",
        env = "METRICS_PORT",
        default_value_t = 8080,
        value_parser = port,
        help_heading = "Serving"
    )]
    pub metrics_port: u16,

    /// Port for health checks, at /health and /ready; 0 for any that is free
    #[arg(
        long,
        value_name = "PORT",
        env = "HEALTH_PORT",
        default_value_t = 8081,
        value_parser = port,
        help_heading = "Serving"
    )]
    pub health_port: u16,

    /// Also tell Prometheus how busy the threads are that do the work [addition]
    #[arg(
        long,
        value_name = "true|false",
        env = "RUNTIME_METRICS",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        help_heading = "Serving"
    )]
    pub runtime_metrics: bool,

    /// What log lines look like
    #[arg(
        long,
        value_name = "FORMAT",
        env = "RUST_LOG_FORMAT",
        value_enum,
        default_value_t = Format::Json,
        help_heading = "Logging"
    )]
    pub log_format: Format,

    /// Log what 5-Spot itself does at debug level, whatever `RUST_LOG` says
    #[arg(
        short,
        long,
        value_name = "true|false",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        help_heading = "Logging"
    )]
    pub verbose: bool,
}

const AFTER_HELP: &str = "\
Environment:
  KUBECONFIG  The kubeconfig to use [default: ~/.kube/config, then the service account of the pod]
  RUST_LOG    What is logged: a level (trace, debug, info, warn, error, off), also by target, as in
              info,kube=debug [default: info]
  POD_NAME    The name of this instance in events [default: the host name]
  NO_COLOR    No colours in text logs, also on a terminal

Options marked [addition] go beyond the documented interface.
No cluster at hand? `5spot sandbox` needs none.";

/// What surrounds the program, besides the variables that have a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// `RUST_LOG`.
    pub rust_log: Option<String>,
    /// `POD_NAME`.
    pub pod_name: Option<String>,
    /// What this host is called.
    pub host_name: String,
    /// The variables of [`NOT_YET`] that somebody has set.
    pub not_yet: Vec<&'static str>,
}

impl Surroundings {
    /// Those of this process.
    #[must_use]
    pub fn observe() -> Self {
        // A variable that is set to nothing is what a template leaves behind where there is no value.
        let variable = |name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
            Some(value.to_string_lossy().into_owned())
        };
        // Every pod may have its namespace injected: that asks for nothing.
        let wishes = NOT_YET.iter().map(|(_, name)| *name).filter(|name| *name != "POD_NAMESPACE");
        Self {
            rust_log: variable("RUST_LOG"),
            pod_name: variable("POD_NAME"),
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            not_yet: wishes.filter(|name| variable(name).is_some()).collect(),
        }
    }
}

/// What flags, variables and defaults come to.
#[derive(Debug)]
pub struct Configuration {
    /// For the controller.
    pub settings: Settings,
    /// What log lines look like.
    pub format: Format,
    /// The port of `/metrics`.
    pub metrics_port: u16,
    /// The port of `/health` and `/ready`.
    pub health_port: u16,
    /// Whether `/metrics` also tells of the threads that do the work.
    pub runtime_metrics: bool,
    directives: String,
    verbose: bool,
    not_yet: Vec<&'static str>,
}

impl Args {
    /// Puts flags and surroundings together, and tells which lines are logged.
    pub fn configure(self, surroundings: Surroundings) -> Result<(Configuration, Filter), clap::Error> {
        let directives = surroundings.rust_log.unwrap_or_else(|| DEFAULT_DIRECTIVES.to_owned());
        let filter = Filter::parse(&directives).map_err(|error| {
            let example = "for example 'info' or 'info,kube=debug'";
            let message = format!("invalid value '{directives}' for 'RUST_LOG': {error}; {example}");
            Self::command().error(ErrorKind::InvalidValue, message)
        })?;
        if self.metrics_port == self.health_port && self.metrics_port != 0 {
            let message = format!(
                "invalid value '{}' for '--health-port': it must differ from '--metrics-port'",
                self.health_port
            );
            return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        let mut namespaces = self.watch_namespace;
        namespaces.sort();
        namespaces.dedup();
        let timeout = SignedDuration::from_secs(self.finalizer_cleanup_timeout_secs.into());
        let configuration = Configuration {
            settings: Settings {
                policy: Policy {
                    finalizer_cleanup_timeout: timeout,
                    force_finalizer_on_timeout: self.force_finalizer_on_timeout,
                },
                namespaces,
                concurrency: self.max_concurrent_reconciles as usize,
                instance: surroundings.pod_name.unwrap_or(surroundings.host_name),
                ..Settings::default()
            },
            format: self.log_format,
            metrics_port: self.metrics_port,
            health_port: self.health_port,
            runtime_metrics: self.runtime_metrics,
            directives,
            verbose: self.verbose,
            not_yet: surroundings.not_yet,
        };
        Ok((configuration, filter.verbose(self.verbose)))
    }
}

#[cfg(test)]
mod tests;
