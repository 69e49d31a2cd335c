//! Parsing of specs. After [`ValidSpec::parse`] no code reads the raw spec.

mod checks;

use crate::field::FieldError;
use crate::fingerprint::Fingerprint;
use crate::identity::MachineIdentity;
use crate::schedule::{Override, Plan, Schedule};
use checks::Checks;
use five_spot_api::{
    KubeconfigSecretRef, MachineTemplate, NodeTaint, OnTimeout, OverrideState, ProviderObject, ReclaimResume,
    ScheduledMachineSpec,
};
use jiff::SignedDuration;
use serde::Serialize;
use serde_json::Value;

/// A valid spec, reduced to what decisions need. It is small enough to be kept for ten thousand objects: of the provider
/// objects it keeps only the kind and a fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidSpec {
    /// The times at which a machine is wanted.
    pub plan: Plan,
    /// The settings for the removal of a machine.
    pub handling: RemovalSettings,
    /// The name of the Cluster API Cluster.
    pub cluster_name: String,
    /// The kind of the bootstrap object.
    pub bootstrap: ProviderKind,
    /// The kind of the infrastructure object.
    pub infrastructure: ProviderKind,
    /// The priority from 0 to 100; higher values are served first.
    pub priority: u8,
    /// The taints to keep on the Node.
    pub node_taints: Vec<NodeTaint>,
    /// The process names that the reclaim agent looks for.
    pub kill_if_commands: Vec<String>,
    /// The Secret with the kubeconfig of the workload cluster, if the spec names one.
    pub kubeconfig_secret: Option<KubeconfigSecretRef>,
    /// The physical machine, if the spec says which one it is.
    pub identity: Option<MachineIdentity>,
    /// The time limit for the node to become Ready.
    pub join_timeout: SignedDuration,
    /// The time before the window closes at which the node is cordoned.
    pub cordon_before: SignedDuration,
    /// The fingerprint of the part of the spec that a Machine is created from. If it differs, the Machine is replaced.
    pub machine_hash: Fingerprint,
    /// The fingerprint of everything that is applied to a Machine. If it differs, the Machine is applied again.
    pub applied_hash: Fingerprint,
    /// The fingerprint of what the agent's ConfigMap is rendered from. If it differs, it is rendered again.
    pub agent_hash: Fingerprint,
}

/// The settings for the removal of a machine. They are known, as far as possible, even for an invalid spec, so that every
/// object can be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovalSettings {
    /// `spec.killSwitch`.
    pub kill_switch: bool,
    /// `spec.schedule.enabled`.
    pub enabled: bool,
    /// True if there is an override with state `up`, expired or not.
    pub override_up: bool,
    /// The time limit for the whole graceful shutdown.
    pub graceful_shutdown_timeout: SignedDuration,
    /// The time limit for the drain.
    pub node_drain_timeout: SignedDuration,
    /// The action at the drain deadline.
    pub on_timeout: OnTimeout,
    /// The grace period of pods in an emergency reclaim.
    pub pod_grace_period: SignedDuration,
    /// The condition under which the machine is lent again after a reclaim.
    pub resume: ReclaimResume,
}

/// An invalid spec, and the part of it that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSpec {
    /// The errors; never empty.
    pub errors: Vec<FieldError>,
    /// The settings for the removal of a machine that exists.
    pub handling: RemovalSettings,
}

/// The kind of a provider object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderKind {
    /// The API group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

