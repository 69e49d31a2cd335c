//! Objects from the caller's cluster, for `5spot preview NAME`.

use crate::cluster_access::{ClusterArgs, NamespaceArgs};
use anyhow::Context as _;
use five_spot_api::names;
use http::Request;
use kube::Client;
use serde_json::Value;

/// The objects with these names.
pub fn read(
    names: &[String],
    cluster: &ClusterArgs,
    namespace: &NamespaceArgs,
) -> anyhow::Result<Vec<Value>> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
    runtime.block_on(async {
        let access = cluster.access().await?;
        let namespace = namespace.resolve(&access);
        let client =
            access.connection.management().map_err(|error| anyhow::anyhow!("{}", access.failure(&error)))?;
        let mut objects = Vec::new();
        for name in names {
            let object = get(&client, &namespace, name).await;
            let object = object.map_err(|error| anyhow::anyhow!("{}", access.failure(&error)))?;
            objects.push(object.with_context(|| {
                format!("there is no ScheduledMachine {namespace}/{name} ({})", access.description)
            })?);
        }
        Ok(objects)
    })
}

async fn get(client: &Client, namespace: &str, name: &str) -> Result<Option<Value>, kube::Error> {
    let path =
        format!("/apis/{}/{}/namespaces/{namespace}/scheduledmachines/{name}", names::GROUP, names::VERSION);
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    match client.request(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
