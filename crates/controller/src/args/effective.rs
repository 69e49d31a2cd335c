//! The effective configuration, logged once.

use super::Configuration;
use tracing::info;

impl Configuration {
    /// Logs the configuration. Nothing in it is secret.
    pub fn log(&self) {
        let namespaces = &self.settings.namespaces;
        let watched = if namespaces.is_empty() { "all".to_owned() } else { namespaces.join(",") };
        let cidrs: Vec<String> = self.workload_rules.allowed.iter().map(ToString::to_string).collect();
        let election = self.settings.election.as_ref();
        let shards = self.settings.shards.as_ref();
        let timing = election.map(|election| election.timing);
        info!(
            version = env!("CARGO_PKG_VERSION"),
            instance = self.settings.instance,
            watch_namespace = watched,
            management_nodes_namespace = self.settings.management_nodes.join(","),
            max_concurrent_reconciles = self.settings.concurrency,
            max_unplanned_removals = %self.settings.brake.limit,
            finalizer_cleanup_timeout_secs = self.settings.policy.finalizer_cleanup_timeout.as_secs(),
            force_finalizer_on_timeout = self.settings.policy.force_finalizer_on_timeout,
            workload_cidr = cidrs.join(","),
            allow_insecure_workloads = self.workload_rules.allow_insecure,
            instance_id = shards.map(|shards| shards.shard.id()),
            instance_count = shards.map(|shards| shards.shard.count()),
            enable_leader_election = election.is_some(),
            lease = election.map(|election| format!("{}/{}", election.namespace, election.name)),
            lease_duration_secs = timing.map(|timing| timing.duration.as_secs()),
            lease_renew_deadline_secs = timing.map(|timing| timing.renew_deadline.as_secs()),
            lease_retry_period_secs = timing.map(|timing| timing.retry_period.as_secs()),
            metrics_port = self.metrics_port,
            health_port = self.health_port,
            runtime_metrics = self.runtime_metrics,
            log_format = self.format.as_str(),
            rust_log = self.directives,
            verbose = self.verbose,
            "Effective configuration"
        );
    }
}
