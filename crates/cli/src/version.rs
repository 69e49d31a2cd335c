//! `5spot version`: the versions that a bug report needs.

use crate::answer::AnswerArgs;
use crate::args::Outcome;
use crate::environment::ProcessEnvironment;
use crate::output::{complain, show};
use crate::style::Style;
use five_spot_api::names;
use serde::Serialize;

/// Show the versions of the program, its API and its time-zone database
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    answer: AnswerArgs,
}

/// The versions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    version: &'static str,
    api_version: String,
    time_zone_database: &'static str,
}

pub fn run(args: &Args, process_environment: &ProcessEnvironment) -> Outcome {
    let versions = Versions {
        version: env!("CARGO_PKG_VERSION"),
        api_version: format!("{}/{}", names::GROUP, names::VERSION),
        time_zone_database: five_spot_core::schedule::tz_database_version().unwrap_or("unknown"),
    };
    let shown = args.answer.render(&versions, process_environment, text);
    match shown.and_then(|text| Ok(show(&text)?)) {
        Ok(()) => Outcome::Fine,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            Outcome::Failed
        }
    }
}

fn text(versions: &Versions, _: Style) -> String {
    format!(
        "5spot {}\nAPI {}\ntime-zone database {}\n",
        versions.version, versions.api_version, versions.time_zone_database
    )
}
