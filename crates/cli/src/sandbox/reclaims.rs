//! The reclaims of a run, with the duration of each stage.

use crate::sandbox::lines::moment;
use crate::sandbox::trace::{Fact, Key, Trace};
use five_spot_api::{ReclaimRecord, ReclaimStage};
use serde_json::{Map, Value, json};

/// A reclaim of a machine.
pub struct Reclaim<'a> {
    key: &'a Key,
    record: &'a ReclaimRecord,
}

/// Returns the reclaims of all machines, sorted by request time, each in its last recorded state.
pub fn reclaims(trace: &Trace) -> Vec<Reclaim<'_>> {
    let mut found: Vec<Reclaim<'_>> = Vec::new();
    for entry in &trace.entries {
        let Fact::Object(key, Some(snapshot)) = &entry.fact else { continue };
        for record in &snapshot.reclaims {
            let same = |known: &&mut Reclaim<'_>| {
                known.key == key
                    && known.record.node_uid == record.node_uid
                    && known.record.requested_at == record.requested_at
            };
            match found.iter_mut().find(same) {
                Some(known) => known.record = record,
                None => found.push(Reclaim { key, record }),
            }
        }
    }
    found.sort_by_key(|reclaim| reclaim.record.requested_at.0);
    found
}

impl Reclaim<'_> {
    /// Text: the time from the request to each stage that was reached.
    pub fn text(&self) -> String {
        let Self { key, record } = self;
        let stages: Vec<String> = self
            .seconds()
            .map(|(stage, seconds)| format!("{} after {seconds} s", stage.as_str().replace('_', " ")))
            .collect();
        let reached = if stages.is_empty() { "no stages recorded".to_owned() } else { stages.join(", ") };
        format!("{key}: reclaimed {} ({}): {reached}", moment(record.requested_at.0), record.reason)
    }

    /// JSON.
    pub fn json(&self) -> Value {
        let Self { key, record } = self;
        let seconds: Map<String, Value> =
            self.seconds().map(|(stage, seconds)| (stage.as_str().to_owned(), json!(seconds))).collect();
        json!({
            "namespace": key.namespace, "name": key.name, "requestedAt": record.requested_at.0.to_string(),
            "reason": record.reason, "seconds": seconds,
        })
    }

    fn seconds(&self) -> impl Iterator<Item = (ReclaimStage, f64)> {
        let stages = self.record.stages.as_ref();
        ReclaimStage::ALL.into_iter().filter_map(move |stage| {
            let duration = stages?.duration(stage)?;
            Some((stage, (duration.as_secs_f64() * 1000.0).round() / 1000.0))
        })
    }
}
