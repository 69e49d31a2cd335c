//! Tests that are repeated with many seeds, on as many threads as there are cores.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tokio::runtime::Builder;

/// Set by `cargo xtask campaign`, which runs more seeds.
const CAMPAIGN_VARIABLE: &str = "FIVESPOT_CAMPAIGN";

/// True if tests run at full size.
pub fn is_campaign() -> bool {
    std::env::var_os(CAMPAIGN_VARIABLE).is_some()
}

/// A generator of numbers that only depend on the seed: `SplitMix64`.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Seconds from `low` to `high`, in steps of a hundredth.
    #[allow(clippy::cast_precision_loss)]
    pub fn seconds(&mut self, low: u64, high: u64) -> f64 {
        (low * 100 + self.below((high - low) * 100)) as f64 / 100.0
    }
}

/// The number of seeds of a test.
pub struct Seeds {
    /// Those of `cargo test`.
    pub sample: u64,
    /// Those of `cargo xtask campaign`.
    pub campaign: u64,
    /// The variable that sets another number.
    pub variable: &'static str,
}

impl Seeds {
    fn number(&self) -> u64 {
        let default = if is_campaign() { self.campaign } else { self.sample };
        std::env::var(self.variable).map_or(default, |text| {
            text.parse().unwrap_or_else(|_| panic!("{} is '{text}', not a number", self.variable))
        })
    }

    /// Runs a day in virtual time for each seed, and returns what the days returned. Every seed is tried, and those that
    /// failed are named.
    pub fn run<T: Send, F: Future<Output = T>>(&self, day: impl Fn(u64) -> F + Sync) -> Vec<T> {
        let (number, next) = (self.number(), AtomicU64::new(0));
        let (results, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::SeqCst);
                if seed >= number {
                    return;
                }
                let runtime =
                    Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
                match catch_unwind(AssertUnwindSafe(|| runtime.block_on(day(seed)))) {
                    Ok(result) => results.lock().expect("no panic").push(result),
                    Err(_) => failed.lock().expect("no panic").push(seed),
                }
            }
        };
        thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, usize::from);
            for handle in (0..threads).map(|_| scope.spawn(work)).collect::<Vec<_>>() {
                handle.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
        let failed = failed.into_inner().expect("no panic");
        assert!(failed.is_empty(), "{} of {number} seeds failed: {failed:?}", failed.len());
        results.into_inner().expect("no panic")
    }
}

/// Prints a line past the test harness, which discards the output of tests that pass.
pub fn report(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).expect("stderr is open");
}
