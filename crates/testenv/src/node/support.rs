//! The requirements of a machine that runs a real node.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::cgroup;

/// The requirements that this machine lacks.
#[derive(Debug, thiserror::Error)]
#[error("this machine cannot run a real node: {}. {}=1 leaves out the tests that need one", .0.join("; "),
    super::WITHOUT_NODE_VARIABLE)]
pub struct Unsupported(Vec<String>);

/// The commands that start a node and end it.
const COMMANDS: [&str; 5] = ["unshare", "nsenter", "mount", "ip", "cc"];
/// The controllers that the kubelet requires.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "memory", "devices", "pids"];

/// Checks what an isolated node needs beyond that.
pub(super) fn check_isolated() -> Result<(), Unsupported> {
    let namespaces = [
        "unshare",
        "--net",
        "--pid",
        "--fork",
        "--mount-proc",
        "ip",
        "link",
        "add",
        "name",
        "test0",
        "type",
        "veth",
    ];
    if succeeds(&namespaces) {
        return Ok(());
    }
    Err(Unsupported(vec![
        "new pid and network namespaces, or pairs of interfaces (veth), are not allowed".into(),
    ]))
}

/// Checks everything that can be checked without starting a lasting process.
pub fn check() -> Result<(), Unsupported> {
    let mut lacks = Vec::new();
    if !rustix::process::getuid().is_root() {
        lacks.push("it takes root, for namespaces, mounts and cgroups".into());
    }
    for command in COMMANDS {
        if !succeeds(&["sh", "-c", &format!("command -v {command}")]) {
            lacks.push(format!("there is no command `{command}`"));
        }
    }
    if !succeeds(&["unshare", "--mount", "--uts", "--ipc", "--cgroup", "--propagation", "private", "true"]) {
        lacks.push("new mount, uts, ipc and cgroup namespaces are not allowed".into());
    }
    let file_systems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !file_systems.lines().any(|line| line.ends_with("\toverlay")) {
        lacks.push("the kernel has no overlay file system".into());
    }
    lacks.extend(missing_hierarchies(&cgroup::hierarchies().unwrap_or_default()));
    if !Path::new("/dev/kmsg").exists() {
        lacks.push("there is no /dev/kmsg, which the kubelet reads".into());
    }
    if lacks.is_empty() { Ok(()) } else { Err(Unsupported(lacks)) }
}

fn missing_hierarchies(hierarchies: &[cgroup::Hierarchy]) -> Vec<String> {
    let mut lacks = Vec::new();
    for controller in CONTROLLERS {
        let has = |hierarchy: &cgroup::Hierarchy| {
            hierarchy.selector.as_deref().is_some_and(|names| names.split(',').any(|name| name == controller))
        };
        if !hierarchies.iter().any(has) {
            lacks.push(format!(
                "the cgroup v1 hierarchy `{controller}` is not mounted (v2 alone was never tried)"
            ));
        }
    }
    if !hierarchies.iter().any(|hierarchy| hierarchy.selector.is_none()) {
        lacks.push("the cgroup v2 hierarchy, which ends everything at once, is not mounted".into());
    }
    lacks
}

fn succeeds(command: &[&str]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_hierarchy_is_named() {
        let lacks = missing_hierarchies(&[]).join("; ");
        for name in CONTROLLERS.into_iter().chain(["v2 hierarchy"]) {
            assert!(lacks.contains(name), "{name} in {lacks}");
        }
        let of = |selector: Option<&str>| cgroup::Hierarchy {
            mount_point: "/x".into(),
            selector: selector.map(str::to_owned),
            own: "/x".into(),
        };
        let all = [of(Some("cpu,cpuacct")), of(Some("cpuset")), of(Some("memory")), of(Some("devices"))];
        let all: Vec<_> = all.into_iter().chain([of(Some("pids")), of(None)]).collect();
        assert_eq!(missing_hierarchies(&all), [""; 0]);
    }
}
