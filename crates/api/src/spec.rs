//! The parts of a `ScheduledMachine`'s spec.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When a machine should belong to its cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleSpec {
    /// Local weekdays: `mon`, `mon-fri`, `fri-mon` (wraps), comma combinations. Absent: every day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days_of_week: Option<Vec<String>>,
    /// Local hours 0-23: `9`, `9-17` (09:00 up to 17:59:59), `22-6` (wraps), comma combinations.
    /// Absent: all 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours_of_day: Option<Vec<String>>,
    /// The IANA time zone of all local times.
    #[serde(default = "utc")]
    pub timezone: String,
    /// False: no machine, phase `Disabled`.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Windows to the minute, united with days and hours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WeeklyWindow>,
    /// Holidays and half days, in order: a later one wins over an earlier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<ScheduleException>,
    /// How long before the window provisioning starts.
    #[serde(default = "no_time")]
    pub lead_time: String,
}

/// A weekly window of local time, half open. It may cross midnight and the end of the week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct WeeklyWindow {
    /// The first minute, such as `fri 21:30`.
    pub from: String,
    /// The first minute no longer inside, such as `mon 06:00`.
    pub to: String,
}

/// Days on which the weekly pattern does not hold. Either `date`, or `from` and `to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct ScheduleException {
    /// One local day, such as `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The first local day of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The last local day of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether these days are taken out of the schedule or added to it.
    pub state: ScheduleState,
    /// Hours in the grammar of `hoursOfDay`. Absent: the whole day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Vec<String>>,
    /// For people: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What an exception makes of its days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleState {
    /// Added to the schedule.
    Open,
    /// Taken out of the schedule.
    Closed,
}

/// A provider's object, written inline. It is made in the object's own namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderObject {
    /// Group and version, such as `bootstrap.cluster.x-k8s.io/v1beta2`.
    pub api_version: String,
    /// The kind, such as `K0sWorkerConfig`.
    pub kind: String,
    /// The spec of the object, as its provider defines it.
    #[schemars(schema_with = "any_object")]
    pub spec: serde_json::Map<String, serde_json::Value>,
}

/// What goes onto the CAPI Machine besides the references.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Labels of the Machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The Kubernetes version that CAPI is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The failure domain that CAPI is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
}

/// How the node is emptied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainSpec {
    /// What happens when pods still block at the deadline.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// How long before the window closes the node is cordoned, so that jobs run out.
    #[serde(default = "no_time")]
    pub cordon_before: String,
}

impl Default for DrainSpec {
    fn default() -> Self {
        Self { on_timeout: OnTimeout::default(), cordon_before: no_time() }
    }
}

/// What happens at the drain deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnTimeout {
    /// Keep Machine and cordon, go to phase `Error`, keep trying.
    #[default]
    Error,
    /// Delete the Machine without draining any further.
    Force,
}

/// How an emergency reclaim treats pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimSpec {
    /// The grace that pods get in an emergency, at most 45s.
    #[serde(default = "no_time")]
    pub pod_grace_period: String,
}

impl Default for ReclaimSpec {
    fn default() -> Self {
        Self { pod_grace_period: no_time() }
    }
}

/// A taint that the controller owns on the Node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, KubeSchema)]
pub struct NodeTaint {
    /// The key; together with the effect it identifies the taint.
    pub key: String,
    /// The value; it may change while the taint stays the same taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The effect.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// They are not scheduled here.
    NoSchedule,
    /// They are not scheduled here if it can be helped.
    PreferNoSchedule,
    /// They are evicted.
    NoExecute,
}

impl TaintEffect {
    /// Every effect there is.
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// The word on the Node.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// The Secret that holds the kubeconfig of the workload cluster, in the object's own namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct KubeconfigSecretRef {
    /// The name of the Secret.
    pub name: String,
    /// The key in the Secret.
    #[serde(default = "value_key")]
    pub key: String,
}

/// Wins over the schedule until it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct OverrideSpec {
    /// Whether a machine is wanted meanwhile.
    pub state: OverrideState,
    /// Until when, RFC 3339 with a zone, such as `2026-12-24T18:00:00Z`.
    pub until: String,
    /// For people: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What an override wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverrideState {
    /// A machine, whatever the schedule says.
    Up,
    /// No machine, whatever the schedule says.
    Down,
}

fn utc() -> String {
    "UTC".to_owned()
}

const fn yes() -> bool {
    true
}

fn no_time() -> String {
    "0s".to_owned()
}

fn value_key() -> String {
    "value".to_owned()
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
