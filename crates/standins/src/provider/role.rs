//! The role of a provider's kind, by its group and name.

use super::super::kinds::{BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP, Kind};

/// The role of a provider kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Writes the bootstrap data of a machine.
    Bootstrap,
    /// Provisions and releases a machine.
    Machine,
    /// Does nothing: the infrastructure of the cluster exists.
    Cluster,
    /// Externally managed.
    ControlPlane,
}

impl Role {
    /// The role of a kind; `None` for templates.
    pub(super) fn of(kind: &Kind) -> Option<Self> {
        if kind.kind().ends_with("Template") {
            return None;
        }
        match kind.group() {
            BOOTSTRAP_GROUP => Some(Self::Bootstrap),
            CONTROL_PLANE_GROUP => Some(Self::ControlPlane),
            INFRASTRUCTURE_GROUP if kind.kind().ends_with("Cluster") => Some(Self::Cluster),
            INFRASTRUCTURE_GROUP => Some(Self::Machine),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_group_and_ending() {
        let role = |group: &str, kind: &str| Role::of(&Kind::new(group, "v1", kind, "kinds"));
        assert_eq!(role(BOOTSTRAP_GROUP, "K0sWorkerConfig"), Some(Role::Bootstrap));
        assert_eq!(role(BOOTSTRAP_GROUP, "K0sWorkerConfigTemplate"), None);
        assert_eq!(role(INFRASTRUCTURE_GROUP, "RemoteMachine"), Some(Role::Machine));
        assert_eq!(role(INFRASTRUCTURE_GROUP, "RemoteCluster"), Some(Role::Cluster));
        assert_eq!(role(CONTROL_PLANE_GROUP, "StubControlPlane"), Some(Role::ControlPlane));
        assert_eq!(role("example.org", "Machine"), None);
    }
}
