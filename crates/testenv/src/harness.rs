//! Runs the tests of one program in one pair of clusters, several at a time, and prints the timeline of each
//! failed test.
//!
//! The program has its own `main`, which passes its tests to [`run`]. The clusters start with the first test
//! that needs them and end with the program, however it ends.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use tokio::sync::{OnceCell, RwLock};

use crate::control_plane::Component;
use crate::test_clusters::{TestClusters, TestClustersError, TestContext};
use crate::{cache, guard};

/// The variable with the process id of the program that this one must end with.
pub const PARENT_VARIABLE: &str = "FIVE_SPOT_DIE_WITH_PARENT";
/// The variable with the path for a machine-readable report.
pub const REPORT_VARIABLE: &str = "FIVE_SPOT_E2E_REPORT";

/// The variable that makes failed tests run once more, alone in the clusters.
pub const RETRY_VARIABLE: &str = "FIVE_SPOT_E2E_RETRY";

/// The result of a test; assertions may panic instead.
pub type TestResult = anyhow::Result<()>;

/// The number of concurrent tests: most tests wait most of the time, so it can be much larger than the number
/// of processors.
const TESTS_AT_A_TIME: usize = 16;
/// The timeout of a test. Cluster API's own waits are 20 s and 30 s, and some tests have several of them.
const TEST_WITHIN: Duration = Duration::from_mins(4);

/// The largest number of tests that are run once more. If more fail, the cause is not a busy machine.
const RETRIED_TESTS: usize = 3;

/// A test: a name, and a function that runs in a context of its own.
pub struct Test {
    name: String,
    alone: bool,
    within: Duration,
    body: Box<dyn Fn(Arc<TestContext>) -> BoxFuture<'static, TestResult> + Send + Sync>,
}

impl Test {
    /// A test that runs concurrently with others.
    pub fn new<F, R>(name: &str, body: F) -> Self
    where
        F: Fn(Arc<TestContext>) -> R + Send + Sync + 'static,
        R: Future<Output = TestResult> + Send + 'static,
    {
        // Paths of functions start with the crate and end with the relevant part.
        let name = name.split_once("::").map_or(name, |(_, rest)| rest).to_owned();
        Self { name, alone: false, within: TEST_WITHIN, body: Box::new(move |context| body(context).boxed()) }
    }

    /// The same test, but alone in the clusters, for tests that disturb them.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The same test with a longer timeout.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }
}

