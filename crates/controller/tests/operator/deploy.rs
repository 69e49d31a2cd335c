//! The manifests that are shipped say what the documents say, and name only what exists.

use crate::seed::{ADDITIONS, ALERTS, METRICS};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn manifests(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).expect("YAML")
}

fn of_kind<'a>(manifests: &'a [Value], kind: &str) -> &'a Value {
    manifests.iter().find(|manifest| manifest["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

#[test]
fn alerts_are_documented_and_use_existing_metrics() {
    let file = manifests("monitoring/alerts.yaml");
    let rules = file[0]["groups"][0]["rules"].as_array().expect("rules");
    let text = |value: &Value| value.as_str().expect("text").trim().to_owned();
    let shipped: Vec<(String, String, String)> =
        rules.iter().map(|rule| (text(&rule["alert"]), text(&rule["expr"]), text(&rule["for"]))).collect();
    let documented: Vec<(String, String, String)> = ALERTS
        .iter()
        .map(|(alert, expr, pending)| ((*alert).into(), (*expr).into(), (*pending).into()))
        .collect();
    assert_eq!(shipped, documented);
    for (alert, expr, _) in shipped {
        let named = METRICS.iter().chain(&ADDITIONS).filter(|row| expr.contains(row.name)).count();
        assert_eq!(named, 1, "{alert} asks for one metric of the table");
    }
}

#[test]
fn every_alert_is_seen_to_fire_and_not_to_fire() {
    let tested = &manifests("../tests/monitoring/alerts.yaml")[0];
    let mut cases: BTreeSet<(String, bool)> = BTreeSet::new();
    for test in tested["tests"].as_array().expect("tests") {
        for case in test["alert_rule_test"].as_array().expect("cases") {
            let alert = case["alertname"].as_str().expect("a name").to_owned();
            cases.insert((alert, case["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty())));
        }
    }
    let wanted =
        ALERTS.iter().flat_map(|(alert, ..)| [false, true].map(|fires| ((*alert).to_owned(), fires)));
    assert_eq!(cases, wanted.collect());
}

#[test]
fn the_probes_the_ports_and_the_monitor_fit_together() {
    let file = manifests("controller/controller.yaml");
    let container = &of_kind(&file, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    for (probe, path) in [("livenessProbe", "/health"), ("readinessProbe", "/ready")] {
        let probe = &container[probe];
        assert_eq!((&probe["httpGet"]["path"], &probe["httpGet"]["port"]), (&path.into(), &8081.into()));
        assert_eq!((&probe["initialDelaySeconds"], &probe["periodSeconds"]), (&5.into(), &10.into()));
    }
    let service = of_kind(&file, "Service");
    assert_eq!(service["spec"]["ports"][0]["name"], "metrics");
    let monitor = manifests("monitoring/servicemonitor.yaml");
    assert_eq!(monitor[0]["spec"]["selector"]["matchLabels"], service["metadata"]["labels"]);
    assert_eq!(monitor[0]["spec"]["endpoints"][0]["port"], "metrics");
}

#[test]
fn the_manifests_set_only_known_variables() {
    let command = <five_spot_controller::args::Args as clap::CommandFactory>::command();
    let mut known: BTreeSet<String> = command
        .get_arguments()
        .filter_map(|one| Some(one.get_env()?.to_string_lossy().into_owned()))
        .collect();
    known.insert("RUST_LOG".to_owned());
    for file in ["controller/controller.yaml", "ha/controller.yaml"] {
        let file = manifests(file);
        let data = of_kind(&file, "ConfigMap")["data"].as_object().expect("variables");
        for variable in data.keys() {
            assert!(known.contains(variable), "{variable}");
        }
        assert!(!data.is_empty());
    }
}

#[test]
fn the_replicas_the_lease_and_its_policy_fit_together() {
    let file = manifests("ha/controller.yaml");
    let (config, deployment) = (of_kind(&file, "ConfigMap"), of_kind(&file, "Deployment"));
    assert_eq!(
        (&config["data"]["ENABLE_LEADER_ELECTION"], &deployment["spec"]["replicas"]),
        (&"true".into(), &2.into())
    );
    let lease = &config["data"]["LEASE_NAME"];
    let fence = manifests("ha/fence.yaml");
    let binding = of_kind(&fence, "ValidatingAdmissionPolicyBinding");
    assert_eq!(&binding["spec"]["paramRef"]["name"], lease);
    // The controller tells a refusal by the name of the policy.
    assert_eq!(of_kind(&fence, "ValidatingAdmissionPolicy")["metadata"]["name"], "5spot-fence");
    let role = manifests("ha/rbac.yaml");
    let rules = of_kind(&role, "Role")["rules"].as_array().expect("rules").clone();
    assert_eq!(rules[0]["resourceNames"], Value::from(vec![lease.clone()]));
    // Apart from the election both Deployments are the same.
    let alone = manifests("controller/controller.yaml");
    let container =
        |file: &[Value]| of_kind(file, "Deployment")["spec"]["template"]["spec"]["containers"].clone();
    assert_eq!(container(&file), container(&alone));
}
