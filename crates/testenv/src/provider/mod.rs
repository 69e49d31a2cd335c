//! The provider's side of Cluster API, played by the harness: k0smotron is not to be had as a Go module, so its kinds
//! are stand-ins with its field names, and this actor does what its controllers would: bootstrap data, a machine, a node
//! that joins, and their end. It can be told to fail or to hang at each of these steps.

mod actor;
mod conduct;
mod steps;

use serde_json::Value;

pub use actor::Provider;
/// The stand-in of the sandbox behaves in the same ways.
pub use five_spot_sandbox::actors::{Behaviour, Conduct};
pub use steps::{EXTERNALLY_MANAGED_ANNOTATION, MACHINE_FINALIZER, NODE_NAMESPACE_LABEL, node_name};

use crate::manifests::{self, ManifestError};

/// The CRDs of the stand-ins.
pub(crate) fn crds() -> Result<Vec<Value>, ManifestError> {
    let mut crds =
        manifests::parse(include_str!("../../manifests/providers/k0smotron.yaml"), "k0smotron.yaml")?;
    let stub = include_str!("../../manifests/providers/stub-control-plane.yaml");
    crds.extend(manifests::parse(stub, "stub-control-plane.yaml")?);
    crds.extend(manifests::parse(include_str!("../../manifests/providers/lab.yaml"), "lab.yaml")?);
    Ok(crds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stand_in_carries_the_contract_label() {
        let crds = crds().expect("readable");
        assert_eq!(crds.len(), 6);
        for crd in crds {
            let labels = crd["metadata"]["labels"].as_object().expect("labels");
            let contract = labels.keys().find_map(|label| label.strip_prefix("cluster.x-k8s.io/"));
            assert!(matches!(contract, Some("v1beta1" | "v1beta2")), "{}", crd["metadata"]);
        }
    }
}
