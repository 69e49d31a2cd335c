//! Text that others can write, in every field from which it may reach status, events, logs or metrics.
//!
//! Each case puts huge, non-ASCII or unprintable text into a field of a running in-memory environment, lets the controller work with it,
//! and checks everything that the controller has written: status is accepted and small, events fit, log entries are
//! single lines, and an emergency still works.

mod field;
mod judge;
mod text;

pub use field::Field;

use crate::environment::Environment;
use crate::fixtures::override_until;
use crate::in_memory::{InMemory, in_memory};
use crate::kinds::MACHINE;
use crate::subject::Subject;
use anyhow::{Context as _, ensure};
use five_spot_apiserver::ids::Ids;
use five_spot_controller::logging::{LogFilter, LogFormat, subscriber};
use judge::{Logs, Statuses};
use serde_json::{Value, json};
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// The time for which the controller works with the text: several retries, and past the deadline of a drain.
const OBSERVED: Duration = Duration::from_mins(2);

/// The time the Machine's DELETE may take after `killSwitch: true`.
const KILL_SWITCH: Duration = Duration::from_secs(5);

/// Runs one case: hostile text in a field, chosen by the seed, and in half of the cases in another field beside it.
///
/// Returns whether the API server accepted the text for the field; if it refuses the text, there is nothing
/// to defend.
pub fn try_case(field: Field, seed: u64) -> anyhow::Result<bool> {
    let logs = Logs::default();
    let lines = subscriber(LogFormat::Json, LogFilter::from(LevelFilter::INFO), logs.writer(), false);
    let tried = tracing::subscriber::with_default(lines, || {
        in_memory(async |env| {
            let statuses = Statuses::watch(env);
            let result = run(env, field, seed).await;
            judge::writes(env)?;
            statuses.check()?;
            judge::events(env).await?;
            judge::metrics(env)?;
            result
        })
    })?;
    logs.check()?;
    Ok(tried)
}

/// Lends a machine, writes the hostile text, gives the controller something to do, and sets the kill switch.
async fn run(env: &InMemory, field: Field, seed: u64) -> anyhow::Result<bool> {
    let dynamic: &dyn Environment = env;
    // Each field gets other texts and second fields than the next one.
    let mut chance = Ids::new(seed << 8 | field.number());
    let subject = Subject::lent(dynamic, json!({})).await?;
    let node = subject.node().await?;
    dynamic.pods_on(&node, 2, 1).await?;
    let is_taken = field.spoil(env, &subject, &node, text::any(seed, &mut chance)).await?;
    if chance.chance(500) {
        let (beside, kind) = (Field::any(&mut chance), chance.next_u64());
        beside.spoil(env, &subject, &node, text::any(kind, &mut chance)).await?;
    }
    give_work(dynamic, &subject, &mut chance).await?;
    tokio::time::sleep(OBSERVED).await;
    env.clear_faults();
    subject.set(json!({"killSwitch": true})).await?;
    let is_deleted =
        |machine: &Value| machine.is_null() || !machine["metadata"]["deletionTimestamp"].is_null();
    let deleted = dynamic.seek(MACHINE, &subject.machine(), KILL_SWITCH, is_deleted).await;
    ensure!(deleted.is_ok(), "the kill switch has no effect: {deleted:?}");
    tokio::time::sleep(OBSERVED).await;
    Ok(is_taken)
}

/// A task for which the controller reads the fields and reports the result.
async fn give_work(env: &dyn Environment, subject: &Subject<'_>, chance: &mut Ids) -> anyhow::Result<()> {
    match chance.below(4) {
        0 => {
            let drain = json!({"onTimeout": if chance.chance(500) { "Force" } else { "Error" }});
            let soon = json!({"schedule": {"enabled": false}, "drain": drain, "nodeDrainTimeout": "1s"});
            subject.set(soon).await
        }
        1 => subject.set(override_until("down", env.in_seconds(36_000))).await,
        2 => env.delete(MACHINE, &subject.machine()).await,
        _ => {
            let taint = json!({"key": "example.org/desk", "effect": "NoSchedule"});
            subject.set(json!({"nodeTaints": [taint]})).await
        }
    }
    .context("giving work")
}
