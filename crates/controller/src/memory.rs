//! The memory of this process, now and when it became ready, so that growth can be judged from a single scrape.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Opts};

/// The resident memory in bytes. `None` where there is no `/proc`.
fn resident() -> Option<f64> {
    parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// The line `VmRSS:     12345 kB` of `/proc/self/status`.
fn parse(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u32 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(f64::from(kilobytes) * 1024.0)
}

/// The resident memory, under the name that every Prometheus client gives it, and its value at the start of the work. Read for
/// each scrape.
#[derive(Clone)]
pub(crate) struct ResidentMemory {
    now: Gauge,
    at_ready: Gauge,
}

impl ResidentMemory {
    pub(crate) fn new() -> Self {
        let gauge =
            |name: &str, help: &str| Gauge::with_opts(Opts::new(name, help)).expect("a name and help");
        Self {
            now: gauge("process_resident_memory_bytes", "Resident memory size in bytes"),
            at_ready: gauge(
                "fivespot_ready_resident_memory_bytes",
                "Resident memory when the controller became ready; 0 until then",
            ),
        }
    }

    /// The controller has become ready. Only the first time counts.
    pub(crate) fn note_ready(&self) {
        if self.at_ready.get() <= 0.0
            && let Some(bytes) = resident()
        {
            self.at_ready.set(bytes);
        }
    }
}

impl Collector for ResidentMemory {
    fn desc(&self) -> Vec<&Desc> {
        [&self.now, &self.at_ready].into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.now.set(resident().unwrap_or_default());
        [&self.now, &self.at_ready].into_iter().flat_map(Collector::collect).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reports_kilobytes() {
        assert_eq!(parse("Name:\t5spot\nVmRSS:\t   12345 kB\nRssAnon:\t1 kB\n"), Some(12_345.0 * 1024.0));
        assert_eq!(parse("Name:\tkthreadd\n"), None);
        assert_eq!(parse("VmRSS:\tmuch\n"), None);
    }

    #[test]
    fn only_the_first_readiness_counts() {
        let memory = ResidentMemory::new();
        assert!(memory.at_ready.get() <= 0.0);
        memory.note_ready();
        let first = memory.at_ready.get();
        assert!(first > 1024.0 * 1024.0, "{first}");
        let more = vec![1_u8; 8 << 20];
        memory.note_ready();
        assert!((memory.at_ready.get() - first).abs() < 1.0, "{}", more.len());
    }
}
