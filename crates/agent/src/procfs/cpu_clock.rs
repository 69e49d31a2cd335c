//! The CPU time that a process has used so far: the cheapest sign of life. One system call without opening a file, open to
//! everybody, and a process that has not run since cannot have replaced its program or its name.

/// The CPU time of a process in nanoseconds, or `None` if there is no such process.
#[cfg(target_os = "linux")]
pub(super) fn used(pid: u32) -> Option<u64> {
    let clock = clock_id(pid)?;
    let time = nix::time::ClockId::from_raw(clock).now().ok()?;
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec()).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// The number of the clock that counts what the scheduler gave to a process: the complement of the process id, shifted by
/// three, and 2 for the scheduler's clock (`CPUCLOCK_SCHED`).
#[cfg(target_os = "linux")]
fn clock_id(pid: u32) -> Option<i32> {
    const SCHEDULER_CLOCK: i32 = 2;
    let pid = i32::try_from(pid).ok()?;
    Some((!pid).checked_mul(8)? | SCHEDULER_CLOCK)
}

/// Elsewhere there is no such clock: every process counts as having run.
#[cfg(not(target_os = "linux"))]
pub(super) fn used(_pid: u32) -> Option<u64> {
    None
}
