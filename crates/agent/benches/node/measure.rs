//! Memory and CPU of a process.

use std::time::{Duration, Instant};

/// The CPU time of a process so far, in seconds.
pub fn cpu_seconds(pid: u32) -> f64 {
    // The sum over its threads, from the scheduler's own accounts: `stat` counts in hundredths of a second.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let nanoseconds: u64 = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

/// A line of `/proc/<pid>/status`, in kilobytes.
pub fn status_kilobytes(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    line.trim_start_matches(':')
        .split_whitespace()
        .next()
        .and_then(|text| text.parse().ok())
        .expect("a number")
}

pub fn print_memory(pid: u32) {
    println!(
        "VmRSS {} kB, RssAnon {} kB, VmHWM {} kB, {} threads",
        status_kilobytes(pid, "VmRSS"),
        status_kilobytes(pid, "RssAnon"),
        status_kilobytes(pid, "VmHWM"),
        status_kilobytes(pid, "Threads"),
    );
}

/// The share of one core that a process uses for this long.
pub async fn cpu_percent(pid: u32, during: Duration) -> f64 {
    let (before, started) = (cpu_seconds(pid), Instant::now());
    tokio::time::sleep(during).await;
    (cpu_seconds(pid) - before) / started.elapsed().as_secs_f64() * 100.0
}

/// The value below which this share of the values is.
pub fn percentile(values: &mut [u64], share: f64) -> u64 {
    values.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let index = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1;
    values[index]
}
