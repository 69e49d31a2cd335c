//! A subscription to process events.

use super::NetlinkError;
use super::frame::{ListenRequest, PROC_EVENT_COMM, PROC_EVENT_EXEC, PROC_EVENT_UID, ProcessEvent, messages};
use super::sequence::SequenceTracker;
use super::socket::Socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Room for about 15,000 events: three seconds of 5,000 programs a second.
const RECEIVE_BUFFER_BYTES: i32 = 8 * 1024 * 1024;

/// The kernel confirms a subscription while it is being sent. A nested pid namespace never gets an answer.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_millis(500);

/// The time within which the self-test must see its program.
const SELF_TEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The largest datagram; events have less than 100 bytes.
const DATAGRAM_BYTES: usize = 4096;

/// The filter that keeps events of no interest away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// The kernel makes only the events that were asked for (from 6.6 on), and a filter on the socket drops the others
    /// (before).
    KernelMask,
    /// A filter on the socket drops the others.
    SocketFilter,
    /// All events arrive.
    None,
}

/// The settings of a subscriber.
#[derive(Clone, Copy, Debug)]
pub struct SubscriberOptions {
    /// The filtering.
    pub filtering: Filtering,
    /// The size of the receive buffer.
    pub receive_buffer: i32,
}

impl Default for SubscriberOptions {
    fn default() -> Self {
        Self { filtering: Filtering::KernelMask, receive_buffer: RECEIVE_BUFFER_BYTES }
    }
}

/// The result of one receive call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A process has a new program, a new name or a new user.
    Process {
        /// The process id.
        id: u32,
        /// The time of the event, on the monotonic clock.
        time: Duration,
    },
    /// Events were lost, and those that were waiting are dropped: only a look at all processes tells what happened.
    Lost,
}

/// A subscription to process events. It ends when it is dropped.
#[derive(Debug)]
pub struct Subscriber {
    socket: Socket,
    /// Some events do not arrive on purpose, so that their numbers have gaps.
    is_filtered: bool,
    sequence: SequenceTracker,
    buffer: Vec<u8>,
    subscribed: bool,
}

impl Subscriber {
    /// Subscribes, and waits until the kernel confirms it.
    pub fn new(options: SubscriberOptions) -> Result<Self, NetlinkError> {
        let socket = Socket::open()?;
        socket.set_receive_buffer(options.receive_buffer)?;
        let is_filtered = options.filtering != Filtering::None && socket.attach_filter().is_ok();
        socket.join_group()?;
        let mut subscriber = Self {
            socket,
            is_filtered,
            sequence: SequenceTracker::default(),
            buffer: vec![0; DATAGRAM_BYTES],
            subscribed: false,
        };
        subscriber.subscribe()?;
        if options.filtering == Filtering::KernelMask {
            subscriber.narrow()?;
        }
        Ok(subscriber)
    }

    /// Asks the kernel not to make other events at all. Kernels before 6.6 ignore it; there the filter of the socket works.
    fn narrow(&mut self) -> Result<(), NetlinkError> {
        let request = ListenRequest::ListenTo(PROC_EVENT_EXEC | PROC_EVENT_COMM | PROC_EVENT_UID);
        self.socket.send(&request.to_frame(request_number()))?;
        // Numbers have gaps from now on.
        self.is_filtered = true;
        Ok(())
    }

    fn subscribe(&mut self) -> Result<(), NetlinkError> {
        let number = request_number();
        self.socket.send(&ListenRequest::ListenToAll.to_frame(number))?;
        self.subscribed = true;
        let deadline = Instant::now() + CONFIRMATION_TIMEOUT;
        while self.wait(deadline)? {
            loop {
                let length = match self.socket.receive(&mut self.buffer) {
                    Ok(Some(length)) => length,
                    Ok(None) => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // The first look at all processes comes after this.
                    Err(error) if is_loss(&error) => continue,
                    Err(error) => return Err(error.into()),
                };
                let answer = messages(&self.buffer[..length]).find_map(|message| match message.event {
                    ProcessEvent::Acknowledgement { request, error } if request == number => {
                        Some(error.abs())
                    }
                    ProcessEvent::Acknowledgement { .. }
                    | ProcessEvent::Exec { .. }
                    | ProcessEvent::Renamed { .. }
                    | ProcessEvent::NewUser { .. }
                    | ProcessEvent::Other => None,
                });
                match answer {
                    Some(0) => return Ok(()),
                    Some(error) => return Err(io::Error::from_raw_os_error(error).into()),
                    None => {}
                }
            }
        }
        Err(NetlinkError::NotConfirmed(CONFIRMATION_TIMEOUT))
    }

