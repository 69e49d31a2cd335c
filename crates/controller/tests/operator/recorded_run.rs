//! A fleet, and everything that can happen to it.

use crate::fixture::{CANARY, OperatorFixture, Page, START};
use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Trigger};
use five_spot_standins::node_name;
use http::StatusCode;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::Builder;

/// The output of the controller.
pub struct Record {
    /// The metrics before anything happened.
    pub fresh: String,
    /// While everybody waited for the first.
    pub crowded: String,
    /// While much was going on.
    pub busy: String,
    /// The time at which everything was deleted.
    pub empty: String,
    /// The log.
    pub log: Page,
    /// The events, as the API server has them.
    pub events: Vec<Value>,
    /// The machines at the end of the run.
    pub machines: Vec<Value>,
}

/// The variable with a directory in which the record is kept, for programs that read it.
const KEEP_IN: &str = "FIVESPOT_OPERATOR_RECORD";

impl Record {
    fn keep(&self, directory: &Path) {
        let pages = [
            ("fresh", &self.fresh),
            ("crowded", &self.crowded),
            ("busy", &self.busy),
            ("empty", &self.empty),
        ];
        for (name, page) in pages {
            std::fs::write(directory.join(name).with_extension("prom"), page).expect("it is written");
        }
        std::fs::write(directory.join("log.json"), self.log.text()).expect("it is written");
    }
}

/// The record of the run, which all tests share.
pub fn record() -> &'static Record {
    static RECORD: OnceLock<Record> = OnceLock::new();
    RECORD.get_or_init(|| {
        let runtime =
            Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        let record = runtime.block_on(async { run_days(OperatorFixture::new("trace")).await });
        if let Some(directory) = std::env::var_os(KEEP_IN) {
            record.keep(directory.as_ref());
        }
        record
    })
}

/// A machine that is wanted from nine to five, Monday to Friday.
pub fn machine(name: &str, further: &Value) -> Value {
    let mut machine = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-16"]},
            "clusterName": "shop",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig",
                "spec": {"version": "v1.36.4+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                "spec": {"address": format!("{name}.example.org"), "port": 22},
            },
        },
    });
    for (field, value) in further.as_object().into_iter().flatten() {
        machine["spec"][field] = value.clone();
    }
    machine
}

pub fn node(machine: &str) -> String {
    node_name("shop", &five_spot_api::names::infrastructure(machine))
}

/// Two pods that run on a machine while it is lent, of which a budget lets so many be away.
pub fn tenants(world: &OperatorFixture, machine: &str, away: u32) {
    let labels = json!({"app": machine});
    let meta = json!({"name": machine, "namespace": "shop"});
    world.create(
        "/apis/apps/v1/namespaces/shop/deployments",
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
            "spec": {
                "replicas": 2, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "nodeSelector": {"kubernetes.io/hostname": node(machine)},
                        "containers": [{"name": "main", "image": "example.org/app:1"}],
                    },
                },
            },
        }),
    );
    world.create(
        "/apis/policy/v1/namespaces/shop/poddisruptionbudgets",
        &json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta,
            "spec": {"maxUnavailable": away, "selector": {"matchLabels": labels}},
        }),
    );
}

async fn set_budget(world: &OperatorFixture, machine: &str, away: u32) {
    let path = format!("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/{machine}");
    world.patch(&path, &json!({"spec": {"maxUnavailable": away}})).await;
}

/// A fault of writes to a path, for a period.
fn trouble(world: &OperatorFixture, path: &str, (from, until): (&str, &str), fault: InjectedFault) {
    let (from, until) = (from.parse().expect("an instant"), until.parse().expect("an instant"));
    let trigger = Trigger::Between(from, until);
    world.faults.add(FaultRule { kind: RequestKind::Write, path: path.to_owned(), trigger, fault });
}

