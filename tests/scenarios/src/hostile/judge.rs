//! Checks that everything the controller has written was accepted, and is short and printable.

use crate::environment::Environment;
use crate::in_memory::InMemory;
use crate::kinds::SCHEDULED_MACHINE;
use anyhow::{Context as _, bail, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// The most that a whole status may take, in bytes of JSON.
const LARGEST_STATUS: usize = 64 * 1024;

/// The longest note that an API server takes, in bytes.
const LONGEST_NOTE: usize = 1024;

/// The longest line of the log, in bytes: a message and the fields of its reconcile.
const LONGEST_LINE: usize = 8 * 1024;

/// The longest line of the metrics.
const LONGEST_SAMPLE: usize = 1024;

/// The number of characters of an offending text that a failure shows.
const SHOWN: usize = 200;

/// Every status that was ever stored. It is watched until this is dropped.
pub(super) struct Statuses {
    found: Arc<Mutex<Vec<String>>>,
    watch: AbortHandle,
}

impl Statuses {
    pub(super) fn watch(env: &dyn Environment) -> Self {
        let (found, api) = (Arc::new(Mutex::new(Vec::new())), env.api(SCHEDULED_MACHINE));
        let faults = found.clone();
        let task = tokio::spawn(async move {
            let objects = watcher(api, watcher::Config::default()).default_backoff().applied_objects();
            let mut objects = objects.boxed();
            while let Some(object) = objects.next().await {
                let Ok(object) = object else { continue };
                if let Err(fault) = check_status(&object.data["status"]) {
                    lock(&faults).push(fault.to_string());
                }
            }
        });
        Self { found, watch: task.abort_handle() }
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        match lock(&self.found).first() {
            None => Ok(()),
            Some(fault) => bail!("{fault}"),
        }
    }
}

impl Drop for Statuses {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

fn check_status(status: &Value) -> anyhow::Result<()> {
    let size = status.to_string().len();
    ensure!(size <= LARGEST_STATUS, "status has {size} bytes");
    printable("status", status)
}

/// Every write of status and of events was accepted.
pub(super) fn writes(env: &dyn Environment) -> anyhow::Result<()> {
    for write in env.writes()? {
        let is_text = write.resource == "scheduledmachines/status" || write.resource.starts_with("events");
        let is_accepted = write.code.is_some_and(|code| matches!(code, 200..=299 | 404 | 409));
        ensure!(!is_text || is_accepted, "refused: {write}");
    }
    Ok(())
}

/// Every event has a note that fits and can be printed.
pub(super) async fn events(env: &dyn Environment) -> anyhow::Result<()> {
    let events: Api<Event> = Api::namespaced(env.management(), env.namespace());
    for event in events.list(&ListParams::default()).await?.items {
        let note = event.note.as_deref().unwrap_or_default();
        ensure!(note.len() <= LONGEST_NOTE, "a note has {} bytes", note.len());
        printable("an event", &serde_json::to_value(&event)?)?;
    }
    Ok(())
}

/// No text that others write is in the metrics.
pub(super) fn metrics(env: &InMemory) -> anyhow::Result<()> {
    let page = env.metrics_page();
    ensure!(!page.is_empty(), "there are no metrics");
    let long = page.lines().find(|transport| transport.len() > LONGEST_SAMPLE);
    ensure!(long.is_none(), "a metric is too long: {}", long.map(shown).unwrap_or_default());
    Ok(())
}

/// The captured log.
#[derive(Clone, Default)]
pub(super) struct Logs {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Logs {
    /// The sink of the lines.
    pub(super) fn writer(&self) -> impl Fn() -> Self + Send + Sync + use<> {
        let logs = self.clone();
        move || logs.clone()
    }

    /// Every line is one JSON object of bounded length whose texts can be printed.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let text = String::from_utf8(lock(&self.bytes).clone()).context("the log is not UTF-8")?;
        ensure!(!text.is_empty(), "nothing was logged");
        for transport in text.split_terminator('\n') {
            ensure!(
                transport.len() <= LONGEST_LINE,
                "a line has {} bytes: {}",
                transport.len(),
                shown(transport)
            );
            let parsed: Value = serde_json::from_str(transport)
                .with_context(|| format!("not a line of the log: {}", shown(transport)))?;
            printable("a line of the log", &parsed)?;
        }
        Ok(())
    }
}

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.bytes).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No string in a value has a character that a terminal interprets.
fn printable(what: &str, value: &Value) -> anyhow::Result<()> {
    match value {
        Value::String(text) => {
            let found = text.chars().find(|one| {
                one.is_control()
                    || matches!(one, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            });
            ensure!(found.is_none(), "{what} has {found:?} in {}", shown(text));
        }
        Value::Array(values) => values.iter().try_for_each(|value| printable(what, value))?,
        Value::Object(fields) => fields.values().try_for_each(|value| printable(what, value))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
