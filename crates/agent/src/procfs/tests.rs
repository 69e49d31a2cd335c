use super::*;
use crate::matcher::{MatchSource, Matcher, ProcessFacts};
use five_spot_api::reclaim::AgentConfig;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command};

/// A running copy of `sleep` under another name. It ends with the test.
pub(crate) struct Program {
    _folder: tempfile::TempDir,
    child: Child,
}

/// Copies a program in a process of its own. If this process had the copy open for writing, a child that another test starts
/// at that moment would have it open as well until it runs its own program, and the copy could not be started meanwhile.
fn copy_program(from: &str, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status().expect("cp");
    assert!(status.success(), "{status}");
}

/// Waits until a process has its name and its arguments: `spawn` returns while the kernel is still giving them to it.
fn until_started(child: &Child, comm: &str) {
    let read = |file: &str| std::fs::read(format!("/proc/{}/{file}", child.id())).expect("a running process");
    while read("comm").trim_ascii_end() != comm.as_bytes() || read("cmdline").is_empty() {
        std::thread::yield_now();
    }
}

impl Program {
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        copy_program("/bin/sleep", &path);
        let child = Command::new(&path).arg("60").args(arguments).spawn().expect("a process");
        until_started(&child, &name[..name.len().min(15)]);
        Self { _folder: folder, child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn scanner() -> Scanner {
    Scanner::new(ProcRoot::open(Path::new("/proc")).expect("/proc"))
}

fn matcher(commands: &[&str], substrings: &[&str]) -> Matcher {
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    Matcher::new(&AgentConfig {
        match_commands: owned(commands),
        match_argv_substrings: owned(substrings),
        ..AgentConfig::default()
    })
}

#[test]
fn a_real_process_is_found_by_name_and_command_line() {
    let program = Program::start("fs-java-1", &["0.1"]);
    for (matcher, pattern, source) in [
        (matcher(&["fs-java-1"], &[]), "fs-java-1", MatchSource::Command),
        (matcher(&[], &["fs-java-1 60 0.1"]), "fs-java-1 60 0.1", MatchSource::CommandLine),
    ] {
        let found = scanner().look(&matcher).expect("a look").expect("a match");
        let expected = Found {
            pid: program.pid(),
            comm: "fs-java-1".into(),
            pattern: pattern.into(),
            source,
            after_exec: None,
        };
        assert_eq!(found, expected);
    }
    let pid = program.pid();
    drop(program);
    assert_eq!(scanner().look(&matcher(&["fs-java-1"], &[])).expect("a look"), None);
    assert_eq!(scanner().check(&matcher(&["fs-java-1"], &[]), pid), None, "it is gone");
}

#[test]
fn a_name_longer_than_fifteen_bytes_is_found() {
    let program = Program::start("fs-gnome-control-center", &[]);
    let found =
        scanner().look(&matcher(&["fs-gnome-control-center"], &[])).expect("a look").expect("a match");
    assert_eq!((found.pid, found.comm.as_str()), (program.pid(), "fs-gnome-contro"));
}

#[test]
fn a_script_with_a_name_longer_than_fifteen_bytes_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let (text, script) = (folder.path().join("text"), folder.path().join("fs-gnome-control-script"));
    std::fs::write(&text, "#!/bin/sh -e\nread line\n").expect("a file");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&text, permissions).expect("permissions");
    copy_program(text.to_str().expect("UTF-8"), &script);
    let mut child = Command::new(&script).stdin(std::process::Stdio::piped()).spawn().expect("a process");
    until_started(&child, "fs-gnome-contro");
    let found = scanner().look(&matcher(&["fs-gnome-control-script"], &[])).expect("a look");
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(found.expect("a match").pid, child.id());
}

