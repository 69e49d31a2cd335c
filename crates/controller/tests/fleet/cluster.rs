//! A cluster with many scheduled machines.

use crate::instance::{Answered, Instance, Shared};
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_cluster::Now;
use five_spot_core::RemovalLimit;
use five_spot_standins::{Contract, StandInSettings, StandIns, Timing, cluster_api_crds, provider_crds};
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const OBJECTS: &str = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines";
const ALL_OBJECTS: &str = "/apis/5spot.finos.org/v1alpha1/scheduledmachines";
const ALL_MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/machines";
const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/shop/machines";
pub const HOME: &str = "/api/v1/namespaces/5spot-system";

/// A cluster. It is Monday, 08:59, and all windows open at 09:00.
pub struct Cluster {
    pub shared: Shared,
    /// The seconds by which the clock of the controllers is wrong.
    pub(crate) jump: Arc<AtomicI64>,
    pub limit: RemovalLimit,
}

impl Cluster {
    /// A cluster with this many machines, whose windows are open until a time of the day.
    pub fn new(machines: usize, until: &str) -> Self {
        let clock = Clock::starting_at("2026-11-16T08:59:00Z".parse().expect("an instant"));
        let api = ApiServer::new(ApiServerConfig::new(clock.clone()));
        let crd = serde_json::to_value(five_spot_api::crd()).expect("it is JSON");
        for crd in cluster_api_crds(Contract::V1Beta2).iter().chain(&provider_crds()).chain([&crd]) {
            api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
        }
        for namespace in ["shop", "5spot-system"] {
            api.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
        }
        for number in 0..machines {
            api.create(OBJECTS, &machine(&format!("m{number}"), until));
        }
        let client = || api.client("default");
        let stand_ins =
            StandIns::new(client(), client(), clock.clone(), StandInSettings::new(Timing::default()));
        tokio::spawn(stand_ins.run());
        let shared = Shared {
            api,
            clock,
            answered: Arc::default(),
            refuses_leases: Arc::default(),
            processes: Arc::default(),
            referee: None,
        };
        Self { shared, jump: Arc::default(), limit: RemovalLimit::default() }
    }

    pub fn start(&self, id: u32, count: u32) -> Instance {
        Instance::start(&self.shared, (id, count), false, self.limit, self.clock())
    }

    /// Starts one of several replicas of an instance, which elect a leader.
    pub fn start_replica(&self, id: u32, count: u32) -> Instance {
        Instance::start(&self.shared, (id, count), true, self.limit, self.clock())
    }

    fn clock(&self) -> Now {
        let (clock, jump) = (self.shared.clock.clone(), self.jump.clone());
        Arc::new(move || clock.now() + SignedDuration::from_secs(jump.load(Ordering::SeqCst)))
    }

    /// Sets the clock of the controllers forward or back.
    pub fn set_clock(&self, by: SignedDuration) {
        self.jump.store(by.as_secs(), Ordering::SeqCst);
    }

