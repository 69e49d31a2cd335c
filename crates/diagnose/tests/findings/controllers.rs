//! Worlds in which the installation or the controller is broken.

use crate::World;
use crate::fixtures::{
    HEALTHY_METRICS, condition, controller_pod, healthy, idle, idle_facts, lease, log, scrapes, time,
    with_pod,
};
use five_spot_diagnose::doctor::{
    ClusterApi, CrdState, DoctorFacts, FindingId, LogLine, PodReadiness, Severity,
};
use jiff::SignedDuration;
use serde_json::json;

fn world(name: &'static str, id: FindingId, severity: Severity, facts: DoctorFacts) -> World {
    (name, id, severity, facts)
}

fn changed(change: impl FnOnce(&mut DoctorFacts)) -> DoctorFacts {
    let mut facts = healthy();
    change(&mut facts);
    facts
}

fn not_ready(line: &str) -> DoctorFacts {
    with_pod(|pod| pod.readiness = Some(PodReadiness { is_ready: false, lines: vec![line.to_owned()] }))
}

pub fn all() -> Vec<World> {
    [installation(), programs(), work(), shards()].into_iter().flatten().collect()
}

fn installation() -> Vec<World> {
    let error = Severity::Error;
    vec![
        world(
            "no CRD",
            FindingId::CrdMissing,
            error,
            changed(|facts| {
                facts.definition = CrdState::Absent("the CRD is not installed".to_owned());
            }),
        ),
        world(
            "a CRD without a field of the spec",
            FindingId::CrdOutdated,
            Severity::Warning,
            changed(|facts| {
                facts.definition = CrdState::LacksFields("it does not contain spec.drain".to_owned());
            }),
        ),
        world(
            "a CRD without a field of the status",
            FindingId::CrdOutdated,
            error,
            changed(|facts| {
                facts.definition = CrdState::TooOld("it does not contain status.drain".to_owned());
            }),
        ),
        world(
            "no Cluster API",
            FindingId::CapiMissing,
            error,
            changed(|facts| {
                facts.cluster_api = ClusterApi::Missing;
            }),
        ),
        world(
            "a permission is missing, by the rules",
            FindingId::RbacMissing,
            error,
            changed(|facts| {
                facts.missing_permissions =
                    Some(vec!["delete machines in API group \"cluster.x-k8s.io\"".to_owned()]);
            }),
        ),
        world(
            "a permission is missing, by the controller",
            FindingId::RbacMissing,
            error,
            not_ready(
                "not allowed to patch machines in API group \"cluster.x-k8s.io\" in all namespaces: grant it",
            ),
        ),
        world(
            "the reader's clock is wrong",
            FindingId::ClockSkew,
            Severity::Info,
            changed(|facts| {
                facts.server_clock_ahead = SignedDuration::from_secs(-400);
            }),
        ),
        world(
            "the controller's clock is ahead",
            FindingId::ClockSkew,
            error,
            changed(|facts| {
                facts.controller.leases = Some(vec![lease("5spot-instance-0", "a", "2026-11-16T12:10:00Z")]);
            }),
        ),
    ]
}