#[test]
fn a_program_that_replaces_an_idle_process_is_seen_later() {
    // The shell waits for a line, so that it is idle and known before it becomes the program.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fs-java-2");
    copy_program("/bin/sleep", &path);
    let mut shell = Command::new("/bin/sh")
        .args(["-c", &format!("read line; exec {} 60", path.display())])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut scanner = scanner();
    let matcher = matcher(&["fs-java-2"], &[]);
    for _ in 0..6 {
        assert_eq!(scanner.look(&matcher).expect("a look"), None);
    }
    drop(shell.stdin.take());
    let found = (0..1000).find_map(|_| {
        std::thread::yield_now();
        scanner.look(&matcher).expect("a look").or_else(|| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            None
        })
    });
    let _ = shell.kill();
    let _ = shell.wait();
    assert_eq!(found.expect("a match").pid, shell.id());
}

#[test]
fn a_new_process_is_seen_at_the_next_scan() {
    let mut scanner = scanner();
    let matcher = matcher(&["fs-java-3"], &[]);
    for looks in [0, 1, 2, 3, 38, 39, 40, 41, 45] {
        for _ in 0..looks {
            assert_eq!(scanner.look(&matcher).expect("a look"), None);
        }
        let program = Program::start("fs-java-3", &[]);
        let found = scanner.look(&matcher).expect("a look").expect("a match");
        assert_eq!(found.pid, program.pid(), "after {looks} looks");
    }
}

#[test]
fn numbers_that_went_round_between_two_looks_hide_no_process() {
    let mut scanner = scanner();
    let matcher = matcher(&["fs-round"], &[]);
    for _ in 0..3 {
        assert_eq!(scanner.look(&matcher).expect("a look"), None);
    }
    let program = Program::start("fs-round", &[]);
    scanner.numbers_went_round(std::time::Duration::from_secs(10));
    assert_eq!(scanner.look(&matcher).expect("a look").expect("a match").pid, program.pid());
}

#[test]
fn kernel_threads_zombies_and_the_agent_are_excluded() {
    let root = ProcRoot::open(Path::new("/proc")).expect("/proc");
    let mut buffer = vec![0; 1 << 17];
    let mut excluded = |pid| ProcessFiles::new(&root, &mut buffer, pid).is_excluded();
    assert_eq!(excluded(std::process::id()), Some(true));
    if std::fs::read("/proc/2/comm").is_ok_and(|comm| comm == b"kthreadd\n") {
        assert_eq!(excluded(2), Some(true));
    }
    let mut zombie = Command::new("/bin/true").spawn().expect("a process");
    while excluded(zombie.id()) == Some(false) {
        std::thread::yield_now();
    }
    assert_eq!(excluded(zombie.id()), Some(true));
    let _ = zombie.wait();
    let program = Program::start("fs-other", &[]);
    assert_eq!(excluded(program.pid()), Some(false));
    assert_eq!(excluded(u32::MAX), None);
}

#[test]
fn the_agent_is_excluded_also_where_it_has_another_number() {
    let root = tempfile::tempdir().expect("a folder");
    for pid in ["7", "8"] {
        let process = root.path().join(pid);
        std::fs::create_dir(&process).expect("a process");
        std::fs::write(process.join("stat"), format!("{pid} (x) S 1 1 1 0 -1 64 0\n")).expect("a file");
        std::fs::write(process.join("cgroup"), "0::/user.slice\n").expect("a file");
    }
    std::os::unix::fs::symlink("7", root.path().join("self")).expect("a link");
    let proc_root = ProcRoot::open(root.path()).expect("the folder");
    let mut buffer = vec![0; 1 << 17];
    let mut excluded = |pid| ProcessFiles::new(&proc_root, &mut buffer, pid).is_excluded();
    assert_eq!((excluded(7), excluded(8)), (Some(true), Some(false)));
}

