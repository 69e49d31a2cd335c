//! The controller as an operator sees it: a few days on the embedded API, in virtual time, and then a look at its
//! metrics, events, log lines, audit trail and health.

mod agents;
mod canary;
mod deploy;
mod documents;
mod events;
mod fixture;
mod guide;
mod health;
mod kustomize;
mod logs;
mod look;
mod metrics;
mod neighbours;
mod reclaims;
mod recorded_run;
mod seed;
#[path = "../served/mod.rs"]
mod served;
mod timers;
mod upgrade;
mod wake_ups;
