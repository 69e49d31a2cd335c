//! Hand-written traces for tests: a builder for the events of one machine on one day.

use crate::range::Range;
use crate::sandbox::trace::{Entry, Event, Fact, Key, Presence, Snapshot, Trace, Write};
use five_spot_api::{Phase, ReclaimRecord, ReclaimStages, ScheduledMachineSpec};
use five_spot_core::ValidSpec;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde_json::{Value, json};
use std::sync::Arc;

/// The day of the trace: a Monday, on which the machine is wanted from 9:00 to 18:00.
pub fn at(time: &str) -> Timestamp {
    format!("2026-11-09T{time}Z").parse().expect("a time")
}

/// The whole day.
pub fn day() -> Range {
    Range { from: at("00:00:00"), to: "2026-11-10T00:00:00Z".parse().expect("an instant") }
}

pub fn key() -> Key {
    Key::new("lab", "bench-01")
}

/// A trace under construction.
pub struct TraceFixture {
    trace: Trace,
    now: Snapshot,
    spec: Value,
}

impl TraceFixture {
    /// An object with only a schedule, from midnight on.
    pub fn new() -> Self {
        let provider = |group: &str| json!({"apiVersion": format!("{group}.cluster.x-k8s.io/v1beta2"), "kind": "Host", "spec": {}});
        let spec = json!({
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}, "clusterName": "lab",
            "bootstrapSpec": provider("bootstrap"), "infrastructureSpec": provider("infrastructure"),
        });
        let now = Snapshot {
            spec: None,
            kill_switch: false,
            deleted_at: None,
            phase: None,
            message: String::new(),
            is_ready: false,
            is_held: false,
            is_reclaimed: false,
            is_paused: false,
            reclaims: Vec::new(),
        };
        Self { trace: Trace::default(), now, spec }
            .spec("00:00:00", &json!({}))
            .phase("00:00:00", Phase::Inactive)
    }

    /// A day without problems, up to 18:00:06.
    pub fn good() -> Self {
        Self::new()
            .phase("09:00:00", Phase::Pending)
            .machine("09:00:00", Presence::There)
            .phase("09:00:01", Phase::Active)
            .ready("09:01:10", true)
            .phase("18:00:00", Phase::ShuttingDown)
            .delete("18:00:06")
            .machine("18:00:06", Presence::Terminating)
    }

    /// The normal end of the window.
    pub fn and_gone(self) -> Self {
        self.machine("18:00:12", Presence::Gone).ready("18:00:12", false).phase("18:00:13", Phase::Inactive)
    }

    pub fn done(self) -> Trace {
        self.trace
    }

    fn add(mut self, time: &str, fact: Fact) -> Self {
        self.trace.entries.push(Entry { time: at(time), fact });
        self
    }

    fn change(mut self, time: &str, change: impl FnOnce(&mut Snapshot)) -> Self {
        change(&mut self.now);
        let snapshot = self.now.clone();
        self.add(time, Fact::Object(key(), Some(snapshot)))
    }

    /// The spec with additional fields.
    pub fn spec(mut self, time: &str, fields: &Value) -> Self {
        for (field, value) in fields.as_object().into_iter().flatten() {
            self.spec[field] = value.clone();
        }
        let spec: ScheduledMachineSpec = serde_json::from_value(self.spec.clone()).expect("a spec");
        let valid = ValidSpec::parse(&spec).expect("a valid spec");
        self.change(time, |now| {
            now.kill_switch = valid.handling.kill_switch;
            now.spec = Some(Arc::new(valid));
        })
    }

    /// An invalid spec.
    pub fn nonsense(self, time: &str) -> Self {
        self.change(time, |now| now.spec = None)
    }

    pub fn phase(self, time: &str, phase: Phase) -> Self {
        self.change(time, |now| now.phase = Some(phase))
    }

    pub fn error(self, time: &str, message: &str) -> Self {
        let message = message.to_owned();
        self.change(time, |now| (now.phase, now.message) = (Some(Phase::Error), message))
    }

    pub fn ready(self, time: &str, is_ready: bool) -> Self {
        self.change(time, |now| now.is_ready = is_ready)
    }

    pub fn held(self, time: &str, is_held: bool) -> Self {
        self.change(time, |now| now.is_held = is_held)
    }

    pub fn paused(self, time: &str) -> Self {
        self.change(time, |now| now.is_paused = true)
    }

    pub fn reclaimed(self, time: &str) -> Self {
        self.change(time, |now| now.is_reclaimed = true)
    }

    /// The end of a reclaim that was requested at `requested`: its pods left after half a second, and its
    /// Node after six seconds.
    pub fn reclaim_ended(self, requested_at: &str, time: &str) -> Self {
        let after = |millis| Some(MicroTime(at(requested_at) + jiff::SignedDuration::from_millis(millis)));
        let record = ReclaimRecord {
            requested_at: Time(at(requested_at)),
            reason: "process-match: java".to_owned(),
            node: "bench-01-infra".to_owned(),
            node_uid: "1".to_owned(),
            finished_at: Some(Time(at(time))),
            stages: Some(ReclaimStages {
                requested_at: MicroTime(at(requested_at)),
                annotated_at: MicroTime(at(requested_at)),
                pods_gone_at: after(500),
                machine_deleted_at: after(520),
                node_gone_at: after(6000),
            }),
        };
        self.change(time, |now| {
            now.is_reclaimed = false;
            now.reclaims.insert(0, record);
        })
    }

    pub fn deleted(self, time: &str) -> Self {
        let deleted = at(time);
        self.change(time, |now| now.deleted_at = Some(deleted))
    }

    pub fn forgotten(self, time: &str) -> Self {
        self.add(time, Fact::Object(key(), None))
    }

    pub fn machine(self, time: &str, presence: Presence) -> Self {
        self.add(time, Fact::Machine(key(), presence))
    }

    /// The controller deletes the Machine.
    pub fn delete(self, time: &str) -> Self {
        let write = Write {
            verb: "delete",
            resource: "machines".to_owned(),
            subresource: None,
            namespace: Some(key().namespace),
            name: Some("bench-01-machine".to_owned()),
            status: Some(200),
        };
        self.add(time, Fact::Write(write))
    }

    /// An eviction by the controller is refused.
    pub fn blocked(self, time: &str) -> Self {
        let write = Write {
            verb: "create",
            resource: "pods".to_owned(),
            subresource: Some("eviction".to_owned()),
            namespace: Some("lab".to_owned()),
            name: Some("web".to_owned()),
            status: Some(429),
        };
        self.add(time, Fact::Write(write))
    }

    pub fn warning(self, time: &str, reason: &str, note: &str) -> Self {
        let event = Event { key: key(), reason: reason.to_owned(), is_warning: true, note: note.to_owned() };
        self.add(time, Fact::Event(event))
    }

    pub fn action(self, time: &str, sentence: &str) -> Self {
        self.add(time, Fact::UserAction(sentence.to_owned()))
    }
}