/// A folder like `/proc` with these processes: number, name, parent and flags.
fn processes(list: &[(u32, &str, u32, u32)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (pid, name, parent, flags) in list {
        let process = root.path().join(pid.to_string());
        std::fs::create_dir(&process).expect("a process");
        let write =
            |file: &str, content: String| std::fs::write(process.join(file), content).expect("a file");
        write("comm", format!("{name}\n"));
        write("stat", format!("{pid} ({name}) S {parent} 1 1 0 -1 {flags} 0\n"));
        write("cgroup", "0::/system.slice\n".into());
        write("cmdline", format!("{name}\0java\0"));
    }
    root
}

#[test]
fn programs_of_the_kernel_and_the_kubelet_are_recognised() {
    const KERNEL: u32 = 0x0020_0000;
    for (what, list, by_node) in [
        ("a program of a user", &[(1, "systemd", 0, 0), (20, "bash", 1, 0), (99, "x", 20, 0)][..], false),
        ("a service", &[(1, "systemd", 0, 0), (99, "x", 1, 0)], false),
        ("a program of the kernel", &[(2, "kthreadd", 0, KERNEL), (99, "x", 2, 0)], true),
        (
            "of a thread of the kernel",
            &[(2, "kthreadd", 0, KERNEL), (7, "kworker", 2, KERNEL), (99, "x", 7, 0)],
            true,
        ),
        (
            "of a handler of crashes",
            &[(2, "kthreadd", 0, KERNEL), (7, "apport", 2, 0), (99, "x", 7, 0)],
            true,
        ),
        ("of the kubelet", &[(1, "systemd", 0, 0), (8, "kubelet", 1, 0), (99, "x", 8, 0)], true),
        ("of a helper of the kubelet", &[(8, "kubelet", 1, 0), (9, "mount", 8, 0), (99, "x", 9, 0)], true),
        ("of k3s", &[(1, "systemd", 0, 0), (8, "k3s-agent", 1, 0), (99, "x", 8, 0)], true),
        ("of CRI-O", &[(1, "systemd", 0, 0), (8, "crio", 1, 0), (99, "x", 8, 0)], true),
        ("the kubelet itself", &[(1, "systemd", 0, 0), (99, "kubelet", 1, 0)], false),
        ("a parent that is gone", &[(1, "systemd", 0, 0), (99, "x", 50, 0)], false),
        ("parents in a circle", &[(50, "a", 51, 0), (51, "b", 50, 0), (99, "x", 50, 0)], false),
    ] {
        let root = processes(list);
        let proc_root = ProcRoot::open(root.path()).expect("the folder");
        let mut buffer = vec![0; 1 << 17];
        let mut process = ProcessFiles::new(&proc_root, &mut buffer, 99);
        assert_eq!(process.is_started_by_node(), Some(by_node), "{what}");
        let mut scanner = Scanner::new(proc_root);
        assert_eq!(scanner.check(&matcher(&[], &["java"]), 99).is_none(), by_node, "{what}");
    }
}

/// A read that fails for want of memory or descriptors must not make a program of the kubelet one of the owner.
#[test]
fn an_ancestor_that_could_not_be_read_is_read_again() {
    let root = processes(&[(8, "kubelet", 1, 0), (20, "bash", 1, 0), (98, "x", 20, 0), (99, "x", 8, 0)]);
    let unreadable = |pid: &str| {
        let stat = root.path().join(pid).join("stat");
        std::fs::remove_file(&stat).expect("a file");
        std::fs::create_dir(&stat).expect("a folder, which cannot be read");
        stat
    };
    let folders = [unreadable("8"), unreadable("20")];
    let mut scanner = Scanner::new(ProcRoot::open(root.path()).expect("the folder"));
    let matcher = matcher(&["x"], &[]);
    assert_eq!(scanner.look(&matcher).expect("a look"), None);
    assert!(scanner.is_incomplete());

    for (folder, parent) in folders.iter().zip(["8 (kubelet)", "20 (bash)"]) {
        std::fs::remove_dir(folder).expect("a folder");
        std::fs::write(folder, format!("{parent} S 1 1 1 0 -1 0 0\n")).expect("a file");
    }
    assert_eq!(scanner.look(&matcher).expect("a look").expect("a match").pid, 98);
    assert_eq!(scanner.check(&matcher, 99), None);
}

#[test]
fn a_child_of_a_program_called_kubelet_does_not_match() {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, name) in [("/bin/sh", "kubelet"), ("/bin/cat", "fs-volume")] {
        copy_program(program, &folder.path().join(name));
    }
    let mut shell = Command::new(folder.path().join("kubelet"))
        .args(["-c", "./fs-volume; true"])
        .current_dir(folder.path())
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    // In the order of its start: the shell, its copy, the program.
    let child = loop {
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.id()));
        let child = children.expect("a running shell").trim().parse::<u32>();
        let comm = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if let Some(child) = child.ok().filter(|pid| comm(pid) == "fs-volume\n") {
            break child;
        }
        std::thread::yield_now();
    };
    let found = scanner().check(&matcher(&["fs-volume"], &[]), child);
    // Its input ends, and with it the program and the shell.
    drop(shell.stdin.take());
    let _ = shell.wait();
    assert_eq!(found, None);
}

