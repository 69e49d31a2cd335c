//! The provider: bootstrap data, a machine, a Node that joins, and their removal.
//!
//! It serves every kind in the provider groups and relies only on the contract of Cluster API, so that
//! manifests of other providers work too; only the provider ID of a `RemoteMachine` is specific to k0smotron.
//! Each step can be made to hang or fail.

mod actor;
mod join;
mod role;
mod steps;

pub(super) use actor::Provider;
pub use join::node_name;

use serde_json::Value;

/// The CRDs of the kinds that the stand-in provider serves: those of k0smotron, those of a provider that differs from
/// it, and a stub control plane.
///
/// # Panics
///
/// Never: the manifests are part of this crate, and a test parses them.
pub fn crds() -> Vec<Value> {
    const MANIFESTS: [&str; 3] = [
        include_str!("../../manifests/providers/k0smotron.yaml"),
        include_str!("../../manifests/providers/stub-control-plane.yaml"),
        include_str!("../../manifests/providers/lab.yaml"),
    ];
    let documents =
        |text: &str| serde_saphyr::from_multiple::<Value>(text).expect("our own manifests are YAML");
    MANIFESTS.into_iter().flat_map(documents).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_crd_has_names_schema_and_contract_label() {
        let crds = super::crds();
        assert_eq!(crds.len(), 6);
        for crd in crds {
            assert!(crd["spec"]["names"]["plural"].is_string(), "{crd}");
            assert!(crd["spec"]["versions"][0]["schema"].is_object(), "{crd}");
            let labels = crd["metadata"]["labels"].as_object().expect("labels");
            let contract = labels.keys().find_map(|label| label.strip_prefix("cluster.x-k8s.io/"));
            assert!(matches!(contract, Some("v1beta1" | "v1beta2")), "{}", crd["metadata"]);
        }
    }
}
