//! Leases that claim physical machines.

use crate::transport::core_kinds::Lease;
use crate::transport::key::ObjectKey;
use five_spot_api::names::annotation;
use five_spot_core::world::Uid;
use kube::ResourceExt;

/// The longest holder identity that names an object: a namespace, a slash and a name.
const MAX_HOLDER: usize = 63 + 1 + 253;

/// The facts that are kept of a Lease that claims a physical machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimFacts {
    /// The `ScheduledMachine` that holds it; absent if the Lease names none, as after an edit by hand.
    pub(crate) holder: Option<ObjectKey>,
    /// The UID of that object.
    pub(crate) uid: Option<Uid>,
}

pub(crate) fn claim(lease: &Lease) -> ClaimFacts {
    let named = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).and_then(holder);
    let uid = lease.annotations().get(annotation::HOLDER_UID).filter(|uid| uid.len() <= MAX_HOLDER);
    ClaimFacts { holder: named, uid: uid.map(|uid| Uid::from(uid.as_str())) }
}

/// The object that `<namespace>/<name>` names.
fn holder(text: &str) -> Option<ObjectKey> {
    let (namespace, name) = text.split_once('/').filter(|_| text.len() <= MAX_HOLDER)?;
    let is_name = |part: &str| !part.is_empty() && !part.contains('/');
    (is_name(namespace) && is_name(name)).then(|| ObjectKey::new(namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_namespace_and_a_name_are_a_holder() {
        assert_eq!(holder("shop/desk"), Some(ObjectKey::new("shop", "desk")));
        for other in ["", "desk", "/desk", "shop/", "a/b/c", &format!("shop/{}", "x".repeat(400))] {
            assert_eq!(holder(other), None, "{other}");
        }
    }
}
