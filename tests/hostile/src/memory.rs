//! The memory of processes.

/// The bytes of this process that are in memory, as the kernel counts them.
///
/// # Panics
/// If `/proc` cannot be read: the tests that ask for it need Linux.
#[must_use]
pub fn resident_bytes() -> usize {
    resident_bytes_of(std::process::id()).expect("this process is there")
}

/// The bytes of a process that are in memory; absent if it is gone.
#[must_use]
pub fn resident_bytes_of(process: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok())?;
    Some(kilobytes * 1024)
}
