//! The parts of a `ScheduledMachine`'s spec.

use crate::rules;
use crate::schema::validations;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When a machine should belong to its cluster. At least one of `daysOfWeek`, `hoursOfDay` and `windows` is needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = validations(&[rules::SCHEDULE_PRESENT])))]
pub struct ScheduleSpec {
    /// The weekdays on which the machine is lent, in local time: `mon`, `mon-fri`, `fri-mon` (over the
    /// end of the week), or several joined by commas. Absent, while `hoursOfDay` is present: every day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::days_of_week")]
    pub days_of_week: Option<Vec<String>>,
    /// The hours in which the machine is lent, in local time: `9`, `9-17` (from 09:00 up to 17:59:59),
    /// `22-6` (over midnight; it belongs to the day on which it starts), or several joined by commas.
    /// Absent, while `daysOfWeek` is present: all 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::hours_of_day")]
    pub hours_of_day: Option<Vec<String>>,
    /// The time zone of every local time in the schedule: a name from the IANA database, such as
    /// `Europe/Berlin`.
    #[serde(default = "utc")]
    #[schemars(schema_with = "crate::schema::timezone")]
    pub timezone: String,
    /// Whether the schedule is followed. If false there is no machine: one that exists is drained and
    /// removed, and the phase becomes `Disabled`.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Weekly windows to the minute. The machine is lent in them as well as in the days and hours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub windows: Vec<WeeklyWindow>,
    /// Holidays, half days and other days on which the week does not go as usual, in order: a later one
    /// wins over an earlier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 400))]
    pub exceptions: Vec<ScheduleException>,
    /// How long before a window opens the machine is already provisioned, so that its node is ready in time.
    #[serde(default = "no_time")]
    #[schemars(schema_with = "crate::schema::duration_or_zero")]
    pub lead_time: String,
}

/// A weekly window of local time, half open. It may cross midnight and the end of the week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[schemars(extend("x-kubernetes-validations" = validations(&[rules::WINDOW_NOT_EMPTY])))]
pub struct WeeklyWindow {
    /// The first minute of the window: a weekday and a local time, such as `fri 21:30`.
    #[schemars(schema_with = "crate::schema::minute_of_week")]
    pub from: String,
    /// The first minute after the window: a weekday and a local time, such as `mon 06:00`.
    #[schemars(schema_with = "crate::schema::minute_of_week")]
    pub to: String,
}

/// Days on which the weekly pattern does not hold. Either `date`, or `from` and `to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[schemars(extend("x-kubernetes-validations" = validations(&[rules::EXCEPTION_DAYS, rules::EXCEPTION_ORDER])))]
pub struct ScheduleException {
    /// One local day, such as `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::date")]
    pub date: Option<String>,
    /// The first local day of a range, such as `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::date")]
    pub from: Option<String>,
    /// The last local day of a range, such as `2027-01-02`; it belongs to the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::date")]
    pub to: Option<String>,
    /// Whether these days are added to the schedule (`open`) or taken out of it (`closed`).
    pub state: ScheduleState,
    /// The hours of the day that are meant, written as in `hoursOfDay`. Absent: the whole day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::exception_hours")]
    pub hours: Option<Vec<String>>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::reason")]
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
    /// Group and version of the object, such as `bootstrap.cluster.x-k8s.io/v1beta2`. The group is one of
    /// `bootstrap.cluster.x-k8s.io`, `infrastructure.cluster.x-k8s.io` and `k0smotron.io`.
    #[schemars(schema_with = "crate::schema::provider_api_version")]
    pub api_version: String,
    /// The kind of the object, such as `K0sWorkerConfig`.
    #[schemars(schema_with = "crate::schema::provider_kind")]
    pub kind: String,
    /// The spec of the object, as its provider defines it.
    #[schemars(schema_with = "crate::schema::any_object")]
    pub spec: serde_json::Map<String, serde_json::Value>,
}

/// What goes onto the CAPI Machine besides the references.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Labels of the Machine. Keys in the domains of 5-Spot, Cluster API and Kubernetes are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Machine. Keys in the domains of 5-Spot, Cluster API and Kubernetes are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::annotations")]
    pub annotations: BTreeMap<String, String>,
    /// The Kubernetes version of the Machine, such as `v1.36.4`. Passed on to Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::kubernetes_version")]
    pub version: Option<String>,
    /// The failure domain of the Machine. Passed on to Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::failure_domain")]
    pub failure_domain: Option<String>,
}

/// How the node is emptied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainSpec {
    /// What happens when pods still hold the node at the deadline: `Error` keeps Machine and cordon and
    /// goes on trying, `Force` deletes the Machine without draining any further.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// How long before the window closes the node is cordoned, so that jobs run out by themselves.
    #[serde(default = "no_time")]
    #[schemars(schema_with = "crate::schema::duration_or_zero")]
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
    /// The time that pods get to end in an emergency, at most `45s`.
    #[serde(default = "no_time")]
    #[schemars(schema_with = "crate::schema::pod_grace_period")]
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
    /// The key of the taint; together with the effect it identifies the taint. Keys in the domains of
    /// 5-Spot, Cluster API and Kubernetes are refused.
    #[schemars(schema_with = "crate::schema::taint_key")]
    pub key: String,
    /// The value of the taint; it may change while the taint stays the same taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_value")]
    pub value: Option<String>,
    /// What the taint does to pods that do not tolerate it.
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
    #[schemars(schema_with = "crate::schema::secret_name")]
    pub name: String,
    /// The key in the Secret under which the kubeconfig is kept.
    #[serde(default = "value_key")]
    #[schemars(schema_with = "crate::schema::secret_key")]
    pub key: String,
}

/// Wins over the schedule until it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct OverrideSpec {
    /// Whether a machine is wanted meanwhile (`up`) or not (`down`).
    pub state: OverrideState,
    /// Until when the override holds: a time in RFC 3339 with its offset, such as `2026-12-24T18:00:00Z`.
    #[schemars(schema_with = "crate::schema::until")]
    pub until: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::reason")]
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