/// Runs all of it, and leaves nothing behind.
async fn run_days(mut world: OperatorFixture) -> Record {
    let world = &mut world;
    let fresh = world.metrics.page();
    world.create(
        "/api/v1/namespaces/shop/secrets",
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": "shop"}, "stringData": {"value": CANARY}}),
    );
    // No Machine for this one until half past nine, no event at all for a moment, and slow writes for another.
    let refused = InjectedFault::Refuse(StatusCode::UNPROCESSABLE_ENTITY, None);
    trouble(world, "/remotemachines/refused-infra", (START, "2026-11-16T09:30:00Z"), refused);
    let forbidden = InjectedFault::Refuse(StatusCode::FORBIDDEN, None);
    trouble(world, "/namespaces/shop/events", ("2026-11-16T09:00:00Z", "2026-11-16T09:00:01Z"), forbidden);
    let slow = InjectedFault::Delay(Duration::from_secs(2));
    trouble(world, "/scheduledmachines/", ("2026-11-16T09:00:00Z", "2026-11-16T09:00:05Z"), slow);
    world.lend(&machine("shift", &json!({})));
    tenants(world, "shift", 0);
    // Without Leases for a moment, this one and the one that gets stuck are lent the same machine.
    let forbidden = InjectedFault::Refuse(StatusCode::FORBIDDEN, None);
    trouble(world, "/leases", ("2026-11-16T09:00:00Z", "2026-11-16T09:00:20Z"), forbidden);
    let mut switch = machine("switch", &json!({}));
    switch["spec"]["infrastructureSpec"]["spec"]["address"] = "stuck.example.org".into();
    world.lend(&switch);
    world.lend(&machine("refused", &json!({})));
    world.lend(&machine("taken", &json!({"killIfCommands": ["java"]})));
    world.lend(&machine("stuck", &json!({})));
    tenants(world, "stuck", 0);
    let force = json!({"drain": {"onTimeout": "Force"}, "gracefulShutdownTimeout": "1m"});
    world.lend(&machine("forced", &force));
    tenants(world, "forced", 0);
    world.lend(&machine("lost", &json!({})));
    world.begin();
    for name in ["shift", "switch", "refused", "taken", "stuck", "forced", "lost"] {
        world.phase(name, "Inactive").await;
    }
    world.until(0, "09:00:01").await;
    let crowded = world.metrics.page();
    world.until(0, "10:00:00").await;
    world.change("switch", &json!({"killSwitch": true})).await;
    world.phase("switch", "Terminated").await;
    reclaim_thrice(world).await;
    world.change("forced", &json!({"schedule": {"enabled": false}})).await;
    world.phase("forced", "Disabled").await;
    leave_node_behind(world).await;
    world.change("shift", &json!({"schedule": {"enabled": false}})).await;
    hold_and_release(world).await;
    lose_node(world).await;
    // A watch has an age only when its last event is not of this instant.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let busy = world.metrics.page();
    let machines = world.machines().await;
    world.remove("stuck").await;
    for name in ["shift", "switch", "refused", "taken", "forced", "lost"] {
        world.remove(name).await;
    }
    world.wait("everything to be gone", async || world.machines().await.is_empty()).await;
    // Links that nobody needs are closed ten seconds after the last change.
    tokio::time::sleep(Duration::from_secs(21)).await;
    let empty = world.metrics.page();
    world.end().await;
    let events = world.get("/apis/events.k8s.io/v1/events").await.expect("a list");
    let events = events["items"].as_array().cloned().expect("a list");
    Record { fresh, crowded, busy, empty, log: world.log.clone(), events, machines }
}

/// True if a machine has a Ready node.
pub async fn is_lent(world: &OperatorFixture, machine: &str) -> bool {
    let status = world.status(machine).await;
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|one| one["type"] == "MachineReady" && one["status"] == "True")
}

/// The owner of a machine wants it back.
pub async fn reclaim(world: &OperatorFixture, machine: &str) {
    let annotations = json!({
        "5spot.finos.org/reclaim-requested": "true",
        "5spot.finos.org/reclaim-reason": "process-match: java",
        "5spot.finos.org/reclaim-requested-at": world.clock.now().to_string(),
    });
    let path = format!("/api/v1/nodes/{}", node(machine));
    world.patch(&path, &json!({"metadata": {"annotations": annotations}})).await;
}

/// An owner takes a machine back three times within ten minutes, while someone switches it on again each time.
async fn reclaim_thrice(world: &OperatorFixture) {
    for _ in 0..3 {
        world.change("taken", &json!({"schedule": {"enabled": true}})).await;
        world.wait("taken to be lent", async || is_lent(world, "taken").await).await;
        reclaim(world, "taken").await;
        world.phase("taken", "Disabled").await;
    }
    world.change("taken", &json!({"schedule": {"enabled": true}})).await;
    world.wait("taken to be lent", async || is_lent(world, "taken").await).await;
}

/// A Machine goes without Cluster API having deleted its Node.
async fn leave_node_behind(world: &OperatorFixture) {
    let path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/shop/machines/lost-machine";
    world.patch(path, &json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}})).await;
    world.change("lost", &json!({"killSwitch": true})).await;
    let is_going = async || {
        let machine = world.get(path).await.unwrap_or_default();
        machine["metadata"]["deletionTimestamp"].is_string()
    };
    world.wait("the Machine to be deleted", is_going).await;
    world.patch(path, &json!({"metadata": {"finalizers": null}})).await;
    world.phase("lost", "Terminated").await;
    world.delete(&format!("/api/v1/nodes/{}", node("lost"))).await;
    world.change("lost", &json!({"killSwitch": false})).await;
    world.wait("lost to be lent again", async || is_lent(world, "lost").await).await;
}

/// A Node vanishes while its Machine lives.
async fn lose_node(world: &OperatorFixture) {
    world.wait("lost to be lent", async || is_lent(world, "lost").await).await;
    world.delete(&format!("/api/v1/nodes/{}", node("lost"))).await;
    let has_lost_it = async || {
        let status = world.status("lost").await;
        status["conditions"].to_string().contains("NodeLost")
    };
    world.wait("the lost Node to be noticed", has_lost_it).await;
}

/// A budget holds a machine beyond its deadline, until someone relents.
async fn hold_and_release(world: &OperatorFixture) {
    world.phase("shift", "Error").await;
    // Long enough for the same fault to be found again and again.
    tokio::time::sleep(Duration::from_mins(20)).await;
    set_budget(world, "shift", 2).await;
    world.phase("shift", "Disabled").await;
    world.change("shift", &json!({"schedule": {"enabled": true}})).await;
    world.until(0, "17:30:00").await;
    world.phase("shift", "Inactive").await;
    world.until(1, "10:00:00").await;
    world.phase("shift", "Active").await;
}
