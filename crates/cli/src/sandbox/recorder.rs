//! Records the trace: changes from watches, the controller's writes, and the script's actions.

use crate::sandbox::trace::{Entry, Event, Fact, Key, Presence, Snapshot, Trace, Write};
use anyhow::Context as _;
use five_spot_api::condition::ConditionType;
use five_spot_api::{ScheduledMachineSpec, ScheduledMachineStatus, names};
use five_spot_apiserver::Clock;
use five_spot_cluster::{Exchange, RequestObserver};
use five_spot_core::ValidSpec;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A trace that is being recorded. Clones record to the same trace.
#[derive(Clone, Debug)]
pub struct Recorder {
    clock: Clock,
    recording: Arc<Mutex<Recording>>,
}

#[derive(Debug, Default)]
struct Recording {
    trace: Trace,
    is_over: bool,
}

impl Recorder {
    pub fn new(clock: Clock) -> Self {
        Self { clock, recording: Arc::default() }
    }

    /// Adds an entry with the current time, unless the recording has ended.
    pub fn note(&self, fact: Fact) {
        let mut recording = self.recording();
        if !recording.is_over {
            let time = self.clock.now();
            recording.trace.entries.push(Entry { time, fact });
        }
    }

    /// Passes the trace so far to `read`.
    pub fn look<T>(&self, read: impl FnOnce(&Trace) -> T) -> T {
        read(&self.recording().trace)
    }

