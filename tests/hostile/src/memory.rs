//! The memory usage of processes.

/// The resident memory of this process in bytes, as the kernel counts it.
///
/// # Panics
/// Panics if `/proc` cannot be read: the tests need Linux.
#[must_use]
pub fn resident_bytes() -> usize {
    resident_bytes_of(std::process::id()).expect("this process is there")
}

/// The resident memory of a process in bytes; `None` if it does not exist.
#[must_use]
pub fn resident_bytes_of(process: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok())?;
    Some(kilobytes * 1024)
}
