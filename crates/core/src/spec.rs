//! From what a person wrote to what it means. After [`ValidSpec::parse`] nothing reads the raw spec.

mod checks;

use crate::field::FieldError;
use crate::fingerprint::Fingerprint;
use crate::schedule::{Override, Plan, Schedule};
use checks::Checks;
use five_spot_api::{
    KubeconfigSecretRef, MachineTemplate, NodeTaint, OnTimeout, OverrideState, ProviderObject,
    ScheduledMachineSpec,
};
use jiff::SignedDuration;
use serde::Serialize;
use serde_json::Value;

/// A spec that has been understood, boiled down to what decisions need. It is small enough to be kept for
/// ten thousand objects; of the provider objects only their kind and a fingerprint stay.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidSpec {
    /// When a machine is wanted.
    pub plan: Plan,
    /// How a machine is given back.
    pub handling: Handling,
    /// The CAPI cluster.
    pub cluster_name: String,
    /// The kind of the bootstrap object.
    pub bootstrap: ProviderKind,
    /// The kind of the infrastructure object.
    pub infrastructure: ProviderKind,
    /// 0-100, higher goes first.
    pub priority: u8,
    /// Taints to keep on the Node.
    pub node_taints: Vec<NodeTaint>,
    /// Process names that the reclaim agent looks for.
    pub kill_if_commands: Vec<String>,
    /// The workload cluster's kubeconfig, if the spec names one.
    pub kubeconfig_secret: Option<KubeconfigSecretRef>,
    /// A Machine whose node is not Ready by then has failed.
    pub join_timeout: SignedDuration,
    /// How long before the window closes the node is cordoned.
    pub cordon_before: SignedDuration,
    /// What of the spec a Machine is made from: another value means replacing it.
    pub machine_hash: Fingerprint,
    /// What is applied to a Machine, replacement or not: another value means applying it again.
    pub applied_hash: Fingerprint,
    /// What the agent's ConfigMap is rendered from: another value means rendering it again.
    pub agent_hash: Fingerprint,
}

/// How a machine is given back. Known, as far as it can be read, even for a spec that is not valid, so
/// that every object can be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handling {
    /// Remove now, without draining.
    pub kill_switch: bool,
    /// `spec.schedule.enabled`.
    pub enabled: bool,
    /// There is an override that wants a machine, expired or not.
    pub override_up: bool,
    /// The whole graceful shutdown.
    pub graceful_shutdown_timeout: SignedDuration,
    /// The drain.
    pub node_drain_timeout: SignedDuration,
    /// What happens at the deadline.
    pub on_timeout: OnTimeout,
    /// What pods get in an emergency.
    pub pod_grace_period: SignedDuration,
}

/// A spec that has not been understood, and what is still known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSpec {
    /// What is wrong with it; never empty.
    pub errors: Vec<FieldError>,
    /// How a machine that exists is given back.
    pub handling: Handling,
}

/// The kind of a provider's object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderKind {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

impl ValidSpec {
    /// Understands a spec, or says everything that is wrong with it, sorted by field.
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
        checks.reasons(&spec.schedule, spec.r#override.as_ref());
        let errors = checks.finish();
        // Whatever could not be read has left an error, so the two cases exclude each other.
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
            join_timeout,
            cordon_before,
            machine_hash: Fingerprint::of(&Replaced::of(spec)),
            applied_hash: Fingerprint::of(&Applied::of(spec)),
            agent_hash: Fingerprint::of(&spec.kill_if_commands),
        })
    }

    /// When a machine is wanted.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl InvalidSpec {
    /// What is still known of a spec that [`ValidSpec::parse`] has refused with `errors`.
    pub fn new(spec: &ScheduledMachineSpec, errors: Vec<FieldError>) -> Self {
        let defaults = Handling {
            kill_switch: spec.kill_switch,
            enabled: spec.schedule.enabled,
            override_up: overridden_up(spec),
            graceful_shutdown_timeout: checks::DEFAULT_SHUTDOWN,
            node_drain_timeout: checks::DEFAULT_SHUTDOWN,
            on_timeout: spec.drain.on_timeout,
            pod_grace_period: SignedDuration::ZERO,
        };
        Self { errors, handling: handling(spec).unwrap_or(defaults) }
    }

    /// What is still known of a spec that is not even of our shape, as one from a CRD of another version may be.
    pub fn unreadable(spec: &Value, errors: Vec<FieldError>) -> Self {
        let flag = |path: &str, otherwise| spec.pointer(path).and_then(Value::as_bool).unwrap_or(otherwise);
        let word = |path: &str| spec.pointer(path).and_then(Value::as_str);
        let handling = Handling {
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
        };
        Self { errors, handling }
    }
}

/// Checks the name of a `ScheduledMachine`, which must leave room for the names made from it.
pub fn check_name(name: &str) -> Result<(), FieldError> {
    checks::name(name)
}

fn handling(spec: &ScheduledMachineSpec) -> Result<Handling, Vec<FieldError>> {
    let mut checks = Checks::default();
    let graceful =
        checks.one(checks::timeout(&spec.graceful_shutdown_timeout, "spec.gracefulShutdownTimeout"));
    let drain = checks.one(checks::timeout(&spec.node_drain_timeout, "spec.nodeDrainTimeout"));
    let grace = checks.one(checks::pod_grace_period(&spec.reclaim.pod_grace_period));
    match (graceful, drain, grace) {
        (Some(graceful_shutdown_timeout), Some(node_drain_timeout), Some(pod_grace_period)) => Ok(Handling {
            kill_switch: spec.kill_switch,
            enabled: spec.schedule.enabled,
            override_up: overridden_up(spec),
            graceful_shutdown_timeout,
            node_drain_timeout,
            on_timeout: spec.drain.on_timeout,
            pod_grace_period,
        }),
        (_, _, _) => Err(checks.finish()),
    }
}

fn overridden_up(spec: &ScheduledMachineSpec) -> bool {
    spec.r#override.as_ref().is_some_and(|forced| forced.state == OverrideState::Up)
}

/// A change of any of these means another machine.
#[derive(Serialize)]
struct Replaced<'a> {
    cluster: &'a str,
    bootstrap: &'a ProviderObject,
    infrastructure: &'a ProviderObject,
    version: Option<&'a str>,
    failure_domain: Option<&'a str>,
}

impl<'a> Replaced<'a> {
    fn of(spec: &'a ScheduledMachineSpec) -> Self {
        Self {
            cluster: &spec.cluster_name,
            bootstrap: &spec.bootstrap_spec,
            infrastructure: &spec.infrastructure_spec,
            version: spec.machine_template.version.as_deref(),
            failure_domain: spec.machine_template.failure_domain.as_deref(),
        }
    }
}

/// Everything that goes onto a Machine.
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
