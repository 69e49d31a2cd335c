//! Least privilege: what is granted is what is used, in namespaces that are chosen Roles are enough, and the Deployment is
//! admitted where Pod Security is strictest.

mod audit;
mod credentials;
mod everywhere;
mod namespaced;
mod pod_security;
mod providers;

use five_spot_testenv::harness::Test;

pub(crate) use audit::{deploy, grants_are_used_and_enough};
pub(crate) use namespaced::identity as roles_only;

pub(crate) fn tests() -> Vec<Test> {
    [
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
