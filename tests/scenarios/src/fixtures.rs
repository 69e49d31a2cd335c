//! Fixtures around a machine: pods on its node, budgets that block them, windows of time.

use crate::environment::Environment;
use crate::kinds::{BUDGET, DEPLOYMENT, POD};
use crate::subject::{condition, merge};
use five_spot_standins::STOPS_AFTER_ANNOTATION;
use futures::{TryStreamExt as _, stream};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

/// On a pod of the real control plane: how long it takes to stop, such as `2s`.
pub(crate) const EXIT_DELAY_ANNOTATION: &str = "testenv.5spot.finos.org/exit-delay";

/// The number of pods created at the same time.
const HANDS: usize = 16;

impl dyn Environment + '_ {
    /// A pod without an owner that runs on a node, labelled `app: <name>`.
    pub async fn pod_on(&self, node: &str, name: &str) -> anyhow::Result<()> {
        self.pod_that(node, name, json!({})).await
    }

    /// The same, changed by a merge patch.
    pub async fn pod_that(&self, node: &str, name: &str, differs: Value) -> anyhow::Result<()> {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": name}, "annotations": {STOPS_AFTER_ANNOTATION: "1s"}},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "image": "registry.invalid/sleeper"}],
                "terminationGracePeriodSeconds": 1,
            },
        });
        merge(&mut pod, differs);
        self.create(POD, pod).await?;
        self.until(POD, name, "to run", |pod| condition(pod, "Ready")["status"] == "True").await.map(drop)
    }

    /// This many pods on a node, each of which takes this long to stop.
    pub async fn pods_on(&self, node: &str, count: usize, stops_after: i64) -> anyhow::Result<()> {
        let takes = format!("{stops_after}s");
        let differs = json!({
            "metadata": {"annotations": {STOPS_AFTER_ANNOTATION: takes, EXIT_DELAY_ANNOTATION: takes}},
            "spec": {"terminationGracePeriodSeconds": stops_after + 5},
        });
        let names = (0..count).map(|number| format!("many-{number:03}"));
        let pods = names.map(|name| {
            let differs = differs.clone();
            async move { self.pod_that(node, &name, differs).await }
        });
        stream::iter(pods.map(Ok)).try_for_each_concurrent(HANDS, |pod| pod).await
    }

    /// A Deployment of this many pods, all on one node.
    pub async fn deployment_on(&self, node: &str, name: &str, replicas: usize) -> anyhow::Result<()> {
        self.deployment_that(node, name, replicas, json!({})).await
    }

    /// The same, with the template of its pods changed by a merge patch.
    pub async fn deployment_that(
        &self,
        node: &str,
        name: &str,
        replicas: usize,
        differs: Value,
    ) -> anyhow::Result<()> {
        let mut deployment = json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "nodeSelector": {"kubernetes.io/hostname": node},
                        "containers": [{"name": "main", "image": "registry.invalid/sleeper"}],
                        "terminationGracePeriodSeconds": 1,
                    },
                },
            },
        });
        merge(&mut deployment["spec"]["template"], differs);
        self.create(DEPLOYMENT, deployment).await?;
        let all = |deployment: &Value| deployment["status"]["readyReplicas"] == replicas;
        self.until(DEPLOYMENT, name, "to be ready", all).await.map(drop)
    }

    /// A budget that allows no disruption of the one pod of `app`, once its pods have been counted.
    pub async fn budget_for(&self, app: &str) -> anyhow::Result<()> {
        let budget = json!({
            "metadata": {"name": app},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
        });
        self.create(BUDGET, budget).await?;
        let counted = |budget: &Value| {
            let status = &budget["status"];
            status["currentHealthy"] == 1
                && status["disruptionsAllowed"] == 0
                && status["observedGeneration"] == budget["metadata"]["generation"]
        };
        self.until(BUDGET, app, "to be counted", counted).await.map(drop)
    }

    /// The first full minute that is at least this many seconds away.
    pub fn next_minute(&self, seconds: i64) -> Timestamp {
        let earliest = self.now().as_second() + seconds;
        Timestamp::from_second(earliest.div_euclid(60) * 60 + 60).unwrap_or(Timestamp::MAX)
    }
}

/// The schedule with one window, from one full minute to another.
pub(crate) fn window(from: Timestamp, to: Timestamp) -> Value {
    json!({"daysOfWeek": null, "timezone": "UTC", "windows": [{"from": minute(from), "to": minute(to)}]})
}

fn minute(time: Timestamp) -> String {
    let time = time.to_zoned(TimeZone::UTC);
    let day = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        [usize::from(time.weekday().to_monday_zero_offset().unsigned_abs())];
    format!("{day} {:02}:{:02}", time.hour(), time.minute())
}

/// A schedule whose one window lies half a week away.
pub(crate) fn closed(now: Timestamp) -> Value {
    let from = Timestamp::from_second(now.as_second() + 84 * 3600).unwrap_or(now);
    let to = Timestamp::from_second(now.as_second() + 85 * 3600).unwrap_or(now);
    window(from, to)
}

/// An override until a moment.
pub(crate) fn override_until(state: &str, until: Timestamp) -> Value {
    json!({"override": {"state": state, "until": until.to_string(), "reason": "as the scenario says"}})
}
