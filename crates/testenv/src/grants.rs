//! Comparison of granted roles with audited requests: least privilege, in both directions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::audit::AuditRecord;

/// A permission that can be granted and used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deed {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural, with a subresource after a slash.
    pub resource: String,
    /// The verb.
    pub verb: String,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = if self.group.is_empty() { "core" } else { &self.group };
        write!(f, "{} {} ({group})", self.verb, self.resource)
    }
}

/// All permissions that the Roles and `ClusterRoles` among these documents grant.
pub fn granted(documents: &[Value]) -> BTreeSet<Deed> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    let is_role = |document: &&Value| matches!(document["kind"].as_str(), Some("Role" | "ClusterRole"));
    let rules =
        documents.iter().filter(is_role).flat_map(|role| role["rules"].as_array().into_iter().flatten());
    let mut deeds = BTreeSet::new();
    for rule in rules {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    deeds.insert(Deed { group: group.clone(), resource: resource.clone(), verb });
                }
            }
        }
    }
    deeds
}

/// The number of uses of a permission, and of refusals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UseCount {
    /// The number of allowed requests.
    pub allowed: u64,
    /// The number of refused requests.
    pub refused: u64,
}

/// The requests by the permission that they need. Requests that are not for objects, and those that every
/// user may make, are left out.
pub fn used<'a>(records: impl IntoIterator<Item = &'a AuditRecord>) -> BTreeMap<Deed, UseCount> {
    let mut used: BTreeMap<Deed, UseCount> = BTreeMap::new();
    for record in records {
        let object = &record.object;
        // A watch also has a record at its start. A request without a valid token is not counted.
        if record.stage != "ResponseComplete"
            || object.resource.is_empty()
            || object.resource == "selfsubjectaccessreviews"
            || record.code == Some(401)
        {
            continue;
        }
        let part =
            if object.subresource.is_empty() { String::new() } else { format!("/{}", object.subresource) };
        let deed = |verb: &str| Deed {
            group: object.api_group.clone(),
            resource: format!("{}{part}", object.resource),
            verb: verb.to_owned(),
        };
        let refused = record.code == Some(403);
        let mut note = |deed: Deed| {
            let count = used.entry(deed).or_default();
            *(if refused { &mut count.refused } else { &mut count.allowed }) += 1;
        };
        note(deed(&record.verb));
        // Applying an object that does not exist needs both permissions.
        if record.verb == "patch" && record.code == Some(201) {
            note(deed("create"));
        }
    }
    used
}

/// Grants and their uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    rows: BTreeMap<Deed, (bool, UseCount)>,
}

impl Comparison {
    /// Compares grants with uses.
    pub fn of(granted: &BTreeSet<Deed>, used: &BTreeMap<Deed, UseCount>) -> Self {
        let mut rows: BTreeMap<Deed, (bool, UseCount)> =
            granted.iter().map(|deed| (deed.clone(), (true, UseCount::default()))).collect();
        for (deed, count) in used {
            rows.entry(deed.clone()).or_default().1 = *count;
        }
        Self { rows }
    }

    /// The requests that were refused, or that need none of these grants.
    pub fn ungranted(&self) -> Vec<String> {
        let wrong = self.rows.iter().filter(|(_, (granted, count))| !granted || count.refused > 0);
        wrong
            .map(|(deed, (_, count))| {
                format!("{deed}: refused {} times, allowed {} times", count.refused, count.allowed)
            })
            .collect()
    }

    /// The grants that no request used.
    pub fn unused(&self) -> Vec<Deed> {
        let idle = self.rows.iter().filter(|(_, (granted, count))| *granted && count.allowed == 0);
        idle.map(|(deed, _)| deed.clone()).collect()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<32} {:<26} {:<8} {:<8} {:>8} {:>8}",
            "group", "resource", "verb", "granted", "used", "refused"
        )?;
        for (deed, (granted, count)) in &self.rows {
            let group = if deed.group.is_empty() { "core" } else { &deed.group };
            let granted = if *granted { "yes" } else { "no" };
            let UseCount { allowed, refused } = count;
            writeln!(
                f,
                "{group:<32} {:<26} {:<8} {granted:<8} {allowed:>8} {refused:>8}",
                deed.resource, deed.verb
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::AuditObject;
    use crate::cluster::Side;

    fn record(verb: &str, resource: &str, code: u16) -> AuditRecord {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        AuditRecord {
            side: Side::Management,
            received: jiff::Timestamp::UNIX_EPOCH,
            answered: jiff::Timestamp::UNIX_EPOCH,
            stage: "ResponseComplete".into(),
            verb: verb.into(),
            user: String::new(),
            pod: String::new(),
            user_agent: String::new(),
            uri: String::new(),
            object: AuditObject {
                resource: resource.into(),
                subresource: subresource.into(),
                ..AuditObject::default()
            },
            code: Some(code),
        }
    }

    fn role(verbs: &[&str]) -> BTreeSet<Deed> {
        granted(&[
            json!({"kind": "Role", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]}),
            json!({"kind": "RoleBinding", "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]}),
        ])
    }

    fn text_of(deeds: &[Deed]) -> Vec<String> {
        deeds.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_grant_too_many_and_a_grant_too_few_are_both_named() {
        let records = [record("list", "pods", 200), record("patch", "pods", 200), record("get", "pods", 404)];
        let used = used(&records);
        let exact = Comparison::of(&role(&["list", "patch", "get"]), &used);
        assert_eq!((exact.ungranted(), exact.unused()), (vec![], vec![]));
        let wide = Comparison::of(&role(&["list", "patch", "get", "delete"]), &used);
        assert_eq!(text_of(&wide.unused()), ["delete pods (core)"]);
        let narrow = Comparison::of(&role(&["list", "patch"]), &used);
        assert_eq!(narrow.ungranted(), ["get pods (core): refused 0 times, allowed 1 times"]);
        assert!(narrow.to_string().contains("get      no              1        0"), "{narrow}");
    }

    #[test]
    fn a_refused_request_does_not_use_a_grant() {
        let records = [record("list", "pods", 403)];
        let comparison = Comparison::of(&role(&["list"]), &used(&records));
        assert_eq!(comparison.ungranted(), ["list pods (core): refused 1 times, allowed 0 times"]);
        assert_eq!(text_of(&comparison.unused()), ["list pods (core)"]);
    }

    #[test]
    fn apply_needs_create_and_patch_and_subresources_their_own() {
        let records = [record("patch", "pods", 201), record("create", "pods/eviction", 429)];
        let deeds: Vec<Deed> = used(&records).into_keys().collect();
        assert_eq!(
            text_of(&deeds),
            ["create pods (core)", "patch pods (core)", "create pods/eviction (core)"]
        );
    }

    #[test]
    fn public_and_unauthenticated_requests_are_not_counted() {
        let mut begun = record("watch", "pods", 200);
        begun.stage = "ResponseStarted".into();
        let records = [
            begun,
            record("create", "selfsubjectaccessreviews", 201),
            record("list", "pods", 401),
            record("get", "", 200),
        ];
        assert_eq!(used(&records), BTreeMap::new());
    }
}
