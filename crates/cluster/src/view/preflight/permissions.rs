//! The permissions that every object needs.
//!
//! Permissions that only some objects need (the kinds of their provider, the Secret of their kubeconfig, their Nodes) are
//! found out when it is needed, and stands in their conditions.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use std::fmt;

/// Something that one may do, or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// `get`, `list`, `watch`, `create`, `patch` or `delete`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural of the kind.
    pub resource: &'static str,
    /// The part of the object, if not the whole.
    pub subresource: &'static str,
    /// The namespace; all namespaces if absent.
    pub namespace: Option<String>,
}

/// The resources and verbs that every object needs.
const EVERYWHERE: [(&str, &str, &str, &[&str]); 6] = [
    ("5spot.finos.org", "scheduledmachines", "", &["get", "list", "watch", "patch"]),
    ("5spot.finos.org", "scheduledmachines", "status", &["patch"]),
    ("cluster.x-k8s.io", "machines", "", &["get", "list", "watch", "create", "patch", "delete"]),
    ("cluster.x-k8s.io", "clusters", "", &["get", "list", "watch"]),
    ("cluster.x-k8s.io", "machinedrainrules", "", &["list"]),
    ("events.k8s.io", "events", "", &["create", "patch"]),
];

/// The permissions of a controller for these namespaces; for all namespaces if there are none.
pub fn required(namespaces: &[String]) -> Vec<Permission> {
    let places: Vec<Option<String>> =
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().cloned().map(Some).collect() };
    let in_place = |namespace: &Option<String>| {
        // A namespace that is watched by its name is not listed.
        let own: &[&str] = if namespace.is_some() { &["get", "watch"] } else { &["list", "watch"] };
        let kinds = EVERYWHERE.into_iter().chain([("", "namespaces", "", own)]);
        let each = kinds.flat_map(|(group, resource, subresource, verbs)| {
            let namespace = namespace.clone();
            verbs.iter().map(move |verb| Permission {
                verb,
                group,
                resource,
                subresource,
                namespace: namespace.clone(),
            })
        });
        each.collect::<Vec<_>>()
    };
    places.iter().flat_map(in_place).collect()
}

/// The permissions without which physical machines are lent without protection from a second loan.
pub fn for_claims(namespace: &str) -> Vec<Permission> {
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let permission = |verb| Permission {
        verb,
        group: "coordination.k8s.io",
        resource: "leases",
        subresource: "",
        namespace: Some(namespace.to_owned()),
    };
    verbs.map(permission).to_vec()
}

/// Those of these permissions that this program does not have.
pub async fn refused(client: &Client, wanted: &[Permission]) -> Result<Vec<Permission>, kube::Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut refused = Vec::new();
    for permission in wanted {
        let answer = api.create(&PostParams::default(), &permission.question()).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            refused.push(permission.clone());
        }
    }
    Ok(refused)
}

impl Permission {
    /// The resource with its part, as roles write it.
    pub fn what(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    fn question(&self) -> SelfSubjectAccessReview {
        let text = |text: &str| Some(text.to_owned());
        let attributes = ResourceAttributes {
            verb: text(self.verb),
            group: text(self.group),
            resource: text(self.resource),
            subresource: text(self.subresource),
            namespace: self.namespace.clone(),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} in API group \"{}\" ", self.verb, self.what(), self.group)?;
        match &self.namespace {
            Some(namespace) => write!(f, "in namespace {namespace}"),
            None => f.write_str("in all namespaces"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_names_verb_resource_group_and_place() {
        let everywhere = required(&[]);
        let said: Vec<String> = everywhere.iter().map(ToString::to_string).collect();
        let status =
            "patch scheduledmachines/status in API group \"5spot.finos.org\" in all namespaces".to_owned();
        assert!(said.contains(&status), "{said:?}");
        assert!(said.contains(&"list namespaces in API group \"\" in all namespaces".to_owned()), "{said:?}");
    }

    #[test]
    fn chosen_namespaces_are_asked_about_each_and_never_listed() {
        let chosen = required(&["a".to_owned(), "b".to_owned()]);
        assert_eq!(chosen.len(), 2 * required(&[]).len());
        let namespaces: Vec<String> = chosen
            .iter()
            .filter(|permission| permission.resource == "namespaces")
            .map(ToString::to_string)
            .collect();
        let one =
            |verb: &str, place: &str| format!("{verb} namespaces in API group \"\" in namespace {place}");
        assert_eq!(namespaces, [one("get", "a"), one("watch", "a"), one("get", "b"), one("watch", "b")]);
    }
}
