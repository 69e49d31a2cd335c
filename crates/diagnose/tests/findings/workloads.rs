//! Worlds in which something in the workload cluster is broken: drains and reclaim agents.

use crate::World;
use crate::fixtures::{condition, key, lent, lent_with, node, with_agent, with_agent_of, with_object};
use five_spot_diagnose::doctor::{
    AgentPod, DoctorFacts, FindingId, LogLine, Severity, WorkloadFacts, WorkloadKey,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub fn all() -> Vec<World> {
    [drains(), agents(), agents_refused_by_pod_security(), agent_words()].into_iter().flatten().collect()
}

/// The window closed at 11:00, the drain began, and this pod is still there.
fn draining(pod: &str, reason: &str, is_overdue: bool) -> Value {
    let mut object = lent();
    if is_overdue {
        let message =
            format!("drain deadline 2026-11-16T11:05:00Z passed: drain of node desk-1 is blocked by {pod}");
        object = lent_with(&[condition("Ready", "False", "DrainTimedOut", &message, "2026-11-16T11:05:00Z")]);
    }
    let started = if is_overdue { "2026-11-16T11:00:00Z" } else { "2026-11-16T11:56:00Z" };
    object["status"]["phase"] = json!(if is_overdue { "Error" } else { "ShuttingDown" });
    object["status"]["shutdownStartedAt"] = json!(started);
    object["status"]["drain"] =
        json!({"startedAt": started, "total": 1, "evicted": 0, "blocked": [{"pod": pod, "reason": reason}]});
    object
}

fn with_workload(object: Value, change: impl FnOnce(&mut WorkloadFacts)) -> DoctorFacts {
    let mut facts = with_object(object);
    let mut workload = WorkloadFacts::default();
    change(&mut workload);
    facts.workloads = BTreeMap::from([(key(), workload)]);
    facts
}

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

fn budget() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 2, "expectedPods": 2},
    })
}

fn drains() -> Vec<World> {
    let error = Severity::Error;
    let stuck = "still terminating after its grace period";
    vec![
        ("a budget, soon after the start", FindingId::PdbBlocksDrain, Severity::Info, {
            let mut object = draining("shop/web-0", REFUSED, false);
            object["status"]["shutdownStartedAt"] = json!("2026-11-16T11:59:00Z");
            with_workload(object, |workload| workload.budgets = vec![budget()])
        }),
        ("a budget", FindingId::PdbBlocksDrain, Severity::Warning, {
            with_workload(draining("shop/web-0", REFUSED, false), |workload| {
                workload.budgets = vec![budget()];
            })
        }),
        ("a budget, after the deadline", FindingId::PdbBlocksDrain, error, {
            with_workload(draining("shop/web-0", REFUSED, true), |workload| workload.budgets = vec![budget()])
        }),
        (
            "a budget that may not be read",
            FindingId::PdbBlocksDrain,
            error,
            with_object(draining("shop/web-0", REFUSED, true)),
        ),
        (
            "a pod that does not end",
            FindingId::PodStuckTerminating,
            error,
            with_object(draining("shop/web-0", stuck, false)),
        ),
        ("a long grace period", FindingId::LongGracePeriod, error, {
            with_object(draining(
                "shop/web-0",
                "terminating; its grace period ends at 2026-11-16T13:00:00Z",
                true,
            ))
        }),
        ("a long grace period, before the deadline", FindingId::LongGracePeriod, Severity::Warning, {
            let pod = json!({"metadata": {"name": "web-0", "namespace": "shop",
                "deletionTimestamp": "2026-11-16T13:00:00Z", "deletionGracePeriodSeconds": 3900}});
            let mut object = draining("shop/web-0", "", false);
            object["status"]["drain"]["blocked"] = json!([]);
            with_workload(object, |workload| {
                workload.pods = BTreeMap::from([("desk-1".to_owned(), vec![pod])]);
            })
        }),
        ("a pod that has to complete", FindingId::DrainOverdue, error, {
            with_object(draining("shop/batch", "waiting for the pod to complete", true))
        }),
    ]
}

fn configured(toml: &str) -> impl FnOnce(&mut WorkloadFacts) {
    let map = json!({"metadata": {"name": "reclaim-agent-desk-1"}, "data": {"reclaim.toml": toml}});
    move |workload| workload.agent_configs = Some(BTreeMap::from([("reclaim-agent-desk-1".to_owned(), map)]))
}

