//! Process events of the Linux kernel (its "process connector"), received over a netlink socket.
//!
//! Frames are built and read in [`frame`], which is pure. The calls to the operating system are in `socket`, the only
//! module with `unsafe` code.

mod error;
pub mod frame;
pub mod sequence;
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod socket;
#[cfg(target_os = "linux")]
mod subscriber;
#[cfg(any(test, not(target_os = "linux")))]
pub mod unsupported;

pub use error::NetlinkError;
#[cfg(target_os = "linux")]
pub use socket::request_real_time_priority;
#[cfg(target_os = "linux")]
pub use subscriber::{Filtering, Received, Subscriber, SubscriberOptions, since};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{Received, Subscriber, SubscriberOptions, request_real_time_priority};

#[cfg(all(test, target_os = "linux"))]
mod tests;
