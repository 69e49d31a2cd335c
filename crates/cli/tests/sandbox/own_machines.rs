//! `-f`: a person's own machines, and what belongs to them.

use crate::program::{about, machine, sandbox, sandbox_of, second};

const DAY: &str = "--once -f - --start 2026-11-09T00:00:00Z --for 24h -o json";

#[test]
fn other_kinds_and_missing_namespaces_are_created() {
    // The Deployment's pod runs on the machine, and its budget holds the drain for good: the deadline passes, which is
    // in time for as long as it is held.
    let others = "
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: lab}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'example.org/app:1'}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: lab}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
";
    let input = machine("bench-01", "{hoursOfDay: ['9-17']}", "") + others;
    let answer = sandbox_of(&input, DAY);
    assert_eq!(answer.code, 0, "{}", answer.stdout.lines().last().unwrap_or_default());
    let lines = answer.lines();
    let refused = lines.iter().filter(|line| line["subresource"] == "eviction" && line["status"] == 429);
    assert!(refused.count() > 3);
    let last = about(&lines, "transition", "bench-01").into_iter().next_back().expect("a transition");
    assert_eq!((second(last).as_str(), &last["to"]), ("2026-11-09T18:05:00Z", &"Error".into()));
}

#[test]
fn unknown_provider_kinds_get_a_crd() {
    let input = machine("bench-01", "{hoursOfDay: ['9-17']}", "")
        .replace("kind: RemoteMachine", "kind: ForeignMachine")
        .replace(
            "cluster.x-k8s.io/v1beta2, kind: K0sWorkerConfig",
            "cluster.x-k8s.io/v1, kind: ForeignConfig",
        );
    let answer = sandbox_of(&input, DAY);
    assert_eq!(answer.code, 0, "{}", answer.stdout.lines().last().unwrap_or_default());
    assert!(answer.stdout.contains("foreignmachines") && answer.stdout.contains("foreignconfigs"));
}

#[test]
fn a_machine_in_the_wrong_state_is_reported_with_exit_status_1() {
    let input = machine("bench-01", "{hoursOfDay: ['9-17']}", "kubeconfigSecretRef: {name: nowhere}");
    let answer = sandbox_of(&input, DAY);
    assert_eq!(answer.code, 1, "{answer:?}");
    let lines = answer.lines();
    let violations = lines.last().expect("a summary")["violations"].as_array().expect("violations").clone();
    let first = violations.first().expect("a violation");
    assert_eq!((&first["namespace"], &first["name"]), (&"lab".into(), &"bench-01".into()));
    assert!(first["message"].as_str().is_some_and(|message| message.contains("in phase Error")), "{first}");
}

#[test]
fn a_dump_of_a_cluster_can_be_loaded() {
    let dump = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Namespace, metadata: {name: lab, uid: u}}]}\n";
    let machine = machine("bench-01", "{hoursOfDay: ['9-17']}", "").replace(
        "metadata: {name: bench-01,",
        "status: {phase: Active}\nmetadata: {uid: u, resourceVersion: '7', finalizers: [x/y], name: bench-01,",
    );
    let answer = sandbox_of(&(dump.to_owned() + &machine), DAY);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(about(&answer.lines(), "transition", "bench-01").len() > 3);
}

#[test]
fn files_without_a_machine_make_an_empty_sandbox() {
    let answer = sandbox_of("{apiVersion: v1, kind: Namespace, metadata: {name: lab}}", DAY);
    assert_eq!(
        (answer.code, answer.stdout.trim()),
        (0, r#"{"machines":[],"reclaims":[],"type":"summary","violations":[]}"#)
    );
    assert!(answer.stderr.contains("the files contain no ScheduledMachine"), "{}", answer.stderr);
}

#[test]
fn every_example_runs() {
    for entry in std::fs::read_dir(crate::program::root().join("examples")).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let answer =
                sandbox(&format!("--once --for 12h --start 2026-11-09T06:00:00Z -f {}", path.display()));
            assert_eq!(answer.code, 0, "{}: {answer:?}", path.display());
        }
    }
}