fn agents() -> Vec<World> {
    let error = Severity::Error;
    vec![
        (
            "no label",
            FindingId::AgentLabelMissing,
            error,
            with_agent(|workload| {
                let mut node = node();
                node["metadata"]["labels"] = json!({});
                workload.nodes = Some(BTreeMap::from([("desk-1".to_owned(), node)]));
            }),
        ),
        (
            "no pod",
            FindingId::AgentPodMissing,
            error,
            with_agent(|workload| workload.agents = Some(Vec::new())),
        ),
        (
            "no DaemonSet",
            FindingId::AgentPodMissing,
            error,
            with_agent(|workload| {
                workload.agents = Some(Vec::new());
                workload.daemon_sets = Some(Vec::new());
            }),
        ),
        (
            "an agent whose image cannot be pulled",
            FindingId::AgentPodMissing,
            error,
            with_agent(|workload| {
                if let Some(agents) = &mut workload.agents {
                    agents[0].pod["status"] = json!({"phase": "Pending", "containerStatuses": [
                        {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
                    ]});
                }
            }),
        ),
        (
            "an agent that never becomes ready",
            FindingId::AgentPodMissing,
            error,
            with_agent(|workload| {
                if let Some(agents) = &mut workload.agents {
                    agents[0].pod["status"]["conditions"] = json!([
                        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-16T11:00:00Z"},
                    ]);
                }
            }),
        ),
        (
            "no namespace",
            FindingId::AgentPodMissing,
            error,
            with_agent(|workload| workload.agent_namespace = Some(Value::Null)),
        ),
        (
            "no configuration",
            FindingId::AgentConfigMissing,
            error,
            with_agent(|workload| {
                workload.agent_configs = Some(BTreeMap::new());
            }),
        ),
        (
            "an empty configuration",
            FindingId::AgentConfigEmpty,
            error,
            with_agent(configured("match_commands = []\n")),
        ),
        (
            "a broken configuration",
            FindingId::AgentConfigInvalid,
            error,
            with_agent(configured("match_commands = [\n")),
        ),
        ("a misspelled key", FindingId::AgentConfigInvalid, Severity::Warning, {
            with_agent(configured("match_commands = [\"java\"]\nmatch_comands = []\n"))
        }),
        ("a capital", FindingId::AgentCaseMismatch, Severity::Warning, {
            let mut object = lent();
            object["spec"]["killIfCommands"] = json!(["Java", "Xorg"]);
            with_agent_of(object, configured("match_commands = [\"Java\", \"Xorg\"]\n"))
        }),
    ]
}

fn agents_refused_by_pod_security() -> Vec<World> {
    let error = Severity::Error;
    let refused = json!({"reason": "FailedCreate", "note": "pods is forbidden: violates PodSecurity \"restricted:latest\""});
    vec![
        (
            "Pod Security, by an event",
            FindingId::AgentBlockedByPodSecurity,
            error,
            with_agent(|workload| {
                workload.agents = Some(Vec::new());
                workload.agent_events = vec![refused];
            }),
        ),
        (
            "Pod Security, by the label",
            FindingId::AgentBlockedByPodSecurity,
            error,
            with_agent(|workload| {
                workload.agents = Some(Vec::new());
                workload.agent_namespace = Some(
                    json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}),
                );
            }),
        ),
    ]
}

fn agent_words() -> Vec<World> {
    let said = |line: &str, is_ready: bool| {
        let log = LogLine::parse(line);
        with_agent(move |workload| {
            if let Some(agents) = &mut workload.agents {
                agents[0].log = log;
                let status = if is_ready { "True" } else { "False" };
                agents[0].pod["status"]["conditions"] = json!([{"type": "Ready", "status": status}]);
            }
        })
    };
    let eperm =
        "Error: Subscriber::new() failed: netlink i/o: EPERM: this kernel gives process events only to";
    let refused = "Error: Subscriber::new() failed: netlink i/o: ECONNREFUSED: the process connector";
    let silent =
        "Error: no process event within 1s of starting a program; the kernel may lack CONFIG_PROC_EVENTS";
    vec![
        ("EPERM", FindingId::AgentNetlinkEperm, Severity::Error, said(eperm, false)),
        ("EPERM, and it polls instead", FindingId::AgentNetlinkEperm, Severity::Info, said(eperm, true)),
        ("ECONNREFUSED", FindingId::AgentNetlinkUnreachable, Severity::Error, said(refused, false)),
        ("no events", FindingId::AgentNoEvents, Severity::Error, said(silent, false)),
        (
            "no hostPID, by the pod",
            FindingId::AgentHostpidMissing,
            Severity::Error,
            with_agent(|workload| {
                if let Some(agents) = &mut workload.agents {
                    agents[0].pod["spec"]["hostPID"] = json!(false);
                }
            }),
        ),
        ("no hostPID, by the log", FindingId::AgentHostpidMissing, Severity::Error, {
            said("only the processes of this pod are visible: set hostPID: true", true)
        }),
    ]
}