    /// Ends the recording, so that the cleanup is not recorded, and returns the trace.
    pub fn finish(&self) -> Trace {
        let mut recording = self.recording();
        recording.is_over = true;
        std::mem::take(&mut recording.trace)
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        // Every change is a single push, so a panic cannot leave the trace in an inconsistent state.
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches all recorded kinds for as long as the future is polled.
    pub async fn follow(self, client: Client) -> anyhow::Result<()> {
        let mut machines = Watch::of(&client, &scheduled_machines());
        let mut capi = Watch::of(&client, &capi_machines());
        let mut events = Watch::of(&client, &resource("events.k8s.io", "v1", "Event", "events"));
        let mut specs = Specs::default();
        loop {
            // One task with a fixed polling order makes the trace reproducible.
            tokio::select! {
                biased;
                change = machines.next() => self.note_object(&change?, &mut specs),
                change = capi.next() => self.note_machine(&change?),
                change = events.next() => self.note_event(&change?),
            }
        }
    }

    fn note_object(&self, change: &Change, specs: &mut Specs) {
        let key = Key::new(change.object.namespace().unwrap_or_default(), change.object.name_any());
        let snapshot = change.is_there.then(|| specs.snapshot(&key, &change.object));
        self.note(Fact::Object(key, snapshot));
    }

    fn note_machine(&self, change: &Change) {
        let object = &change.object;
        let Some(name) = object.labels().get(names::label::SCHEDULED_MACHINE) else {
            return;
        };
        let key = Key::new(object.namespace().unwrap_or_default(), name);
        let presence = match (change.is_there, &object.metadata.deletion_timestamp) {
            (false, _) => Presence::Gone,
            (true, Some(_)) => Presence::Terminating,
            (true, None) => Presence::There,
        };
        if self.look(|trace| trace.machine(&key).last().map(|(_, known)| known)) != Some(presence) {
            self.note(Fact::Machine(key, presence));
        }
    }

    fn note_event(&self, change: &Change) {
        let data = &change.object.data;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        if change.is_there && data["regarding"]["kind"] == names::KIND {
            self.note(Fact::Event(Event {
                key: Key::new(text(&data["regarding"]["namespace"]), text(&data["regarding"]["name"])),
                reason: text(&data["reason"]),
                is_warning: data["type"] == "Warning",
                note: text(&data["note"]),
            }));
        }
    }
}

impl RequestObserver for Recorder {
    fn answered(&self, exchange: &Exchange) {
        let call = &exchange.call;
        if call.writes() {
            self.note(Fact::Write(Write {
                verb: call.verb,
                resource: call.resource.clone(),
                subresource: call.subresource.clone(),
                namespace: call.namespace.clone(),
                name: call.name.clone(),
                status: exchange.status.map(|status| status.as_u16()),
            }));
        }
    }
}

/// The last parsed spec of each object, so that a status update does not parse the spec again.
#[derive(Debug, Default)]
struct Specs(BTreeMap<Key, (i64, Option<Arc<ValidSpec>>)>);

impl Specs {
    fn snapshot(&mut self, key: &Key, object: &DynamicObject) -> Snapshot {
        let generation = object.metadata.generation.unwrap_or_default();
        let spec = match self.0.get(key) {
            Some((known, spec)) if *known == generation => spec.clone(),
            Some(_) | None => {
                let spec = understand(object);
                self.0.insert(key.clone(), (generation, spec.clone()));
                spec
            }
        };
        let status: ScheduledMachineStatus =
            serde_json::from_value(object.data["status"].clone()).unwrap_or_default();
        let is_true = |kind: ConditionType| {
            status.conditions.iter().any(|one| one.type_ == kind.as_str() && one.status == "True")
        };
        Snapshot {
            spec,
            kill_switch: object.data["spec"]["killSwitch"] == true,
            deleted_at: object.metadata.deletion_timestamp.as_ref().map(|time| time.0),
            phase: status.phase,
            is_ready: is_true(ConditionType::MachineReady),
            is_held: status.drain.as_ref().is_some_and(|drain| !drain.blocked.is_empty())
                && status.shutdown_started_at.is_some(),
            is_reclaimed: status.reclaims.iter().any(|reclaim| reclaim.finished_at.is_none()),
            is_paused: is_true(ConditionType::Paused),
            reclaims: status.reclaims,
            message: status.message.unwrap_or_default(),
        }
    }
}

fn understand(object: &DynamicObject) -> Option<Arc<ValidSpec>> {
    let spec: ScheduledMachineSpec = serde_json::from_value(object.data["spec"].clone()).ok()?;
    ValidSpec::parse(&spec).ok().map(Arc::new)
}

/// The `ScheduledMachine` resource.
pub fn scheduled_machines() -> ApiResource {
    resource(names::GROUP, names::VERSION, names::KIND, "scheduledmachines")
}

fn capi_machines() -> ApiResource {
    resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines")
}

/// An `ApiResource` with the given names.
pub fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// An object that was created, changed or deleted.
struct Change {
    object: DynamicObject,
    is_there: bool,
}

/// A watch that returns every change of a kind. A reflector would keep only the latest state; the trace needs
/// every state.
struct Watch {
    api: Api<DynamicObject>,
    open: Option<BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>>,
    /// The newest resource version seen. A restarted watch repeats older events.
    seen: u64,
}

/// A watch is renewed once a day, so that idle periods cost nothing.
const WATCH_SECONDS: u32 = 24 * 60 * 60;

impl Watch {
    fn of(client: &Client, kind: &ApiResource) -> Self {
        Self { api: Api::all_with(client.clone(), kind), open: None, seen: 0 }
    }

    async fn next(&mut self) -> anyhow::Result<Change> {
        loop {
            let open = if let Some(open) = &mut self.open {
                open
            } else {
                let config =
                    WatchParams { bookmarks: false, ..WatchParams::default() }.timeout(WATCH_SECONDS);
                let stream = self.api.watch(&config, &self.seen.to_string()).await;
                self.open.insert(stream.context("failed to watch the sandbox")?.boxed())
            };
            match open.next().await.transpose().context("failed to watch the sandbox")? {
                Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    if self.is_news(&object) {
                        return Ok(Change { object, is_there: true });
                    }
                }
                Some(WatchEvent::Deleted(object)) => {
                    if self.is_news(&object) {
                        return Ok(Change { object, is_there: false });
                    }
                }
                Some(WatchEvent::Bookmark(_)) => {}
                Some(WatchEvent::Error(status)) => {
                    anyhow::bail!("failed to watch the sandbox: {}", status.message);
                }
                None => self.open = None,
            }
        }
    }

    fn is_news(&mut self, object: &DynamicObject) -> bool {
        let version = object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(u64::MAX);
        let is_news = version > self.seen;
        self.seen = self.seen.max(version);
        is_news
    }
}
