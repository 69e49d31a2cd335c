//! The types and reasons of the events that the controller publishes.

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// An expected change.
    Normal,
    /// A problem that a person should look at.
    Warning,
}

impl EventType {
    /// The name in the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

macro_rules! event_reasons {
    ($($(#[$doc:meta])+ $name:ident: $kind:ident),+ $(,)?) => {
        /// The reason of an event. It determines the type of the event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventReason { $($(#[$doc])+ $name),+ }

        impl EventReason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name in the event.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// The type of events with this reason.
            pub const fn event_type(self) -> EventType {
                match self { $(Self::$name => EventType::$kind),+ }
            }
        }
    };
}

event_reasons! {
    /// The Machine was created.
    MachineCreated: Normal,
    /// A machine has become wanted.
    ScheduleActive: Normal,
    /// The machine is no longer wanted.
    ScheduleInactive: Normal,
    /// The graceful shutdown has started.
    GracePeriodActive: Normal,
    /// The node is being drained.
    NodeDraining: Normal,
    /// The drain is complete.
    NodeDrained: Normal,
    /// The Machine is gone.
    MachineDeleted: Normal,
    /// `enabled: false` took effect.
    ScheduleDisabled: Normal,
    /// The last error no longer occurs.
    Recovered: Normal,
    /// The object has entered phase `Error`.
    ReconcileFailed: Warning,
    /// `killSwitch` took effect.
    KillSwitchActivated: Warning,
    /// The owner of a machine needs it back, and the emergency reclaim has started.
    EmergencyReclaim: Warning,
    /// The emergency reclaim disabled the schedule.
    EmergencyReclaimDisabledSchedule: Warning,
    /// At least three reclaims happened within ten minutes.
    RapidReReclaim: Warning,
    /// The cleanup of a deleted object exceeded its time limit.
    FinalizerCleanupTimedOut: Warning,
    /// The Node had joined and disappeared while its Machine still exists.
    NodeLost: Warning,
    /// The Node still exists although its Machine is gone.
    NodeLeftBehind: Warning,
    /// Another `ScheduledMachine` is lent the same physical machine at the same time.
    MachineInUse: Warning,
    /// The brake holds the removal of the machine back.
    TooManyRemovals: Warning,
    /// The drain deadline passed, and `onTimeout: Force` deleted the Machine with pods on its node.
    DrainForced: Warning,
}
