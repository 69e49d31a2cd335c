use super::*;
use crate::procfs::ProcessKey;
use crate::procfs::tests::Program;
use five_spot_api::reclaim::AgentConfig;
use std::sync::mpsc;

/// Both detectors must behave the same.
const KINDS: [DetectorKind; 2] = [DetectorKind::Netlink, DetectorKind::Poll];

fn search(name: &str) -> Search {
    let config = AgentConfig { match_commands: vec![name.into()], ..AgentConfig::default() };
    Search::new(Path::new("/proc"), Matcher::new(&config), Duration::from_millis(50)).expect("/proc")
}

fn start(kind: DetectorKind, name: &str) -> (Detector, mpsc::Receiver<DetectorOutcome>) {
    let (sender, receiver) = mpsc::channel();
    let detector = Detector::start(kind, search(name), move |outcome| {
        let _ = sender.send(outcome);
    });
    (detector.expect("a thread"), receiver)
}

fn pid_of(outcome: Result<DetectorOutcome, mpsc::RecvTimeoutError>) -> u32 {
    match outcome {
        Ok(DetectorOutcome::Matched(found)) => found.pid,
        Ok(DetectorOutcome::Failed(error)) => panic!("{error}"),
        Err(error) => panic!("no match: {error}"),
    }
}

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_program_that_is_started_later_is_found() {
    for (kind, name) in KINDS.into_iter().zip(["fs-later-n", "fs-later-p"]) {
        let (_detector, outcomes) = start(kind, name);
        let program = Program::start(name, &[]);
        assert_eq!(pid_of(outcomes.recv_timeout(SOON)), program.pid(), "{kind}");
        assert!(outcomes.recv_timeout(SOON).is_err(), "{kind} reports once and ends");
    }
}

#[test]
fn a_program_that_is_running_already_is_found() {
    for (kind, name) in KINDS.into_iter().zip(["fs-before-n", "fs-before-p"]) {
        let program = Program::start(name, &[]);
        let (_detector, outcomes) = start(kind, name);
        assert_eq!(pid_of(outcomes.recv_timeout(SOON)), program.pid(), "{kind}");
    }
}

#[test]
fn a_dropped_detector_ends_without_a_report() {
    for kind in KINDS {
        let (detector, outcomes) = start(kind, "fs-never");
        drop(detector);
        assert_eq!(outcomes.recv_timeout(SOON).err(), Some(mpsc::RecvTimeoutError::Disconnected), "{kind}");
    }
}

/// The process list is a folder in which one name is a pipe: the first look waits there until the test has overflowed the
/// receive buffer.
#[cfg(target_os = "linux")]
#[test]
fn lost_events_are_answered_by_a_rescan() {
    use std::process::Command;
    let root = tempfile::tempdir().expect("a folder");
    let process = root.path().join("7");
    std::fs::create_dir(&process).expect("a process");
    let comm = process.join("comm");
    assert!(Command::new("mkfifo").arg(&comm).status().expect("mkfifo").success());
    std::fs::write(process.join("cgroup"), "0::/user.slice\n").expect("a file");
    std::fs::write(process.join("stat"), "7 (x) S 1 1 1 0 -1 64 0\n").expect("a file");

    let config = AgentConfig { match_commands: vec!["fs-overflow".into()], ..AgentConfig::default() };
    let search = Search::new(root.path(), Matcher::new(&config), SOON).expect("the folder");
    let (_stop, stopped) = UnixStream::pair().expect("sockets");
    let thread = std::thread::spawn(move || {
        let options = crate::netlink::SubscriberOptions { receive_buffer: 1, ..Default::default() };
        by_events::run_with(search, stopped.as_fd(), options)
    });
    // Opening it to write waits for the reader, which has subscribed before.
    let pipe = std::fs::File::options().write(true).open(&comm).expect("a reader");
    for _ in 0..200 {
        assert!(Command::new("/bin/true").status().expect("a process").success());
    }
    std::fs::remove_file(&comm).expect("the pipe");
    std::fs::write(&comm, "fs-overflow\n").expect("a file");
    drop(pipe);
    let found = thread.join().expect("no panic").expect("no error").expect("a match");
    assert_eq!((found.pid, found.comm.as_str()), (7, "fs-overflow"));
}

/// The process list is a folder in which the name of one process cannot be read, and that of the next is a pipe: the first
/// look waits there until the test has made the first readable.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_could_not_be_read_is_found_without_an_event() {
    let root = tempfile::tempdir().expect("a folder");
    let comm = |pid: &str| root.path().join(pid).join("comm");
    for pid in ["7", "8"] {
        std::fs::create_dir(root.path().join(pid)).expect("a process");
        std::fs::write(root.path().join(pid).join("cgroup"), "0::/user.slice\n").expect("a file");
        std::fs::write(root.path().join(pid).join("stat"), "7 (x) S 1 1 1 0 -1 64 0\n").expect("a file");
    }
    std::fs::create_dir(comm("7")).expect("a folder, which cannot be read");
    assert!(std::process::Command::new("mkfifo").arg(comm("8")).status().expect("mkfifo").success());
    let config = AgentConfig { match_commands: vec!["fs-unread".into()], ..AgentConfig::default() };
    let search = Search::new(root.path(), Matcher::new(&config), SOON).expect("the folder");
    let (sender, outcomes) = mpsc::channel();
    let _detector = Detector::start(DetectorKind::Netlink, search, move |outcome| {
        let _ = sender.send(outcome);
    });
    // Opening it to write waits for the reader.
    let pipe = std::fs::File::options().write(true).open(comm("8")).expect("a reader");
    std::fs::remove_file(comm("8")).expect("the pipe");
    std::fs::remove_dir(comm("7")).expect("a folder");
    std::fs::write(comm("7"), "fs-unread\n").expect("a file");
    drop(pipe);
    assert_eq!(pid_of(outcomes.recv_timeout(SOON)), 7);
}

