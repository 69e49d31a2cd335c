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
use crate::logging::{Filter, Format};
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

    /// Let the Nodes of this namespace's machines be in the management cluster itself; repeat it for more [addition]
    ///
    /// By default every machine needs the kubeconfig Secret of its workload cluster. Whoever may write scheduled machines
    /// in a namespace that is named here makes the controller cordon, taint and drain Nodes of the management cluster
    /// under its own identity.
    #[arg(
        long,
        value_name = "NAMESPACE",
        env = "MANAGEMENT_NODES_NAMESPACES",
        value_delimiter = ',',
        value_parser = namespace,
        help_heading = "Scope"
    )]
    pub management_nodes_namespace: Vec<String>,

    /// Number of objects that are reconciled at the same time, 1 to 1000 [addition]
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

    /// The number of machines whose removal may begin within ten minutes although neither their schedule nor their spec
    /// says so [addition]
    ///
    /// A number, or a percentage of the lent machines of this instance, which is never below 5. When time-zone data, a
    /// calendar or the clock make more machines unwanted at once, the others are held until the annotation
    /// 5spot.finos.org/allow-removals on the namespace of the controller lets them go. 100% switches it off.
    #[arg(
        long,
        value_name = "NUMBER|PERCENT",
        env = "MAX_UNPLANNED_REMOVALS",
        default_value_t = RemovalLimit::default(),
        help_heading = "Work"
    )]
    pub max_unplanned_removals: RemovalLimit,

    /// Time limit of the cleanup of a deleted object, 1 to 86400 seconds
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

    /// Let workload clusters be in this network although none is as a rule; repeat it for more [addition]
    ///
    /// The kubeconfig of a workload cluster is written by a tenant. It may not lead to this host (loopback), to
    /// link-local, multicast or unspecified addresses, nor to the metadata services of clouds, by whichever name or
    /// notation: the address is checked whenever a connection is opened. What is named here is permitted nevertheless.
    /// All other addresses are permitted anyway; restrict them with a network policy.
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
    /// Without it such a kubeconfig is refused: anyone on the way could read its credentials, and answer in the
    /// cluster's place.
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

    /// Elect a leader among several replicas by a Lease: one works, the others stand by
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

    /// Which of several instances this is, from 0 on; also the name of a `StatefulSet`'s pod, as in 5spot-controller-2
    ///
    /// Each instance works on a part of the objects. It holds a Lease of its own, `<LEASE_NAME>-instance-<ID>`, so that no
    /// object is worked on by two, not even while the number of instances changes.
    #[arg(
        long,
        value_name = "ID",
        env = "OPERATOR_INSTANCE_ID",
        default_value = "0",
        value_parser = instance::id,
        help_heading = "Instances"
    )]
    pub instance_id: u32,

    /// The number of instances that share the objects, 1 to 1000
    #[arg(
        long,
        value_name = "COUNT",
        env = "OPERATOR_INSTANCE_COUNT",
        default_value_t = 1,
        value_parser = whole_number::<1, 1000>,
        help_heading = "Instances"
    )]
    pub instance_count: u32,

    /// The name of the Lease
    #[arg(
        long,
        value_name = "NAME",
        env = "LEASE_NAME",
        default_value = "5spot-leader",
        value_parser = object_name,
        help_heading = "Leader election"
    )]
    pub lease_name: String,

    /// The namespace of the Lease
    #[arg(
        long,
        value_name = "NS",
        env = "POD_NAMESPACE",
        default_value = "5spot-system",
        value_parser = namespace,
        help_heading = "Leader election"
    )]
    pub lease_namespace: String,

    /// Time for which the Lease is valid after it was renewed, 1 to 3600 seconds
    ///
    /// Another replica takes over when the leader has not renewed it for that long.
    #[arg(
        long,
        value_name = "SECS",
        env = "LEASE_DURATION_SECONDS",
        default_value_t = 15,
        value_parser = whole_number::<1, 3600>,
        help_heading = "Leader election"
    )]
    pub lease_duration_secs: u32,

    /// Time for which the leader works after it last renewed the Lease, 1 to 3600 seconds
    ///
    /// Must be below --lease-duration-secs and above the pause between two renewals (`LEASE_RETRY_PERIOD_SECONDS`).
    #[arg(
        long,
        value_name = "SECS",
        env = "LEASE_RENEW_DEADLINE_SECONDS",
        default_value_t = 10,
        value_parser = whole_number::<1, 3600>,
        help_heading = "Leader election"
    )]
    pub lease_renew_deadline_secs: u32,

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

    /// Format of log lines
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
  POD_NAME    The name of this instance in events and in the Lease [default: the host name]
  POD_UID     The UID of its pod: a container that is restarted takes its own Lease back at once
  LEASE_RETRY_PERIOD_SECONDS
              How long between two renewals of the Lease, and between two attempts at it [default: 2]
  NO_COLOR    No colours in text logs, also on a terminal

Options marked [addition] go beyond the documented interface.
No cluster at hand? `5spot sandbox` needs none.";

/// The environment of the program, besides the variables that have a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
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

impl Surroundings {
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
    pub format: Format,
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
        let timing = election::timing(&self, surroundings.lease_retry_period.as_deref())?;
        let shard = instance::shard(&self)?;
        let instance = surroundings.pod_name.unwrap_or(surroundings.host_name);
        let shards =
            instance::settings(&self, shard, timing, leader::identity(&instance), surroundings.pod_uid);
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
