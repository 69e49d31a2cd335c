//! The command line and the environment of the controller: a flag wins over its variable, a variable over the default.

mod effective;
mod election;
mod explain;
mod instance;
mod values;

pub use explain::explain;

use crate::Settings;
use crate::brake::BrakeSettings;
use crate::leader::{self, BootClock, ElectionSettings, LeaseGuard};
use crate::logging::{LogFilter, LogFormat};
use crate::metrics::Metrics;
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, Parser};
use five_spot_cluster::{Cidr, WorkloadRules};
use five_spot_core::RemovalLimit;
use five_spot_core::world::Policy;
use jiff::SignedDuration;
use std::sync::Arc;
use values::{namespace, object_name, port, whole_number};

/// The default of `RUST_LOG`.
const DEFAULT_DIRECTIVES: &str = "info";

/// Lends physical machines to Cluster API clusters on a schedule
///
/// Watches the `ScheduledMachine` objects of a management cluster. When a window opens, it creates the Machine; when the
/// window closes, it drains the node and deletes the Machine. It uses the cluster of the kubeconfig (KUBECONFIG or
/// ~/.kube/config), or the cluster in which it runs.
#[derive(Clone, Debug, Parser)]
#[command(name = "5spot-controller", version, after_help = AFTER_HELP)]
pub struct Args {
    /// Watch only this namespace; can be repeated [addition]
    ///
    /// By default the controller watches all namespaces, which needs permissions for the whole cluster.
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace, help_heading = "Scope")]
    pub watch_namespace: Vec<String>,

    /// Allow the machines of this namespace to join the management cluster itself; can be repeated [addition]
    ///
    /// By default every machine needs the kubeconfig Secret of its workload cluster. Anyone who can write
    /// `ScheduledMachine` objects in this namespace can then make the controller cordon, taint and drain Nodes of the
    /// management cluster under its own identity.
    #[arg(
        long,
        value_name = "NAMESPACE",
        env = "MANAGEMENT_NODES_NAMESPACES",
        value_delimiter = ',',
        value_parser = namespace,
        help_heading = "Scope"
    )]
    pub management_nodes_namespace: Vec<String>,

    /// Number of objects that are reconciled concurrently, 1 to 1000 [addition]
    ///
    /// An object is never reconciled twice at the same time. Emergencies go first, then objects with a higher priority. A
    /// reconcile that has waited for a response for two seconds gives its slot to another one, so that a cluster that
    /// does not respond delays no other object; at most eight times as many reconciles wait in this way.
    #[arg(
        long,
        value_name = "COUNT",
        env = "MAX_CONCURRENT_RECONCILES",
        default_value_t = 16,
        value_parser = whole_number::<1, 1000>,
        help_heading = "Work"
    )]
    pub max_concurrent_reconciles: u32,

    /// Limit for unplanned removals within ten minutes [addition]
    ///
    /// A removal is unplanned if neither the schedule nor the spec of the machine explains it. The limit is a number of
    /// machines, or a percentage of the lent machines of this instance, then at least 5. When new time-zone data, a
    /// calendar or the clock make more machines unwanted at once, the controller holds the other removals until the
    /// annotation 5spot.finos.org/allow-removals on its namespace allows them. 100% switches the limit off.
    #[arg(
        long,
        value_name = "NUMBER|PERCENT",
        env = "MAX_UNPLANNED_REMOVALS",
        default_value_t = RemovalLimit::default(),
        help_heading = "Work"
    )]
    pub max_unplanned_removals: RemovalLimit,

    /// Time limit for the cleanup of a deleted object in seconds, 1 to 86400
    ///
    /// Counted from the deletion, so a restart of the controller does not extend it.
    #[arg(
        long,
        value_name = "SECS",
        env = "FINALIZER_CLEANUP_TIMEOUT_SECS",
        default_value_t = 600,
        value_parser = whole_number::<1, 86_400>,
        help_heading = "Deletion"
    )]
    pub finalizer_cleanup_timeout_secs: u32,

    /// Remove the finalizer of an object whose cleanup exceeded the time limit
    ///
    /// With =false the object and its namespace stay until the cleanup succeeds or someone removes the finalizer.
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

    /// Allow workload clusters in this network although its addresses are forbidden by default; can be repeated [addition]
    ///
    /// Tenants write the kubeconfigs of workload clusters. By default their servers may not have loopback, link-local,
    /// multicast or unspecified addresses, or those of the metadata services of clouds. The controller checks the address
    /// whenever it opens a connection. All other addresses are allowed; restrict them with a network policy.
    #[arg(
        long,
        value_name = "CIDR",
        env = "WORKLOAD_CIDRS",
        value_delimiter = ',',
        help_heading = "Workload clusters"
    )]
    pub workload_cidr: Vec<Cidr>,

    /// Accept kubeconfigs of workload clusters with insecure-skip-tls-verify [addition]
    ///
    /// By default the controller refuses such a kubeconfig: anyone in between could read its credentials and impersonate
    /// the cluster.
    #[arg(
        long,
        value_name = "true|false",
        env = "ALLOW_INSECURE_WORKLOADS",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        help_heading = "Workload clusters"
    )]
    pub allow_insecure_workloads: bool,

    /// Elect a leader among several replicas with a Lease; the others are on standby
    #[arg(
        long,
        value_name = "true|false",
        env = "ENABLE_LEADER_ELECTION",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        help_heading = "Leader election"
    )]
    pub enable_leader_election: bool,

    /// Number of this instance, from 0 on, or the name of its pod in a `StatefulSet`, such as 5spot-controller-2
    ///
    /// Each instance works on a part of the objects. It holds its own Lease, `<LEASE_NAME>-instance-<ID>`, so that no two
    /// instances work on the same object, not even while the number of instances changes.
    #[arg(
        long,
        value_name = "ID",
        env = "OPERATOR_INSTANCE_ID",
        default_value = "0",
        value_parser = instance::id,
        help_heading = "Instances"
    )]
    pub instance_id: u32,

    /// Number of instances that share the objects, 1 to 1000
    #[arg(
        long,
        value_name = "COUNT",
        env = "OPERATOR_INSTANCE_COUNT",
        default_value_t = 1,
        value_parser = whole_number::<1, 1000>,
        help_heading = "Instances"
    )]
    pub instance_count: u32,

    /// Name of the Lease
    #[arg(
        long,
        value_name = "NAME",
        env = "LEASE_NAME",
        default_value = "5spot-leader",
        value_parser = object_name,
        help_heading = "Leader election"
    )]
    pub lease_name: String,

    /// Namespace of the Lease
    #[arg(
        long,
        value_name = "NS",
        env = "POD_NAMESPACE",
        default_value = "5spot-system",
        value_parser = namespace,
        help_heading = "Leader election"
    )]
    pub lease_namespace: String,

    /// Validity of the Lease after a renewal in seconds, 1 to 3600
    ///
    /// Another replica takes over when the leader has not renewed it for this time.
    #[arg(
        long,
        value_name = "SECS",
        env = "LEASE_DURATION_SECONDS",
        default_value_t = 15,
        value_parser = whole_number::<1, 3600>,
        help_heading = "Leader election"
    )]
    pub lease_duration_secs: u32,

    /// Time for which the leader continues after its last renewal in seconds, 1 to 3600
    ///
    /// Must be less than --lease-duration-secs and more than `LEASE_RETRY_PERIOD_SECONDS`.
    #[arg(
        long,
        value_name = "SECS",
        env = "LEASE_RENEW_DEADLINE_SECONDS",
        default_value_t = 10,
        value_parser = whole_number::<1, 3600>,
        help_heading = "Leader election"
    )]
    pub lease_renew_deadline_secs: u32,

    /// Port for Prometheus metrics, at /metrics; 0 chooses a free port
    #[arg(
        long,
        value_name = "PORT",
        env = "METRICS_PORT",
        default_value_t = 8080,
        value_parser = port,
        help_heading = "Serving"
    )]
    pub metrics_port: u16,

    /// Port for health checks, at /health and /ready; 0 chooses a free port
    #[arg(
        long,
        value_name = "PORT",
        env = "HEALTH_PORT",
        default_value_t = 8081,
        value_parser = port,
        help_heading = "Serving"
    )]
    pub health_port: u16,

    /// Also export metrics of the worker threads [addition]
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

    /// Format of log lines
    #[arg(
        long,
        value_name = "FORMAT",
        env = "RUST_LOG_FORMAT",
        value_enum,
        default_value_t = LogFormat::Json,
        help_heading = "Logging"
    )]
    pub log_format: LogFormat,

    /// Log the crates of 5-Spot at debug level, regardless of `RUST_LOG`
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
  RUST_LOG    The log filter: a level (trace, debug, info, warn, error, off), optionally by target, as in
              info,kube=debug [default: info]
  POD_NAME    The name of this instance in events and in the Lease [default: the host name]
  POD_UID     The UID of its pod, so that a restarted container takes back its own Lease at once
  LEASE_RETRY_PERIOD_SECONDS
              Seconds between two renewals of the Lease, and between two attempts to acquire it [default: 2]
  NO_COLOR    No colours in text logs, also on a terminal

