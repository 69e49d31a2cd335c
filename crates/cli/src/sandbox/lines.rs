//! One line per event, as text or as JSON. The JSON format is stable: fields may be added, but never changed
//! or removed.

use crate::sandbox::rows::Shade;
use crate::sandbox::text::{color, dim};
use crate::sandbox::trace::{Entry, Event, Fact, Transition, Write};
use crate::style::Style;
use five_spot_api::Phase;
use five_spot_api::event::EventType;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Text: transitions, events and user actions. Writes are left out because there are too many of them.
pub fn words(entry: &Entry, transition: Option<Transition<'_>>, style: Style) -> Option<String> {
    let what = match &entry.fact {
        Fact::Object(key, _) => {
            let Transition { from, to, .. } = transition?;
            let phase = |phase: Option<Phase>, absent: &str| match phase {
                Some(phase) => style.paint(phase_color(phase), phase.as_str()),
                None => absent.to_owned(),
            };
            match from {
                Some(_) => format!("{key}: {} to {}", phase(from, ""), phase(to, "gone")),
                None => format!("{key}: {}", phase(to, "gone")),
            }
        }
        Fact::Event(Event { key, reason, is_warning, note }) => {
            let reason = harmless(reason);
            let reason = if *is_warning { style.paint(color(Shade::Held), &reason) } else { reason };
            format!("{key}: {reason}: {}", harmless(note))
        }
        Fact::UserAction(sentence) => sentence.clone(),
        Fact::Machine(..) | Fact::Write(_) => return None,
    };
    let time = entry.time.strftime("%a %d %H:%M:%S").to_string();
    Some(format!("{} {what}", dim(style, &time)))
}

/// JSON.
pub fn json(entry: &Entry, transition: Option<Transition<'_>>) -> Option<String> {
    let time = entry.time.to_string();
    let value = match &entry.fact {
        Fact::Object(key, _) => {
            let Transition { from, to, .. } = transition?;
            json!({
                "time": time, "type": "transition", "namespace": key.namespace, "name": key.name,
                "from": from, "to": to,
            })
        }
        Fact::Event(Event { key, reason, is_warning, note }) => json!({
            "time": time, "type": "event", "namespace": key.namespace, "name": key.name, "reason": reason,
            "eventType": if *is_warning { EventType::Warning } else { EventType::Normal }.as_str(), "note": note,
        }),
        Fact::Write(write) => write_value(&time, write),
        Fact::Machine(..) | Fact::UserAction(_) => return None,
    };
    Some(value.to_string())
}

fn write_value(time: &str, write: &Write) -> Value {
    let mut value = json!({
        "time": time, "type": "write", "verb": write.verb, "resource": write.resource,
        "namespace": write.namespace, "name": write.name, "status": write.status,
    });
    if let Some(part) = &write.subresource {
        value["subresource"] = part.as_str().into();
    }
    value
}

/// A time in the format of the chart.
pub fn moment(time: Timestamp) -> String {
    time.strftime("%a %d %b %Y %H:%M:%S UTC").to_string()
}

fn phase_color(phase: Phase) -> anstyle::Style {
    color(match phase {
        Phase::Pending => Shade::Coming,
        Phase::Active => Shade::Ready,
        Phase::ShuttingDown => Shade::ShuttingDown,
        Phase::Inactive => Shade::Inactive,
        Phase::Disabled => Shade::Disabled,
        Phase::Terminated => Shade::Terminated,
        Phase::EmergencyRemove => Shade::EmergencyRemove,
        Phase::Error => Shade::Error,
    })
}

/// Removes control characters: notes can contain text from objects, which must not control the terminal.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
