//! Ensures that no process outlives the program that started it, however that program ends.
//!
//! There are two independent mechanisms, because each has a gap that the other closes:
//! - Every child is killed by the kernel when its parent dies. Only the child itself can request this, between `fork`
//!   and `exec`, so the child first runs this same program again, which makes the request and then executes the real
//!   program. The kernel watches the *thread* that forked, not the process: all children are forked by one thread
//!   that never ends.
//! - A janitor, again this same program, holds the reading end of a pipe. When the pipe closes it kills everything
//!   that is recorded in the run directory, waits until it is gone and removes the directory, which the kernel
//!   would not do.
//!
//! A program that starts a control plane therefore calls [`enter`] first in its `main`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{OnceLock, mpsc};

use rustix::process::{Pid, Signal};

use crate::run_directory;

const EXEC: &str = "__5spot-guarded-exec";
const JANITOR: &str = "__5spot-janitor";
/// Refers to the running program even after a rebuild has replaced or removed its file.
const THIS_PROGRAM: &str = "/proc/self/exe";

static ENTERED: OnceLock<()> = OnceLock::new();

/// Runs the two hidden roles of this program. Must be called first in `main`; returns only in the normal
/// role.
pub fn enter() {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some(EXEC) => {
            let error = become_guarded(arguments);
            eprintln!("{error}");
            std::process::exit(127);
        }
        Some(JANITOR) => {
            let directory = arguments.next().map(PathBuf::from).unwrap_or_default();
            std::process::exit(clean_up_after_parent(&directory));
        }
        Some(_) | None => {
            ENTERED.get_or_init(|| ());
        }
    }
}

/// Requests that the kernel kills this program when the process `parent` dies, for programs that are started by
/// another one of ours. Fails if the parent is already gone.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the request; then the signal would never be sent.
    let actual = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if u32::try_from(actual) == Ok(parent) {
        Ok(())
    } else {
        Err(io::Error::other(format!("the parent, process {parent}, has already ended")))
    }
}

/// Leaves the terminal and the process group of the caller, to continue when the caller ends.
pub fn detach() -> io::Result<()> {
    // Fails for the leader of a process group, which is then already independent.
    match rustix::process::setsid() {
        Ok(_) | Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A command that runs this program again in another role, which outlives this process.
pub fn this_program() -> Command {
    Command::new(THIS_PROGRAM)
}

/// A command that will be guarded when it is started with [`spawn`].
pub fn command(program: impl AsRef<OsStr>) -> io::Result<Command> {
    if ENTERED.get().is_none() {
        return Err(io::Error::other(
            "this program cannot guard the processes it starts: call five_spot_testenv::guard::enter() first in main",
        ));
    }
    let mut command = Command::new(THIS_PROGRAM);
    command.arg(EXEC).arg(std::process::id().to_string()).arg(program);
    Ok(command)
}

/// Starts a command in its own process group, from the thread that never ends.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    type Request = (Command, mpsc::Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Request>();
        std::thread::spawn(move || {
            for (mut command, reply) in receiver {
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    // Ctrl-C in the terminal is for the program; the guard ends its children.
    command.process_group(0);
    let (reply, answer) = mpsc::channel();
    let gone = || io::Error::other("the thread that starts processes has ended");
    spawner.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

fn become_guarded(mut arguments: impl Iterator<Item = OsString>) -> io::Error {
    let parent = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let (Some(parent), Some(program)) = (parent, arguments.next()) else {
        return io::Error::new(
            io::ErrorKind::InvalidInput,
            "guarded exec: expected the parent's id and a program",
        );
    };
    match die_with_parent(parent) {
        Ok(()) => {
            let error = Command::new(&program).args(arguments).exec();
            io::Error::new(error.kind(), format!("failed to start {}: {error}", program.display()))
        }
        Err(error) => error,
    }
}

/// The process that cleans up after this one. Dropping it closes the pipe, which is its signal.
#[derive(Debug)]
pub struct Janitor {
    child: Child,
    lifeline: Option<ChildStdin>,
}

impl Janitor {
    /// Starts the janitor of a run directory.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let mut command = Command::new(THIS_PROGRAM);
        command.arg(JANITOR).arg(directory).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = spawn(command)?;
        let lifeline = child.stdin.take();
        Ok(Self { child, lifeline })
    }

    /// Makes the janitor clean up now and waits for it.
    pub fn finish(mut self) -> io::Result<()> {
        self.release()
    }

    fn release(&mut self) -> io::Result<()> {
        drop(self.lifeline.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("the janitor failed: {status}"))) }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        // The janitor has printed the errors.
        let _ = self.release();
    }
}

fn clean_up_after_parent(directory: &Path) -> i32 {
    // The end of the input is the signal; its content does not matter.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let removed = run_directory::remove_recorded(directory);
    match removed.and_then(|()| run_directory::remove(directory)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("failed to clean up {}: {error}", directory.display());
            1
        }
    }
}

/// The identity of a process, which differs from that of a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// The time at which it was started, in the kernel's clock ticks since boot.
    pub start_time: u64,
}

