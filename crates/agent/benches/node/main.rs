//! The figures of the agent on this machine: memory, CPU, latency, and a storm of programs. Needs Linux and root.
//!
//! `cargo bench -p five-spot-agent --bench node -- --agent target/x86_64-unknown-linux-gnu/release/5spot-reclaim-agent`
//! runs all of them; names after the flags choose some. `--profile dev` builds the benchmark itself faster and changes no
//! figure: the agent is the program at the given path.

mod measure;
mod running;
#[path = "../../tests/program/server.rs"]
#[allow(dead_code)]
mod server;
mod storm;

use std::path::PathBuf;

/// A benchmark and its name.
type Benchmark = (&'static str, fn(PathBuf) -> std::pin::Pin<Box<dyn Future<Output = ()>>>);

const BENCHMARKS: [Benchmark; 5] = [
    ("idle", |agent| Box::pin(running::idle(agent))),
    ("processes", |agent| Box::pin(running::idle_processes(agent))),
    ("latency", |agent| Box::pin(running::latency(agent))),
    ("storm", |agent| Box::pin(storm::storm(agent))),
    ("witness", |_| Box::pin(storm::witness())),
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench").peekable();
    if arguments.next_if(|argument| argument == "--generate").is_some() {
        return storm::generate(arguments);
    }
    let mut agent = PathBuf::from(env!("CARGO_BIN_EXE_5spot-reclaim-agent"));
    let mut chosen = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--agent" {
            let path = arguments.next().expect("a path after --agent");
            // Cargo starts benchmarks in the folder of their package.
            agent = [PathBuf::from(&path), PathBuf::from("../..").join(&path)]
                .into_iter()
                .find(|path| path.exists())
                .expect("the program after --agent");
        } else {
            chosen.push(argument);
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads");
    println!("agent: {} ({} bytes)", agent.display(), std::fs::metadata(&agent).expect("the agent").len());
    for (name, benchmark) in BENCHMARKS {
        if chosen.is_empty() || chosen.iter().any(|one| one == name) {
            println!("== {name}");
            runtime.block_on(benchmark(agent.clone()));
        }
    }
}
