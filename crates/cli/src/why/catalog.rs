//! The kinds that a cluster serves, from its aggregated discovery: two requests.

use kube::Client;
use kube::api::ApiResource;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};

/// A kind that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub group: String,
    /// The preferred version that has it.
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub namespaced: bool,
    pub verbs: Vec<String>,
}

impl Served {
    /// For requests.
    pub fn resource(&self) -> ApiResource {
        let api_version = if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        };
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version,
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// `machines.cluster.x-k8s.io`, `pods`.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == verb)
    }
}

/// All kinds, core first, then in the order of the API server.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub kinds: Vec<Served>,
    /// The groups and versions whose server does not answer: `metrics.k8s.io/v1beta1`. Their kinds may be unknown.
    pub unavailable: Vec<String>,
}

impl Catalog {
    /// Asks the API server.
    pub async fn discover(client: &Client) -> Result<Self, kube::Error> {
        let (core, groups) = futures::future::try_join(
            client.list_core_api_versions_aggregated(),
            client.list_api_groups_aggregated(),
        )
        .await?;
        let all = || core.items.iter().chain(&groups.items);
        Ok(Self {
            kinds: all().flat_map(kinds_of).collect(),
            unavailable: all().flat_map(unavailable_of).collect(),
        })
    }

    /// The kind by its name.
    pub fn by_kind(&self, group: &str, kind: &str) -> Option<&Served> {
        self.kinds.iter().find(|served| served.group == group && served.kind == kind)
    }

    /// The kind by its plural.
    pub fn by_plural(&self, group: &str, plural: &str) -> Option<&Served> {
        self.kinds.iter().find(|served| served.group == group && served.plural == plural)
    }
}

fn name_of(group: &APIGroupDiscovery) -> String {
    group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default()
}

/// The versions of a group whose server does not answer.
fn unavailable_of(group: &APIGroupDiscovery) -> Vec<String> {
    let name = name_of(group);
    let stale = group.versions.iter().filter(|version| version.freshness.as_deref() == Some("Stale"));
    stale.map(|version| format!("{name}/{}", version.version.as_deref().unwrap_or_default())).collect()
}

/// The kinds of a group, each in the first version that has it.
fn kinds_of(group: &APIGroupDiscovery) -> Vec<Served> {
    let name = name_of(group);
    let mut kinds: Vec<Served> = Vec::new();
    for version in &group.versions {
        for resource in &version.resources {
            let Some(served) = read(&name, version.version.as_deref().unwrap_or_default(), resource) else {
                continue;
            };
            if !kinds.iter().any(|known| known.plural == served.plural) {
                kinds.push(served);
            }
        }
    }
    kinds
}

fn read(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<Served> {
    Some(Served {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: resource.response_kind.as_ref()?.kind.clone()?,
        plural: resource.resource.clone()?,
        singular: resource.singular_resource.clone().unwrap_or_default(),
        short_names: resource.short_names.clone(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        verbs: resource.verbs.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The API server lists a group whose server is away, without its kinds.
    #[test]
    fn an_api_without_a_server_is_unavailable() {
        let group = json!({
            "metadata": {"name": "metrics.k8s.io"},
            "versions": [{"version": "v1beta1", "freshness": "Stale"}, {"version": "v1", "freshness": "Current"}],
        });
        let group: APIGroupDiscovery = serde_json::from_value(group).expect("a group");
        assert_eq!(unavailable_of(&group), ["metrics.k8s.io/v1beta1"]);
        assert_eq!(kinds_of(&group), []);
    }
}