Options marked [addition] go beyond the documented interface.
To try it without a cluster, run `5spot sandbox`.";

/// The environment of the program, besides the variables that have a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramEnvironment {
    /// `RUST_LOG`.
    pub rust_log: Option<String>,
    /// `POD_NAME`.
    pub pod_name: Option<String>,
    /// `POD_UID`.
    pub pod_uid: Option<String>,
    /// `LEASE_RETRY_PERIOD_SECONDS`.
    pub lease_retry_period: Option<String>,
    /// The name of this host.
    pub host_name: String,
}

impl ProgramEnvironment {
    /// Those of this process.
    #[must_use]
    pub fn observe() -> Self {
        // A variable that is set to nothing is what a template leaves behind where there is no value.
        let variable = |name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
            Some(value.to_string_lossy().into_owned())
        };
        Self {
            rust_log: variable("RUST_LOG"),
            pod_name: variable("POD_NAME"),
            pod_uid: variable("POD_UID"),
            lease_retry_period: variable("LEASE_RETRY_PERIOD_SECONDS"),
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }
}

/// The configuration from flags, variables and defaults.
#[derive(Debug)]
pub struct Configuration {
    /// For the controller.
    pub settings: Settings,
    /// The format of log lines.
    pub format: LogFormat,
    /// The port of `/metrics`.
    pub metrics_port: u16,
    /// The port of `/health` and `/ready`.
    pub health_port: u16,
    /// True if `/metrics` also has the metrics of the worker threads.
    pub runtime_metrics: bool,
    /// The rules for the kubeconfigs of workload clusters.
    pub workload_rules: WorkloadRules,
    directives: String,
    verbose: bool,
}