    pub async fn sleep(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Lets time pass until a time of the day.
    pub async fn until(&self, time: &str) {
        let at: Timestamp = format!("2026-11-16T{time}Z").parse().expect("an instant");
        let wait = Duration::try_from(at.duration_since(self.shared.clock.now())).unwrap_or_default();
        tokio::time::sleep(wait).await;
    }

    async fn get(&self, path: &str) -> Value {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        self.shared.api.client("default").request(request).await.expect("it is there")
    }

    pub async fn patch(&self, path: &str, change: &Value) {
        let body = serde_json::to_vec(change).expect("JSON");
        let request = Request::patch(path).header("content-type", "application/merge-patch+json").body(body);
        let answer: Result<Value, _> =
            self.shared.api.client("default").request(request.expect("a request")).await;
        answer.expect("it is there");
    }

    pub async fn delete(&self, path: &str) {
        let request = Request::delete(path).body(Vec::new()).expect("a request");
        let _: Result<Value, _> = self.shared.api.client("default").request(request).await;
    }

    pub async fn change(&self, name: &str, spec: &Value) {
        self.patch(&format!("{OBJECTS}/{name}"), &json!({"spec": spec})).await;
    }

    /// Creates an object with the address of another one.
    pub fn create_at(&self, (namespace, name): (&str, &str), address: &str, until: &str, priority: u8) {
        let mut object = machine(name, until);
        object["metadata"]["namespace"] = namespace.into();
        object["spec"]["infrastructureSpec"]["spec"]["address"] = address.into();
        object["spec"]["priority"] = priority.into();
        self.shared.api.create(&OBJECTS.replace("shop", namespace), &object);
    }

    pub fn create_namespace(&self, name: &str) {
        self.shared.api.create("/api/v1/namespaces", &json!({"metadata": {"name": name}}));
    }

    /// The objects of all namespaces.
    pub async fn all_objects(&self) -> Vec<Value> {
        self.get(ALL_OBJECTS).await["items"].as_array().cloned().unwrap_or_default()
    }

    /// The Machines of all namespaces.
    pub async fn all_machines(&self) -> Vec<Value> {
        self.get(ALL_MACHINES).await["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn change_status(&self, name: &str, status: &Value) {
        self.patch(&format!("{OBJECTS}/{name}/status"), &json!({"status": status})).await;
    }

    pub async fn objects(&self) -> Vec<Value> {
        self.get(OBJECTS).await["items"].as_array().cloned().unwrap_or_default()
    }

    /// The number of objects in a phase.
    pub async fn in_phase(&self, phase: &str) -> usize {
        self.objects().await.iter().filter(|object| object["status"]["phase"] == phase).count()
    }

    /// The number of objects whose removal the brake holds.
    pub async fn held(&self) -> usize {
        let is_held = |object: &&Value| {
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| {
                condition["type"] == "Paused"
                    && condition["status"] == "True"
                    && condition["reason"] == "TooManyRemovals"
            })
        };
        self.objects().await.iter().filter(is_held).count()
    }

    pub async fn machines(&self) -> usize {
        self.get(MACHINES).await["items"].as_array().map_or(0, Vec::len)
    }

    /// The Leases of the instances. Those that claim machines are no concern of theirs.
    pub async fn leases(&self) -> Vec<Value> {
        let leases = self.get("/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases").await;
        let is_claim = |lease: &Value| {
            lease["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("5spot-machine-"))
        };
        let all = leases["items"].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|lease| !is_claim(lease)).collect()
    }

    pub async fn events(&self, reason: &str) -> usize {
        let events = self.get("/apis/events.k8s.io/v1/namespaces/shop/events").await;
        let events = events["items"].as_array().cloned().unwrap_or_default();
        events.iter().filter(|event| event["reason"] == reason).count()
    }

    pub fn answered(&self) -> Vec<Answered> {
        self.shared.answered.lock().expect("no panic").clone()
    }

    /// The writes of all instances to an object and what belongs to it.
    pub fn writes(&self, number: usize) -> Vec<Answered> {
        let name = format!("m{number}");
        let is_write = |request: &Answered| {
            request.method != Method::GET && object_of(&request.path) == Some(name.as_str())
        };
        self.answered().into_iter().filter(is_write).collect()
    }

    /// The numbers of Machines that were created, and of DELETEs of Machines that were accepted.
    pub fn effects(&self) -> (usize, usize) {
        let answered = self.answered();
        let of_machine = |request: &&Answered| request.path.starts_with(MACHINES);
        let made = answered.iter().filter(of_machine).filter(|request| request.code == 201).count();
        let is_delete = |request: &&Answered| request.method == Method::DELETE && request.code == 200;
        (made, answered.iter().filter(of_machine).filter(is_delete).count())
    }

    /// Checks that no object was written by two processes at the same time, and that each wrote it in one turn: `turns` is
    /// the most turns that any object may have.
    pub fn check_turns(&self, machines: usize, turns: usize) {
        for number in 0..machines {
            let writes = self.writes(number);
            assert!(!writes.is_empty(), "m{number} was never written");
            let changes = writes.windows(2).filter(|pair| pair[0].process != pair[1].process).count();
            assert!(changes < turns, "m{number} was written in {} turns: {writes:#?}", changes + 1);
            for (one, other) in writes.iter().zip(writes.iter().skip(1)) {
                assert!(
                    one.process == other.process || one.ended <= other.began,
                    "two at a time: {one:?} {other:?}"
                );
            }
        }
    }
}

/// The object that a path is about, itself or something that belongs to it.
pub fn object_of(path: &str) -> Option<&str> {
    path.split(['/', '?']).find_map(|part| {
        let name = part.split('-').next()?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        name.strip_prefix('m').is_some_and(is_number).then_some(name)
    })
}

fn machine(name: &str, until: &str) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "schedule": {"windows": [{"from": "mon 09:00", "to": format!("mon {until}")}]},
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
    })
}
