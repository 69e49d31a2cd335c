//! Custom resources in etcd, without the API server, for states that otherwise take time: no client may write a
//! deletion timestamp, and a test should not wait for ten minutes.

use super::{Component, ControlPlane};
use crate::cluster::Side;
use crate::probe::Probe;
use anyhow::{Context as _, ensure};
use http::Request;
use jiff::SignedDuration;
use k8s_openapi::ByteString;
use kube::{Client, Config};
use serde_json::{Value, json};

/// A custom resource.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    /// Its API group.
    pub group: &'a str,
    /// The plural name of its kind.
    pub plural: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl ControlPlane {
    /// Moves the deletion timestamp of a custom resource of the management cluster into the past.
    pub async fn age_deletion(&self, stored: Stored<'_>, by: SignedDuration) -> anyhow::Result<()> {
        let Stored { group, plural, namespace, name } = stored;
        let key = format!("/{}/{group}/{plural}/{namespace}/{name}", Side::Management.name());
        let client = self.etcd().await?;
        let key = encoded(key.into_bytes())?;
        let found = call(&client, "range", &json!({"key": key})).await?;
        let value: ByteString =
            serde_json::from_value(found["kvs"][0]["value"].clone()).context("no such key")?;
        let mut object: Value = serde_json::from_slice(&value.0).context("not stored as JSON")?;
        let deletion = &mut object["metadata"]["deletionTimestamp"];
        let at: jiff::Timestamp = deletion.as_str().context("it is not being deleted")?.parse()?;
        *deletion = at.checked_sub(by)?.to_string().into();
        // Only if it has not been written since.
        let version = &found["kvs"][0]["mod_revision"];
        let swapped = json!({
            "compare": [{"key": key, "target": "MOD", "result": "EQUAL", "modRevision": version}],
            "success": [{"requestPut": {"key": key, "value": encoded(serde_json::to_vec(&object)?)?}}],
        });
        let answer = call(&client, "txn", &swapped).await?;
        ensure!(answer["succeeded"] == true, "{name} was changed meanwhile");
        Ok(())
    }

    /// A client of etcd's JSON interface.
    async fn etcd(&self) -> anyhow::Result<Client> {
        let running = self.running.lock().await;
        let Some(Probe::Http { port, .. }) = running.get(&Component::Etcd).map(|etcd| &etcd.probe) else {
            anyhow::bail!("etcd does not run");
        };
        Ok(Client::try_from(Config::new(format!("http://127.0.0.1:{port}").parse()?))?)
    }
}

fn encoded(bytes: Vec<u8>) -> serde_json::Result<Value> {
    serde_json::to_value(ByteString(bytes))
}

async fn call(client: &Client, what: &str, body: &Value) -> anyhow::Result<Value> {
    let request = Request::post(format!("/v3/kv/{what}")).header("content-type", "application/json");
    Ok(client.request(request.body(body.to_string().into_bytes())?).await?)
}
