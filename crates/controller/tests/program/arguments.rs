//! Flags over variables over defaults, and what is said of bad ones.

use crate::process::{line_of, run};
use serde_json::json;

const EFFECTIVE: &str = "Effective configuration";

#[expect(clippy::too_many_lines, reason = "one row for each flag")]
#[tokio::test]
async fn flags_win_over_variables_and_variables_over_defaults() {
    let timeout = "finalizer_cleanup_timeout_secs";
    let force = "force_finalizer_on_timeout";
    let count = "max_concurrent_reconciles";
    let timeout_variable = ("FINALIZER_CLEANUP_TIMEOUT_SECS", "30");
    let force_variable = ("FORCE_FINALIZER_ON_TIMEOUT", "false");
    for (arguments, variables, field, expected) in [
        (vec![], vec![], timeout, json!(600)),
        (vec![], vec![timeout_variable], timeout, json!(30)),
        (vec!["--finalizer-cleanup-timeout-secs", "40"], vec![timeout_variable], timeout, json!(40)),
        (vec!["--finalizer-cleanup-timeout-secs=86400"], vec![], timeout, json!(86_400)),
        (vec![], vec![], force, json!(true)),
        (vec![], vec![force_variable], force, json!(false)),
        (vec!["--force-finalizer-on-timeout"], vec![force_variable], force, json!(true)),
        (vec!["--force-finalizer-on-timeout=true"], vec![force_variable], force, json!(true)),
        (vec!["--force-finalizer-on-timeout=false"], vec![], force, json!(false)),
        (vec![], vec![], count, json!(16)),
        (vec![], vec![("MAX_CONCURRENT_RECONCILES", "2")], count, json!(2)),
        (vec!["--max-concurrent-reconciles=3"], vec![("MAX_CONCURRENT_RECONCILES", "2")], count, json!(3)),
        (vec![], vec![], "instance_id", json!(0)),
        (vec![], vec![], "instance_count", json!(1)),
        (
            vec!["--instance-count=3"],
            vec![("OPERATOR_INSTANCE_ID", "5spot-controller-2")],
            "instance_id",
            json!(2),
        ),
        (vec!["--instance-id=1"], vec![("OPERATOR_INSTANCE_COUNT", "3")], "instance_count", json!(3)),
        (
            vec!["--instance-id=1", "--instance-count=2", "--enable-leader-election"],
            vec![],
            "lease",
            json!("5spot-system/5spot-leader-1"),
        ),
        (vec![], vec![], "max_unplanned_removals", json!("20%")),
        (vec![], vec![("MAX_UNPLANNED_REMOVALS", "7")], "max_unplanned_removals", json!("7")),
        (
            vec!["--max-unplanned-removals=100%"],
            vec![("MAX_UNPLANNED_REMOVALS", "7")],
            "max_unplanned_removals",
            json!("100%"),
        ),
        (vec![], vec![], "workload_cidr", json!("")),
        (vec![], vec![("WORKLOAD_CIDRS", "127.0.0.0/8,::1")], "workload_cidr", json!("127.0.0.0/8,::1/128")),
        (
            vec!["--workload-cidr=10.0.0.1"],
            vec![("WORKLOAD_CIDRS", "::1")],
            "workload_cidr",
            json!("10.0.0.1/32"),
        ),
        (vec![], vec![], "allow_insecure_workloads", json!(false)),
        (vec![], vec![("ALLOW_INSECURE_WORKLOADS", "true")], "allow_insecure_workloads", json!(true)),
        (vec!["--allow-insecure-workloads"], vec![], "allow_insecure_workloads", json!(true)),
        (vec![], vec![], "enable_leader_election", json!(false)),
        (vec!["--enable-leader-election"], vec![], "lease", json!("5spot-system/5spot-leader")),
        (
            vec!["--enable-leader-election=true", "--lease-name=a"],
            vec![("POD_NAMESPACE", "b"), ("LEASE_NAME", "c")],
            "lease",
            json!("b/a"),
        ),
        (
            vec!["--lease-namespace=d"],
            vec![("ENABLE_LEADER_ELECTION", "true"), ("POD_NAMESPACE", "b"), ("LEASE_NAME", "c")],
            "lease",
            json!("d/c"),
        ),
        (
            vec!["--enable-leader-election=false"],
            vec![("ENABLE_LEADER_ELECTION", "true")],
            "enable_leader_election",
            json!(false),
        ),
        (vec!["--enable-leader-election"], vec![], "lease_duration_secs", json!(15)),
        (
            vec!["--enable-leader-election", "--lease-duration-secs=60"],
            vec![("LEASE_DURATION_SECONDS", "30")],
            "lease_duration_secs",
            json!(60),
        ),
        (vec!["--enable-leader-election"], vec![], "lease_renew_deadline_secs", json!(10)),
        (
            vec!["--enable-leader-election"],
            vec![("LEASE_RENEW_DEADLINE_SECONDS", "8")],
            "lease_renew_deadline_secs",
            json!(8),
        ),
        (vec!["--enable-leader-election"], vec![], "lease_retry_period_secs", json!(2)),
        (
            vec!["--enable-leader-election"],
            vec![("LEASE_RETRY_PERIOD_SECONDS", "3")],
            "lease_retry_period_secs",
            json!(3),
        ),
        (vec![], vec![], "metrics_port", json!(8080)),
        (vec![], vec![], "health_port", json!(8081)),
        (vec![], vec![("METRICS_PORT", "9090")], "metrics_port", json!(9090)),
        (vec!["--metrics-port", "0"], vec![("METRICS_PORT", "9090")], "metrics_port", json!(0)),
        (vec![], vec![("HEALTH_PORT", "9091")], "health_port", json!(9091)),
        (vec!["--health-port=9092"], vec![("HEALTH_PORT", "9091")], "health_port", json!(9092)),
        (vec![], vec![], "watch_namespace", json!("all")),
        (vec!["--watch-namespace=b", "--watch-namespace", "a"], vec![], "watch_namespace", json!("a,b")),
        (vec![], vec![], "log_format", json!("json")),
        (vec!["--log-format", "json"], vec![("RUST_LOG_FORMAT", "text")], "log_format", json!("json")),
        (vec![], vec![], "rust_log", json!("info")),
        (vec![], vec![("RUST_LOG", "")], "rust_log", json!("info")),
        (vec![], vec![("RUST_LOG", "info,kube=warn")], "rust_log", json!("info,kube=warn")),
        (vec![], vec![], "runtime_metrics", json!(false)),
        (vec![], vec![("RUNTIME_METRICS", "true")], "runtime_metrics", json!(true)),
        (vec!["--runtime-metrics=false"], vec![("RUNTIME_METRICS", "true")], "runtime_metrics", json!(false)),
        (vec![], vec![], "verbose", json!(false)),
        (vec!["-v"], vec![], "verbose", json!(true)),
        (vec!["--verbose"], vec![], "verbose", json!(true)),
        (vec!["--verbose=false"], vec![], "verbose", json!(false)),
        (vec!["-v=true"], vec![], "verbose", json!(true)),
        (vec![], vec![("POD_NAME", "5spot-0")], "instance", json!("5spot-0")),
    ] {
        let said = run(&arguments, &variables).await;
        assert_eq!(said.fields(EFFECTIVE)[field], expected, "{arguments:?} {variables:?}: {said:?}");
    }
}