/// A read that fails for want of memory or descriptors says nothing about the process.
#[test]
fn a_process_that_could_not_be_read_is_read_again() {
    let program = Program::start("fs-unread", &[]);
    let pid = program.pid();
    let root = processes(&[(pid, "fs-unread", 1, 0), (std::process::id(), "test", 1, 0)]);
    std::os::unix::fs::symlink(std::process::id().to_string(), root.path().join("self")).expect("a link");
    let cgroup = root.path().join(pid.to_string()).join("cgroup");
    std::fs::remove_file(&cgroup).expect("a file");
    std::fs::create_dir(&cgroup).expect("a folder, which cannot be read");

    let mut scanner = Scanner::new(ProcRoot::open(root.path()).expect("the folder"));
    let matcher = matcher(&["fs-unread"], &[]);
    assert_eq!(scanner.look(&matcher).expect("a look"), None);
    assert!(scanner.is_incomplete());
    std::fs::remove_dir(&cgroup).expect("a folder");
    std::fs::write(&cgroup, "0::/user.slice\n").expect("a file");
    assert_eq!(scanner.look(&matcher).expect("a look").expect("a match").pid, pid);
    assert!(!scanner.is_incomplete());
}

#[test]
fn enormous_and_invalid_arguments_are_searched() {
    let large = "x".repeat(100_000);
    let invalid = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "read line", &large])
        .arg(invalid)
        .args(["needle", &large])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    until_started(&shell, "sh");
    let found = scanner().look(&matcher(&[], &[" needle x"])).expect("a look");
    let _ = shell.kill();
    let _ = shell.wait();
    assert_eq!(found.expect("a match").pid, shell.id());
}

#[test]
fn a_folder_that_is_not_proc_is_read_as_one() {
    let root = tempfile::tempdir().expect("a folder");
    let process = root.path().join("4242");
    std::fs::create_dir(&process).expect("a process");
    let write = |file: &str, content: &str| std::fs::write(process.join(file), content).expect("a file");
    write("comm", "java\n");
    write("stat", "4242 (java) S 1 1 1 0 -1 4194304 0\n");
    write("cgroup", "0::/user.slice\n");
    write("status", "Name:\tjava\nUid:\t1000\t1000\t1000\t1000\n");
    write("cmdline", "java\0-version\0");
    std::fs::create_dir(root.path().join("not-a-process")).expect("a folder");

    let mut scanner = Scanner::new(ProcRoot::open(root.path()).expect("the folder"));
    assert_eq!(scanner.count().expect("a count"), 1);
    assert!(!scanner.root().shows_host());
    let found = scanner.look(&matcher(&["java"], &[])).expect("a look").expect("a match");
    assert_eq!(found.pid, 4242);
    write("cgroup", "0::/kubepods/besteffort/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/x\n");
    assert_eq!(scanner.look(&matcher(&["java"], &[])).expect("a look"), None);

    let mut pids = Vec::new();
    pids::visit_portably(ProcRoot::open(root.path()).expect("the folder").as_fd(), |pid| pids.push(pid))
        .expect("the list");
    assert_eq!(pids, [4242]);
    let missing = ProcRoot::open(&root.path().join("missing")).expect_err("no folder").to_string();
    assert!(missing.starts_with("cannot open the process list"), "{missing}");
}