/// A process whose files cannot be read holds up the thread of the detector, and nothing else.
#[test]
fn dropping_a_detector_that_hangs_does_not_block() {
    let root = tempfile::tempdir().expect("a folder");
    let process = root.path().join("7");
    std::fs::create_dir(&process).expect("a process");
    let comm = process.join("comm");
    assert!(std::process::Command::new("mkfifo").arg(&comm).status().expect("mkfifo").success());
    let config = AgentConfig { match_commands: vec!["fs-hangs".into()], ..AgentConfig::default() };
    let search = Search::new(root.path(), Matcher::new(&config), SOON).expect("the folder");
    let detector = Detector::start(DetectorKind::Poll, search, |_| {}).expect("a thread");
    // Opening it to write waits for the reader.
    let pipe = std::fs::File::options().write(true).open(&comm).expect("a reader");
    let (sender, dropped) = mpsc::channel();
    std::thread::spawn(move || {
        drop(detector);
        let _ = sender.send(());
    });
    assert_eq!(dropped.recv_timeout(SOON), Ok(()));
    drop(pipe);
}

#[test]
fn a_command_line_that_cannot_be_read_is_named_and_left_out() {
    let root = tempfile::tempdir().expect("a folder");
    for (pid, name) in [("7", "hangs"), ("8", "owners")] {
        let process = root.path().join(pid);
        std::fs::create_dir(&process).expect("a process");
        let write = |file: &str, text: String| std::fs::write(process.join(file), text).expect("a file");
        write("comm", format!("{name}\n"));
        write("cgroup", "0::/user.slice\n".into());
        write("stat", format!("{pid} ({name}) S 1 1 1 0 -1 64 0\n"));
        write("cmdline", format!("{name}\0needle\0"));
    }
    // Opening a pipe waits for a writer, as reading the memory of a process that hangs waits for it.
    let command_line = root.path().join("7/cmdline");
    std::fs::remove_file(&command_line).expect("a file");
    assert!(std::process::Command::new("mkfifo").arg(&command_line).status().expect("mkfifo").success());
    let search = |left_out: &[ProcessKey]| {
        let config = AgentConfig { match_argv_substrings: vec!["needle".into()], ..AgentConfig::default() };
        let mut search = Search::new(root.path(), Matcher::new(&config), SOON).expect("the folder");
        search.scanner.leave_out(left_out);
        search
    };
    let mut detector = Detector::start(DetectorKind::Poll, search(&[]), |_| {}).expect("a thread");
    let deadline = std::time::Instant::now() + SOON;
    let stalled = loop {
        match detector.stalled_process() {
            None if std::time::Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            stalled => break stalled,
        }
    };
    assert_eq!(stalled, Some(7));

    let (sender, outcomes) = mpsc::channel();
    let hanging = ProcRoot::open(root.path()).expect("the folder").identify(7);
    let _detector = Detector::start(DetectorKind::Poll, search(&[hanging]), move |outcome| {
        let _ = sender.send(outcome);
    });
    assert_eq!(pid_of(outcomes.recv_timeout(SOON)), 8);
    // Lets the first thread go on.
    drop(std::fs::File::options().write(true).open(&command_line));
}

fn own_processes() -> ProcRoot {
    ProcRoot::open(Path::new("/proc")).expect("/proc")
}

#[test]
fn auto_polls_a_process_list_that_is_not_its_own() {
    let root = tempfile::tempdir().expect("a folder");
    let processes = ProcRoot::open(root.path()).expect("the folder");
    let program = std::env::current_exe().expect("this program");
    assert_eq!(choose(Choice::Auto, &processes, &program).expect("poll"), DetectorKind::Poll);
}

#[test]
fn polling_is_chosen_without_trying_events() {
    let chosen = choose(Choice::Poll, &own_processes(), Path::new("/nonexistent"));
    assert_eq!(chosen.expect("poll"), DetectorKind::Poll);
}

#[test]
fn auto_falls_back_where_explicit_netlink_fails() {
    // The self-test cannot start its program, which stands for every other failure.
    let program = Path::new("/nonexistent");
    let processes = own_processes();
    assert_eq!(choose(Choice::Auto, &processes, program).expect("a fallback"), DetectorKind::Poll);
    let error = choose(Choice::Netlink, &processes, program).expect_err("no fallback").to_string();
    assert!(error.starts_with("Subscriber::new() failed: "), "{error}");
}
