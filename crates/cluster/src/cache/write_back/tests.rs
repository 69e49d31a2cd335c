//! The objects that are woken by answers and watch events about another object of their physical machine.

use super::{put_machine, put_object, remove_machine, remove_object};
use crate::cache::caches::{Caches, ClusterSettings};
use crate::cache::change_cause::ChangeCause;
use crate::cache::changes::{ChangeReceiver, change_channel};
use crate::cache::claim_watch::note_object;
use crate::cache::project;
use crate::transport::connection::{Connection, Dial, DialError, Raw, Route};
use crate::transport::key::ObjectKey;
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_core::MachineIdentity;
use five_spot_core::world::Policy;
use futures::future::BoxFuture;
use kube::api::DynamicObject;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const START: &str = "2026-11-16T08:00:00Z";

/// No object here leads to a workload cluster.
struct NoClusters;

impl Dial for NoClusters {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        unreachable!("nothing is observed")
    }
}

/// Caches that are complete, and the objects that they report.
struct Fixture {
    caches: Caches,
    changes: ChangeReceiver,
    version: u64,
}

fn fixture() -> Fixture {
    let clock = Clock::starting_at(START.parse().expect("a timestamp"));
    let server = ApiServer::new(ApiServerConfig::new(clock.clone()));
    let service = Raw::new(server.service());
    let connection =
        Connection::embedded(service, Arc::new(NoClusters), Arc::new(move || clock.now()), "test");
    let settings = ClusterSettings {
        policy: Policy::default(),
        namespaces: Vec::new(),
        management_nodes: Vec::new(),
        instance: "5spot-controller".to_owned(),
        controller_namespace: "5spot-system".to_owned(),
    };
    let (sender, changes) = change_channel();
    let caches =
        Caches::new(connection, settings, sender, false, &CancellationToken::new()).expect("a client");
    caches.objects.mark_synced();
    caches.machines.mark_synced();
    caches.claims.store.mark_synced();
    Fixture { caches, changes, version: 0 }
}

/// The reason of the condition `Ready` of an object that waits.
const WAITS: &str = "MachineInUse";

impl Fixture {
    /// An object of an address, in a version that is newer than all before.
    fn object(&mut self, name: &str, address: &str, ready: &str, priority: u8) -> DynamicObject {
        self.version += 1;
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "metadata": {
                "name": name, "namespace": "shop", "uid": name, "resourceVersion": self.version.to_string(),
                "creationTimestamp": START,
            },
            "spec": {
                "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-16"]},
                "clusterName": "shop",
                "priority": priority,
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                    "spec": {"address": address, "port": 22},
                },
            },
            "status": {"conditions": [{
                "type": "Ready", "status": "False", "reason": ready, "message": self.version.to_string(),
                "lastTransitionTime": START,
            }]},
        });
        serde_json::from_value(object).expect("an object")
    }

    /// Stores an object as the answer to a write. Returns the objects that are woken.
    fn answer(&mut self, name: &str, address: &str, ready: &str, priority: u8) -> Vec<String> {
        let object = self.object(name, address, ready, priority);
        put_object(&self.caches, &object);
        self.woken()
    }

    /// Stores an object as a watch reports it. Returns the objects that are woken.
    fn watched(&mut self, name: &str, address: &str, ready: &str, priority: u8) -> Vec<String> {
        let object = self.object(name, address, ready, priority);
        let (key, version) = (ObjectKey::of(&object), self.version.to_string());
        assert!(self.caches.objects.put(key.clone(), &version, project::scheduled_machine(&object)));
        note_object(&self.caches, &key);
        self.woken()
    }

    fn machine(&mut self, name: &str) -> DynamicObject {
        self.version += 1;
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {
                "name": five_spot_api::names::machine(name), "namespace": "shop", "uid": self.version.to_string(),
                "resourceVersion": self.version.to_string(),
                "labels": {"5spot.finos.org/scheduled-machine": name},
            },
            "spec": {},
        });
        serde_json::from_value(machine).expect("a Machine")
    }

    fn claim(&mut self, address: &str, holder: &str) {
        let lease = json!({
            "metadata": {"name": identity(address).lease(), "namespace": "5spot-system", "resourceVersion": "1"},
            "spec": {"holderIdentity": format!("shop/{holder}")},
        });
        assert!(self.caches.claims.put(&serde_json::from_value(lease).expect("a Lease")));
    }

    fn woken(&mut self) -> Vec<String> {
        let mut woken = Vec::new();
        while let Some((key, cause)) = self.changes.try_recv() {
            assert_eq!(cause, ChangeCause::Claim);
            woken.push((*key.name).to_owned());
        }
        woken
    }
}