#[test]
fn an_agent_that_is_being_started_is_no_finding() {
    let starting = |ready: Value| {
        with_agent(move |workload| {
            if let Some(agents) = &mut workload.agents {
                agents[0].pod["metadata"]["creationTimestamp"] = json!("2026-11-16T11:59:30Z");
                agents[0].pod["status"] = json!({"phase": "Pending", "conditions": [ready], "containerStatuses": [
                    {"state": {"waiting": {"reason": "ContainerCreating"}}},
                ]});
            }
        })
    };
    let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-16T11:59:30Z"});
    assert_eq!(five_spot_diagnose::doctor::examine(&starting(ready)).findings, []);
}

/// The commands of the only finding.
fn commands(facts: &DoctorFacts) -> Vec<String> {
    let report = five_spot_diagnose::doctor::examine(facts);
    let fixes = report.findings.iter().flat_map(|finding| &finding.fix);
    fixes.filter_map(|fix| fix.command.clone()).collect()
}

#[test]
fn a_budget_that_may_not_be_read_is_relaxed_by_its_refusal() {
    let relaxed = |name: &str| {
        let reason = format!("The disruption budget {name} needs 2 healthy pods and has 2 currently");
        let facts = with_workload(draining("shop/web-0", &reason, false), |_| ());
        commands(&facts).into_iter().find(|command| command.contains("poddisruptionbudget"))
    };
    let expected = r#"kubectl patch poddisruptionbudget web -n shop --type=merge -p '{"spec":{"maxUnavailable":null,"minAvailable":1}}'"#;
    assert_eq!(relaxed("web").as_deref(), Some(expected));
    assert_eq!(relaxed("web; reboot"), None, "names become parts of commands");
}

/// A drain that began at 11:00 waits for a pod; each time limit is long enough for it, and never shorter than before.
#[test]
fn a_longer_drain_is_long_enough() {
    for (given, end, longer) in [
        (["5m", "5m"], "11:30:00Z", ["60m", "60m"]),
        (["5m", "5m"], "13:00:00Z", ["121m", "121m"]),
        (["3h", "5m"], "12:30:00Z", ["180m", "91m"]),
    ] {
        let reason = format!("terminating; its grace period ends at 2026-11-16T{end}");
        let mut object = draining("shop/web-0", &reason, true);
        object["spec"]["gracefulShutdownTimeout"] = json!(given[0]);
        object["spec"]["nodeDrainTimeout"] = json!(given[1]);
        let patch = json!({"spec": {"gracefulShutdownTimeout": longer[0], "nodeDrainTimeout": longer[1]}});
        let expected = format!("kubectl patch scheduledmachine desk -n shop --type=merge -p '{patch}'");
        let found = commands(&with_object(object));
        assert!(found.contains(&expected), "{found:#?}");
    }
}

