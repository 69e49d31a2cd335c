//! Waiting for a state of an object: by watch, with a deadline, and with the last state in the error.

use std::fmt::Debug;
use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _, pin_mut};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watch_object};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The state was not reached.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The deadline passed.
    #[error("waited {within:?} for {name} {what}; it was last seen {last}")]
    Deadline {
        /// The object.
        name: String,
        /// The expected condition.
        what: String,
        /// The time limit.
        within: Duration,
        /// The object as last seen.
        last: String,
    },
    /// Something that should have lasted did not.
    #[error("{name} stopped {what} after {after:?}; it was then {last}")]
    DidNotLast {
        /// The object.
        name: String,
        /// The condition that should have lasted.
        what: String,
        /// The time it lasted.
        after: Duration,
        /// The object as it was then.
        last: String,
    },
    /// The watch failed.
    #[error("the watch of {name} ended: {source}")]
    Watch {
        /// The object.
        name: String,
        /// Why.
        source: Box<watcher::Error>,
    },
}

/// A type that can be watched and printed.
pub trait Watched: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + 'static {}
impl<K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + 'static> Watched for K {}

/// Waits until the object satisfies `condition`, which gets `None` while it does not exist. Returns the
/// object.
pub async fn until<K: Watched>(
    api: &Api<K>,
    name: &str,
    what: &str,
    within: Duration,
    mut condition: impl FnMut(Option<&K>) -> bool,
) -> Result<Option<K>, WaitError> {
    let mut last = "never".to_owned();
    let states = states(api, name);
    let search = async {
        pin_mut!(states);
        loop {
            // The stream restarts its watch; it never ends.
            let Some(object) = states.try_next().await? else {
                continue;
            };
            if condition(object.as_ref()) {
                return Ok(object);
            }
            last = describe(object.as_ref());
        }
    };
    // Boxed, because otherwise every test that waits would have the whole watch on its stack.
    let found = tokio::time::timeout(within, Box::pin(search)).await;
    match found {
        Ok(result) => {
            result.map_err(|source| WaitError::Watch { name: name.into(), source: Box::new(source) })
        }
        Err(_) => Err(WaitError::Deadline { name: name.into(), what: what.into(), within, last }),
    }
}

/// Waits until the object exists and satisfies `condition`.
pub async fn until_present<K: Watched>(
    api: &Api<K>,
    name: &str,
    what: &str,
    within: Duration,
    mut condition: impl FnMut(&K) -> bool,
) -> Result<K, WaitError> {
    loop {
        if let Some(found) =
            until(api, name, what, within, |object| object.is_some_and(&mut condition)).await?
        {
            return Ok(found);
        }
    }
}

/// Waits until the object does not exist.
pub async fn until_gone<K: Watched>(api: &Api<K>, name: &str, within: Duration) -> Result<(), WaitError> {
    until(api, name, "to be gone", within, |object| object.is_none()).await.map(drop)
}

/// Watches the object for `lasting` and fails as soon as `condition` does not hold.
pub async fn while_lasting<K: Watched>(
    api: &Api<K>,
    name: &str,
    what: &str,
    lasting: Duration,
    mut condition: impl FnMut(Option<&K>) -> bool,
) -> Result<(), WaitError> {
    let begun = tokio::time::Instant::now();
    match until(api, name, what, lasting, |object| !condition(object)).await {
        Err(WaitError::Deadline { .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(object) => Err(WaitError::DidNotLast {
            name: name.into(),
            what: what.into(),
            after: begun.elapsed(),
            last: describe(object.as_ref()),
        }),
    }
}

/// Waits until the object has not changed for `quiet`, and returns it.
pub async fn until_quiet<K: Watched>(
    api: &Api<K>,
    name: &str,
    quiet: Duration,
    within: Duration,
) -> Result<Option<K>, WaitError> {
    let mut states = states(api, name).boxed();
    let mut last = None;
    let search = async {
        loop {
            match tokio::time::timeout(quiet, states.try_next()).await {
                Ok(Ok(state)) => last = state,
                Ok(Err(source)) => return Err(source),
                Err(_) if last.is_some() => return Ok(()),
                Err(_) => {}
            }
        }
    };
    let settled = tokio::time::timeout(within, Box::pin(search)).await;
    let (name, last) = (name.to_owned(), last.flatten());
    match settled {
        Ok(Ok(())) => Ok(last),
        Ok(Err(source)) => Err(WaitError::Watch { name, source: Box::new(source) }),
        Err(_) => {
            let what = format!("to be left alone for {quiet:?}");
            Err(WaitError::Deadline { name, what, within, last: describe(last.as_ref()) })
        }
    }
}

/// Every state of an object from now on. Errors of the watch are retried with back-off, because restarts of
/// the API server are part of the tests; only the deadline ends the wait.
fn states<K: Watched>(
    api: &Api<K>,
    name: &str,
) -> impl Stream<Item = Result<Option<K>, watcher::Error>> + use<K> {
    watch_object(api.clone(), name).default_backoff().filter_map(|state| async move {
        match state {
            Ok(state) => Some(Ok(state)),
            Err(_) => None,
        }
    })
}

/// The object without the parts that do not help to understand a failure.
fn describe<K: Serialize>(object: Option<&K>) -> String {
    let Some(object) = object else {
        return "absent".into();
    };
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    format!("as {value}")
}
