//! `/ready`, second by second.

use std::time::{Duration, Instant};

use anyhow::bail;

use crate::startup::Program;

/// Requests `/ready` once a second until it is 503 with all of these texts, and prints every response that
/// differs from the one before. Returns the seconds that it took.
pub(super) async fn until_not_ready(
    program: &Program,
    parts: &[&str],
    within: Duration,
) -> anyhow::Result<u64> {
    let (begun, mut last) = (Instant::now(), String::new());
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    while begun.elapsed() < within {
        ticks.tick().await;
        let (status, body) = program.ready().await?;
        let seconds = begun.elapsed().as_secs();
        let answer = format!("{status} {}", body.trim().replace('\n', "; "));
        if answer != last {
            println!("{}: /ready after {seconds} s: {answer}", program.name());
            last = answer;
        }
        if status == 503 && parts.iter().all(|part| body.contains(part)) {
            return Ok(seconds);
        }
    }
    bail!("/ready of {} is still: {last}\nthe log:\n{}", program.name(), program.log())
}