#[tokio::test]
async fn management_node_namespaces_come_from_flag_or_variable() {
    for (arguments, variables, field, expected) in [
        (vec![], vec![], "management_nodes_namespace", json!("")),
        (
            vec![],
            vec![("MANAGEMENT_NODES_NAMESPACES", "team-a,team-b")],
            "management_nodes_namespace",
            json!("team-a,team-b"),
        ),
        (
            vec!["--management-nodes-namespace=team-c"],
            vec![("MANAGEMENT_NODES_NAMESPACES", "team-a,team-b")],
            "management_nodes_namespace",
            json!("team-c"),
        ),
    ] {
        let said = run(&arguments, &variables).await;
        assert_eq!(said.fields(EFFECTIVE)[field], expected, "{arguments:?} {variables:?}: {said:?}");
    }
}

#[tokio::test]
async fn times_of_the_election_that_do_not_fit_are_refused() {
    let (duration, deadline) = ("--lease-duration-secs", "--lease-renew-deadline-secs");
    let retry = "LEASE_RETRY_PERIOD_SECONDS";
    for (arguments, variables, parts) in [
        (vec![deadline, "15"], vec![], vec![deadline, "'15'", duration]),
        (vec![duration, "10"], vec![], vec![deadline, "'10'", duration, "which is 10"]),
        (vec![], vec![("LEASE_DURATION_SECONDS", "9")], vec![deadline, "'10'", duration, "which is 9"]),
        (vec![], vec![(retry, "10")], vec![retry, "'10'", deadline]),
        (vec![deadline, "2"], vec![], vec![retry, "'2'", deadline]),
        (vec![], vec![(retry, "0")], vec![retry, "'0'", "from 1 to 3600"]),
        (vec![], vec![(retry, "2s")], vec![retry, "'2s'", "from 1 to 3600"]),
        (vec![duration, "0"], vec![], vec![duration, "'0'", "from 1 to 3600"]),
        (vec![deadline, "0"], vec![], vec![deadline, "'0'", "from 1 to 3600"]),
        (vec!["--lease-name", "A"], vec![], vec!["--lease-name", "'A'", "name of an object"]),
        (
            vec![],
            vec![("POD_NAMESPACE", "a.b")],
            vec!["--lease-namespace", "'a.b'", "variable POD_NAMESPACE"],
        ),
    ] {
        let said = run(&arguments, &variables).await;
        assert_eq!(said.code, Some(2), "{arguments:?} {variables:?}: {said:?}");
        for part in parts {
            assert!(said.stderr.contains(part), "{part} in {said:?}");
        }
    }
}

