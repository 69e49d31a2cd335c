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
        let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let metrics: Vec<&str> = words.filter(|word| word.starts_with("fivespot_")).collect();
        assert!(!metrics.is_empty(), "{alert}");
        for metric in metrics {
            let part = ["_bucket", "_count"].iter().find_map(|part| metric.strip_suffix(part));
            let exists = |name: &str| METRICS.iter().chain(&ADDITIONS).any(|row| row.name == name);
            assert!(exists(metric) || part.is_some_and(exists), "{alert} asks for {metric}");
        }
    }
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_alert_links_to_a_heading_of_the_troubleshooting_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let headings: BTreeSet<String> =
        page.lines().filter_map(|line| Some(anchor(line.strip_prefix("### ")?))).collect();
    let file = manifests("monitoring/alerts.yaml");
    for rule in file[0]["groups"][0]["rules"].as_array().expect("rules") {
        let link = rule["annotations"]["runbook_url"].as_str().unwrap_or_else(|| panic!("no link: {rule}"));
        let target = link.strip_prefix("docs/troubleshooting.md#").unwrap_or_else(|| panic!("{link}"));
        assert!(headings.contains(target), "there is no heading {target}");
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
    // The API server refuses other names before Kubernetes 1.36.
    let name = service["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name} does not start with a letter");
    let monitor = manifests("monitoring/servicemonitor.yaml");
    assert_eq!(monitor[0]["spec"]["selector"]["matchLabels"], service["metadata"]["labels"]);
    assert_eq!(monitor[0]["spec"]["endpoints"][0]["port"], "metrics");
    // The dashboard selects the metrics of the process by their job.
    let label = monitor[0]["spec"]["jobLabel"].as_str().expect("a label");
    assert_eq!(service["metadata"]["labels"][label], "5spot-controller");
}

/// The ports on which API servers listen: of cloud providers, kubeadm, minikube, `MicroK8s` and k0smotron.
const API_SERVER_PORTS: [u16; 5] = [443, 6443, 8443, 16443, 30443];

#[test]
fn the_network_policy_permits_all_needed_connections() {
    let policy = manifests("controller/network-policy.yaml");
    let ports = |rule: &Value| -> Vec<Value> {
        let ports = rule["ports"].as_array().expect("ports");
        ports.iter().map(|port| port["port"].clone()).collect()
    };
    let rules = &policy[0]["spec"];
    assert_eq!(ports(&rules["egress"][0]), API_SERVER_PORTS.map(Value::from));
    assert_eq!(ports(&rules["egress"][1]), [53, 53].map(Value::from));
    assert_eq!(ports(&rules["ingress"][0]), ["metrics", "health"].map(Value::from));
    // Kubelets and the pod proxy of the API server have addresses of hosts.
    assert!(rules["ingress"][0]["from"].is_null() && rules["egress"][0]["to"].is_null());
    let file = manifests("controller/controller.yaml");
    let pod = &of_kind(&file, "Deployment")["spec"]["template"];
    assert_eq!(rules["podSelector"]["matchLabels"], pod["metadata"]["labels"]);
    let named = pod["spec"]["containers"][0]["ports"].as_array().expect("ports");
    assert!(["metrics", "health"].iter().all(|name| named.iter().any(|port| port["name"] == *name)));
}

/// The labels that the Prometheus Operator puts on everything that it scrapes from a Service.
const TARGET_LABELS: [&str; 7] = ["container", "endpoint", "instance", "job", "namespace", "pod", "service"];

#[test]
fn the_monitor_keeps_labels_that_targets_have_as_well() {
    let shared: BTreeSet<&str> = METRICS
        .iter()
        .chain(&ADDITIONS)
        .flat_map(|row| row.labels)
        .copied()
        .filter(|label| TARGET_LABELS.contains(label))
        .collect();
    // A metric with the label `pod` or `instance` would hide which replica it comes from.
    assert_eq!(shared, BTreeSet::from(["namespace"]));
    let monitor = manifests("monitoring/servicemonitor.yaml");
    assert_eq!(monitor[0]["spec"]["endpoints"][0]["honorLabels"], true);
}

