//! The Leases that claim physical machines, as a person with kubectl sees them.

use crate::environment::Environment;
use anyhow::{Context as _, ensure};
use five_spot_api::names::{SYSTEM_NAMESPACE, annotation, label};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use std::time::Duration;

/// The polling interval: several names may be waited for at once.
const LOOK: Duration = Duration::from_millis(200);

/// Every claim.
pub(crate) async fn claims(env: &dyn Environment) -> anyhow::Result<Vec<Value>> {
    let leases: Api<Lease> = Api::namespaced(env.management(), SYSTEM_NAMESPACE);
    let list = leases.list(&ListParams::default().labels(label::MACHINE_CLAIM)).await?;
    list.items.into_iter().map(|lease| Ok(serde_json::to_value(lease)?)).collect()
}

/// The claim on the machine at an address; null if there is none.
pub(crate) async fn claim_on(env: &dyn Environment, address: &str) -> anyhow::Result<Value> {
    let identity = format!("{address}:22");
    let is_it = |lease: &Value| lease["metadata"]["annotations"][annotation::MACHINE_IDENTITY] == identity;
    Ok(claims(env).await?.into_iter().find(is_it).unwrap_or_default())
}

/// Waits until the claim on the machine at an address is as wanted.
pub(crate) async fn until_claim(
    env: &dyn Environment,
    address: &str,
    wanted: impl Fn(&Value) -> bool,
) -> anyhow::Result<()> {
    let mut last = Value::Null;
    let search = async {
        loop {
            last = claim_on(env, address).await?;
            if wanted(&last) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let found = tokio::time::timeout(env.pace().wait_limit, search).await;
    found.with_context(|| format!("the claim on {address} was last {last}"))?
}

/// Every claim of this scenario belongs to an object that has a Machine.
pub(crate) fn none_is_left_over(
    claims: &[Value],
    namespace: &str,
    has_machine: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    for lease in claims {
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if let Some(name) = holder.strip_prefix(&format!("{namespace}/")) {
            ensure!(has_machine(name), "{name} has no Machine and holds {lease}");
        }
    }
    Ok(())
}
