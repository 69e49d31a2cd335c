//! The roles that are shipped: exactly what the program asks for, nothing that could become more, and the same for a
//! controller that watches chosen namespaces. That what it asks for is what it uses is seen in audit logs, end to end.

use five_spot_cluster::preflight::{Permission, for_claims, required};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn documents(directory: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(directory);
    let files = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut documents = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        documents.extend(serde_saphyr::from_multiple::<Value>(&text).expect("YAML"));
    }
    assert!(!documents.is_empty());
    documents
}

fn everything() -> Vec<Value> {
    [documents("rbac"), documents("rbac-namespaced")].concat()
}

fn is_role(document: &Value) -> bool {
    matches!(document["kind"].as_str(), Some("Role" | "ClusterRole"))
}

fn is_binding(document: &Value) -> bool {
    matches!(document["kind"].as_str(), Some("RoleBinding" | "ClusterRoleBinding"))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn rules(role: &Value) -> impl Iterator<Item = &Value> {
    role["rules"].as_array().into_iter().flatten()
}

/// `verb resource group` for everything that a role grants.
fn grants(role: &Value) -> BTreeSet<String> {
    let mut grants = BTreeSet::new();
    for rule in rules(role) {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                grants.extend(texts(&rule["verbs"]).iter().map(|verb| format!("{verb} {resource} {group}")));
            }
        }
    }
    grants
}

fn named<'a>(documents: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_it = |document: &&Value| document["kind"] == kind && document["metadata"]["name"] == name;
    documents.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn asked_for(namespaces: &[String]) -> BTreeSet<String> {
    let grant =
        |permission: &Permission| format!("{} {} {}", permission.verb, permission.what(), permission.group);
    required(namespaces).iter().map(grant).collect()
}

#[test]
fn the_role_of_the_controller_is_what_it_asks_for_at_its_start() {
    let shipped = documents("rbac");
    let role = grants(named(&shipped, "ClusterRole", "5spot-controller"));
    // One role serves both ways to start it.
    let asked: BTreeSet<String> = asked_for(&[]).union(&asked_for(&["one".to_owned()])).cloned().collect();
    assert_eq!(role, asked);
}

#[test]
fn both_ways_to_start_it_may_use_the_leases_of_claims() {
    let asked: BTreeSet<String> = for_claims("5spot-system")
        .iter()
        .map(|permission| format!("{} {} {}", permission.verb, permission.what(), permission.group))
        .collect();
    for shipped in [documents("rbac"), documents("rbac-namespaced")] {
        let role = named(&shipped, "Role", "5spot-claims");
        assert_eq!(role["metadata"]["namespace"], "5spot-system");
        assert_eq!(grants(role), asked);
    }
}

#[test]
fn the_namespaced_role_adds_secrets_and_providers() {
    let cluster_wide = documents("rbac");
    let mut expected = asked_for(&["one".to_owned()]);
    for role in ["5spot-provider-k0smotron", "5spot-kubeconfig-reader"] {
        expected.extend(grants(named(&cluster_wide, "ClusterRole", role)));
    }
    let shipped = documents("rbac-namespaced");
    assert_eq!(grants(named(&shipped, "Role", "5spot-controller")), expected);
    let wide: Vec<&Value> = shipped
        .iter()
        .filter(|document| document["kind"].as_str().is_some_and(|kind| kind.starts_with("Cluster")))
        .collect();
    assert_eq!(wide, Vec::<&Value>::new(), "nothing reaches beyond a namespace");
}

#[test]
fn nothing_is_a_wildcard_or_can_become_more() {
    for role in everything().iter().filter(|document| is_role(document)) {
        for rule in rules(role) {
            for field in ["apiGroups", "resources", "verbs", "resourceNames", "nonResourceURLs"] {
                assert!(!texts(&rule[field]).iter().any(|text| text.contains('*')), "{rule}");
            }
            for verb in ["escalate", "bind", "impersonate", "approve", "sign", "deletecollection", "update"] {
                assert!(!texts(&rule["verbs"]).contains(&verb), "{rule}");
            }
            for group in ["rbac.authorization.k8s.io", "admissionregistration.k8s.io", "certificates.k8s.io"]
            {
                assert!(!texts(&rule["apiGroups"]).contains(&group), "{rule}");
            }
            for resource in [
                "serviceaccounts",
                "serviceaccounts/token",
                "pods/exec",
                "pods/ephemeralcontainers",
                "nodes/proxy",
            ] {
                assert!(!texts(&rule["resources"]).contains(&resource), "{rule}");
            }
        }
    }
}

#[test]
fn secrets_configmaps_and_leases_need_chosen_namespaces() {
    let documents = everything();
    let wide: BTreeSet<&str> = documents
        .iter()
        .filter(|document| document["kind"] == "ClusterRoleBinding")
        .filter_map(|binding| binding["roleRef"]["name"].as_str())
        .collect();
    assert!(wide.contains("5spot-controller"), "{wide:?}");
    for role in documents.iter().filter(|document| is_role(document)) {
        let gathered = !role["metadata"]["labels"]["5spot.finos.org/aggregate-to-controller"].is_null();
        let everywhere = gathered
            || (role["kind"] == "ClusterRole"
                && wide.contains(role["metadata"]["name"].as_str().unwrap_or_default()));
        for grant in grants(role).iter().filter(|_| everywhere) {
            for narrow in [" secrets ", " configmaps ", " leases "] {
                assert!(!grant.contains(narrow), "{grant} everywhere");
            }
        }
    }
}

#[test]
fn every_role_is_bound_only_to_the_controller() {
    for directory in ["rbac", "rbac-namespaced"] {
        let documents = documents(directory);
        let mut bound = BTreeSet::new();
        for binding in documents.iter().filter(|document| is_binding(document)) {
            let subjects = binding["subjects"].as_array().expect("subjects");
            assert_eq!(subjects.len(), 1);
            let name = (&subjects[0]["kind"], &subjects[0]["namespace"], &subjects[0]["name"]);
            assert_eq!(name, (&"ServiceAccount".into(), &"5spot-system".into(), &"5spot-controller".into()));
            bound.insert((binding["roleRef"]["kind"].to_string(), binding["roleRef"]["name"].to_string()));
        }
        for role in documents.iter().filter(|document| is_role(document)) {
            // Whoever lends machines to another cluster binds this one in the namespaces with its kubeconfig.
            let by_others = role["metadata"]["name"] == "5spot-kubeconfig-reader";
            let is_bound = bound.contains(&(role["kind"].to_string(), role["metadata"]["name"].to_string()));
            assert_eq!(is_bound, !by_others, "{}", role["metadata"]["name"]);
        }
    }
}

/// The controller-manager owns the rules of an aggregated role. A manifest that has them, even none, takes them away
/// whenever it is applied, and conflicts with it under server-side apply.
#[test]
fn an_aggregated_role_has_no_rules_of_its_own() {
    let shipped = everything();
    let aggregated: Vec<&Value> = shipped.iter().filter(|role| !role["aggregationRule"].is_null()).collect();
    assert_eq!(aggregated.len(), 1);
    assert!(aggregated[0].get("rules").is_none(), "{}", aggregated[0]);
}