impl Args {
    /// Combines flags and environment variables, and returns the filter of log lines.
    pub fn configure(
        self,
        environment: ProgramEnvironment,
    ) -> Result<(Configuration, LogFilter), clap::Error> {
        let directives = environment.rust_log.unwrap_or_else(|| DEFAULT_DIRECTIVES.to_owned());
        let filter = LogFilter::parse(&directives).map_err(|error| {
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
        let timing = election::timing(&self, environment.lease_retry_period.as_deref())?;
        let shard = instance::shard(&self)?;
        let instance = environment.pod_name.unwrap_or(environment.host_name);
        let shards =
            instance::settings(&self, shard, timing, leader::identity(&instance), environment.pod_uid);
        let election = self.enable_leader_election.then(|| ElectionSettings {
            name: instance::election_lease(&self.lease_name, shard),
            namespace: self.lease_namespace.clone(),
            identity: leader::identity(&instance),
            timing,
            clock: Arc::new(BootClock),
        });
        let mut namespaces = self.watch_namespace;
        namespaces.sort();
        namespaces.dedup();
        let timeout = SignedDuration::from_secs(self.finalizer_cleanup_timeout_secs.into());
        let metrics = Arc::new(Metrics::new(shard));
        if let Some(election) = &election {
            // It has not been elected yet.
            metrics.follow_election(Arc::new(LeaseGuard::new(election.clock.clone())));
        }
        let configuration = Configuration {
            settings: Settings {
                policy: Policy {
                    finalizer_cleanup_timeout: timeout,
                    force_finalizer_on_timeout: self.force_finalizer_on_timeout,
                },
                namespaces,
                management_nodes: self.management_nodes_namespace,
                concurrency: self.max_concurrent_reconciles as usize,
                instance,
                controller_namespace: self.lease_namespace,
                metrics,
                election,
                shards: Some(shards),
                brake: BrakeSettings { limit: self.max_unplanned_removals, clock: Arc::new(BootClock) },
                ..Settings::default()
            },
            format: self.log_format,
            metrics_port: self.metrics_port,
            health_port: self.health_port,
            runtime_metrics: self.runtime_metrics,
            workload_rules: WorkloadRules {
                allowed: self.workload_cidr,
                allow_insecure: self.allow_insecure_workloads,
                ..WorkloadRules::default()
            },
            directives,
            verbose: self.verbose,
        };
        Ok((configuration, filter.verbose(self.verbose)))
    }
}

#[cfg(test)]
mod tests;
