//! Least privilege: all granted permissions are used, Roles are enough for selected namespaces, and the Deployment is
//! admitted at the strictest level of Pod Security.

mod audit;
mod config_maps;
mod credentials;
mod everywhere;
mod namespaced;
mod pod_security;
mod providers;

use five_spot_api::ScheduledMachine;
use five_spot_testenv::harness::Test;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub(crate) use audit::{deploy, grants_are_used_and_enough};
pub(crate) use namespaced::identity as roles_only;

pub(crate) fn tests() -> Vec<Test> {
    [
        config_maps::tests(),
        credentials::tests(),
        everywhere::tests(),
        namespaced::tests(),
        pod_security::tests(),
        providers::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A condition of a `ScheduledMachine`.
pub(crate) fn condition<'a>(object: &'a ScheduledMachine, kind: &str) -> Option<&'a Condition> {
    object.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == kind)
}
