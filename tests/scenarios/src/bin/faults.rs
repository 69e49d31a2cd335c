//! The long run: every fault in every scenario. `cargo xtask faults` builds it with optimisations and has the options
//! for users; the only argument here is the campaign as JSON.

use anyhow::Context as _;
use five_spot_scenarios::faults::{Options, Progress, Summary};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> anyhow::Result<ExitCode> {
    if std::env::var_os("RUST_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
    let mut arguments = std::env::args().skip(1);
    let text = arguments.next().context("what to try comes as JSON; `cargo xtask faults` does that")?;
    let options: Options = serde_json::from_str(&text).context("that is not what to try")?;
    let is_json = arguments.next().as_deref() == Some("json");
    let begun = Instant::now();
    let summary = options.run(|progress| print_progress(progress, begun))?;
    if is_json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print(&summary, &options);
    }
    Ok(if summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_progress(progress: &Progress<'_>, begun: Instant) {
    let (done, all) = progress.done;
    let (seconds, Progress { what, runs, failures, .. }) = (begun.elapsed().as_secs(), progress);
    eprintln!("[{done}/{all}] {seconds:>5} s  {what:<60} {runs:>5} runs, {} failed", failures.len());
    for failure in *failures {
        eprintln!("  {}: {}", failure.case, failure.error.lines().next().unwrap_or_default());
    }
}

fn print(summary: &Summary, options: &Options) {
    for failure in &summary.failures {
        println!("{}\n  {}\n", failure.case, failure.error.replace('\n', "\n  "));
    }
    println!("{:<10} {:>9} {:>8} {:>9}", "kind", "scenarios", "runs", "failures");
    for (kind, tally) in &summary.kinds {
        println!("{kind:<10} {:>9} {:>8} {:>9}", tally.scenarios, tally.runs, tally.failures);
    }
    println!("in {:.0} s", summary.seconds);
    if let Some(failure) = summary.failures.first() {
        println!("to repeat the first failure:");
        println!("  cargo xtask faults --only '{}' --seed {}", failure.case, options.seed);
    }
}
