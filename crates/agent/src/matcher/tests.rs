use super::*;
use five_spot_api::reclaim::AgentConfig;

const UID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const UID_: &str = "0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9";
const ID: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// A process as a test describes it. A fact that must not be asked for is `None` and counted.
#[derive(Clone)]
struct Process {
    comm: &'static [u8],
    command_line: Vec<u8>,
    executable: Option<&'static [u8]>,
    excluded: bool,
    in_pod: bool,
    by_node: bool,
    uid: Option<u32>,
    chunk: usize,
    command_line_reads: usize,
}

fn process(comm: &'static str, arguments: &[&str]) -> Process {
    let mut command_line = arguments.join("\0").into_bytes();
    command_line.push(0);
    Process {
        comm: comm.as_bytes(),
        command_line,
        executable: None,
        excluded: false,
        in_pod: false,
        by_node: false,
        uid: Some(1000),
        chunk: 7,
        command_line_reads: 0,
    }
}

impl ProcessFacts for Process {
    fn comm(&mut self) -> Option<Comm> {
        Some(Comm::new(self.comm))
    }

    fn is_excluded(&mut self) -> Option<bool> {
        Some(self.excluded)
    }

    fn is_in_pod(&mut self) -> Option<bool> {
        Some(self.in_pod)
    }

    fn is_started_by_node(&mut self) -> Option<bool> {
        Some(self.by_node)
    }

    fn uid(&mut self) -> Option<u32> {
        self.uid
    }

