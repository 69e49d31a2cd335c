//! The times at which a machine is wanted, as far as they depend on the clock.
//!
//! [`Schedule`] is the compiled form of `spec.schedule`: a time zone, a weekly pattern and exceptions. It tells whether the
//! schedule is open at an instant, and when that changes. [`Plan`] adds the lead time, the override and `enabled`, and tells
//! whether a machine is wanted. The kill switch, reclaims and deletions do not depend on the clock; `decide` handles them.
//!
//! Everything here follows from one rule in `clock.rs`: a window `[from, to)` of local time lasts from the first instant at
//! which the local clock shows `from` or later to the last instant at which it shows less than `to`. A window is therefore a
//! plain set of instants, no matter how often the clock is set forward or back, and all other operations are unions and
//! differences of such sets:
//!
//! * `grammar/` parses days, hours, window ends, dates and durations;
//! * `pattern.rs` is a repeating sequence of local windows, and the interval around an instant in which its answer is the
//!   same;
//! * `week.rs` is the weekly pattern, `exception.rs` are the exceptions to it;
//! * `constant.rs` finds the days in which nothing can change, so that a search can skip them;
//! * `compiled.rs` is [`Schedule`], which `parse.rs` creates; `plan.rs` and `period.rs` are [`Plan`].

mod cause;
mod clock;
mod compiled;
mod constant;
mod exception;
mod grammar;
mod parse;
mod pattern;
mod period;
mod plan;
mod week;
mod zone;

#[cfg(test)]
mod tests;

pub use cause::{Cause, Causes};
pub use compiled::{Schedule, Span};
pub use grammar::{DurationBounds, Override, parse_duration};
pub use plan::{Period, Plan, PlanState};
pub use zone::tz_database_version;
