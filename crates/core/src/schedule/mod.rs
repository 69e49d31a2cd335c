//! When a machine is wanted, as far as the clock can say.
//!
//! [`Schedule`] is the compiled form of `spec.schedule`: a zone, a week and exceptions to it. It says
//! whether it is open at an instant, and computes when that changes. [`Plan`] puts lead time, override
//! and `enabled` on top and says whether a machine is wanted. Kill switch, reclaim and deletion are
//! none of a clock's business; they are `decide`'s.
//!
//! Everything in here goes back to one rule of `clock.rs`: a window `[from, to)` of local time lasts
//! from the first instant at which the local clock shows `from` or later to the last instant at which it
//! shows less than `to`. Windows are thereby plain sets of instants, however often the clock is put
//! forward or back meanwhile, and everything else is union and difference of such sets:
//!
//! * `grammar/` reads what people write: days, hours, window ends, dates, durations;
//! * `pattern.rs` is a row of local windows that repeats, and the stretch of time around an instant over
//!   which it gives one answer;
//! * `week.rs` is the weekly pattern, `exception.rs` what is laid over it;
//! * `quiet.rs` finds the days over which nothing can change, so that a search may step over them;
//! * `compiled.rs` is [`Schedule`], `parse.rs` makes one; `plan.rs` and `bridge.rs` are [`Plan`].

mod bridge;
mod cause;
mod clock;
mod compiled;
mod exception;
mod grammar;
mod parse;
mod pattern;
mod plan;
mod quiet;
mod week;
mod zone;

#[cfg(test)]
mod tests;

pub use cause::{Cause, Causes};
pub use compiled::{Schedule, Span};
pub use grammar::{DurationBounds, Override, parse_duration};
pub use plan::{Period, Plan, Standing};
pub use zone::tz_database_version;