    fn visit_command_line(
        &mut self,
        overlap: usize,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Option<()> {
        self.command_line_reads += 1;
        let mut start = 0;
        while start < self.command_line.len() {
            let end = (start + self.chunk).min(self.command_line.len());
            if visit(&self.command_line[start.saturating_sub(overlap)..end]).is_break() {
                break;
            }
            start = end;
        }
        Some(())
    }

    fn executable_name(&mut self) -> Option<Vec<u8>> {
        self.executable.map(<[u8]>::to_vec)
    }
}

fn config(commands: &[&str], substrings: &[&str]) -> AgentConfig {
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    AgentConfig {
        match_commands: owned(commands),
        match_argv_substrings: owned(substrings),
        ..AgentConfig::default()
    }
}

/// The pattern that matches, if any.
fn check(commands: &[&str], substrings: &[&str], mut process: Process) -> Option<String> {
    Matcher::new(&config(commands, substrings)).check(&mut process).map(|hit| hit.pattern.to_owned())
}

#[test]
fn commands_match_the_exact_name() {
    let java = || process("java", &["/opt/jdk/bin/java", "-jar", "ide.jar"]);
    for (pattern, matches) in
        [("java", true), ("Java", false), ("jav", false), ("java ", false), ("javac", false), ("ava", false)]
    {
        assert_eq!(check(&[pattern], &[], java()).is_some(), matches, "{pattern:?}");
    }
}

#[test]
fn a_wrapper_matches_by_its_command_line_and_not_by_name() {
    let wrapper = || process("java-wrapper", &["/opt/jdk/bin/java", "-jar", "ide.jar"]);
    assert_eq!(check(&["java"], &[], wrapper()), None);
    assert_eq!(check(&[], &["/bin/java -jar"], wrapper()).as_deref(), Some("/bin/java -jar"));
    assert_eq!(check(&[], &["java-wrapper"], wrapper()), None, "the name is not part of the command line");
}

#[test]
fn names_longer_than_the_kernel_keeps_need_their_rest() {
    let name = "gnome-control-center";
    let argument = "/usr/bin/gnome-control-center";
    assert_eq!(&name[..15], "gnome-control-c");
    assert_eq!(check(&[name], &[], process("gnome-control-c", &[argument, "wifi"])).as_deref(), Some(name));
    assert_eq!(check(&[name], &[], process("gnome-control-c", &[name])).as_deref(), Some(name));
    assert_eq!(check(&[name], &[], process("gnome-control-c", &["/usr/bin/gnome-control-cat"])), None);
    assert_eq!(check(&[name], &[], process("other", &[argument])), None, "the name differs");
    assert_eq!(
        check(&["gnome-control-c"], &[], process("gnome-control-c", &[argument])).as_deref(),
        Some("gnome-control-c")
    );

    let mut renamed = process("gnome-control-c", &["settings"]);
    assert_eq!(check(&[name], &[], renamed.clone()), None);
    renamed.executable = Some(b"gnome-control-center");
    assert_eq!(check(&[name], &[], renamed).as_deref(), Some(name));

    let two = ["gnome-control-cat", name];
    assert_eq!(check(&two, &[], process("gnome-control-c", &[argument])).as_deref(), Some(name));
}

#[test]
fn substrings_span_arguments_and_chunks() {
    let command = || process("java", &["/opt/jdk/bin/java", "-cp", "a b", "com.example.Main"]);
    for (pattern, matches) in [
        ("-cp a b com", true),
        ("java -cp", true),
        ("com.example.Main", true),
        ("COM.example.Main", false),
        ("Main ", true),
        ("/opt/jdk/bin/java -cp a b com.example.Main", true),
        ("-cp  a", false),
    ] {
        for chunk in [1, 2, 7, 4096] {
            let process = Process { chunk, ..command() };
            assert_eq!(
                check(&[], &[pattern], process).is_some(),
                matches,
                "{pattern:?} in chunks of {chunk}"
            );
        }
    }
}

#[test]
fn odd_command_lines_neither_match_nor_fail() {
    for command_line in [vec![], vec![0], vec![0; 5000], vec![b' '; 10], vec![0xff; 100_000]] {
        let odd = Process { command_line, chunk: 4096, ..process("odd", &[]) };
        assert_eq!(check(&["gnome-control-center"], &["java"], odd.clone()), None);
        let named = Process { comm: b"gnome-control-c", ..odd };
        assert_eq!(check(&["gnome-control-center"], &["java"], named), None);
    }
    let raw = Process { comm: b"\xff\xfe\n", ..process("x", &["\u{0}"]) };
    assert_eq!(check(&["\u{fffd}"], &["x"], raw), None);
}

#[test]
fn patterns_that_are_not_ascii_match_by_bytes() {
    // Fifteen bytes end in the middle of a character.
    let name = "приложение-биржа";
    let comm: &'static [u8] = &name.as_bytes()[..15];
    let cut = Process { comm, ..process("", &[&format!("/opt/{name}")]) };
    assert_eq!(check(&[name], &[], cut).as_deref(), Some(name));
}

#[test]
fn pods_kernel_threads_and_other_users_never_match() {
    let java = || process("java", &["java"]);
    for (what, process) in [
        ("pod", Process { in_pod: true, ..java() }),
        ("kernel thread or agent", Process { excluded: true, ..java() }),
    ] {
        assert_eq!(check(&["java"], &["java"], process), None, "{what}");
    }
    let for_users = |uids: &[u32], uid| {
        let config = AgentConfig { match_uids: uids.to_vec(), ..config(&["java"], &[]) };
        Matcher::new(&config).check(&mut Process { uid, ..java() }).is_some()
    };
    assert!(for_users(&[], None), "without a list no user id is read");
    assert!(for_users(&[0, 1000], Some(1000)));
    assert!(!for_users(&[0, 1000], Some(1001)));
    assert!(!for_users(&[0, 1000], None), "a user id that cannot be read does not match");
}

/// A tenant chooses the names of volumes, the fields of volumes, and the name of a module that the kernel loads on request.
#[test]
fn programs_that_the_node_starts_for_a_pod_never_match() {
    let volume = format!("/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~secret/java");
    for command in [
        process("mount", &["mount", "-t", "tmpfs", "tmpfs", &volume]),
        process("modprobe", &["/sbin/modprobe", "-q", "--", "crypto-java"]),
        process("java", &["java"]),
    ] {
        assert!(check(&["java"], &["java"], command.clone()).is_some(), "of the owner");
        let by_node = Process { by_node: true, ..command };
        assert_eq!(check(&["java"], &["java"], by_node), None);
    }
}

#[test]
fn only_what_the_patterns_need_is_read() {
    let reads = |commands: &[&str], substrings: &[&str], mut process: Process| {
        let _ = Matcher::new(&config(commands, substrings)).check(&mut process);
        process.command_line_reads
    };
    assert_eq!(reads(&["java"], &[], process("java", &["java"])), 0);
    assert_eq!(reads(&["gnome-control-center"], &[], process("bash", &["bash"])), 0);
    assert_eq!(reads(&[], &["x"], process("bash", &["bash"])), 1);
    let in_pod = Process { in_pod: true, ..process("bash", &["bash"]) };
    assert_eq!(reads(&["bash"], &["x"], in_pod), 0, "the memory of a pod's process is never read");
}

#[test]
fn the_first_arguments_may_be_of_any_length() {
    let names = |arguments: &[&str]| {
        let names = leading_basenames(&mut process("x", arguments));
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>()
    };
    let long = format!("/{}", "d/".repeat(4000));
    assert_eq!(names(&[&long, "/a/b"]), Vec::<String>::new());
    assert_eq!(names(&["/a/b", &long, "c"]), ["b"]);
    assert_eq!(names(&["/a/b", "c"]), ["b", "c", ""]);
    assert_eq!(names(&["/a/"]), ["", ""]);
    assert_eq!(names(&["-bash", "x", "/y/z", "w"]), ["-bash", "x", "z"]);
    let longest = format!("/{}", "d".repeat(4095));
    assert_eq!(names(&[&longest, &longest, &longest, "w"]), vec!["d".repeat(4095); 3]);
}

#[test]
fn a_script_with_a_long_name_is_found_after_its_interpreter() {
    let name = "intellij-idea-ultimate";
    let path = "/opt/idea/bin/intellij-idea-ultimate";
    let matches = |arguments: &[&str]| check(&[name], &[], process("intellij-idea-u", arguments)).is_some();
    assert!(matches(&["/bin/sh", path]));
    assert!(matches(&["/usr/bin/python3", "-I", path, "project"]));
    assert!(!matches(&["/bin/sh", "-e", "other", path]), "an argument of the script");
    assert!(!matches(&["/usr/bin/intellij-idea-utility", path]), "an argument of another program");
    assert!(!matches(&["", path]) && !matches(&["/bin/sh"]));
}

/// Lines of a cgroup v1 machine, with `path` in every hierarchy.
fn v1(path: &str) -> String {
    format!("12:memory:{path}\n5:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::/\n")
}

fn v2(path: &str) -> String {
    format!("0::{path}\n")
}

#[test]
fn processes_in_pods_are_recognised_in_every_layout() {
    let slice = |qos: &str| format!("/kubepods.slice/kubepods-{qos}.slice/kubepods-{qos}-pod{UID_}.slice");
    for path in [
        // cgroupfs driver
        format!("/kubepods/burstable/pod{UID}/{ID}"),
        format!("/kubepods/besteffort/pod{UID}/{ID}"),
        format!("/kubepods/pod{UID}/{ID}"),
        format!("/kubepods/pod{UID}"),
        // systemd driver
        format!("{}/cri-containerd-{ID}.scope", slice("burstable")),
        format!("{}/crio-{ID}.scope", slice("besteffort")),
        format!("{}/crio-{ID}.scope/container", slice("besteffort")),
        format!("{}/crio-conmon-{ID}.scope", slice("burstable")),
        format!("{}/docker-{ID}.scope", slice("burstable")),
        format!("/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{ID}.scope"),
        // containerd with the systemd driver but cgroupfs-style names
        format!("/system.slice/containerd.service/kubepods-burstable-pod{UID_}.slice:cri-containerd:{ID}"),
        // nested: a cluster in a container, a container in a pod, systemd in a pod
        format!("/docker/{ID}/kubelet/kubepods/burstable/pod{UID}/{ID}"),
        format!(
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UID_}.slice/cri-containerd-{ID}.scope"
        ),
        format!("/kubepods/burstable/pod{UID}/{ID}/docker/{ID}"),
        format!("/kubepods/burstable/pod{UID}/{ID}/init.scope"),
        // containerd where the kubelet names no parent (cgroupsPerQOS: false)
        format!("/k8s.io/{ID}"),
        // a static pod, whose UID is a hash
        "/kubepods/burstable/pod0123456789abcdef0123456789abcdef/x".to_owned(),
    ] {
        for content in [v1(&path), v2(&path)] {
            for view in [CgroupView::Host, CgroupView::Container] {
                assert!(is_in_pod(content.as_bytes(), view), "{view:?} {content}");
            }
        }
    }
}

