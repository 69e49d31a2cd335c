//! Impairments of one test on the real control plane: an admission policy refuses the controller's writes, or
//! Cluster API is stopped.

use std::time::Duration;

use anyhow::{Context as _, bail};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_scenarios::kinds::{
    ADMISSION_BINDING, ADMISSION_POLICY, INFRASTRUCTURE, MACHINE, ObjectKind, SCHEDULED_MACHINE,
};
use five_spot_scenarios::{Environment, Impairment};
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::test_clusters::TestContext;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::identities;

/// The time an API server may take to apply a policy, or to drop it.
const EFFECTIVE_WITHIN: Duration = Duration::from_mins(1);

/// The polling interval.
const LOOK: Duration = Duration::from_millis(200);

/// The message of the policy.
const REFUSED: &str = "refused by a policy of this test";

/// Starts or ends an impairment.
pub(super) async fn set(
    env: &dyn Environment,
    context: &TestContext,
    account: &str,
    what: Impairment,
    is_impaired: bool,
) -> anyhow::Result<()> {
    let control_plane = context.clusters().control_plane();
    let (kind, operations, reason) = match what {
        Impairment::WorkloadForbidden => return identities::allow(context, account, !is_impaired).await,
        Impairment::ClusterApi if is_impaired => {
            control_plane.kill(Component::ClusterApi).await;
            return Ok(());
        }
        Impairment::ClusterApi => return Ok(control_plane.restart(Component::ClusterApi).await?),
        Impairment::SlowManagement
        | Impairment::MachinePatchesHang
        | Impairment::StatusHangs
        | Impairment::EventsHang => bail!("a real API server cannot be slowed down here"),
        Impairment::MachinePatches => (Target::Machines, json!(["UPDATE"]), "Forbidden"),
        Impairment::StatusTooLarge => (Target::Status, json!(["UPDATE"]), "RequestEntityTooLarge"),
        Impairment::StatusInvalid => (Target::Status, json!(["UPDATE"]), "Invalid"),
        Impairment::StatusForbidden => (Target::Status, json!(["UPDATE"]), "Forbidden"),
        Impairment::Events => (Target::Events, json!(["CREATE", "UPDATE"]), "Forbidden"),
        Impairment::Leases => (Target::Leases, json!(["CREATE", "UPDATE"]), "Forbidden"),
    };
    let name = context.cluster_scoped(kind.policy());
    if is_impaired {
        env.create(ADMISSION_POLICY, policy(&name, kind, &operations, reason, context.namespace())).await?;
        env.create(ADMISSION_BINDING, binding(&name, kind.namespace(context.namespace()))).await?;
    } else {
        env.delete(ADMISSION_BINDING, &name).await?;
        env.delete(ADMISSION_POLICY, &name).await?;
    }
    let followed = async {
        // There is no event when a server starts to apply a policy.
        while kind.is_refused(env).await? != is_impaired {
            tokio::time::sleep(LOOK).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(EFFECTIVE_WITHIN, followed).await.context("the policy has no effect")?
}

/// The refused requests.
#[derive(Clone, Copy)]
enum Target {
    Machines,
    Status,
    Events,
    /// The claims of this test.
    Leases,
}

impl Target {
    const fn policy(self) -> &'static str {
        match self {
            Self::Machines => "no-machine-patches",
            Self::Status => "no-status",
            Self::Events => "no-events",
            Self::Leases => "no-leases",
        }
    }

    /// The namespace of the objects of a test in this one.
    const fn namespace(self, test: &str) -> &str {
        match self {
            Self::Machines | Self::Status | Self::Events => test,
            Self::Leases => SYSTEM_NAMESPACE,
        }
    }

    /// The requests in that namespace that are refused.
    fn validation(self, test: &str) -> String {
        match self {
            Self::Machines | Self::Status | Self::Events => "false".to_owned(),
            Self::Leases => format!("!object.spec.?holderIdentity.orValue('').startsWith('{test}/')"),
        }
    }

    fn rule(self) -> (Value, Value) {
        match self {
            Self::Machines => (json!([MACHINE.group]), json!([MACHINE.plural])),
            Self::Status => (json!([SCHEDULED_MACHINE.group]), json!(["scheduledmachines/status"])),
            Self::Events => (json!(["", "events.k8s.io"]), json!(["events"])),
            Self::Leases => (json!(["coordination.k8s.io"]), json!(["leases"])),
        }
    }

    /// Returns true if a dry run is refused, which the policy treats like a request of the controller.
    async fn is_refused(self, env: &dyn Environment) -> anyhow::Result<bool> {
        let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
        let patch = |kind: ObjectKind| {
            let api = env.api(kind);
            async move {
                let annotation = json!({"metadata": {"annotations": {"example.org/probe": "true"}}});
                let objects = env.list(kind).await?;
                let Some(name) = objects.first().and_then(|one| one["metadata"]["name"].as_str()) else {
                    // No object is left for a dry run.
                    return anyhow::Ok(None);
                };
                let status = json!({"status": {"message": "probe"}});
                Ok(Some(if kind == SCHEDULED_MACHINE {
                    api.patch_status(name, &parameters, &Patch::Merge(status)).await.map(drop)
                } else {
                    api.patch(name, &parameters, &Patch::Merge(annotation)).await.map(drop)
                }))
            }
        };
        let tried = match self {
            Self::Machines => patch(MACHINE).await?,
            Self::Status => patch(SCHEDULED_MACHINE).await?,
            Self::Events => {
                let events: Api<DynamicObject> =
                    Api::namespaced_with(env.management(), env.namespace(), &events());
                let event: DynamicObject = serde_json::from_value(event(env))?;
                let parameters = PostParams { dry_run: true, ..PostParams::default() };
                Some(events.create(&parameters, &event).await.map(drop))
            }
            Self::Leases => {
                let leases: Api<Lease> = Api::namespaced(env.management(), SYSTEM_NAMESPACE);
                let lease = json!({
                    "metadata": {"name": format!("{}-probe", env.namespace())},
                    "spec": {"holderIdentity": format!("{}/probe", env.namespace())},
                });
                let parameters = PostParams { dry_run: true, ..PostParams::default() };
                Some(leases.create(&parameters, &serde_json::from_value(lease)?).await.map(drop))
            }
        };
        Ok(tried.is_some_and(|tried| tried.is_err_and(|error| error.to_string().contains(REFUSED))))
    }
}

fn policy(name: &str, target: Target, operations: &Value, reason: &str, test: &str) -> Value {
    let (groups, resources) = target.rule();
    let rule = json!({
        "operations": operations, "apiGroups": groups, "apiVersions": ["*"], "resources": resources,
    });
    let user = identities::controller_user();
    json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{
                "name": "controller",
                "expression": format!(
                    "request.userInfo.username == '{user}' || (has(request.dryRun) && request.dryRun)"
                ),
            }],
            "validations": [{"expression": target.validation(test), "message": REFUSED, "reason": reason}],
        },
    })
}

fn binding(name: &str, namespace: &str) -> Value {
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    json!({
        "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here},
        },
    })
}

fn events() -> kube::api::ApiResource {
    ObjectKind { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", ..INFRASTRUCTURE }
        .resource()
}

fn event(env: &dyn Environment) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "probe"},
        "eventTime": env.now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string(), "type": "Normal",
        "reason": "Probe", "action": "Probe", "reportingController": "example.org/probe",
        "reportingInstance": "probe",
        "regarding": {
            "apiVersion": SCHEDULED_MACHINE.api_version(), "kind": SCHEDULED_MACHINE.kind,
            "namespace": env.namespace(), "name": "desk",
        },
    })
}
