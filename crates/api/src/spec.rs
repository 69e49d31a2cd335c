//! The types that make up the spec of a `ScheduledMachine`.

use crate::rules;
use crate::schema::validations;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The times at which a machine belongs to its cluster. At least one of `daysOfWeek`, `hoursOfDay` and `windows` is required.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = validations(&[rules::SCHEDULE_PRESENT])))]
pub struct ScheduleSpec {
    /// The weekdays on which the machine is lent, in local time: `mon`, `mon-fri`, `fri-mon` (across the weekend), or
    /// several of these separated by commas. If only `hoursOfDay` is set, every day counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::days_of_week")]
    pub days_of_week: Option<Vec<String>>,
    /// The hours in which the machine is lent, in local time: `9`, `9-17` (from 09:00 to 17:59:59), `22-6` (across
    /// midnight; it belongs to the day on which it starts), or several of these separated by commas. If only `daysOfWeek`
    /// is set, all 24 hours count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::hours_of_day")]
    pub hours_of_day: Option<Vec<String>>,
    /// The time zone of all local times in the schedule: an IANA name, such as `Europe/Berlin`.
    #[serde(default = "utc")]
    #[schemars(schema_with = "crate::schema::timezone")]
    pub timezone: String,
    /// Turns the schedule on or off. If false, a machine that is lent is drained and removed, and the phase becomes
    /// `Disabled`.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Weekly windows with minute precision. The machine is lent in these windows in addition to the days and hours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub windows: Vec<WeeklyWindow>,
    /// Holidays, half days and other deviations from the weekly schedule. They are applied in order: a later entry takes
    /// precedence over an earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 400))]
    pub exceptions: Vec<ScheduleException>,
    /// The time before a window opens at which provisioning starts, so that the node is ready when the window opens.
    #[serde(default = "no_time")]
    #[schemars(schema_with = "crate::schema::duration_or_zero")]
    pub lead_time: String,
}

/// A weekly window in local time. It may cross midnight and the end of the week.
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

/// Days that deviate from the weekly schedule: either `date`, or both `from` and `to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[schemars(extend("x-kubernetes-validations" = validations(&[rules::EXCEPTION_DAYS, rules::EXCEPTION_ORDER])))]
pub struct ScheduleException {
    /// A single local day, such as `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::date")]
    pub date: Option<String>,
    /// The first local day of a range, such as `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::date")]
    pub from: Option<String>,
    /// The last local day of a range, such as `2027-01-02`. It is part of the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::date")]
    pub to: Option<String>,
    /// `open` adds these days to the schedule, `closed` removes them from it.
    pub state: ScheduleState,
    /// The hours to which the exception applies, in the format of `hoursOfDay`. The default is the whole day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::exception_hours")]
    pub hours: Option<Vec<String>>,
    /// A reason for people to read. It has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::reason")]
    pub reason: Option<String>,
}

/// The effect of an exception on its days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleState {
    /// The days are added to the schedule.
    Open,
    /// The days are removed from the schedule.
    Closed,
}

/// A provider object, written inline. It is created in the namespace of the `ScheduledMachine`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderObject {
    /// The API group and version of the object, such as `bootstrap.cluster.x-k8s.io/v1beta2`. Allowed groups are
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

/// Labels, annotations and other fields of the Cluster API Machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Labels of the Machine. Keys in the domains of 5-Spot, Cluster API and Kubernetes are not allowed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Machine. Keys in the domains of 5-Spot, Cluster API and Kubernetes are not allowed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::annotations")]
    pub annotations: BTreeMap<String, String>,
    /// The Kubernetes version of the Machine, such as `v1.36.4`. It is passed on to Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::kubernetes_version")]
    pub version: Option<String>,
    /// The failure domain of the Machine. It is passed on to Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::failure_domain")]
    pub failure_domain: Option<String>,
}

/// Settings of the node drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainSpec {
    /// The action to take when pods still block the drain at the deadline: `Error` keeps the Machine and the cordon and
    /// keeps retrying, `Force` deletes the Machine without waiting for the pods.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// The time before the window closes at which the node is cordoned, so that running jobs can finish.
    #[serde(default = "no_time")]
    #[schemars(schema_with = "crate::schema::duration_or_zero")]
    pub cordon_before: String,
}

impl Default for DrainSpec {
    fn default() -> Self {
        Self { on_timeout: OnTimeout::default(), cordon_before: no_time() }
    }
}

/// The action to take at the drain deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnTimeout {
    /// Keep the Machine and the cordon, enter phase `Error` and keep retrying.
    #[default]
    Error,
    /// Delete the Machine without waiting for the pods.
    Force,
}

/// The condition under which a machine is lent again after an emergency reclaim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReclaimResume {
    /// `schedule.enabled` is true again.
    #[default]
    OnEnable,
    /// The annotation `5spot.finos.org/resume` of the object holds an RFC 3339 time between the newest reclaim and now,
    /// whatever the value of `schedule.enabled` was in the meantime.
    OnAnnotation,
}

/// Settings of the emergency reclaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimSpec {
    /// The grace period of pods in an emergency reclaim, at most `45s`.
    #[serde(default = "no_time")]
    #[schemars(schema_with = "crate::schema::pod_grace_period")]
    pub pod_grace_period: String,
    /// The condition under which the machine is lent again after a reclaim. `OnAnnotation` is for clusters with GitOps
    /// tools, which revert `schedule.enabled: false` within minutes.
    #[serde(default)]
    pub resume: ReclaimResume,
}

impl Default for ReclaimSpec {
    fn default() -> Self {
        Self { pod_grace_period: no_time(), resume: ReclaimResume::default() }
    }
}

/// A taint that the controller sets on the Node and keeps there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, KubeSchema)]
pub struct NodeTaint {
    /// The key of the taint. Key and effect together identify it. Keys in the domains of 5-Spot, Cluster API and
    /// Kubernetes are not allowed.
    #[schemars(schema_with = "crate::schema::taint_key")]
    pub key: String,
    /// The value of the taint. A changed value is updated in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_value")]
    pub value: Option<String>,
    /// The effect of the taint on pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// They are not scheduled on the node.
    NoSchedule,
    /// The scheduler avoids the node if it can.
    PreferNoSchedule,
    /// They are evicted from the node.
    NoExecute,
}

impl TaintEffect {
    /// All effects.
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// The name of the effect in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// The Secret with the kubeconfig of the workload cluster, in the namespace of the `ScheduledMachine`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct KubeconfigSecretRef {
    /// The name of the Secret.
    #[schemars(schema_with = "crate::schema::secret_name")]
    pub name: String,
    /// The key of the Secret that holds the kubeconfig.
    #[serde(default = "value_key")]
    #[schemars(schema_with = "crate::schema::secret_key")]
    pub key: String,
}

/// A temporary override of the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct OverrideSpec {
    /// `up` lends the machine whatever the schedule says, `down` removes it.
    pub state: OverrideState,
    /// The end of the override: an RFC 3339 time with an offset, such as `2026-12-24T18:00:00Z`.
    #[schemars(schema_with = "crate::schema::until")]
    pub until: String,
    /// A reason for people to read. It has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::reason")]
    pub reason: Option<String>,
}

/// The effect of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverrideState {
    /// The machine is lent whatever the schedule says.
    Up,
    /// The machine is removed whatever the schedule says.
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