#[test]
fn processes_in_pods_are_recognised_from_a_cgroup_namespace() {
    for (path, in_pod) in [
        // the agent itself, and what runs in its container
        ("/".to_owned(), true),
        ("/child".to_owned(), true),
        // another container of its pod
        (format!("/../{ID}"), true),
        (format!("/../cri-containerd-{ID}.scope"), true),
        // other pods: same class, other class, systemd driver
        (format!("/../../pod{UID}/{ID}"), true),
        (format!("/../../../burstable/pod{UID}/{ID}"), true),
        (format!("/../../kubepods-burstable-pod{UID_}.slice/crio-{ID}.scope"), true),
        (
            format!(
                "/../../../kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice/crio-{ID}.scope/container"
            ),
            true,
        ),
        // the host
        ("/../../../..".to_owned(), false),
        ("/../../../../system.slice/kubelet.service".to_owned(), false),
        ("/../../../../user.slice/user-1000.slice/user@1000.service/app.slice/java.scope".to_owned(), false),
        ("/../../..".to_owned(), false),
    ] {
        assert_eq!(is_in_pod(v2(&path).as_bytes(), CgroupView::Container), in_pod, "{path}");
    }
    // In the host's namespace `/` is the host.
    assert!(!is_in_pod(v2("/").as_bytes(), CgroupView::Host));
    // A hybrid machine: the unified hierarchy is not in use.
    assert!(!is_in_pod(v1("/../../..").as_bytes(), CgroupView::Container));
    assert!(is_in_pod(v1("/").as_bytes(), CgroupView::Container));
}

#[test]
fn processes_of_the_host_are_not_taken_for_pods() {
    for path in [
        "/",
        "/init.scope",
        "/system.slice/containerd.service",
        "/system.slice/kubelet.service",
        "/user.slice/user-1000.slice/session-3.scope",
        "/system.slice/podman.service",
        "/machine.slice/libpod-9f86d081.scope",
        "/user.slice/user-1000.slice/user@1000.service/user.slice/podman-123.scope",
        "/system.slice/docker-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.scope",
        "/docker/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "/tripod/pod-12345678",
        "/podcast",
        "/a:b/pod:c",
    ] {
        for content in [v1(path), v2(path)] {
            assert!(!is_in_pod(content.as_bytes(), CgroupView::Host), "{content}");
        }
    }
    for content in ["", "\n", "garbage", "0::", "0:", ":::", "0::relative/kubepods"] {
        assert!(!is_in_pod(content.as_bytes(), CgroupView::Host), "{content:?}");
        assert!(!is_in_pod(content.as_bytes(), CgroupView::Container), "{content:?}");
    }
}
