//! `cargo xtask bench-fleet`: many objects on a real API server, and up to a hundred thousand on the in-memory one.

mod in_memory;
mod machine_writes;
mod nodes;
mod objects;
mod openings;
mod plot;
mod progress;
mod reclaims;
mod recorder;
mod recording;
mod replay;
mod replicas;
mod report;
mod site;
mod storms;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::time::timeout;

use openings::{Fleet, Opening};
use reclaims::Reclaims;
use report::{Report, load};
use site::Site;
use storms::Storms;

/// The word by which this is asked for.
pub(super) const WORD: &str = "bench-fleet";

/// The longest that a measurement takes, whatever happens.
const LONGEST: Duration = Duration::from_hours(2);

/// Measures, and prints the figures of each measurement as soon as it is over. One that fails does not keep the others from being
/// made. The arguments are controller, JSON or not, and what is measured: `opening:PRESENT:OPENING:ROUNDS`,
/// `fleet:OBJECTS:REPLAYED:QUIET-SECONDS`, `storms:OBJECTS:NODES`, `reclaims:OBJECTS:RECLAIMS` or `memory:FILE:SIZE,SIZE`.
pub(super) async fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [controller, json, measurements @ ..] = arguments else {
        anyhow::bail!("to be started by `cargo xtask bench-fleet`");
    };
    let (controller, is_json): (PathBuf, bool) = (controller.into(), json.parse()?);
    let mut failed = Vec::new();
    for measurement in measurements {
        let measured = timeout(LONGEST, Box::pin(one(&controller, measurement, is_json))).await;
        let measured = measured.unwrap_or_else(|_| Err(anyhow::anyhow!("not over after {LONGEST:?}")));
        if let Err(error) = measured {
            eprintln!("{measurement}: {error:#}");
            failed.push(measurement.as_str());
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Makes a measurement, and prints its figures.
async fn one(controller: &Path, measurement: &str, is_json: bool) -> anyhow::Result<()> {
    let parts: Vec<&str> = measurement.split(':').collect();
    let (kind, figures) = match parts.as_slice() {
        ["memory", file, sizes] => {
            return in_memory::run(controller, Path::new(file), &numbers(sizes)?, is_json).await;
        }
        [kind, figures @ ..] => (*kind, numbers(&figures.join(","))?),
        [] => return Ok(()),
    };
    let mut report = Report { load: [load(); 2], ..Report::default() };
    measure(controller, kind, &figures, &mut report).await?;
    report.load[1] = load();
    if is_json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(())
}

fn numbers(text: &str) -> anyhow::Result<Vec<usize>> {
    text.split(',').map(|number| number.parse().with_context(|| format!("no number: {number}"))).collect()
}

async fn measure(
    controller: &Path,
    kind: &str,
    figures: &[usize],
    report: &mut Report,
) -> anyhow::Result<()> {
    let site = Site::start(controller).await?;
    let measured = async {
        match (kind, figures) {
            ("opening", &[present, opening, rounds]) => {
                report
                    .openings
                    .push(Box::pin(Opening { present, count: opening, rounds }.measure(&site)).await?);
            }
            ("fleet", &[objects, replayed, quiet]) => {
                let quiet = Duration::from_secs(quiet as u64);
                report.fleets.push(Box::pin(Fleet { objects, replayed, quiet }.measure(&site)).await?);
            }
            ("storms", &[objects, nodes]) => {
                report.storms.push(Box::pin(Storms { objects, nodes }.measure(&site)).await?);
            }
            ("reclaims", &[objects, count]) => {
                report.reclaims.push(Box::pin(Reclaims { objects, count }.measure(&site)).await?);
            }
            (_, _) => anyhow::bail!("unknown measurement {kind} {figures:?}"),
        }
        anyhow::Ok(())
    };
    let measured = measured.await;
    site.stop().await?;
    measured
}
