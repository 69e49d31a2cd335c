//! The provider's part: bootstrap data, a machine, a Node that joins, and their end.
//!
//! It plays every kind in the provider groups by the contract of Cluster API alone, so that manifests with other
//! providers work too; only the provider id of a `RemoteMachine` is k0smotron's own. It can be told to hang or to fail
//! at each step.

mod actor;
mod join;
mod role;
mod steps;

pub(super) use actor::Provider;
pub use join::node_name;

use serde_json::Value;

/// The CRDs of k0smotron's kinds, of a provider that is unlike it, and of the stub of a control plane, the same that the real control plane is tested
/// with.
///
/// # Panics
///
/// If they cannot be read: they are part of this program.
pub fn crds() -> Vec<Value> {
    const MANIFESTS: [&str; 3] = [
        include_str!("../../../../testenv/manifests/providers/k0smotron.yaml"),
        include_str!("../../../../testenv/manifests/providers/stub-control-plane.yaml"),
        include_str!("../../../../testenv/manifests/providers/lab.yaml"),
    ];
    let documents =
        |text: &str| serde_saphyr::from_multiple::<Value>(text).expect("our own manifests are YAML");
    MANIFESTS.into_iter().flat_map(documents).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_kind_has_its_names() {
        let crds = super::crds();
        assert_eq!(crds.len(), 6);
        for crd in crds {
            assert!(crd["spec"]["names"]["plural"].is_string(), "{crd}");
            assert!(crd["spec"]["versions"][0]["schema"].is_object(), "{crd}");
        }
    }
}