    /// Waits until there is something to receive, until the deadline, or until `stop` becomes readable. Returns false on the
    /// latter.
    pub fn wait_or_stop(&self, stop: BorrowedFd<'_>, deadline: Option<Instant>) -> io::Result<bool> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        let mut descriptors =
            [PollFd::new(&self.socket, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut descriptors, timeout.as_ref()))?;
        Ok(descriptors[1].revents().is_empty())
    }

    /// Waits until there is something to receive; false if the deadline comes first.
    fn wait(&self, deadline: Instant) -> io::Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut descriptors = [PollFd::new(&self.socket, PollFlags::IN)];
        Ok(rustix::io::retry_on_intr(|| poll(&mut descriptors, Some(&timeout)))? > 0)
    }

    /// Receives what is there and passes it to `visit`, until nothing is left or `visit` returns false.
    pub fn receive(&mut self, mut visit: impl FnMut(Received) -> bool) -> io::Result<()> {
        loop {
            let length = match self.socket.receive(&mut self.buffer) {
                Ok(Some(length)) => length,
                Ok(None) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_loss(&error) => {
                    self.discard()?;
                    if !visit(Received::Lost) {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            for message in messages(&self.buffer[..length]) {
                let process = match message.event {
                    ProcessEvent::Acknowledgement { .. } => continue,
                    ProcessEvent::Exec { process }
                    | ProcessEvent::Renamed { process }
                    | ProcessEvent::NewUser { process } => Some(process),
                    ProcessEvent::Other => None,
                };
                let time = Duration::from_nanos(message.time);
                let lost = !self.is_filtered && self.sequence.observe(message.cpu, message.sequence);
                let go_on = (!lost || visit(Received::Lost))
                    && process.is_none_or(|id| visit(Received::Process { id, time }));
                if !go_on {
                    return Ok(());
                }
            }
        }
    }

    /// Drops what is there. After an overflow the kernel drops all events until the socket is empty, and reports that only
    /// once: a look at all processes misses none only if it begins after the socket was empty.
    fn discard(&mut self) -> io::Result<()> {
        loop {
            match self.socket.receive(&mut self.buffer) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted || is_loss(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts `program` and waits for its event: a kernel may confirm a subscription and then send nothing.
    pub fn self_test(&mut self, program: &Path) -> Result<(), NetlinkError> {
        let mut child = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(NetlinkError::SelfTest)?;
        let seen = self.sees(child.id());
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
        if seen? { Ok(()) } else { Err(NetlinkError::NoEvents(SELF_TEST_TIMEOUT)) }
    }

    fn sees(&mut self, process: u32) -> Result<bool, NetlinkError> {
        let deadline = Instant::now() + SELF_TEST_TIMEOUT;
        let mut seen = false;
        while !seen && self.wait(deadline)? {
            self.receive(|received| {
                // Events that were lost are events as well.
                seen |= match received {
                    Received::Process { id, .. } => id == process,
                    Received::Lost => true,
                };
                !seen
            })?;
        }
        Ok(seen)
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if self.subscribed {
            // Kernels before 6.6 continue to make events for a socket that was closed without this.
            let _ = self.socket.send(&ListenRequest::Ignore.to_frame(request_number()));
        }
    }
}

impl AsFd for Subscriber {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The time since `time` of the monotonic clock.
pub fn since(time: Duration) -> Option<Duration> {
    let now = nix::time::ClockId::CLOCK_MONOTONIC.now().ok()?;
    Duration::from(now).checked_sub(time)
}

fn is_loss(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// A number that tells our acknowledgements from those of other subscribers, which arrive here too.
fn request_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    std::process::id().rotate_left(12) ^ NEXT.fetch_add(1, Ordering::Relaxed)
}
