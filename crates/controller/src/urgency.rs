//! The urgency of an object: it decides which object is reconciled first, and how soon after a failure.

use five_spot_cluster::view::QueueFacts;

/// The reason for which a person waits for the machine of an object; the later is the more urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Emergency {
    /// Nobody waits.
    #[default]
    None,
    /// The time for the cleanup of a deleted object is over, and it has yet to be released or its Machine deleted.
    Overdue,
    /// The owner of the machine wants it back.
    Reclaim,
    /// The kill switch is on.
    KillSwitch,
}

/// The urgency of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Urgency {
    /// Goes before everything that is no emergency.
    pub emergency: Emergency,
    /// `spec.priority`; the higher goes first.
    pub priority: u8,
}

impl Urgency {
    /// True if a person waits for the machine.
    #[must_use]
    pub const fn is_emergency(self) -> bool {
        match self.emergency {
            Emergency::None => false,
            Emergency::Overdue | Emergency::Reclaim | Emergency::KillSwitch => true,
        }
    }
}

impl From<QueueFacts> for Urgency {
    fn from(facts: QueueFacts) -> Self {
        let emergency = if facts.kill_switch {
            Emergency::KillSwitch
        } else if facts.reclaimed {
            Emergency::Reclaim
        } else if facts.overdue {
            Emergency::Overdue
        } else {
            Emergency::None
        };
        Self { emergency, priority: facts.priority }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kill_switch_is_more_urgent_than_a_reclaim() {
        let urgency = |kill_switch, reclaimed| {
            Urgency::from(QueueFacts { priority: 7, kill_switch, reclaimed, overdue: false })
        };
        assert_eq!(urgency(false, false), Urgency { emergency: Emergency::None, priority: 7 });
        assert_eq!(urgency(false, true).emergency, Emergency::Reclaim);
        assert_eq!(urgency(true, true).emergency, Emergency::KillSwitch);
        assert!(Emergency::KillSwitch > Emergency::Reclaim && Emergency::Reclaim > Emergency::Overdue);
        let overdue = Urgency::from(QueueFacts { overdue: true, ..QueueFacts::default() });
        assert_eq!(overdue.emergency, Emergency::Overdue);
        assert!(urgency(true, false).is_emergency() && !urgency(false, false).is_emergency());
    }
}