#[tokio::test]
async fn without_a_pod_name_the_instance_is_the_host() {
    let said = run(&[], &[]).await;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert_eq!(said.fields(EFFECTIVE)["instance"], host);
}

#[tokio::test]
async fn text_has_no_colours_without_a_terminal() {
    for (arguments, variables) in
        [(vec!["--log-format=text"], vec![]), (vec![], vec![("RUST_LOG_FORMAT", "text")])]
    {
        let said = run(&arguments, &variables).await;
        assert!(said.stdout.contains(" INFO five_spot_controller"), "{said:?}");
        assert!(!said.stdout.contains(['{', '\u{1b}']), "{said:?}");
    }
}

#[tokio::test]
async fn bad_values_exit_2_and_name_flag_value_and_what_is_allowed() {
    let (timeout, force) = ("--finalizer-cleanup-timeout-secs", "--force-finalizer-on-timeout");
    let timeout_bounds = "a whole number from 1 to 86400";
    for (arguments, variables, parts) in [
        (vec![timeout, "soon"], vec![], vec![timeout, "'soon'", timeout_bounds]),
        (vec![timeout, "0"], vec![], vec![timeout, "'0'", timeout_bounds]),
        (vec![timeout, "86401"], vec![], vec![timeout, "'86401'", timeout_bounds]),
        (
            vec![],
            vec![("FINALIZER_CLEANUP_TIMEOUT_SECS", "10m")],
            vec![timeout, "'10m'", timeout_bounds, "variable FINALIZER_CLEANUP_TIMEOUT_SECS"],
        ),
        (vec!["--force-finalizer-on-timeout=maybe"], vec![], vec![force, "'maybe'", "true, false"]),
        (
            vec![],
            vec![("FORCE_FINALIZER_ON_TIMEOUT", "yes")],
            vec![force, "'yes'", "true, false", "variable FORCE_FINALIZER_ON_TIMEOUT"],
        ),
        (vec!["--verbose=loud"], vec![], vec!["--verbose", "'loud'", "true, false"]),
        (vec!["--log-format", "xml"], vec![], vec!["--log-format", "'xml'", "json, text"]),
        (
            vec![],
            vec![("RUST_LOG_FORMAT", "xml")],
            vec!["--log-format", "'xml'", "json, text", "RUST_LOG_FORMAT"],
        ),
        (vec![], vec![("RUST_LOG", "kube=loud")], vec!["'RUST_LOG'", "'kube=loud'", "info"]),
        (
            vec!["--max-concurrent-reconciles=0"],
            vec![],
            vec!["--max-concurrent-reconciles", "'0'", "1 to 1000"],
        ),
        (vec!["--watch-namespace", "Team"], vec![], vec!["--watch-namespace", "'Team'", "a-z, 0-9 and '-'"]),
        (vec!["--metrics-port=65536"], vec![], vec!["--metrics-port", "'65536'", "from 0 to 65535"]),
        (vec![], vec![("HEALTH_PORT", "http")], vec!["--health-port", "'http'", "variable HEALTH_PORT"]),
        (
            vec!["--metrics-port=8081"],
            vec![],
            vec!["--health-port", "'8081'", "must differ from '--metrics-port'"],
        ),
        (vec!["--colour"], vec![], vec!["--colour"]),
        (vec!["stray"], vec![], vec!["stray"]),
    ] {
        let said = run(&arguments, &variables).await;
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{arguments:?} {variables:?}: {said:?}");
        // Nobody watches: one log line like any other.
        let line = line_of(&said.stderr);
        let message = line["fields"]["message"].as_str().expect("a message");
        assert_eq!(line["level"], "ERROR");
        for part in parts {
            assert!(message.contains(part), "{arguments:?} {variables:?}: no {part:?} in {message}");
        }
    }
}