#[test]
fn processes_of_the_node_and_of_pods_are_distinguished() {
    for (what, own, first, shows_host) in [
        ("a host", 7, Some("0::/../../../../init.scope"), true),
        ("a node that is a container", 7, Some("0::/../../../../docker/1/init.scope"), true),
        ("a pod with a pid namespace", 1, Some("0::/"), false),
        ("a pod whose containers share one", 7, Some("0::/../9f86d081"), false),
        ("processes that are hidden", 7, None, false),
    ] {
        let root = processes(&[(1, "x", 0, 0), (7, "y", 1, 0)]);
        let cgroup = |pid: u32| root.path().join(pid.to_string()).join("cgroup");
        std::fs::write(cgroup(own), "0::/\n").expect("a file");
        match first {
            Some(path) => std::fs::write(cgroup(1), format!("{path}\n")).expect("a file"),
            None => std::fs::remove_file(cgroup(1)).expect("a file"),
        }
        std::fs::create_dir(root.path().join(own.to_string()).join("ns")).expect("a folder");
        let namespace = root.path().join(own.to_string()).join("ns/cgroup");
        std::os::unix::fs::symlink("cgroup:[4026532817]", namespace).expect("a link");
        std::os::unix::fs::symlink(own.to_string(), root.path().join("self")).expect("a link");
        let proc_root = ProcRoot::open(root.path()).expect("the folder");
        assert_eq!(proc_root.shows_host(), shows_host, "{what}");
    }
}

#[test]
fn a_kernel_without_cgroups_is_refused_with_a_reason() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(root.path().join("4242")).expect("a process");
    std::os::unix::fs::symlink("4242", root.path().join("self")).expect("a link");
    let error = ProcRoot::open(root.path()).expect_err("no cgroups").to_string();
    assert!(error.contains("self/cgroup cannot be read: without cgroups"), "{error}");
    std::fs::write(root.path().join("4242/cgroup"), "0::/\n").expect("a file");
    ProcRoot::open(root.path()).expect("cgroups");
}

#[test]
fn facts_are_never_those_of_another_process() {
    let root = tempfile::tempdir().expect("a folder");
    let process = root.path().join("7");
    std::fs::create_dir(&process).expect("a process");
    std::fs::write(process.join("comm"), "java\n").expect("a file");
    std::fs::write(process.join("cgroup"), "0::/\n").expect("a file");
    let proc_root = ProcRoot::open(root.path()).expect("the folder");
    let mut buffer = vec![0; 1 << 17];
    let mut files = ProcessFiles::new(&proc_root, &mut buffer, 7);
    assert!(files.comm().is_some());
    std::fs::write(process.join("comm"), "bash\n").expect("a file");
    assert_eq!(files.is_in_pod(), None, "the number belongs to another process now");
}

