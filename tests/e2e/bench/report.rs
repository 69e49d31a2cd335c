//! The figures, for people and for programs.

use std::fmt;
use std::time::Duration;

/// A latency distribution, in milliseconds.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Latency {
    pub(crate) count: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    pub(crate) first: f64,
}

impl Latency {
    pub(crate) fn of(times: Vec<Duration>) -> Self {
        let first = times.first().copied().unwrap_or_default();
        let mut sorted = times;
        sorted.sort();
        let milliseconds = |time: Duration| (time.as_secs_f64() * 10_000.0).round() / 10.0;
        let at = |share: usize| {
            let place = (sorted.len() * share).div_ceil(100).saturating_sub(1);
            milliseconds(sorted.get(place).copied().unwrap_or_default())
        };
        Self { count: sorted.len(), p50: at(50), p99: at(99), max: at(100), first: milliseconds(first) }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {} ms, p99 {} ms, {} times", self.p50, self.p99, self.count)
    }
}

/// The results of a measurement.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) objects: usize,
    pub(super) quiet_seconds: u64,
    pub(super) quiet_requests: u64,
    pub(super) quiet_requests_by_its_own_count: u64,
    pub(super) quiet_watches_opened: u64,
    pub(super) change_to_write_before: Latency,
    pub(super) change_to_write_after: Latency,
    pub(super) memory_empty_bytes: u64,
    pub(super) memory_first_objects: usize,
    pub(super) memory_first_bytes: u64,
    pub(super) memory_after_making_bytes: u64,
    pub(super) memory_after_restart_bytes: u64,
    pub(super) memory_at_the_end_bytes: u64,
    pub(super) bytes_per_object: u64,
    pub(super) bytes_per_object_after_making: u64,
    pub(super) resident_bytes_per_object: u64,
    pub(super) made_in_seconds: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kilobytes = |bytes: u64| format!("{}.{} KB", bytes / 1024, bytes % 1024 * 10 / 1024);
        let mut row = |what: &str, value: String, goal: &str| writeln!(f, "{what:<58} {value:>16}   {goal}");
        row("measured", "figure".into(), "goal")?;
        row("Active objects", self.objects.to_string(), "")?;
        row("made in", format!("{} s", self.made_in_seconds), "")?;
        row("quiet time", format!("{} s", self.quiet_seconds), "")?;
        row("requests beside watches, by the audit logs", self.quiet_requests.to_string(), "0")?;
        row(
            "requests beside watches, by its own count",
            self.quiet_requests_by_its_own_count.to_string(),
            "0",
        )?;
        row("watches opened again", self.quiet_watches_opened.to_string(), "")?;
        for (when, latency) in
            [("", &self.change_to_write_before), (", after the quiet time", &self.change_to_write_after)]
        {
            row(&format!("change to write, p50{when}"), format!("{} ms", latency.p50), "")?;
            row(&format!("change to write, p99{when}"), format!("{} ms", latency.p99), "below 100 ms")?;
            row(&format!("change to write, most{when}"), format!("{} ms", latency.max), "")?;
            row(&format!("change to write, first{when}"), format!("{} ms", latency.first), "")?;
        }
        row("memory (RSS) without objects", kilobytes(self.memory_empty_bytes), "")?;
        row(
            &format!("memory with {} objects, after a restart", self.memory_first_objects),
            kilobytes(self.memory_first_bytes),
            "",
        )?;
        row("memory with all objects, after making them", kilobytes(self.memory_after_making_bytes), "")?;
        row("memory with all objects, after a restart", kilobytes(self.memory_after_restart_bytes), "")?;
        row("memory with all objects, at the end", kilobytes(self.memory_at_the_end_bytes), "")?;
        row(
            "memory for each further object, without the program's pages",
            kilobytes(self.bytes_per_object),
            "below 10 KB",
        )?;
        row(
            "memory for each further object, after making them",
            kilobytes(self.bytes_per_object_after_making),
            "below 10 KB",
        )?;
        row("memory for each further object, with them", kilobytes(self.resident_bytes_per_object), "")
    }
}
