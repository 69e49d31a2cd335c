//! The verbs of the API. They are synchronous and run under one lock; time and identifiers are passed in.

mod binding;
mod call;
mod convert;
mod create;
mod decode;
mod delete;
mod eviction;
mod patch;
mod read;
mod update;
mod watch;

pub(crate) use call::{Call, StaleBy, handle};
pub(crate) use convert::Served;
pub(crate) use delete::{DeleteRequest, Propagation, delete_object};
pub(crate) use update::put_or_finish;
pub(crate) use watch::{WatchPlan, WatchStream};
