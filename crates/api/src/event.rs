//! Reasons of the events that the controller publishes.

/// How loud an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Something that was meant to happen.
    Normal,
    /// Something that a person should look at.
    Warning,
}

impl EventType {
    /// The word in the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

macro_rules! event_reasons {
    ($($(#[$doc:meta])+ $name:ident: $kind:ident),+ $(,)?) => {
        /// Why an event was published. The reason fixes its type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventReason { $($(#[$doc])+ $name),+ }

        impl EventReason {
            /// Every reason there is.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word in the event.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// How loud events with this reason are.
            pub const fn event_type(self) -> EventType {
                match self { $(Self::$name => EventType::$kind),+ }
            }
        }
    };
}

event_reasons! {
    /// The CAPI objects have been made.
    MachineCreated: Normal,
    /// A machine is wanted from now on.
    ScheduleActive: Normal,
    /// No machine is wanted any more.
    ScheduleInactive: Normal,
    /// The graceful shutdown has begun.
    GracePeriodActive: Normal,
    /// The node is being emptied.
    NodeDraining: Normal,
    /// The node is empty.
    NodeDrained: Normal,
    /// The CAPI objects are gone.
    MachineDeleted: Normal,
    /// `enabled: false` took effect.
    ScheduleDisabled: Normal,
    /// An error is over.
    Recovered: Normal,
    /// The object is in phase `Error`.
    ReconcileFailed: Warning,
    /// `killSwitch` took effect.
    KillSwitchActivated: Warning,
    /// A node's owner wants it back; the emergency removal has begun.
    EmergencyReclaim: Warning,
    /// The emergency removal switched the schedule off.
    EmergencyReclaimDisabledSchedule: Warning,
    /// Three reclaims or more within ten minutes.
    RapidReReclaim: Warning,
    /// The cleanup of a deleted object took longer than its bound.
    FinalizerCleanupTimedOut: Warning,
    /// The Node had joined and is gone while its Machine lives.
    NodeLost: Warning,
    /// The Node is still there although its Machine is gone.
    NodeLeftBehind: Warning,
    /// The drain deadline passed, and `onTimeout: Force` deleted the Machine with pods on its node.
    DrainForced: Warning,
}