/// A controller that ends as soon as it has started.
fn crashing() -> DoctorFacts {
    with_pod(|pod| {
        (pod.readiness, pod.scrapes) = (None, None);
        pod.pod["status"]["conditions"] =
            json!([{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]);
        pod.pod["status"]["containerStatuses"] = json!([{
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
            "lastState": {"terminated": {"reason": "Error", "exitCode": 2}},
        }]);
    })
}

#[test]
fn a_controller_that_crashes_is_not_said_to_run() {
    let report = five_spot_diagnose::doctor::examine(&crashing());
    let [found] = report.findings.as_slice() else { panic!("{report:#?}") };
    let words = found.evidence.join("\n");
    assert!(words.contains("CrashLoopBackOff back-off 5m0s (its last exit code was 2)"), "{words}");
    let command = found.fix[0].command.as_deref().unwrap_or_default();
    assert_eq!(command, "kubectl logs -n 5spot-system 5spot-controller-0 --previous --tail=50");
}

/// The clock of the reader says nothing about the controller.
#[test]
fn a_note_hides_no_controller_that_does_not_act() {
    let mut facts = healthy();
    facts.server_clock_ahead = SignedDuration::from_secs(-400);
    facts.neglected = vec!["shop/desk".to_owned()];
    let report = five_spot_diagnose::doctor::examine(&facts);
    let ids: Vec<FindingId> = report.findings.iter().map(|finding| finding.id).collect();
    assert_eq!(ids, [FindingId::WatchStale, FindingId::ClockSkew]);
}

/// A leader whose Lease was renewed at a time by its own clock.
fn led(renewed: &str) -> DoctorFacts {
    let mut facts = with_pod(|pod| pod.config.leader_election = true);
    facts.controller.leases = Some(vec![lease("5spot-leader", "5spot-controller-0_4f", renewed)]);
    facts
}

/// Two shards, each with a pod; only the first has a leader.
fn half_led() -> DoctorFacts {
    let mut facts = healthy();
    let pods = [1.0, 0.0].map(|leads| {
        let mut pod = controller_pod();
        pod.config.leader_election = true;
        pod.config.instances = 2;
        let page = format!("fivespot_is_leader {leads}\n");
        pod.scrapes = Some(scrapes(&page, &page));
        pod
    });
    facts.controller.pods = Some(pods.into());
    facts.controller.leases = Some(vec![
        lease("5spot-leader-0", "a", "2026-11-16T11:59:55Z"),
        lease("5spot-leader-1", "b", "2026-11-16T11:00:00Z"),
    ]);
    facts
}

#[test]
fn the_clock_of_a_leader_that_renews_in_time_is_fine() {
    let report = five_spot_diagnose::doctor::examine(&led("2026-11-16T11:59:50Z"));
    assert_eq!(report.findings, []);
}

/// A controller that says that its clock is wrong, and then perhaps that it is right again.
fn with_clock(messages: &[&str]) -> DoctorFacts {
    with_pod(|pod| {
        pod.log = messages.iter().flat_map(|message| log(message, &json!({"skew_secs": -400}))).collect();
    })
}

#[test]
fn a_clock_that_is_trusted_again_is_fine() {
    let wrong = "The clock is not trusted: it has jumped, or differs from that of the API server";
    let report = five_spot_diagnose::doctor::examine(&with_clock(&[wrong]));
    let [found] = report.findings.as_slice() else { panic!("{report:#?}") };
    assert!(found.evidence[0].contains("the difference is -400 s"), "{found:#?}");
    let report = five_spot_diagnose::doctor::examine(&with_clock(&[wrong, "The clock is trusted again"]));
    assert_eq!(report.findings, []);
}

#[test]
fn the_taints_of_an_idle_machine_wait_for_nothing() {
    let mut object = idle("OutsideWindow");
    let since = "2026-11-16T10:00:00Z";
    let tainted = condition("NodeTainted", "Unknown", "NoNodeYet", "waiting for the Node", since);
    object["status"]["conditions"].as_array_mut().expect("conditions").push(tainted);
    let report = five_spot_diagnose::doctor::examine(&idle_facts(object));
    let ids: Vec<FindingId> = report.findings.iter().map(|finding| finding.id).collect();
    assert_eq!(ids, [FindingId::ScheduleNotNow]);
}

/// Objects in other namespaces show that a controller works outside of the cluster.
#[test]
fn an_empty_namespace_is_no_proof_that_no_controller_runs() {
    let empty = |works_elsewhere| {
        let mut facts = healthy();
        facts.machines = Vec::new();
        facts.capi_machines = Vec::new();
        facts.known = Some(Vec::new());
        facts.controller.pods = Some(Vec::new());
        facts.controller.owners = Some(Vec::new());
        facts.works_elsewhere = works_elsewhere;
        five_spot_diagnose::doctor::examine(&facts).findings.len()
    };
    assert_eq!((empty(false), empty(true)), (1, 0));
}

/// The roles for the whole cluster would give such a controller more than its administrator meant.
#[test]
fn a_controller_of_chosen_namespaces_gets_its_own_roles_back() {
    let mut facts = with_pod(|pod| pod.config.namespaces = vec!["shop".to_owned()]);
    facts.missing_permissions = Some(vec!["delete machines in API group \"cluster.x-k8s.io\"".to_owned()]);
    let report = five_spot_diagnose::doctor::examine(&facts);
    let fixes = report.findings.iter().flat_map(|finding| &finding.fix);
    let commands: Vec<&str> = fixes.filter_map(|fix| fix.command.as_deref()).collect();
    assert_eq!(
        commands,
        [
            "kubectl apply -k deploy/rbac-namespaced/",
            "kubectl apply --namespace=shop -f deploy/rbac-namespaced/namespace.yaml",
        ]
    );
}

/// A namespace that the controller was told not to watch is named as such, and no restart is proposed.
#[test]
fn a_namespace_that_is_not_watched_is_named() {
    let mut facts = with_pod(|pod| pod.config.namespaces = vec!["desks".to_owned()]);
    facts.neglected = vec!["shop/desk".to_owned()];
    let report = five_spot_diagnose::doctor::examine(&facts);
    let [found] = report.findings.as_slice() else { panic!("{report:#?}") };
    assert_eq!(found.id, FindingId::WatchStale);
    assert!(found.cause.contains("does not watch namespace shop"), "{found:#?}");
    assert!(found.evidence.iter().any(|words| words == "--watch-namespace=desks"), "{found:#?}");
    assert!(found.fix.iter().all(|fix| fix.command.is_none()), "{found:#?}");
}

fn programs() -> Vec<World> {
    let error = Severity::Error;
    let electing = |change: fn(&mut DoctorFacts)| {
        let mut facts = with_pod(|pod| {
            pod.config.leader_election = true;
            pod.scrapes = Some(scrapes("fivespot_is_leader 0\n", "fivespot_is_leader 0\n"));
        });
        change(&mut facts);
        facts
    };
    vec![
        world("one shard of two has no leader", FindingId::NoLeader, error, half_led()),
        world("the controller's clock is behind", FindingId::ClockSkew, error, led("2026-11-16T11:50:00Z")),
        world(
            "the controller does not trust its clock",
            FindingId::ClockSkew,
            error,
            with_clock(&["The clock is not trusted: it has jumped, or differs from that of the API server"]),
        ),
        world(
            "scaled to nothing",
            FindingId::ControllerNotRunning,
            error,
            changed(|facts| {
                facts.controller.pods = Some(Vec::new());
                facts.controller.owners =
                    Some(vec![json!({"kind": "Deployment", "metadata": {"name": "5spot-controller"},
                "spec": {"replicas": 0}})]);
            }),
        ),
        world(
            "the image cannot be pulled",
            FindingId::ControllerNotRunning,
            error,
            with_pod(|pod| {
                pod.pod["status"] = json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {
                "reason": "ImagePullBackOff", "message": "no such image"}}}]});
            }),
        ),
        world(
            "nothing is installed, and objects are neglected",
            FindingId::ControllerNotRunning,
            error,
            changed(|facts| {
                facts.controller.pods = Some(Vec::new());
                facts.controller.owners = Some(Vec::new());
                facts.neglected = vec!["shop/desk".to_owned()];
            }),
        ),
        world(
            "nothing is installed, and there are no objects",
            FindingId::ControllerNotRunning,
            Severity::Warning,
            {
                let mut facts = changed(|facts| {
                    facts.controller.pods = Some(Vec::new());
                    facts.controller.owners = Some(Vec::new());
                    facts.known = Some(Vec::new());
                });
                facts.machines = Vec::new();
                facts.capi_machines = Vec::new();
                facts
            },
        ),
        world(
            "an obstacle",
            FindingId::ControllerNotReady,
            error,
            not_ready("900 of 1000 file descriptors are open: raise the limit of the container"),
        ),
        world(
            "not ready, by the kubelet",
            FindingId::ControllerNotReady,
            error,
            with_pod(|pod| {
                pod.readiness = None;
                pod.pod["status"]["conditions"] =
                    json!([{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]);
            }),
        ),
        world("a pod that crashes", FindingId::ControllerNotReady, error, crashing()),
        world(
            "the Lease has expired",
            FindingId::NoLeader,
            error,
            electing(|facts| {
                facts.controller.leases = Some(vec![lease("5spot-leader", "gone_1", "2026-11-16T11:00:00Z")]);
            }),
        ),
        world("there is no Lease", FindingId::NoLeader, error, electing(|_| {})),
    ]
}

