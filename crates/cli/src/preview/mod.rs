//! `5spot preview`: reads objects, validates them, computes forecasts and prints them. Only the first and the
//! last step do I/O.

mod args;
mod calendar;
mod clock_change;
mod clock_note;
mod data;
mod forecast;
mod from_cluster;
mod svg;
mod text;

pub use args::Args;

use crate::args::Outcome;
use crate::environment::ProcessEnvironment;
use crate::manifest::{self, ManifestItem, Object, Problem, Source};
use crate::output::{complain, show};
use crate::range::Range;
use crate::validity::Checked;
use args::{Format, Request};
use five_spot_api::names;
use forecast::Forecast;

/// Runs the command and returns its exit status.
pub fn run(args: &Args, process_environment: &ProcessEnvironment) -> Outcome {
    let request = match args.resolve(process_environment) {
        Ok(request) => request,
        Err(message) => {
            complain(&format!("error: {message}"));
            return Outcome::Invalid;
        }
    };
    let (mut forecasts, problems) = foresee(&request.sources, request.range);
    if !problems.is_empty() {
        // A partial result could be mistaken for a complete one.
        return report(&problems);
    }
    if !args.names.is_empty() {
        match from_cluster(args, request.range) {
            Ok(found) => forecasts.extend(found),
            Err(error) => {
                complain(&format!("error: {error:#}"));
                return Outcome::Failed;
            }
        }
    }
    if forecasts.is_empty() {
        complain("note: there is no ScheduledMachine to preview");
    }
    match render(&forecasts, &request).and_then(|text| Ok(show(&text)?)) {
        Ok(()) => Outcome::Fine,
        Err(error) => {
            complain(&format!("error: failed to write the preview: {error:#}"));
            Outcome::Failed
        }
    }
}

/// Validates every object of every source, so that all errors are reported at once.
fn foresee(sources: &[Source], range: Range) -> (Vec<Forecast>, Vec<Problem>) {
    let (mut forecasts, mut problems) = (Vec::new(), Vec::new());
    for finding in sources.iter().flat_map(manifest::read) {
        match finding {
            ManifestItem::Object(Object { location, value }) => match Checked::new(value) {
                Ok(checked) => forecasts.push(Forecast::new(&checked, range)),
                Err(faults) => {
                    problems
                        .extend(faults.into_iter().map(|fault| Problem::BadField(location.clone(), fault)));
                }
            },
            ManifestItem::Other(Object { location, value }) => {
                let found = value["kind"].as_str().unwrap_or_default();
                complain(&format!("note: {location}: skipped: kind {found} is not {}", names::KIND));
            }
            ManifestItem::Problem(problem) => problems.push(problem),
        }
    }
    (forecasts, problems)
}

/// The forecasts of objects in the caller's cluster.
fn from_cluster(args: &Args, range: Range) -> anyhow::Result<Vec<Forecast>> {
    let objects = from_cluster::read(&args.names, &args.cluster, &args.namespace)?;
    let forecast = |object: serde_json::Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let checked = Checked::new(object).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("ScheduledMachine {name} is invalid: {}", faults.join("; "))
        })?;
        Ok(Forecast::new(&checked, range))
    };
    objects.into_iter().map(forecast).collect()
}

fn render(forecasts: &[Forecast], request: &Request) -> anyhow::Result<String> {
    match request.format {
        Format::Text => Ok(text::render(forecasts, request.style)),
        Format::Json => data::json(forecasts),
        Format::Yaml => data::yaml(forecasts),
        Format::Svg => Ok(svg::render(forecasts)),
    }
}

fn report(problems: &[Problem]) -> Outcome {
    for problem in problems {
        complain(&format!("error: {problem}"));
    }
    if problems.iter().any(Problem::is_in_the_input) { Outcome::Invalid } else { Outcome::Failed }
}
