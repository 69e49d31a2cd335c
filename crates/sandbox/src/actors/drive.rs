//! Runs an actor: it looks, does what is due, and sleeps until something changes or its time comes.

use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher;
use std::future::Future;
use std::time::Duration;

/// Somebody who keeps a part of the world as it should be.
pub trait Actor: Send + Sync {
    /// The kinds whose changes concern it.
    fn watches(&self) -> Vec<ApiResource>;

    /// Does what is due now; returns how long until something else will be, if nothing changes before.
    fn step(&self) -> impl Future<Output = Result<Option<Duration>, kube::Error>> + Send;
}

/// How long an actor waits after an error before it looks again.
const RETRY: Duration = Duration::from_secs(1);

/// Lets an actor act for as long as the future is polled.
pub async fn drive<A: Actor>(client: kube::Client, actor: A) {
    let mut changes = stream::select_all(actor.watches().iter().map(|resource| changes_of(&client, resource)));
    loop {
        // An error of the API is weather: the next look finds what is left to do.
        let wake = actor.step().await.unwrap_or(Some(RETRY));
        tokio::select! {
            biased;
            changed = changes.next() => {
                if changed.is_none() {
                    return;
                }
                // Several changes at once need one look.
                while changes.next().now_or_never().flatten().is_some() {}
            }
            () = sleep(wake) => {}
        }
    }
}

fn changes_of(client: &kube::Client, resource: &ApiResource) -> BoxStream<'static, ()> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let events = watcher(api, watcher::Config::default());
    // A watch that fails begins again by itself; a pause keeps a kind that is not served yet from being asked for
    // without end.
    events
        .then(async |event| {
            if event.is_err() {
                tokio::time::sleep(RETRY).await;
            }
        })
        .boxed()
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// The earlier of two times to wake up.
pub(super) fn earlier(left: Option<Duration>, right: Option<Duration>) -> Option<Duration> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (one, other) => one.or(other),
    }
}