fn work() -> Vec<World> {
    let error = Severity::Error;
    let scraped = |second: &str| with_pod(|pod| pod.scrapes = Some(scrapes(HEALTHY_METRICS, second)));
    let grown = |extra: &str| format!("{HEALTHY_METRICS}{extra}");
    vec![
        world("a silent watch", FindingId::WatchStale, error, {
            scraped(&HEALTHY_METRICS.replace("machines\"} 20", "machines\"} 600"))
        }),
        world(
            "a watch that is not connected",
            FindingId::WatchStale,
            error,
            not_ready("the watch of machines is not connected"),
        ),
        world(
            "ready, and deaf",
            FindingId::WatchStale,
            error,
            changed(|facts| {
                facts.neglected = vec!["shop/desk".to_owned()];
            }),
        ),
        world("reconciles without end, by the metrics", FindingId::ReconcileLoop, Severity::Warning, {
            scraped(&HEALTHY_METRICS.replace("result=\"success\"} 12", "result=\"success\"} 200"))
        }),
        world(
            "reconciles without end, by the log",
            FindingId::ReconcileLoop,
            Severity::Warning,
            with_pod(|pod| {
                pod.log = log(
                    "every reconcile leaves something to do; pausing before the next one",
                    &json!({"rounds": 11}),
                );
            }),
        ),
        world(
            "one object again and again",
            FindingId::ReconcileLoop,
            Severity::Warning,
            with_pod(|pod| {
                let line = log("Starting reconciliation", &json!({}));
                pod.log = std::iter::repeat_n(line, 40).flatten().collect::<Vec<LogLine>>();
            }),
        ),
        world(
            "throttled just now",
            FindingId::ApiThrottling,
            Severity::Warning,
            scraped(&grown("fivespot_api_requests_total{code=\"429\",verb=\"list\"} 3\n")),
        ),
        world(
            "requests without an answer",
            FindingId::ApiUnreachable,
            error,
            scraped(&grown("fivespot_api_requests_total{code=\"none\",verb=\"list\"} 3\n")),
        ),
        world(
            "the API server is away",
            FindingId::ApiUnreachable,
            error,
            not_ready("scheduledmachines are not synced: error trying to connect: Connection refused"),
        ),
        world("memory has doubled", FindingId::MemoryGrowing, Severity::Warning, {
            scraped(
                &HEALTHY_METRICS.replace("resident_memory_bytes 40000000", "resident_memory_bytes 140000000"),
            )
        }),
        world("memory is near its limit", FindingId::MemoryGrowing, error, {
            scraped(
                &HEALTHY_METRICS.replace("resident_memory_bytes 40000000", "resident_memory_bytes 260000000"),
            )
        }),
    ]
}

