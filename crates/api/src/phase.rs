//! The phases of a `ScheduledMachine`, each defined by what is true while it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a `ScheduledMachine` stands. Computed from what is observed, never a program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// A machine is wanted and does not exist yet.
    Pending,
    /// The Machine exists and is wanted; `MachineReady` tells whether its node is there.
    Active,
    /// It exists, is not wanted, and is being drained or deleted.
    ShuttingDown,
    /// Not wanted by the schedule, and gone.
    Inactive,
    /// Not wanted because of `enabled: false`, and gone.
    Disabled,
    /// Not wanted because of `killSwitch`, and gone.
    Terminated,
    /// A reclaim is being carried out.
    EmergencyRemove,
    /// A fault of this object that needs someone.
    Error,
}

impl Phase {
    /// Every phase, in the order in which people read them.
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

    /// The word in status, metrics and logs.
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