#[test]
fn files_of_proc_are_parsed() {
    let stat = |text: &str| state(text.as_bytes());
    let running = ProcessState { parent: 1, is_kernel_thread: false, has_ended: false };
    assert_eq!(stat("1 (a) S 0 1 1 0 -1 4194560 1 2"), Some(ProcessState { parent: 0, ..running }));
    assert_eq!(
        stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0"),
        Some(ProcessState { parent: 0, is_kernel_thread: true, ..running })
    );
    assert_eq!(stat("3 (x) Z 1 1 1 0 -1 4227084 0"), Some(ProcessState { has_ended: true, ..running }));
    assert_eq!(
        stat("3 (x) R 1 1 1 0 -1 4194308 0"),
        Some(ProcessState { has_ended: true, ..running }),
        "a process that gives back its memory; on cgroup v1 it is shown outside its pod"
    );
    assert_eq!(stat("4 () Z 0 0 0 0 0 2129984 (ev) il) S 1 1 1 0 -1 64 0"), Some(running));
    for text in ["", ")", "1 (a", "1 (a) S", "1 (a) S 1 1 1 1 1 x"] {
        assert_eq!(stat(text), None, "{text:?}");
    }
    assert_eq!(name_in_stat(b"4 (ev) il) S 1"), Some(&b"ev) il"[..]));
    assert_eq!(name_in_stat(b"4 ) S 1 ("), None);
    assert_eq!(uid(b"Name:\tUid:\\n7\nUid:\t1000\t0\t0\t0\n"), Some(1000));
    assert_eq!(uid(b"Name:\tx\n"), None);
    assert_eq!(last_pid(b"0.00 0.01 0.05 1/234 56789\n"), Some(56789));
    assert_eq!(last_pid(b"0.00"), None);
    let (root, below) = (b"4:memory:/\n0::/\n", b"4:memory:/kubepods/burstable/pod1/2\n0::/\n");
    assert_eq!(cgroup_view(Some("cgroup:[4026531835]"), root), CgroupView::Host);
    assert_eq!(cgroup_view(Some("cgroup:[4026532817]"), root), CgroupView::Container);
    assert_eq!(cgroup_view(Some("cgroup:[4026532817]"), below), CgroupView::Host, "a node in a container");
    assert_eq!(cgroup_view(None, root), CgroupView::Host);
}

#[test]
fn a_command_line_is_visited_in_overlapping_chunks() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(root.path().join("9")).expect("a process");
    let content: Vec<u8> = (0..300_000_u32).map(|index| b'a' + (index % 23) as u8).collect();
    std::fs::write(root.path().join("9/cmdline"), &content).expect("a file");
    let proc_root = ProcRoot::open(root.path()).expect("the folder");
    let mut buffer = vec![0; 1 << 17];
    let mut seen: Vec<u8> = Vec::new();
    let mut first = true;
    ProcessFiles::new(&proc_root, &mut buffer, 9)
        .visit_command_line(100, &mut |chunk| {
            let overlap = if first { 0 } else { 100 };
            assert_eq!(&chunk[..overlap], &seen[seen.len() - overlap..]);
            seen.extend_from_slice(&chunk[overlap..]);
            first = false;
            ControlFlow::Continue(())
        })
        .expect("a file");
    assert_eq!(seen, content);
}

#[test]
fn a_process_left_out_is_told_from_the_next_of_its_number() {
    let root = tempfile::tempdir().expect("a folder");
    let process = root.path().join("7");
    std::fs::create_dir(&process).expect("a process");
    let write = |file: &str, text: &str| std::fs::write(process.join(file), text).expect("a file");
    write("comm", "x\n");
    write("cmdline", "x\0needle\0");
    write("stat", "7 (x) S 1 1 1 0 -1 64 0 0 0 0 1 1 0 0 20 0 1 0 500 0 0\n");
    let mut scanner = Scanner::new(ProcRoot::open(root.path()).expect("the folder"));
    let matcher = matcher(&[], &["needle"]);
    assert_eq!(scanner.root().identify(7), ProcessKey { pid: 7, started: Some(500) });
    scanner.leave_out(&[ProcessKey { pid: 7, started: Some(500) }]);
    assert_eq!(scanner.look(&matcher).expect("a look"), None);
    scanner.leave_out(&[ProcessKey { pid: 7, started: Some(499) }]);
    assert_eq!(scanner.look(&matcher).expect("a look").expect("a match").pid, 7);
    let itself = ProcRoot::open(Path::new("/proc")).expect("/proc").identify(std::process::id());
    assert!(itself.started.is_some_and(|ticks| ticks > 0));
}