fn identity(address: &str) -> MachineIdentity {
    let spec: Value = json!({
        "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-16"]}, "clusterName": "shop",
        "bootstrapSpec": {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {},
        },
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
            "spec": {"address": address, "port": 22},
        },
    });
    MachineIdentity::of(&serde_json::from_value(spec).expect("a spec")).expect("it names its machine")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("shop", name)
}

#[tokio::test]
async fn fifty_that_cannot_be_lent_do_not_wake_each_other() {
    let mut fixture = fixture();
    let mut woken = 0;
    for round in 0..4 {
        for number in 0..50 {
            let name = format!("m{number}");
            woken += fixture.watched(&name, "one", "NotFound", 50).len();
            woken += fixture.answer(&name, "one", "NotFound", 50 + round).len();
        }
    }
    assert_eq!(woken, 0);
}

#[tokio::test]
async fn fifty_that_begin_to_wait_wake_themselves_once() {
    let mut fixture = fixture();
    for number in 10..60 {
        let name = format!("m{number}");
        assert_eq!(fixture.watched(&name, "one", "Provisioning", 50), [""; 0]);
        assert_eq!(fixture.answer(&name, "one", WAITS, 50), std::slice::from_ref(&name));
        assert_eq!(fixture.watched(&name, "one", WAITS, 50), [""; 0], "only its message has changed");
    }
}

/// A change of one of three waiters, and those that it wakes.
type Case = (&'static str, fn(&mut Fixture) -> Vec<String>, &'static [&'static str]);

#[tokio::test]
async fn the_next_waiter_is_woken_whatever_becomes_of_the_first() {
    let others = |fixture: &mut Fixture| {
        for name in ["a", "b", "c"] {
            fixture.answer(name, "one", WAITS, 50);
        }
    };
    let cases: [Case; 7] = [
        ("it closes", |fixture| fixture.watched("a", "one", "Inactive", 50), &["b"]),
        ("it fails", |fixture| fixture.answer("a", "one", "ReconcileFailed", 50), &["b"]),
        ("its priority falls", |fixture| fixture.watched("a", "one", WAITS, 40), &["b"]),
        ("that of another rises", |fixture| fixture.watched("c", "one", WAITS, 60), &["c"]),
        ("it names another machine", |fixture| fixture.watched("a", "two", WAITS, 50), &["b", "a"]),
        ("it names none", |fixture| fixture.watched("a", "", WAITS, 50), &["b"]),
        (
            "it is gone",
            |fixture| {
                remove_object(&fixture.caches, &key("a"));
                fixture.woken()
            },
            &["b"],
        ),
    ];
    for (case, happen, expected) in cases {
        let mut fixture = fixture();
        others(&mut fixture);
        let mut woken = happen(&mut fixture);
        woken.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(woken, expected, "{case}");
    }
}

#[tokio::test]
async fn waiters_are_woken_when_a_machine_is_gone_not_when_it_changes() {
    let mut fixture = fixture();
    fixture.answer("z", "one", "NodeReady", 50);
    let machine = fixture.machine("z");
    put_machine(&fixture.caches, &machine);
    fixture.answer("idle", "one", "Inactive", 50);
    for name in ["a", "b"] {
        fixture.answer(name, "one", WAITS, 50);
    }
    let machine = fixture.machine("z");
    put_machine(&fixture.caches, &machine);
    assert_eq!(fixture.woken(), [""; 0]);
    remove_machine(&fixture.caches, &key("z").beside(five_spot_api::names::machine("z")));
    assert_eq!(fixture.woken(), ["a", "b"]);
}

#[tokio::test]
async fn while_another_holds_the_machine_waiters_sleep() {
    let mut fixture = fixture();
    fixture.answer("holder", "one", "NodeReady", 50);
    let machine = fixture.machine("holder");
    put_machine(&fixture.caches, &machine);
    fixture.claim("one", "holder");
    for name in ["a", "b"] {
        assert_eq!(fixture.answer(name, "one", WAITS, 50), [""; 0]);
    }
    assert_eq!(fixture.watched("a", "one", "Inactive", 50), [""; 0]);
    let name = key("holder").beside(five_spot_api::names::machine("holder"));
    remove_machine(&fixture.caches, &name);
    assert_eq!(fixture.woken(), [""; 0], "its claim is still to be released");
    let machine = fixture.machine("holder");
    put_machine(&fixture.caches, &machine);
    remove_object(&fixture.caches, &key("holder"));
    assert_eq!(fixture.woken(), [""; 0], "its Machine is still there");
    remove_machine(&fixture.caches, &name);
    let mut woken = fixture.woken();
    woken.sort();
    woken.dedup();
    assert_eq!(woken, ["a", "b"], "the claim is abandoned");
}
