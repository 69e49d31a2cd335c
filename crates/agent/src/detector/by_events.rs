//! Events of the Linux kernel.

use super::{DetectorError, Search};
use crate::netlink::{Subscriber, SubscriberOptions};
use crate::procfs::Found;
use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

/// The time until the next look at all processes, after one could not be read.
#[cfg(target_os = "linux")]
const RESCAN_DELAY: Duration = Duration::from_secs(1);

/// Waits for a matching process until `stop` is closed. All processes are looked at once at the start, after the
/// subscription, so that none is missed in between, once after every loss of events, and once a second while one cannot be
/// read.
#[cfg(target_os = "linux")]
pub(super) fn run(search: Search, stop: BorrowedFd<'_>) -> Result<Option<Found>, DetectorError> {
    run_with(search, stop, SubscriberOptions::default())
}

#[cfg(target_os = "linux")]
pub(super) fn run_with(
    mut search: Search,
    stop: BorrowedFd<'_>,
    options: SubscriberOptions,
) -> Result<Option<Found>, DetectorError> {
    use crate::netlink::{Received, request_real_time_priority};
    use tracing::debug;

    if let Err(error) = request_real_time_priority() {
        debug!(%error, "no real-time priority for the thread that reads process events");
    }
    let mut subscriber = Subscriber::new(options)?;
    let mut found = search.look_at_all()?;
    let mut losses = Losses::default();
    let mut pace = Pace::default();
    let mut rescan_at: Option<Instant> = None;
    while found.is_none() {
        if search.scanner.is_incomplete() {
            rescan_at.get_or_insert_with(|| Instant::now() + RESCAN_DELAY);
        }
        if !subscriber.wait_or_stop(stop, rescan_at).map_err(DetectorError::Receive)? {
            break;
        }
        pace.wait();
        let mut events: u32 = 0;
        let mut lost = false;
        let receive = subscriber.receive(|received| match received {
            Received::Process { id, time } => {
                events += 1;
                found = search.scanner.check(&search.matcher, id);
                if let Some(found) = &mut found {
                    found.after_exec = crate::netlink::since(time);
                }
                found.is_none()
            }
            Received::Lost => {
                lost = true;
                false
            }
        });
        receive.map_err(DetectorError::Receive)?;
        pace.received(events);
        if lost {
            losses.report();
        }
        let is_due = rescan_at.is_some_and(|time| time <= Instant::now());
        if found.is_none() && (lost || is_due) {
            rescan_at = None;
            found = search.look_at_all()?;
        }
    }
    Ok(found)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_search: Search, _stop: BorrowedFd<'_>) -> Result<Option<Found>, DetectorError> {
    Subscriber::new(SubscriberOptions::default())?.never()
}

/// Losses of events, of which at most one every ten seconds is logged.
#[cfg(target_os = "linux")]
#[derive(Default)]
struct Losses {
    unreported: u32,
    reported_at: Option<Instant>,
}

#[cfg(target_os = "linux")]
impl Losses {
    const INTERVAL: Duration = Duration::from_secs(10);

    fn report(&mut self) {
        self.unreported += 1;
        if self.reported_at.is_none_or(|at| at.elapsed() >= Self::INTERVAL) {
            tracing::warn!(losses = self.unreported, "process events were lost — rescanning all processes");
            self.unreported = 0;
            self.reported_at = Some(Instant::now());
        }
    }
}

/// The pace of receiving. Usually every event is received at once. While programs start faster than one a millisecond,
/// events are received a millisecond's worth at a time: that saves most of the wake-ups, and most short-lived programs have
/// ended by then and need not be looked at.
#[cfg(target_os = "linux")]
#[derive(Default)]
struct Pace {
    /// Consecutive wake-ups that came soon after the one before.
    in_a_row: u32,
    is_storm: bool,
    last: Option<Instant>,
}

#[cfg(target_os = "linux")]
impl Pace {
    const SOON: Duration = Duration::from_millis(1);
    const STORM_AFTER: u32 = 10;

    /// Waits for more events, if this is a storm.
    fn wait(&self) {
        if self.is_storm {
            std::thread::sleep(Self::SOON);
        }
    }

    /// Takes note of the number of events that were received together.
    fn received(&mut self, events: u32) {
        let now = Instant::now();
        let is_soon = self.last.is_some_and(|last| now.duration_since(last) < Self::SOON);
        self.last = Some(now);
        if self.is_storm {
            self.is_storm = events > 1;
        } else {
            self.in_a_row = if is_soon { self.in_a_row + 1 } else { 0 };
            self.is_storm = self.in_a_row > Self::STORM_AFTER;
        }
        if self.is_storm {
            self.in_a_row = 0;
        }
    }
}
