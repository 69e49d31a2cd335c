//! Real cgroups of this machine: a program in a pod's, and a fork bomb in one with a limit.

use crate::agent::{Host, OwnersProgram, SOON, copy_program};
use crate::server::Server;
use five_spot_agent::matcher::Matcher;
use five_spot_agent::procfs::{ProcRoot, Scanner};
use five_spot_api::reclaim::AgentConfig;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// A cgroup below one of its own, on cgroup v1 in the hierarchy that limits processes. It ends with the test, and its
/// processes with it.
struct Cgroup {
    /// From the outermost folder to the innermost.
    folders: Vec<PathBuf>,
}

impl Cgroup {
    fn create(name: &str, path: &str) -> Self {
        let root =
            ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new).into_iter().find(|root| root.exists());
        let mut folder = root.expect("cgroups").join(format!("five-spot-{name}-{}", std::process::id()));
        let mut folders = vec![folder.clone()];
        for part in path.split('/') {
            folder.push(part);
            folders.push(folder.clone());
        }
        for folder in &folders {
            std::fs::create_dir(folder).expect("a cgroup; this test needs root");
        }
        Self { folders }
    }

    fn folder(&self) -> &Path {
        self.folders.last().expect("a folder")
    }

    /// Starts a shell script inside, with the path of a program in `PROGRAM`: the command line of the shell, which is not
    /// inside at its start, must not match.
    fn start(&self, script: &str, program: &Path) -> Child {
        Self::shell(&self.inside(script), program)
    }

    /// Like `start`, but from outside the cgroup and without end: a shell exits at the first fork that the limit refuses.
    fn start_in_a_loop(&self, script: &str, program: &Path) -> Child {
        Self::shell(&format!("while :; do ({}); done", self.inside(script)), program)
    }

    fn inside(&self, script: &str) -> String {
        format!("echo 0 > {}/cgroup.procs && {script}", self.folder().display())
    }

    fn shell(script: &str, program: &Path) -> Child {
        Command::new("/bin/sh")
            .args(["-c", script])
            .env("PROGRAM", program)
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a shell")
    }

    fn pids(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.folder().join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        loop {
            let pids = self.pids();
            if pids.is_empty() {
                break;
            }
            for pid in pids.into_iter().filter_map(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            std::thread::yield_now();
        }
        for folder in self.folders.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The same program in a tenant's pod and on the host.
#[tokio::test]
async fn a_program_in_a_pod_never_matches() {
    const POD: &str =
        "kubepods/burstable/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/9f86d081884c7d659a2feaa0c55ad015";
    let server = Server::start().await;
    let host = Host::new(&server);
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("fsp-tenant");
    copy_program("/bin/sleep", &program);
    for detector in ["netlink", "poll"] {
        let cgroup = Cgroup::create(detector, POD);
        let config = format!(
            "match_commands = ['fsp-tenant']\nmatch_argv_substrings = ['fsp-tenant 600']\n# {detector}"
        );
        server.apply_config(&config).await;
        // One that runs when the agent is armed, and one that starts later.
        let _before = cgroup.start("exec $PROGRAM 600", &program);
        until(|| has_name(&cgroup, "fsp-tenant") == 1).await;
        let mut agent = host.start(&server, &[&format!("--detector={detector}")]);
        agent.logs("configmap applied — rearming scanner").await;
        let _after = cgroup.start("exec $PROGRAM 600", &program);
        until(|| has_name(&cgroup, "fsp-tenant") == 2).await;

        // A program of the host is found, and it is the only one.
        let owners = OwnersProgram::start("fsp-tenant");
        let matched = agent.logs("process matched").await;
        assert_eq!(matched["fields"]["pid"], owners.pid(), "{detector}");
        agent.logs("node annotated").await;
    }
    assert_eq!(server.patches().len(), 2);
}

/// A process gives back its memory before it is a zombie, which takes a while for a large one. On cgroup v1 the kernel shows
/// it outside its pod from then on.
#[tokio::test]
async fn a_program_in_a_pod_that_ends_never_matches() {
    const POD: &str = "kubepods/besteffort/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/ending";
    const MEMORY_BYTES: usize = 200 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("fsp-ending");
    copy_program("/bin/dd", &program);
    let cgroup = Cgroup::create("ending", POD);
    let script = format!("exec $PROGRAM if=/dev/zero of=/dev/null bs={MEMORY_BYTES}");
    let _child = cgroup.start(&script, &program);
    let read = |pid: i32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let resident_pages = |pid| {
        let text = read(pid, "statm").unwrap_or_default();
        text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default()
    };
    until(|| has_name(&cgroup, "fsp-ending") == 1 && resident_pages(cgroup.pids()[0]) * 4096 > MEMORY_BYTES)
        .await;
    let pid = cgroup.pids()[0];

    let config = AgentConfig { match_commands: vec!["fsp-ending".into()], ..AgentConfig::default() };
    let matcher = Matcher::new(&config);
    let mut scanner = Scanner::new(ProcRoot::open(Path::new("/proc")).expect("/proc"));
    let process = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("a signal");
    while read(pid, "stat").is_ok_and(|stat| !stat.contains(") Z")) {
        let found = scanner.check(&matcher, pid.cast_unsigned());
        assert_eq!(found, None, "{}", read(pid, "cgroup").unwrap_or_default());
    }
}

#[tokio::test]
async fn a_fork_bomb_in_a_cgroup_does_not_stop_the_agent() {
    let server = Server::start().await;
    server.apply_config("match_commands = ['fsp-bombed']").await;
    let host = Host::new(&server);
    let mut agent = host.start(&server, &[]);
    agent.logs("configmap applied — rearming scanner").await;
    let cgroup = Cgroup::create("bomb", "limited");
    std::fs::write(cgroup.folder().join("pids.max"), "64").expect("a limit");
    let _bomb = cgroup.start_in_a_loop("while :; do $PROGRAM 600 & done", Path::new("/bin/sleep"));
    until(|| cgroup.pids().len() >= 60).await;
    let _program = OwnersProgram::start("fsp-bombed");
    agent.logs("node annotated").await;
    assert_eq!(host.probe(&server).await.0, Some(0));
}

/// The number of processes of this name in the cgroup.
fn has_name(cgroup: &Cgroup, name: &str) -> usize {
    let comm = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    cgroup.pids().iter().filter(|pid| comm(pid).trim_end() == name).count()
}

/// Waits until the kernel shows something.
async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, wait).await.expect("it happens soon");
}
