//! Events, one line each, the oldest first.

use super::bundle::Bundle;
use super::read::{Reader, Selection};
use five_spot_api::names;
use serde_json::Value;

/// The most events. An API server keeps those of the last hour.
const EVENTS: usize = 20_000;

/// Collects the events of a namespace and of 5-Spot, or of all namespaces.
pub async fn collect(reader: &Reader<'_>, bundle: &mut Bundle, namespace: Option<&str>) {
    let mut events =
        reader.list(bundle, "", "events", Selection { namespace, limit: EVENTS, labels: None }).await;
    if namespace.is_some_and(|namespace| namespace != names::SYSTEM_NAMESPACE) {
        let ours = Selection { namespace: Some(names::SYSTEM_NAMESPACE), limit: EVENTS, labels: None };
        events.extend(reader.list(bundle, "", "events", ours).await);
    }
    bundle.add_text("events.txt", "the events, the oldest first", &render(&events));
}

fn render(events: &[Value]) -> String {
    let mut lines: Vec<(String, String)> = events.iter().map(|event| (time(event), line(event))).collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The last time at which an event happened, in whichever field it stands.
fn time(event: &Value) -> String {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    let found = times.into_iter().find_map(|path| event.pointer(path).and_then(Value::as_str));
    found.unwrap_or_default().to_owned()
}

fn line(event: &Value) -> String {
    let part = |path: &str| {
        event.pointer(path).and_then(Value::as_str).unwrap_or_default().replace(['\n', '\t'], " ")
    };
    let count = event.pointer("/series/count").or(event.get("count")).and_then(Value::as_i64).unwrap_or(1);
    format!(
        "{}\t{}\t{}\t{}\t{}/{}\tx{count}\t{}\n",
        time(event),
        part("/metadata/namespace"),
        part("/type"),
        part("/reason"),
        part("/involvedObject/kind"),
        part("/involvedObject/name"),
        part("/message"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_sorted_by_their_last_time() {
        let event = |message: &str, field: &str, time: &str| {
            json!({
                "metadata": {"namespace": "desks", "creationTimestamp": "2026-11-17T00:00:00Z"}, "type": "Normal",
                "reason": "ScheduleActive", "message": message, field: time,
                "involvedObject": {"kind": "ScheduledMachine", "name": "desk-17"},
            })
        };
        let events = [
            event("second\nline", "lastTimestamp", "2026-11-17T11:00:00Z"),
            event("first", "eventTime", "2026-11-17T10:00:00.000000Z"),
        ];
        assert_eq!(
            render(&events),
            "2026-11-17T10:00:00.000000Z\tdesks\tNormal\tScheduleActive\tScheduledMachine/desk-17\tx1\tfirst\n\
             2026-11-17T11:00:00Z\tdesks\tNormal\tScheduleActive\tScheduledMachine/desk-17\tx1\tsecond line\n"
        );
    }
}