/// A budget allows a disruption only if more pods may be away than are away already.
#[test]
fn a_relaxed_budget_allows_an_eviction() {
    let relaxed = |spec: Value, healthy: u32| {
        let mut tight = budget();
        tight["spec"] = spec;
        tight["status"] = json!({"disruptionsAllowed": 0, "currentHealthy": healthy, "expectedPods": 5});
        let facts = with_workload(draining("shop/web-0", REFUSED, true), |workload| {
            workload.budgets = vec![tight];
        });
        let found = commands(&facts).into_iter().find(|command| command.contains("poddisruptionbudget"));
        found.and_then(|command| command.split_once(" -p ").map(|(_, patch)| patch.to_owned()))
    };
    for (spec, healthy, expected) in [
        (json!({"maxUnavailable": 0}), 5, r#"'{"spec":{"maxUnavailable":1}}'"#),
        (json!({"maxUnavailable": 1}), 4, r#"'{"spec":{"maxUnavailable":2}}'"#),
        (json!({"maxUnavailable": "10%"}), 2, r#"'{"spec":{"maxUnavailable":4}}'"#),
        (json!({"minAvailable": 5}), 5, r#"'{"spec":{"minAvailable":4}}'"#),
        (json!({"minAvailable": "100%"}), 0, r#"'{"spec":{"minAvailable":0}}'"#),
    ] {
        assert_eq!(relaxed(spec.clone(), healthy).as_deref(), Some(expected), "{spec}");
    }
}

/// Tenants write process names, and the names of pods come from workload clusters.
#[test]
fn nothing_that_others_write_runs_in_the_shell_of_the_reader() {
    let mut object = lent();
    object["spec"]["killIfCommands"] = json!(["Java", "x'; reboot; '"]);
    let facts = with_agent_of(object, |workload| {
        let toml = "match_commands = [\"Java\"]\n";
        let config = json!({"metadata": {"name": "reclaim-agent-desk-1"}, "data": {"reclaim.toml": toml}});
        workload.agent_configs = Some(BTreeMap::from([("reclaim-agent-desk-1".to_owned(), config)]));
    });
    let patch = r#"kubectl patch scheduledmachine desk -n shop --type=merge -p '{"spec":{"killIfCommands":["java","x'\''; reboot; '\''"]}}'"#;
    assert_eq!(commands(&facts), [patch]);
    let object = draining("shop/$(reboot)", "still terminating after its grace period", true);
    for command in commands(&with_workload(object, |_| ())) {
        assert!(
            !command.contains("$(reboot)")
                || command.contains("'$(reboot)'")
                || command.contains("'pod/$(reboot)'"),
            "{command}"
        );
    }
}

/// The names of pods and Nodes come from workload clusters, whose API servers tenants may run.
#[test]
fn a_name_from_a_workload_cluster_is_never_a_flag() {
    let mut object = draining("kube-system/--all", "still terminating after its grace period", true);
    object["status"]["nodeRef"]["name"] = json!("--all");
    object["status"]["conditions"].as_array_mut().expect("conditions").push(condition(
        "NodeTainted",
        "False",
        "NodeNotReady",
        "waiting",
        "2026-11-16T11:00:00Z",
    ));
    let found = commands(&with_workload(object, |_| ()));
    assert!(found.iter().any(|command| command.contains("pod/--all")), "{found:#?}");
    assert!(found.iter().all(|command| !command.contains(" --all")), "{found:#?}");
}

/// The commands of the caller's own flags; those for workload clusters need another kubeconfig.
#[test]
fn commands_for_the_same_cluster_keep_the_callers_flags() {
    let object = draining("shop/web-0", "still terminating after its grace period", true);
    let report =
        five_spot_diagnose::doctor::examine(&with_workload(object, |_| ())).with_flags("--context lab");
    let fixes: Vec<_> = report.findings.iter().flat_map(|finding| &finding.fix).collect();
    assert!(fixes.iter().any(|fix| fix.in_workload_cluster), "{fixes:#?}");
    for fix in fixes {
        let Some(command) = &fix.command else { continue };
        assert_eq!(command.contains("--context lab"), !fix.in_workload_cluster, "{command}");
    }
}

/// With its Node in the management cluster, a machine has no other cluster that a command could be for.
#[test]
fn commands_for_management_nodes_keep_the_callers_flags() {
    let mut object = draining("shop/web-0", "still terminating after its grace period", true);
    object["status"]["workloadCluster"] = json!({});
    let mut facts = with_object(object);
    let agent = json!({"metadata": {"name": "agent"}, "spec": {"hostPID": false, "nodeName": "desk-2"}});
    let agents = Some(vec![AgentPod { pod: agent, log: Vec::new() }]);
    let here = WorkloadKey { namespace: "shop".to_owned(), secret: None };
    facts.workloads = BTreeMap::from([(here, WorkloadFacts { agents, ..WorkloadFacts::default() })]);
    let report = five_spot_diagnose::doctor::examine(&facts).with_flags("--context lab");
    let fixes: Vec<_> = report.findings.iter().flat_map(|finding| &finding.fix).collect();
    assert_eq!(report.findings.len(), 2, "{report:#?}");
    for fix in fixes {
        let command = fix.command.as_deref().unwrap_or("--context lab");
        assert!(command.contains("--context lab"), "{command}");
        let note = fix.note.as_deref().unwrap_or_default();
        assert!(!note.contains("workload cluster") && !note.starts_with(':'), "{note}");
    }
}

#[test]
fn a_pod_with_finalizers_is_not_deleted_by_force() {
    let stuck = |finalizers: Value| {
        let object = draining("shop/web-0", "still terminating after its grace period", true);
        with_workload(object, |workload| {
            let pod = json!({"metadata": {
                "name": "web-0", "namespace": "shop", "finalizers": finalizers, "deletionTimestamp": "2026-11-16T11:00:00Z",
            }});
            workload.pods = BTreeMap::from([("desk-1".to_owned(), vec![pod])]);
        })
    };
    let forced = "kubectl delete pod web-0 -n shop --grace-period=0 --force".to_owned();
    assert!(commands(&stuck(json!([]))).contains(&forced));
    let held = commands(&stuck(json!(["example.org/hold"])));
    assert!(!held.contains(&forced) && held.iter().any(|command| command.contains("finalizers")), "{held:?}");
}
