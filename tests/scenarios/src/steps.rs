//! The moment from which the end of a scenario is timed.

use jiff::Timestamp;
use std::sync::{Mutex, PoisonError};

/// The latest deliberate step of a scenario: something that a person, a cluster or the calendar does to the machine, and
/// that the controller has to react to in time.
#[derive(Debug, Default)]
pub struct Steps {
    latest: Mutex<Option<Timestamp>>,
}

impl Steps {
    /// Records a step. A future one, such as the opening of a window, counts from its time.
    pub fn note(&self, time: Timestamp) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = (*latest).max(Some(time));
    }

    /// The latest one.
    pub fn latest(&self) -> Option<Timestamp> {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
