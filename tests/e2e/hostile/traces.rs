//! The status of the attacker's own objects: nothing that a server sent is repeated, and nothing tells of the network.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_testenv::harness::TestResult;
use kube::api::DynamicObject;
use serde_json::Value;
use tokio::time::Instant;

use super::attacker::{Attacker, REFUSED};

/// The longest status in bytes.
const LONGEST: usize = 64 << 10;
/// The time in which every object has the conditions that are expected.
const WITHIN: Duration = Duration::from_mins(1);

pub(super) async fn check(attacker: &Attacker) -> TestResult {
    let begin = Instant::now();
    let objects = loop {
        let objects = attacker.objects().await?;
        let result = conditions(attacker, &objects);
        match result {
            Ok(()) => break objects,
            Err(error) if begin.elapsed() > WITHIN => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    };
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

/// Addresses that are not permitted are refused by the condition, or read like any other failure to connect.
fn conditions(attacker: &Attacker, objects: &[DynamicObject]) -> TestResult {
    let mut unreachable: Vec<String> = Vec::new();
    for (name, word) in REFUSED {
        let message = failure(objects, name)?;
        if word.is_empty() {
            unreachable.push(message);
        } else {
            ensure!(message.contains(word), "{name}: no {word} in {message:?}");
        }
    }
    for name in attacker.unreachable() {
        unreachable.push(failure(objects, &name)?);
    }
    ensure!(unreachable.len() > 1, "nothing to compare");
    unreachable.dedup();
    ensure!(unreachable.len() == 1, "failures to connect differ: {unreachable:?}");
    Ok(())
}

/// The message of the failed `ReferencesValid` of an object, without its name.
fn failure(objects: &[DynamicObject], name: &str) -> anyhow::Result<String> {
    let object = objects.iter().find(|object| object.metadata.name.as_deref() == Some(name));
    let object = object.with_context(|| format!("no object {name}"))?;
    let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let references = conditions.iter().find(|condition| condition["type"] == "ReferencesValid");
    let failed = references.filter(|condition| condition["status"] != "True");
    let failed = failed.with_context(|| format!("{name}: ReferencesValid has not failed: {conditions:?}"))?;
    Ok(failed["message"].as_str().unwrap_or_default().replace(name, "NAME"))
}