#[tokio::test]
async fn a_refusal_is_plain_text_where_text_is_asked_for() {
    for (arguments, variables) in [
        (vec!["--colour", "--log-format=text"], vec![]),
        (vec!["--log-format", "text", "--colour"], vec![]),
        (vec!["--colour"], vec![("RUST_LOG_FORMAT", "text")]),
    ] {
        let said = run(&arguments, &variables).await;
        assert_eq!(said.code, Some(2));
        assert!(said.stderr.starts_with("error: unexpected argument '--colour' found"), "{said:?}");
    }
}

#[tokio::test]
async fn instances_that_cannot_exist_are_refused() {
    let (id, count) = ("--instance-id", "--instance-count");
    for (arguments, variables, parts) in [
        (vec![id, "1"], vec![], vec![id, "'1'", "below '--instance-count'", "which is 1"]),
        (vec![id, "3", count, "3"], vec![], vec![id, "'3'", "numbered from 0"]),
        (vec![id, "one"], vec![], vec![id, "'one'", "5spot-controller-2"]),
        (vec![], vec![("OPERATOR_INSTANCE_ID", "pod")], vec![id, "'pod'", "OPERATOR_INSTANCE_ID"]),
        (vec![count, "0"], vec![], vec![count, "'0'", "from 1 to 1000"]),
        (vec![], vec![("OPERATOR_INSTANCE_COUNT", "0")], vec![count, "OPERATOR_INSTANCE_COUNT"]),
        (vec![], vec![("OPERATOR_INSTANCE_COUNT", "two")], vec![count, "'two'", "from 1 to 1000"]),
        (vec!["--max-unplanned-removals", "many"], vec![], vec!["--max-unplanned-removals", "'many'", "20%"]),
        (vec![], vec![("MAX_UNPLANNED_REMOVALS", "101%")], vec!["MAX_UNPLANNED_REMOVALS", "0% to 100%"]),
    ] {
        let said = run(&arguments, &variables).await;
        assert_eq!(said.code, Some(2), "{arguments:?} {variables:?}: {said:?}");
        for part in parts {
            assert!(said.stderr.contains(part), "{arguments:?} {variables:?}: no {part:?} in {said:?}");
        }
    }
}

#[tokio::test]
async fn help_and_version_go_to_standard_output() {
    let help = run(&["--help"], &[]).await;
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    for part in [
        "Scope:",
        "Work:",
        "Deletion:",
        "Instances:",
        "Serving:",
        "Logging:",
        "RUST_LOG ",
        "POD_NAME ",
        "[addition]",
        "5spot sandbox",
    ] {
        assert!(help.stdout.contains(part), "{part} in {}", help.stdout);
    }
    let version = run(&["--version"], &[]).await;
    assert_eq!(
        (version.code, version.stdout),
        (Some(0), format!("5spot-controller {}\n", env!("CARGO_PKG_VERSION")))
    );
}