/// Lists test functions under their own names: `tests![one, two, #[alone] three]`.
#[macro_export]
macro_rules! tests {
    ($($(#[$kind:ident])? $name:ident),* $(,)?) => {
        vec![$($crate::harness::Test::new(concat!(module_path!(), "::", stringify!($name)), $name)$(.$kind())?),*]
    };
}

/// The clusters that the tests of a program share.
#[derive(Default)]
struct SuiteState {
    // A failed start is not repeated: every test would wait for the same failure.
    clusters: OnceCell<Result<Arc<TestClusters>, String>>,
    // Tests that disturb the clusters run alone.
    company: RwLock<()>,
    failures: Mutex<Vec<Failure>>,
    // Tests that failed in the concurrent run and passed alone.
    unstable: Mutex<Vec<Failure>>,
}

impl SuiteState {
    /// Takes one of the repeated runs, if any are left.
    fn may_retry(&self) -> bool {
        let first_runs = locked(&self.failures).len() + locked(&self.unstable).len();
        std::env::var_os(RETRY_VARIABLE).is_some() && first_runs < RETRIED_TESTS
    }
}

/// A failed test in the report, without its timeline.
#[derive(serde::Serialize)]
struct Failure {
    name: String,
    cause: String,
}

impl Failure {
    fn new(test: &Test, failed: &Failed) -> Self {
        let message = failed.message().unwrap_or_default();
        let cause = message[..message.floor_char_boundary(CAUSE_BYTES)].to_owned();
        Self { name: test.name.clone(), cause }
    }
}

/// A list that can be used after a panic: each entry is complete.
fn locked<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The report contains the cause of a failure, not the whole log.
const CAUSE_BYTES: usize = 3_000;

/// A check at the end of the suite. The flag is true if all tests have run and passed.
pub type LastQuestion = for<'a> fn(&'a TestClusters, bool) -> BoxFuture<'a, TestResult>;

/// Runs the tests that the command line selects, and a final check of the clusters. Returns the exit code for
/// `main`.
pub fn run(tests: Vec<Test>, last: LastQuestion) -> ExitCode {
    guard::enter();
    if let Some(parent) = std::env::var(PARENT_VARIABLE).ok().and_then(|pid| pid.parse().ok())
        && let Err(error) = guard::die_with_parent(parent)
    {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TESTS_AT_A_TIME);
    let runtime = match Runtime::new() {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => {
            eprintln!("failed to start the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let suite = Arc::new(SuiteState::default());
    let begun = Instant::now();
    // Tests that run alone come last, so that the others do not have to wait for them.
    let (alone, together): (Vec<Test>, Vec<Test>) = tests.into_iter().partition(|test| test.alone);
    let trials = together.into_iter().chain(alone).map(|test| trial(test, &runtime, &suite)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let whole = conclusion.num_filtered_out == 0 && !conclusion.has_failed();
    let answered = match suite.clusters.get() {
        Some(Ok(clusters)) => runtime.block_on(last(clusters, whole)),
        Some(Err(_)) | None => Ok(()),
    };
    if let Err(error) = &answered {
        eprintln!("\n{error:#}");
    }
    let ended = runtime.block_on(end(&suite, begun, &conclusion));
    match (conclusion.has_failed() || answered.is_err(), ended) {
        (false, Ok(())) => ExitCode::SUCCESS,
        (true, Ok(())) => ExitCode::FAILURE,
        (_, Err(error)) => {
            eprintln!("failed to end the clusters: {error}");
            ExitCode::FAILURE
        }
    }
}

fn trial(test: Test, runtime: &Arc<Runtime>, suite: &Arc<SuiteState>) -> Trial {
    let (runtime, suite) = (Arc::clone(runtime), Arc::clone(suite));
    Trial::test(test.name.clone(), move || {
        let first = runtime.block_on(run_test(&test, &suite, test.alone));
        let Err(failed) = first else { return Ok(()) };
        if !suite.may_retry() {
            locked(&suite.failures).push(Failure::new(&test, &failed));
            return Err(failed);
        }
        let second = runtime.block_on(run_test(&test, &suite, true));
        let list = if second.is_ok() { &suite.unstable } else { &suite.failures };
        locked(list).push(Failure::new(&test, &failed));
        second
    })
}

async fn run_test(test: &Test, suite: &SuiteState, alone: bool) -> Result<(), Failed> {
    let start = || async { TestClusters::start().await.map_err(|error| error.to_string()) };
    let clusters = match suite.clusters.get_or_init(start).await {
        Ok(clusters) => clusters,
        Err(error) => {
            return Err(Failed::from(format!("there is no control plane to test on: {error}")));
        }
    };
    let (_alone, _together);
    if alone {
        _alone = suite.company.write().await;
    } else {
        _together = suite.company.read().await;
    }
    let context = Arc::new(clusters.test_context(&test.name).await?);
    let body = AssertUnwindSafe((test.body)(Arc::clone(&context))).catch_unwind();
    let cause = match tokio::time::timeout(test.within, body).await {
        Ok(Ok(Ok(()))) => return Ok(()),
        // The cause comes first, because contexts are long logs.
        Ok(Ok(Err(error))) => format!("{}\n\n{error:#}", error.root_cause()),
        Ok(Err(panic)) => panic_message(panic.as_ref()),
        Err(_) => format!("the test did not end within {:?}", test.within),
    };
    Err(Failed::from(format!("{cause}\n\n---- timeline of {}\n{}", context.namespace(), context.timeline())))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the test panicked").to_owned()
}

/// Stops the clusters and reports their resource usage.
async fn end(
    suite: &SuiteState,
    begun: Instant,
    conclusion: &libtest_mimic::Conclusion,
) -> Result<(), TestClustersError> {
    let Some(Ok(clusters)) = suite.clusters.get() else {
        return Ok(());
    };
    let cost = Cost::of(clusters).await;
    let report = serde_json::json!({
        "passed": conclusion.num_passed,
        "failed": conclusion.num_failed,
        "failures": &*locked(&suite.failures),
        "unstable": &*locked(&suite.unstable),
        "seconds": begun.elapsed().as_secs_f64(),
        "startSeconds": clusters.control_plane().started_in().as_secs_f64(),
        "peakMemoryBytes": cost.memory,
        "diskBytes": cost.disk,
    });
    if let Some(path) = std::env::var_os(REPORT_VARIABLE)
        && let Err(error) = std::fs::write(&path, report.to_string())
    {
        eprintln!("failed to write the report to {}: {error}", Path::new(&path).display());
    }
    Ok(clusters.stop().await?)
}

/// The resources used so far.
struct Cost {
    memory: u64,
    disk: u64,
}

impl Cost {
    async fn of(clusters: &TestClusters) -> Self {
        let mut memory = peak_memory(std::process::id());
        for component in Component::ALL {
            if let Some(process) = clusters.control_plane().process(component).await {
                memory += peak_memory(process.pid);
            }
        }
        Self { memory, disk: cache::size_of(clusters.control_plane().directory()).unwrap_or_default() }
    }
}

/// The peak memory of a process, as counted by the kernel.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.unwrap_or(0_u64) * 1024
}
