//! The loop of the provider: processes each object that changes, never one object concurrently.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream, SelectAll};
use kube::api::{DynamicObject, ListParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt as _};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use super::ProviderBehaviour;
use super::conduct::Book;
use super::steps::{self, Clients};
use crate::cluster::Cluster;
use crate::kinds::{
    K0S_WORKER_CONFIG, KUBEADM_CONFIG, LAB_BENCH, LAB_SUPPLY, MACHINE, REMOTE_CLUSTER, REMOTE_MACHINE,
    STUB_CONTROL_PLANE, ThirdPartyKind,
};
use crate::kubeconfig::{self, TestClientError};

/// The number of objects that are processed concurrently: as many as there may be tests.
const HANDS: usize = 16;
/// The user agent that marks the provider's requests in the audit log.
const AGENT: &str = "5spot-testenv-provider";

/// The running provider. Dropping it ends it.
#[derive(Debug)]
pub struct Provider {
    book: Arc<Book>,
    task: JoinHandle<()>,
}

/// An object to reconcile again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Errand {
    kind: ThirdPartyKind,
    namespace: String,
    name: String,
}

impl Provider {
    /// Starts the provider of all namespaces.
    pub async fn start(management: &Cluster, workload: &Cluster) -> Result<Self, TestClientError> {
        let client = |cluster: &Cluster| {
            let path = cluster.kubeconfig().to_path_buf();
            async move { kubeconfig::client(&std::fs::read_to_string(path).unwrap_or_default(), AGENT).await }
        };
        let clients = Clients { management: client(management).await?, workload: client(workload).await? };
        let book = Arc::new(Book::new());
        let task = tokio::spawn(run(clients, Arc::clone(&book)));
        Ok(Self { book, task })
    }

    /// Changes the behaviour of the provider in a namespace. Steps that hung or failed there are retried.
    pub fn in_namespace(&self, namespace: &str, change: impl FnOnce(&mut ProviderBehaviour)) {
        self.book.change(namespace, change);
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(clients: Clients, book: Arc<Book>) {
    let client = &clients.management;
    let mut errands: SelectAll<BoxStream<'static, Errand>> = SelectAll::new();
    for kind in [
        K0S_WORKER_CONFIG,
        KUBEADM_CONFIG,
        LAB_SUPPLY,
        REMOTE_MACHINE,
        LAB_BENCH,
        REMOTE_CLUSTER,
        STUB_CONTROL_PLANE,
    ] {
        errands.push(objects(kind, client).map(move |object| errand(kind, &object)).boxed());
    }
    // A machine is prepared once its bootstrap data exist, which the Machine reports.
    let machines = objects(MACHINE, client).filter_map(|machine| async move {
        let reference = &machine.data["spec"]["infrastructureRef"];
        let name = reference["name"].as_str()?.to_owned();
        let kind = [REMOTE_MACHINE, LAB_BENCH].into_iter().find(|kind| reference["kind"] == kind.kind)?;
        Some(Errand { name, ..errand(kind, &machine) })
    });
    errands.push(machines.boxed());
    errands.push(changed_namespaces(client.clone(), &book));
    errands
        .for_each_concurrent(HANDS, |errand| {
            let (clients, book) = (clients.clone(), Arc::clone(&book));
            async move {
                let Errand { kind, namespace, name } = &errand;
                let behaviour = book.behaviour(namespace);
                let Ok(Some(object)) = kind.in_namespace(&clients.management, namespace).get_opt(name).await
                else {
                    return;
                };
                // A conflict or a restarting API server: the next change of the object triggers another attempt. A
                // write that failed causes no change, so it is retried here.
                if steps::reconcile(&clients, *kind, &object, &behaviour).await.is_err() {
                    let again = kind.in_namespace(&clients.management, namespace).get_opt(name).await;
                    if let Ok(Some(object)) = again
                        && let Err(error) = steps::reconcile(&clients, *kind, &object, &behaviour).await
                    {
                        eprintln!(
                            "the provider stand-in failed on {} {namespace}/{name}: {error}",
                            kind.kind
                        );
                    }
                }
            }
        })
        .await;
}

fn errand(kind: ThirdPartyKind, object: &DynamicObject) -> Errand {
    Errand { kind, namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}

fn objects(kind: ThirdPartyKind, client: &Client) -> BoxStream<'static, DynamicObject> {
    watcher(kind.everywhere(client), watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .filter_map(|object| async move { object.ok() })
        .boxed()
}

/// Everything in a namespace whose behaviour has changed.
fn changed_namespaces(client: Client, book: &Book) -> BoxStream<'static, Errand> {
    let changes = stream::unfold(book.changes(), |mut changes| async move {
        loop {
            match changes.recv().await {
                Ok(namespace) => return Some((namespace, changes)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    changes
        .flat_map(move |namespace| {
            let client = client.clone();
            let kinds =
                stream::iter([K0S_WORKER_CONFIG, KUBEADM_CONFIG, LAB_SUPPLY, REMOTE_MACHINE, LAB_BENCH]);
            kinds
                .then(move |kind| {
                    let api = kind.in_namespace(&client, &namespace);
                    async move {
                        let list = api.list(&ListParams::default()).await?;
                        let errands: Vec<Errand> = list.iter().map(|object| errand(kind, object)).collect();
                        Ok::<_, kube::Error>(stream::iter(errands))
                    }
                })
                .filter_map(|list| async move { list.ok() })
                .flatten()
        })
        .boxed()
}
