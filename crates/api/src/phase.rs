//! The phases of a `ScheduledMachine`. Each is defined by what is true while it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The phase of a `ScheduledMachine`. It is computed from what is observed and never from the previous phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// A machine is wanted and does not exist yet.
    Pending,
    /// The Machine exists and is wanted. The condition `MachineReady` tells whether its node is Ready.
    Active,
    /// The Machine exists, is not wanted, and is being drained or deleted.
    ShuttingDown,
    /// The schedule is closed and no machine is lent.
    Inactive,
    /// `enabled` is false and no machine is lent.
    Disabled,
    /// `killSwitch` is true and no machine is lent.
    Terminated,
    /// An emergency reclaim is in progress.
    EmergencyRemove,
    /// The object has an error that needs attention.
    Error,
}

impl Phase {
    /// All phases, in the order in which they are listed for people.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Active,
        Self::ShuttingDown,
        Self::Inactive,
        Self::Disabled,
        Self::Terminated,
        Self::EmergencyRemove,
        Self::Error,
    ];

    /// The name in status, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Active => "Active",
            Self::ShuttingDown => "ShuttingDown",
            Self::Inactive => "Inactive",
            Self::Disabled => "Disabled",
            Self::Terminated => "Terminated",
            Self::EmergencyRemove => "EmergencyRemove",
            Self::Error => "Error",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_the_one_on_the_wire() {
        for phase in Phase::ALL {
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
        }
    }
}
