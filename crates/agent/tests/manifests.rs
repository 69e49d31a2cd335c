//! The shipped manifests agree with the program and with the names that the controller uses.

use clap::CommandFactory;
use five_spot_agent::args::{Args, STATE_FOLDER};
use five_spot_api::names::{SYSTEM_NAMESPACE, label};
use five_spot_api::reclaim::{REASON, REQUESTED, REQUESTED_AT};
use serde_json::{Value, json};

const NAME: &str = "5spot-reclaim-agent";

fn documents(file: &str) -> Vec<Value> {
    let path = format!("{}/../../deploy/node-agent/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let parse = |text: &str| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split("\n---\n").map(parse).collect()
}

fn daemon_set() -> Value {
    documents("daemonset.yaml").remove(0)
}

#[test]
fn the_daemon_set_runs_where_the_controller_wants_it() {
    let daemon_set = daemon_set();
    assert_eq!((&daemon_set["kind"], &daemon_set["metadata"]["name"]), (&json!("DaemonSet"), &json!(NAME)));
    assert_eq!(daemon_set["metadata"]["namespace"], SYSTEM_NAMESPACE);
    let template = &daemon_set["spec"]["template"];
    assert_eq!(template["metadata"]["labels"], json!({"app": NAME}));
    assert_eq!(daemon_set["spec"]["selector"]["matchLabels"], json!({"app": NAME}));
    let pod = &template["spec"];
    assert_eq!(pod["nodeSelector"][label::RECLAIM_AGENT], label::RECLAIM_AGENT_ENABLED);
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["serviceAccountName"], NAME);
}

#[test]
fn the_pod_has_the_host_namespaces_and_one_capability() {
    let pod = daemon_set()["spec"]["template"]["spec"].clone();
    assert_eq!((&pod["hostPID"], &pod["hostNetwork"]), (&json!(true), &json!(true)));
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["capabilities"], json!({"add": ["NET_ADMIN"], "drop": ["ALL"]}));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(
        container["resources"]["limits"].as_object().map(|limits| limits.contains_key("cpu")),
        Some(false)
    );
    let mounts = container["volumeMounts"].as_array().expect("mounts");
    let paths: Vec<&Value> = mounts.iter().map(|mount| &mount["mountPath"]).collect();
    assert_eq!(paths, ["/host/etc/machine-id", STATE_FOLDER]);
    assert_eq!(container["readinessProbe"]["exec"]["command"], json!([NAME, "probe"]));
    // The default of a second is too short for a machine whose owner is busy.
    assert_eq!(container["readinessProbe"]["timeoutSeconds"], 5);
}

#[test]
fn every_variable_is_one_that_the_program_reads() {
    let pod = daemon_set()["spec"]["template"]["spec"].clone();
    let known: Vec<String> = Args::command()
        .get_arguments()
        .filter_map(|argument| Some(argument.get_env()?.to_string_lossy().into_owned()))
        .chain(["RUST_LOG".to_owned()])
        .collect();
    for variable in pod["containers"][0]["env"].as_array().expect("variables") {
        let name = variable["name"].as_str().expect("a name");
        assert!(known.iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn the_policy_names_the_account_and_the_three_annotations() {
    let policy = documents("policy.yaml").remove(0);
    let condition = policy["spec"]["matchConditions"][0]["expression"].as_str().expect("an expression");
    assert_eq!(
        condition,
        format!("request.userInfo.username == \"system:serviceaccount:{SYSTEM_NAMESPACE}:{NAME}\"")
    );
    let keys = policy["spec"]["variables"][1]["expression"].as_str().expect("an expression");
    assert_eq!(keys, format!("['{REQUESTED}', '{REASON}', '{REQUESTED_AT}']"));
    let binding = documents("policy.yaml").remove(1);
    assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
    assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
}

#[test]
fn the_account_may_read_config_maps_and_patch_nodes() {
    let rules: Vec<Value> =
        documents("rbac.yaml").into_iter().filter_map(|document| document.get("rules").cloned()).collect();
    assert_eq!(
        rules,
        [
            json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]),
            json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}]),
        ]
    );
}
