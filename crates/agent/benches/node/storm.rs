//! A storm of programs that end at once, and a few that live for a second.

use crate::measure::{cpu_seconds, print_memory};
use crate::running::{Running, program};
use five_spot_agent::matcher::Matcher;
use five_spot_agent::netlink::{Received, Subscriber, SubscriberOptions};
use five_spot_agent::procfs::{ProcRoot, Scanner};
use five_spot_api::reclaim::AgentConfig;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// Programs a second.
const RATE: u32 = 5000;

/// Threads that start them.
const GENERATORS: u32 = 2;

/// The smallest program of x86-64 Linux: `exit(0)` behind an ELF header and one segment.
const EXIT: [u8; 132] = {
    let mut elf = [0; 132];
    let parts: [(usize, &[u8]); 12] = [
        (0, b"\x7fELF\x02\x01\x01"),
        (16, &[2, 0, 0x3e, 0, 1]),
        (24, &[0x78, 0, 0x40]),
        (32, &[64]),
        (52, &[64, 0, 56, 0, 1]),
        (64, &[1, 0, 0, 0, 5]),
        (80, &[0, 0, 0x40]),
        (88, &[0, 0, 0x40]),
        (96, &[132]),
        (104, &[132]),
        (112, &[0, 0x10]),
        // xor edi, edi; mov eax, 60; syscall
        (120, &[0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]),
    ];
    let mut part = 0;
    while part < parts.len() {
        let (offset, bytes) = parts[part];
        let mut index = 0;
        while index < bytes.len() {
            elf[offset + index] = bytes[index];
            index += 1;
        }
        part += 1;
    }
    elf
};

/// The generator: starts the program in the first argument for as many seconds as the second says.
pub fn generate(mut arguments: impl Iterator<Item = String>) {
    let path = arguments.next().expect("a program");
    let seconds: u64 = arguments.next().and_then(|text| text.parse().ok()).expect("a time");
    let threads: Vec<_> = (0..GENERATORS)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || start_programs(&path, Duration::from_secs(seconds)))
        })
        .collect();
    let count: u32 = threads.into_iter().map(|thread| thread.join().expect("a generator")).sum();
    println!("{count} programs in {seconds} s");
}

/// Starts programs, one after the other, at this thread's share of the rate.
fn start_programs(path: &str, during: Duration) -> u32 {
    let started = Instant::now();
    let mut count: u32 = 0;
    while started.elapsed() < during {
        let due = started.elapsed().as_secs_f64() * f64::from(RATE) / f64::from(GENERATORS);
        while f64::from(count) < due && started.elapsed() < during {
            let status = std::process::Command::new(path).env_clear().status().expect("a process");
            assert!(status.success());
            count += 1;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    count
}

fn start_generator(folder: &Path, seconds: u64) -> Child {
    let path = folder.join("exit");
    std::fs::write(&path, EXIT).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    Command::new(std::env::current_exe().expect("this program"))
        .arg("--generate")
        .arg(path)
        .arg(seconds.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the generator")
}

/// The agent during a storm: CPU, memory, and one patch for the owner's program near its end.
pub async fn storm(agent: PathBuf) {
    const SECONDS: u64 = 60;
    let mut running = Running::start(&agent, "netlink", "fsb-owner").await;
    let owners_program = program(running.folder.path(), "fsb-owner");
    let (before, started) = (cpu_seconds(running.pid()), Instant::now());
    let mut generator = start_generator(running.folder.path(), SECONDS);
    tokio::time::sleep(Duration::from_secs(SECONDS - 5)).await;
    let percent = (cpu_seconds(running.pid()) - before) / started.elapsed().as_secs_f64() * 100.0;
    println!("{percent:.2} % of a core");
    print_memory(running.pid());
    let _owner = Command::new(&owners_program).arg("1").kill_on_drop(true).spawn().expect("a process");
    let matched = running.logs("process matched").await;
    running.logs("node annotated").await;
    let _ = generator.wait().await;
    println!(
        "matched in the storm after {} us, {} patch",
        matched["fields"]["exec_to_match_us"],
        running.server.patches().len()
    );
}

/// The parts of the detector, kept running past every match: no program that lives a second may be missed.
pub async fn witness() {
    const SECONDS: u64 = 60;
    let folder = tempfile::tempdir().expect("a folder");
    let owners_program = program(folder.path(), "fsb-owner");
    let (stop, stopped) = UnixStream::pair().expect("sockets");
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let watching = std::thread::spawn(move || watch(&stopped, ready));
    is_ready.await.expect("process events");
    let mut generator = start_generator(folder.path(), SECONDS);
    let mut started = BTreeSet::new();
    let until = Instant::now() + Duration::from_secs(SECONDS - 2);
    while Instant::now() < until {
        let mut child = Command::new(&owners_program).arg("1").spawn().expect("a process");
        started.extend(child.id());
        tokio::spawn(async move { child.wait().await });
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let _ = generator.wait().await;
    drop(stop);
    let (seen, rescans) = watching.join().expect("the witness");
    println!("{} of {} programs seen, {rescans} rescans", started.intersection(&seen).count(), started.len());
}

fn watch(stopped: &UnixStream, ready: tokio::sync::oneshot::Sender<()>) -> (BTreeSet<u32>, u32) {
    let config = AgentConfig { match_commands: vec!["fsb-owner".into()], ..AgentConfig::default() };
    let matcher = Matcher::new(&config);
    let mut scanner = Scanner::new(ProcRoot::open(Path::new("/proc")).expect("/proc"));
    let mut subscriber = Subscriber::new(SubscriberOptions::default()).expect("process events");
    ready.send(()).expect("a benchmark");
    let (mut seen, mut rescans) = (BTreeSet::new(), 0);
    while subscriber.wait_or_stop(stopped.as_fd(), None).expect("a socket") {
        // The detector's pace in a storm.
        std::thread::sleep(Duration::from_millis(1));
        let mut lost = false;
        subscriber
            .receive(|received| {
                match received {
                    Received::Process { id, .. } => {
                        seen.extend(scanner.check(&matcher, id).map(|found| found.pid));
                    }
                    Received::Lost => lost = true,
                }
                true
            })
            .expect("events");
        rescans += u32::from(lost);
    }
    (seen, rescans)
}