impl ProcessIdentity {
    /// The identity of a living process.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in parentheses and may contain anything, spaces too.
        let after_name = stat.rsplit_once(')')?.1;
        let mut fields = after_name.split_whitespace();
        let state = fields.next()?;
        let start_time = fields.nth(18)?.parse().ok()?;
        (state != "Z").then_some(Self { pid, start_time })
    }

    /// Returns true if this process still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(self, signal: Signal) {
        if let Some(handle) = self.handle() {
            let _ = rustix::process::pidfd_send_signal(handle, signal);
        }
    }

    /// Suspends a child of this program, and returns when all of its threads have stopped, because until then
    /// it could still respond.
    pub fn freeze_and_wait(self) {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        self.signal(Signal::STOP);
        if let Some(handle) = self.handle() {
            // The child stays waitable, because other code waits for it as well.
            let stopped = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::PidFd(handle.as_fd()), stopped) {}
        }
    }

    /// Kills the process and returns when it is gone.
    pub fn kill_and_wait(self) {
        self.signal(Signal::KILL);
        self.wait(None);
    }

    /// Waits until the process has ended; false if it still runs after `timeout`.
    pub fn wait(self, timeout: Option<std::time::Duration>) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(handle) = self.handle() else { return true };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        loop {
            // A process handle becomes readable when its process ends.
            match poll(&mut [PollFd::new(&handle, PollFlags::IN)], timeout.as_ref()) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return !self.is_alive(),
            }
        }
    }

    fn handle(self) -> Option<std::os::fd::OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        // Checked after opening: from here on the handle refers to the known process.
        self.is_alive().then_some(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_number_and_start() {
        let this = ProcessIdentity::of(std::process::id()).expect("this process lives");
        assert!(this.is_alive());
        assert!(!ProcessIdentity { start_time: this.start_time + 1, ..this }.is_alive());
    }

    #[test]
    fn killing_waits_for_the_end() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
        let identity = ProcessIdentity::of(child.id()).expect("alive");
        assert!(!identity.wait(Some(std::time::Duration::from_millis(1))), "cat waits for input");
        identity.kill_and_wait();
        assert!(!identity.is_alive());
        child.wait().expect("reap");
        identity.kill_and_wait();
    }

    #[test]
    fn a_frozen_process_stops_and_resumes() {
        use std::io::Write as _;
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat");
        let identity = ProcessIdentity::of(child.id()).expect("alive");
        for _ in 0..2 {
            identity.freeze_and_wait();
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("alive");
            assert_eq!(
                stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()),
                Some('T'),
                "{stat}"
            );
            identity.signal(Signal::CONT);
            child.stdin.as_mut().expect("piped").write_all(b"x").expect("write");
            let mut echoed = [0];
            child.stdout.as_mut().expect("piped").read_exact(&mut echoed).expect("it goes on");
        }
        identity.kill_and_wait();
        child.wait().expect("reap");
    }

    #[test]
    fn a_program_without_the_guard_gets_an_error() {
        // Test programs of the standard harness have no `main`, so this one never called `enter`.
        let message = command("true").expect_err("not entered").to_string();
        assert!(message.contains("guard::enter()"), "{message}");
    }
}
