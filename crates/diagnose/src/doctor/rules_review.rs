//! The permissions of the controller's service account, from the rules that the API server reports for it.

use super::json::list;
use serde_json::Value;

/// A permission that the controller needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The verb.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with its subresource, as roles write it.
    pub resource: String,
}

/// Returns the permissions that the rules of a `SelfSubjectRulesReview` do not grant, each in one line. `None` if the answer
/// is incomplete, because another authorizer may grant more.
pub fn missing_rules(review: &Value, needed: &[Needed]) -> Option<Vec<String>> {
    if review["status"]["incomplete"] == true || !review["status"]["resourceRules"].is_array() {
        return None;
    }
    let rules = list(review, "/status/resourceRules");
    let missing = needed.iter().filter(|needed| !rules.iter().any(|rule| grants(rule, needed)));
    Some(
        missing
            .map(|Needed { verb, group, resource }| format!("{verb} {resource} in API group \"{group}\""))
            .collect(),
    )
}

fn grants(rule: &Value, needed: &Needed) -> bool {
    let has = |field: &str, wanted: &str| {
        let list = rule[field].as_array();
        list.is_some_and(|list| list.iter().any(|one| one == "*" || one == wanted))
    };
    let is_for_all = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
    is_for_all
        && has("verbs", &needed.verb)
        && has("apiGroups", &needed.group)
        && has("resources", &needed.resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn needed(verb: &str, group: &str, resource: &str) -> Needed {
        Needed { verb: verb.to_owned(), group: group.to_owned(), resource: resource.to_owned() }
    }

    #[test]
    fn what_no_rule_grants_is_missing() {
        let rules = json!([
            {"verbs": ["get", "list"], "apiGroups": ["cluster.x-k8s.io"], "resources": ["machines"]},
            {"verbs": ["*"], "apiGroups": ["events.k8s.io"], "resources": ["*"]},
            {"verbs": ["delete"], "apiGroups": ["cluster.x-k8s.io"], "resources": ["machines"], "resourceNames": ["a"]},
        ]);
        let wanted = [
            needed("get", "cluster.x-k8s.io", "machines"),
            needed("delete", "cluster.x-k8s.io", "machines"),
            needed("create", "events.k8s.io", "events"),
            needed("list", "", "namespaces"),
        ];
        let review = json!({"status": {"resourceRules": rules, "incomplete": false}});
        let missing = missing_rules(&review, &wanted).expect("it is complete");
        assert_eq!(
            missing,
            ["delete machines in API group \"cluster.x-k8s.io\"", "list namespaces in API group \"\""]
        );
        let incomplete = json!({"status": {"resourceRules": [], "incomplete": true}});
        assert_eq!(missing_rules(&incomplete, &wanted), None);
        assert_eq!(missing_rules(&json!({}), &wanted), None);
    }
}
