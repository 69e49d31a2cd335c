//! A cluster with scheduled machines and several replicas of the controller.

use crate::link::{Landed, Server};
use crate::replica::Replica;
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_standins::{Contract, StandInSettings, StandIns, Timing, cluster_api_crds, provider_crds};
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

const OBJECTS: &str = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines";
const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/shop/machines";
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases/5spot-leader";

/// A cluster.
pub struct Cluster {
    pub server: Server,
    pub replicas: Vec<Replica>,
    processes: usize,
}

impl Cluster {
    /// A cluster with this many machines, whose windows are on Monday from 09:00 to 09:10, and so many replicas. It is
    /// Monday, 08:58.
    pub async fn new(machines: usize, replicas: usize, is_fenced: bool) -> Self {
        let clock = Clock::starting_at("2026-11-16T08:58:00Z".parse().expect("an instant"));
        let api = ApiServer::new(ApiServerConfig::new(clock.clone()));
        let crd = serde_json::to_value(five_spot_api::crd()).expect("it is JSON");
        for crd in cluster_api_crds(Contract::V1Beta2).iter().chain(&provider_crds()).chain([&crd]) {
            api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
        }
        for namespace in ["shop", "5spot-system"] {
            api.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
        }
        for number in 0..machines {
            api.create(OBJECTS, &machine(&format!("m{number}")));
        }
        let client = || api.client("default");
        tokio::spawn(
            StandIns::new(client(), client(), clock.clone(), StandInSettings::new(Timing::default())).run(),
        );
        let (landed, refused) = Default::default();
        let server = Server { api, clock, is_fenced, landed, refused };
        let mut cluster = Self { server, replicas: Vec::new(), processes: 0 };
        for number in 0..replicas {
            cluster.start(&format!("pod-{number}"));
            // The first one leads.
            cluster.sleep(1.0).await;
        }
        cluster
    }

    /// Starts another process in a pod.
    pub fn start(&mut self, pod: &str) {
        self.processes += 1;
        self.replicas.push(Replica::start(&self.server, pod, self.processes));
    }

    pub async fn sleep(&self, seconds: f64) {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }

    /// Lets time pass until a time of the day.
    pub async fn until(&self, time: &str) {
        let at: Timestamp = format!("2026-11-16T{time}Z").parse().expect("an instant");
        let wait = Duration::try_from(at.duration_since(self.server.clock.now())).unwrap_or_default();
        tokio::time::sleep(wait).await;
    }

    /// The replica that leads, if one does.
    pub fn leader(&self) -> Option<usize> {
        let leaders: Vec<usize> =
            (0..self.replicas.len()).filter(|number| self.replicas[*number].leads()).collect();
        assert!(leaders.len() <= 1, "two leaders: {leaders:?}");
        leaders.first().copied()
    }

    /// Waits until a replica leads, and returns it and how many seconds that took.
    pub async fn elected(&self) -> (usize, f64) {
        let began = tokio::time::Instant::now();
        for _ in 0..20_000 {
            if let Some(leader) = self.leader() {
                return (leader, began.elapsed().as_secs_f64());
            }
            self.sleep(0.02).await;
        }
        panic!("nobody leads: the Lease is held by '{}'", self.server.holder().await);
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        self.server.api.client("default").request(request).await.ok()
    }

    pub async fn delete(&self, path: &str) {
        let request = Request::delete(path).body(Vec::new()).expect("a request");
        let _: Result<Value, _> = self.server.api.client("default").request(request).await;
    }

    pub async fn patch(&self, path: &str, change: &Value) {
        let body = serde_json::to_vec(change).expect("JSON");
        let request = Request::patch(path).header("content-type", "application/merge-patch+json").body(body);
        let _: Result<Value, _> =
            self.server.api.client("default").request(request.expect("a request")).await;
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await.expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// The phases of all objects.
    pub async fn phases(&self) -> Vec<String> {
        let items = self.items(OBJECTS).await;
        items.iter().map(|item| item["status"]["phase"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub async fn machines(&self) -> usize {
        self.items(MACHINES).await.len()
    }

    pub fn landed(&self) -> Vec<Landed> {
        self.server.landed.lock().expect("no panic").clone()
    }

    /// Writes that landed although another pod held the Lease. Those that the policy is not about do no harm, and while
    /// someone has deleted the Lease nobody holds it.
    pub fn late(&self) -> Vec<Landed> {
        let is_fenced =
            |write: &Landed| ["/machines", "/scheduledmachines"].iter().any(|part| write.path.contains(part));
        let is_held_by_another = |write: &Landed| {
            !write.holder.is_empty() && !write.holder.starts_with(&format!("{}_", write.pod))
        };
        let is_late = |write: &Landed| is_fenced(write) && is_held_by_another(write);
        self.landed().into_iter().filter(is_late).collect()
    }

    /// The number of Machines that were made, and of DELETEs of Machines that were accepted.
    pub fn effects(&self) -> (usize, usize) {
        let landed = self.landed();
        let of_machine = |write: &&Landed| write.path.starts_with(MACHINES);
        let made = landed.iter().filter(of_machine).filter(|write| write.code == 201).count();
        let deleted = |write: &&Landed| write.method == http::Method::DELETE && write.code == 200;
        (made, landed.iter().filter(of_machine).filter(deleted).count())
    }
}

fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "schedule": {"windows": [{"from": "mon 09:00", "to": "mon 09:10"}]},
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