impl ValidSpec {
    /// Parses a spec, or returns all errors in it, sorted by field.
    pub fn parse(spec: &ScheduledMachineSpec) -> Result<Self, Vec<FieldError>> {
        let mut checks = Checks::default();
        let schedule = checks.all(Schedule::parse(&spec.schedule, "spec.schedule"));
        let lead_time = checks.one(checks::lead_time(&spec.schedule.lead_time));
        let forced =
            spec.r#override.as_ref().map(|forced| checks.one(Override::parse(forced, "spec.override")));
        let cordon_before = checks.one(checks::cordon_before(&spec.drain.cordon_before));
        let join_timeout = checks.one(checks::timeout(&spec.join_timeout, "spec.joinTimeout"));
        let handling = checks.all(handling(spec));
        checks.cluster_name(&spec.cluster_name);
        let bootstrap = checks.provider(&spec.bootstrap_spec, "spec.bootstrapSpec");
        let infrastructure = checks.provider(&spec.infrastructure_spec, "spec.infrastructureSpec");
        checks.machine_template(&spec.machine_template);
        let priority = checks.priority(spec.priority);
        checks.commands(&spec.kill_if_commands);
        checks.taints(&spec.node_taints);
        if let Some(secret) = &spec.kubeconfig_secret_ref {
            checks.secret(secret);
        }
        checks.machine_identity(spec.machine_identity.as_deref());
        checks.reasons(&spec.schedule, spec.r#override.as_ref());
        let errors = checks.finish();
        // Every value that could not be read has left an error, so the two cases exclude each other.
        let (Some(schedule), Some(lead_time), Some(handling), Some(cordon_before), Some(join_timeout), true) =
            (schedule, lead_time, handling, cordon_before, join_timeout, errors.is_empty())
        else {
            return Err(errors);
        };
        Ok(Self {
            plan: Plan::new(schedule, lead_time, spec.schedule.enabled, forced.flatten()),
            handling,
            cluster_name: spec.cluster_name.clone(),
            bootstrap,
            infrastructure,
            priority,
            node_taints: spec.node_taints.clone(),
            kill_if_commands: spec.kill_if_commands.clone(),
            kubeconfig_secret: spec.kubeconfig_secret_ref.clone(),
            identity: MachineIdentity::of(spec),
            join_timeout,
            cordon_before,
            machine_hash: Fingerprint::of(&Replaced::of(spec)),
            applied_hash: Fingerprint::of(&Applied::of(spec)),
            agent_hash: Fingerprint::of(&spec.kill_if_commands),
        })
    }

    /// Returns the times at which a machine is wanted.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl InvalidSpec {
    /// Reads what can be read of a spec that [`ValidSpec::parse`] has rejected with `errors`.
    pub fn new(spec: &ScheduledMachineSpec, errors: Vec<FieldError>) -> Self {
        let defaults = RemovalSettings {
            kill_switch: spec.kill_switch,
            enabled: spec.schedule.enabled,
            override_up: overridden_up(spec),
            graceful_shutdown_timeout: checks::DEFAULT_SHUTDOWN,
            node_drain_timeout: checks::DEFAULT_SHUTDOWN,
            on_timeout: spec.drain.on_timeout,
            pod_grace_period: SignedDuration::ZERO,
            resume: spec.reclaim.resume,
        };
        Self { errors, handling: handling(spec).unwrap_or(defaults) }
    }

    /// Reads what can be read of a spec that does not even fit the types, such as one from another version of the CRD.
    pub fn unreadable(spec: &Value, errors: Vec<FieldError>) -> Self {
        let flag = |path: &str, otherwise| spec.pointer(path).and_then(Value::as_bool).unwrap_or(otherwise);
        let word = |path: &str| spec.pointer(path).and_then(Value::as_str);
        let handling = RemovalSettings {
            kill_switch: flag("/killSwitch", false),
            enabled: flag("/schedule/enabled", true),
            override_up: word("/override/state") == Some("up"),
            graceful_shutdown_timeout: checks::DEFAULT_SHUTDOWN,
            node_drain_timeout: checks::DEFAULT_SHUTDOWN,
            on_timeout: if word("/drain/onTimeout") == Some("Force") {
                OnTimeout::Force
            } else {
                OnTimeout::Error
            },
            pod_grace_period: SignedDuration::ZERO,
            resume: if word("/reclaim/resume") == Some("OnAnnotation") {
                ReclaimResume::OnAnnotation
            } else {
                ReclaimResume::OnEnable
            },
        };
        Self { errors, handling }
    }
}

/// Checks the name of a `ScheduledMachine`, which must leave room for the names derived from it.
pub fn check_name(name: &str) -> Result<(), FieldError> {
    checks::name(name)
}

fn handling(spec: &ScheduledMachineSpec) -> Result<RemovalSettings, Vec<FieldError>> {
    let mut checks = Checks::default();
    let graceful =
        checks.one(checks::timeout(&spec.graceful_shutdown_timeout, "spec.gracefulShutdownTimeout"));
    let drain = checks.one(checks::timeout(&spec.node_drain_timeout, "spec.nodeDrainTimeout"));
    let grace = checks.one(checks::pod_grace_period(&spec.reclaim.pod_grace_period));
    match (graceful, drain, grace) {
        (Some(graceful_shutdown_timeout), Some(node_drain_timeout), Some(pod_grace_period)) => {
            Ok(RemovalSettings {
                kill_switch: spec.kill_switch,
                enabled: spec.schedule.enabled,
                override_up: overridden_up(spec),
                graceful_shutdown_timeout,
                node_drain_timeout,
                on_timeout: spec.drain.on_timeout,
                pod_grace_period,
                resume: spec.reclaim.resume,
            })
        }
        (_, _, _) => Err(checks.finish()),
    }
}

fn overridden_up(spec: &ScheduledMachineSpec) -> bool {
    spec.r#override.as_ref().is_some_and(|forced| forced.state == OverrideState::Up)
}

/// The fields whose change requires another Machine.
#[derive(Serialize)]
struct Replaced<'a> {
    cluster: &'a str,
    bootstrap: &'a ProviderObject,
    infrastructure: &'a ProviderObject,
    version: Option<&'a str>,
    failure_domain: Option<&'a str>,
    /// Left out where there is none, so that Machines of versions without this field keep their fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'a str>,
}

impl<'a> Replaced<'a> {
    fn of(spec: &'a ScheduledMachineSpec) -> Self {
        Self {
            cluster: &spec.cluster_name,
            bootstrap: &spec.bootstrap_spec,
            infrastructure: &spec.infrastructure_spec,
            version: spec.machine_template.version.as_deref(),
            failure_domain: spec.machine_template.failure_domain.as_deref(),
            identity: spec.machine_identity.as_deref(),
        }
    }
}

/// The fields that are applied to a Machine.
#[derive(Serialize)]
struct Applied<'a> {
    replaced: Replaced<'a>,
    template: &'a MachineTemplate,
    node_drain_timeout: &'a str,
}

impl<'a> Applied<'a> {
    fn of(spec: &'a ScheduledMachineSpec) -> Self {
        Self {
            replaced: Replaced::of(spec),
            template: &spec.machine_template,
            node_drain_timeout: &spec.node_drain_timeout,
        }
    }
}
