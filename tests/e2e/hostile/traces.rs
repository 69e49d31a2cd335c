//! The status of the attacker's own objects: it is short, and repeats nothing that a server sent.

use anyhow::ensure;
use five_spot_testenv::harness::TestResult;
use kube::api::DynamicObject;
use serde_json::Value;

use super::attacker::Attacker;

/// The longest status in bytes.
const LONGEST: usize = 64 << 10;

pub(super) async fn check(attacker: &Attacker) -> TestResult {
    let objects = attacker.objects().await?;
    ensure!(!objects.is_empty(), "no objects of the attacker");
    for object in &objects {
        bounded(object)?;
    }
    Ok(())
}

/// No status is long, or has a text of a server, a credential, or what a terminal acts upon.
fn bounded(object: &DynamicObject) -> TestResult {
    let (name, status) = (object.metadata.name.as_deref().unwrap_or_default(), &object.data["status"]);
    let length = status.to_string().len();
    ensure!(length < LONGEST, "the status of {name} has {length} bytes");
    let mut texts = Vec::new();
    collect(status, &mut texts);
    for text in texts {
        for word in ["xxxxxxxx", "a-token", "latest/meta-data", "\u{1b}"] {
            ensure!(!text.contains(word), "the status of {name} has {word:?}: {text:?}");
        }
    }
    Ok(())
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
