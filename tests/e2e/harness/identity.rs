//! An identity has the permissions of its manifests and no others, and appears by name in the audit log.

use std::sync::Arc;

use five_spot_testenv::audit::AuditQuery;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

pub(crate) fn tests() -> Vec<Test> {
    tests![an_identity_has_only_its_grants]
}

async fn an_identity_has_only_its_grants(context: Arc<TestContext>) -> TestResult {
    let namespace = context.namespace();
    let metadata = json!({ "name": "reader", "namespace": namespace });
    let rbac = "rbac.authorization.k8s.io";
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"] }]);
    let manifests = [
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }),
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata, "rules": rules }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": rbac, "kind": "Role", "name": "reader" },
            "subjects": [{ "kind": "ServiceAccount", "name": "reader", "namespace": namespace }],
        }),
    ];
    let identity =
        ServiceAccountIdentity::from_manifests(context.management(), &manifests, namespace, "reader").await?;
    let client = identity.client("5spot-e2e-reader/1").await?;
    let granted: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    granted.list(&ListParams::default()).await?;
    let elsewhere: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    assert_eq!(refusal(elsewhere.list(&ListParams::default()).await), Some(403));
    let not_granted: Api<Secret> = Api::namespaced(client, namespace);
    assert_eq!(refusal(not_granted.list(&ListParams::default()).await), Some(403));

    let query = AuditQuery::all().user(&identity.user()).user_agent("5spot-e2e-reader");
    let records = context.management().audit_log().read(&query)?;
    let seen: Vec<_> =
        records.iter().map(|it| (it.object.resource.as_str(), it.verb.as_str(), it.code)).collect();
    assert_eq!(
        seen,
        [
            ("configmaps", "list", Some(200)),
            ("configmaps", "list", Some(403)),
            ("secrets", "list", Some(403))
        ]
    );
    Ok(())
}

fn refusal<T>(result: kube::Result<T>) -> Option<u16> {
    match result {
        Err(kube::Error::Api(status)) => Some(status.code),
        Ok(_) | Err(_) => None,
    }
}
