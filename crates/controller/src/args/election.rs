//! The times of the election, which have to fit together.

use super::Args;
use super::values::whole_number;
use crate::leader::LeaseTiming;
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::time::Duration;

/// The default time between two renewals.
const DEFAULT_RETRY_PERIOD: u32 = 2;

const RETRY_PERIOD: &str = "LEASE_RETRY_PERIOD_SECONDS";

/// Puts the times together. Refused whether or not the election is on: a mistake is found before it matters.
pub(super) fn timing(args: &Args, retry_period: Option<&str>) -> Result<LeaseTiming, clap::Error> {
    let retry_period = match retry_period {
        None => DEFAULT_RETRY_PERIOD,
        Some(text) => {
            whole_number::<1, 3600>(text).map_err(|error| refuse(RETRY_PERIOD, text, &error.to_string()))?
        }
    };
    let (duration, deadline) = (args.lease_duration_secs, args.lease_renew_deadline_secs);
    if deadline >= duration {
        let must = format!("it must be below '--lease-duration-secs', which is {duration}");
        return Err(refuse("--lease-renew-deadline-secs", &deadline.to_string(), &must));
    }
    if retry_period >= deadline {
        let must = format!("it must be below '--lease-renew-deadline-secs', which is {deadline}");
        return Err(refuse(RETRY_PERIOD, &retry_period.to_string(), &must));
    }
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    Ok(LeaseTiming {
        duration: seconds(duration),
        renew_deadline: seconds(deadline),
        retry_period: seconds(retry_period),
    })
}

fn refuse(name: &str, value: &str, must: &str) -> clap::Error {
    let message = format!("invalid value '{value}' for '{name}': {must}");
    Args::command().error(ErrorKind::InvalidValue, message)
}