#[test]
fn the_manifests_set_only_known_variables() {
    let command = <five_spot_controller::args::Args as clap::CommandFactory>::command();
    let mut known: BTreeSet<String> = command
        .get_arguments()
        .filter_map(|one| Some(one.get_env()?.to_string_lossy().into_owned()))
        .collect();
    known.insert("RUST_LOG".to_owned());
    for file in ["controller/controller.yaml", "ha/config.yaml", "sharded/config.yaml"] {
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
    let (config, patch) = (manifests("ha/config.yaml"), manifests("ha/controller.yaml"));
    let (config, deployment) = (of_kind(&config, "ConfigMap"), of_kind(&patch, "Deployment"));
    assert_eq!(
        (&config["data"]["ENABLE_LEADER_ELECTION"], &deployment["spec"]["replicas"]),
        (&"true".into(), &2.into())
    );
    let lease = &config["data"]["LEASE_NAME"];
    let fence = manifests("ha/fence.yaml");
    let binding = of_kind(&fence, "ValidatingAdmissionPolicyBinding");
    assert_eq!(&binding["spec"]["paramRef"]["name"], lease);
    // The controller tells a refusal by the name of the policy.
    let policy = of_kind(&fence, "ValidatingAdmissionPolicy");
    assert_eq!(policy["metadata"]["name"], "5spot-fence");
    let fenced: BTreeSet<&str> = policy["spec"]["matchConstraints"]["resourceRules"]
        .as_array()
        .expect("rules")
        .iter()
        .flat_map(|rule| rule["apiGroups"].as_array().expect("groups"))
        .filter_map(Value::as_str)
        .collect();
    for group in five_spot_api::names::PROVIDER_GROUPS {
        assert!(fenced.contains(group), "{group} is not fenced");
    }
    let role = manifests("ha/rbac.yaml");
    let rules = of_kind(&role, "Role")["rules"].as_array().expect("rules").clone();
    assert_eq!(rules[0]["resourceNames"], Value::from(vec![lease.clone()]));
    // Apart from the election both Deployments are the same: the overlay changes no container.
    assert!(deployment["spec"]["template"]["spec"]["containers"].is_null());
}

/// The queries that the documents ask for on a dashboard.
const QUERIES: [&str; 9] = [
    "sum(fivespot_is_leader)",
    "sum by (phase) (fivespot_machines_by_phase)",
    "sum(rate(fivespot_reconciliations_total[5m]))",
    "histogram_quantile(0.99, rate(fivespot_reconciliation_duration_seconds_bucket[5m]))",
    r#"rate(fivespot_reconciliations_total{result="failure"}[5m])"#,
    r#"histogram_quantile(0.95, rate(fivespot_emergency_drain_duration_seconds_bucket{outcome="success"}[10m]))"#,
    r#"sum(rate(fivespot_emergency_drain_duration_seconds_count{outcome="timeout"}[10m]))"#,
    "topk(10, sum by (namespace, name) (increase(fivespot_emergency_reclaims_total[1h])))",
    "sum by (namespace, name) (rate(fivespot_rapid_re_reclaims_total[15m]))",
];

/// Metrics of the process that are not in the tables.
const PROCESS: [&str; 3] = ["process_open_fds", "process_max_fds", "process_resident_memory_bytes"];

#[test]
fn the_dashboard_uses_documented_queries_and_known_metrics() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring/dashboard.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let targets = dashboard["panels"].as_array().expect("panels").iter();
    let targets = targets.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let shown: Vec<String> =
        targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect();
    for query in QUERIES {
        assert!(shown.iter().any(|shown| shown == query), "{query} is missing");
    }
    let suffixes = ["", "_bucket", "_count", "_sum"];
    let known: BTreeSet<String> = METRICS
        .iter()
        .chain(&ADDITIONS)
        .flat_map(|row| suffixes.map(|suffix| format!("{}{suffix}", row.name)))
        .chain(PROCESS.map(str::to_owned))
        .collect();
    for query in &shown {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named: Vec<&str> =
            words.filter(|word| word.starts_with("fivespot_") || word.starts_with("process_")).collect();
        assert!(!named.is_empty() && named.iter().all(|name| known.contains(*name)), "{query}");
    }
}