fn shards() -> Vec<World> {
    let announced = |counts: [u32; 2], acquired: &str| {
        changed(|facts| {
            let leases = counts.into_iter().enumerate().map(|(id, count)| {
                let mut lease = lease(&format!("5spot-leader-instance-{id}"), "pod", "2026-11-16T11:59:55Z");
                (lease.instances, lease.acquired) = (Some(count), Some(time(acquired)));
                lease
            });
            facts.controller.leases = Some(leases.collect());
        })
    };
    vec![
        world(
            "instances disagree",
            FindingId::ShardMismatch,
            Severity::Error,
            announced([2, 3], "2026-11-16T11:00:00Z"),
        ),
        world("another instance", FindingId::OtherShard, Severity::Info, {
            let mut facts = with_pod(|pod| pod.log = log("Resource not owned by this instance", &json!({})));
            facts.is_named = true;
            facts
        }),
        world("one of two instances", FindingId::OtherShard, Severity::Info, sharded(2)),
    ]
}

/// Instances that share the machines, and a question about one machine.
fn sharded(count: u32) -> DoctorFacts {
    let mut facts = with_pod(|pod| pod.config.instances = count);
    let leases = (0..count).map(|id| {
        let (name, holder) = (format!("5spot-leader-instance-{id}"), format!("5spot-controller-{id}_1"));
        let mut lease = lease(&name, &holder, "2026-11-16T11:59:55Z");
        lease.instances = Some(count);
        lease
    });
    facts.controller.leases = Some(leases.collect());
    facts.is_named = true;
    facts
}

/// No log line is needed: the hash that distributes the machines is known.
#[test]
fn the_owner_of_a_machine_is_computed() {
    let report = five_spot_diagnose::doctor::examine(&sharded(2));
    let [found] = report.findings.as_slice() else { panic!("{report:#?}") };
    let count = std::num::NonZeroU32::new(2).expect("not zero");
    let id = five_spot_core::shard::owner("shop", "desk", count);
    let expected = format!(
        "instance {id} of 2 (numbered from 0) owns it; Lease 5spot-leader-instance-{id} is held by 5spot-controller-{id}_1"
    );
    assert_eq!(found.evidence, [expected]);
    assert_eq!(five_spot_diagnose::doctor::examine(&sharded(1)).findings, []);
    let unnamed = DoctorFacts { is_named: false, ..sharded(2) };
    assert_eq!(five_spot_diagnose::doctor::examine(&unnamed).findings, []);
}

#[test]
fn what_is_ordinary_is_no_finding() {
    let quiet = |name: &str, facts: &DoctorFacts| {
        let findings = five_spot_diagnose::doctor::examine(facts).findings;
        assert_eq!(findings, [], "{name}");
    };
    quiet("a rollout", &{
        let mut facts = healthy();
        let mut leases = [
            lease("5spot-leader-instance-0", "a", "2026-11-16T11:59:55Z"),
            lease("5spot-leader-instance-1", "b", "2026-11-16T11:59:55Z"),
        ];
        (leases[0].instances, leases[1].instances) = (Some(2), Some(3));
        leases[1].acquired = Some(time("2026-11-16T11:55:00Z"));
        facts.controller.leases = Some(leases.to_vec());
        facts
    });
    quiet("a controller elsewhere", &{
        let mut facts = healthy();
        facts.controller.pods = Some(Vec::new());
        facts.controller.owners = Some(Vec::new());
        facts
    });
    quiet(
        "evictions that a budget refuses are no throttling",
        &with_pod(|pod| {
            let more =
                format!("{HEALTHY_METRICS}fivespot_api_requests_total{{code=\"429\",verb=\"create\"}} 300\n");
            pod.scrapes = Some(scrapes(HEALTHY_METRICS, &more));
        }),
    );
    quiet(
        "a pod that has just started",
        &with_pod(|pod| {
            pod.readiness = Some(PodReadiness {
                is_ready: false,
                lines: vec!["the controller has not opened its watches".to_owned()],
            });
            pod.pod["status"]["startTime"] = json!("2026-11-16T11:59:30Z");
        }),
    );
    quiet(
        "a pod that is being started",
        &with_pod(|pod| {
            (pod.readiness, pod.scrapes) = (None, None);
            pod.pod["metadata"]["creationTimestamp"] = json!("2026-11-16T11:59:30Z");
            pod.pod["status"] = json!({"phase": "Pending", "containerStatuses": [
                {"state": {"waiting": {"reason": "ContainerCreating"}}},
            ]});
        }),
    );
    quiet("an installation without pods yet", &{
        let mut facts = healthy();
        facts.controller.pods = Some(Vec::new());
        facts.controller.owners = Some(vec![json!({
            "kind": "Deployment", "spec": {"replicas": 1},
            "metadata": {"name": "5spot-controller", "creationTimestamp": "2026-11-16T11:59:58Z"},
        })]);
        facts
    });
    let without_leader = |started: &str| {
        with_pod(|pod| {
            pod.config.leader_election = true;
            pod.scrapes = Some(scrapes("fivespot_is_leader 0\n", "fivespot_is_leader 0\n"));
            pod.pod["status"]["startTime"] = json!(started);
        })
    };
    quiet("the first seconds of an election", &without_leader("2026-11-16T11:59:50Z"));
    quiet("a leader that has just gone", &{
        let mut facts = without_leader("2026-11-16T06:00:00Z");
        facts.controller.leases = Some(vec![lease("5spot-leader", "gone_1", "2026-11-16T11:59:50Z")]);
        facts
    });
    quiet("nothing about the controller may be read", &{
        let mut facts = healthy();
        facts.controller.pods = None;
        facts.controller.leases = None;
        facts.controller.owners = None;
        facts
    });
    quiet("a standby beside its leader", &{
        let mut facts = healthy();
        let mut pods = vec![controller_pod(), controller_pod()];
        for pod in &mut pods {
            pod.config.leader_election = true;
        }
        pods[1].scrapes = Some(scrapes("fivespot_is_leader 0\n", "fivespot_is_leader 0\n"));
        facts.controller.pods = Some(pods);
        facts.controller.leases =
            Some(vec![lease("5spot-leader", "5spot-controller-0_1", "2026-11-16T11:59:58Z")]);
        facts
    });
    // Notes alone.
    let notes = five_spot_diagnose::doctor::examine(&idle_facts(idle("OutsideWindow"))).findings;
    assert!(notes.iter().all(|finding| finding.severity == Severity::Info), "{notes:?}");
}
