//! A separate cgroup in every hierarchy of this machine, for processes whose descendants cannot be tracked
//! otherwise: containers leave their parents and their process groups, but not their cgroup.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The interval at which a killed cgroup is checked: the kernel reports no event for a directory that is about to
/// be removed.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Killed processes end within milliseconds, unless they wait for a disk.
const EMPTY_WITHIN: Duration = Duration::from_secs(30);

/// One mounted cgroup hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its mount point.
    pub mount_point: PathBuf,
    /// The mount option that selects it, such as `memory` or `name=systemd`; `None` for version 2.
    pub selector: Option<String>,
    /// The directory of this process's own cgroup.
    pub own: PathBuf,
}

/// The hierarchies of this machine, those of version 1 first.
pub fn hierarchies() -> io::Result<Vec<Hierarchy>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(parse(&mounts, &fs::read_to_string("/proc/self/cgroup")?))
}

fn parse(mountinfo: &str, own: &str) -> Vec<Hierarchy> {
    let mut hierarchies: Vec<Hierarchy> = own
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let (mount_point, root) = mountinfo.lines().find_map(|mount| mounted(mount, controllers))?;
            let below = path.strip_prefix(root.trim_end_matches('/'))?.trim_start_matches('/');
            let selector = (!controllers.is_empty()).then(|| controllers.to_owned());
            Some(Hierarchy { own: mount_point.join(below), mount_point, selector })
        })
        .collect();
    hierarchies.sort_by_key(|hierarchy| hierarchy.selector.is_none());
    hierarchies
}

/// The mount point and the root of a line of `mountinfo`, if it mounts the hierarchy of these controllers.
fn mounted<'a>(line: &'a str, controllers: &str) -> Option<(PathBuf, &'a str)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut file_system = file_system.split(' ');
    let (kind, options) = (file_system.next()?, file_system.nth(1)?);
    let is_it = if controllers.is_empty() {
        kind == "cgroup2"
    } else {
        let has = |name| options.split(',').any(|option| option == name);
        kind == "cgroup" && controllers.split(',').all(has)
    };
    let mut fields = mount.split(' ').skip(3);
    let (root, mount_point) = (fields.next()?, fields.next()?);
    is_it.then(|| (PathBuf::from(mount_point), root))
}

/// The directories of a cgroup of this name below the caller's own, one in each hierarchy.
pub fn directories(name: &str) -> io::Result<Vec<PathBuf>> {
    Ok(hierarchies()?.into_iter().map(|hierarchy| hierarchy.own.join(name)).collect())
}

/// Makes the directories of a cgroup.
pub fn create(directories: &[PathBuf]) -> io::Result<()> {
    for directory in directories {
        fs::create_dir(directory)?;
        // A new cgroup of version 1's `cpuset` has no processor and no memory, and accepts no process.
        for setting in ["cpuset.cpus", "cpuset.mems"].map(|name| directory.join(name)) {
            if fs::read_to_string(&setting).is_ok_and(|value| value.trim().is_empty()) {
                let parent = directory.parent().unwrap_or(directory);
                fs::write(&setting, fs::read(parent.join(setting.file_name().unwrap_or_default()))?)?;
            }
        }
    }
    Ok(())
}

/// Kills every process in a cgroup and below, and removes it. A directory that does not exist is fine.
pub fn remove(directories: &[PathBuf]) -> io::Result<()> {
    // Version 2 kills all processes at once, so that none can escape by forking; and all of them are in it.
    for directory in directories.iter().filter(|directory| directory.join("cgroup.kill").exists()) {
        OpenOptions::new().write(true).open(directory.join("cgroup.kill"))?.write_all(b"1")?;
    }
    let deadline = Instant::now() + EMPTY_WITHIN;
    for directory in directories {
        loop {
            match remove_tree(directory) {
                Ok(()) => break,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
    Ok(())
}

/// Removes a cgroup and those below it. Only directories can be removed: the files are the kernel's.
fn remove_tree(directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_tree(&entry.path())?;
    }
    match fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn hierarchies_are_found_with_the_own_cgroup_in_each() {
        let own = "9:name=systemd:/\n4:memory:/ci/job\n1:cpu,cpuacct:/\n0::/ci\n2:rdma:/";
        let found = parse(MOUNTS, own);
        let own_of = |selector: Option<&str>| {
            found.iter().find(|it| it.selector.as_deref() == selector).map(|it| it.own.display().to_string())
        };
        assert_eq!(own_of(Some("memory")).as_deref(), Some("/sys/fs/cgroup/memory/ci/job"));
        assert_eq!(own_of(Some("cpu,cpuacct")).as_deref(), Some("/sys/fs/cgroup/cpu,cpuacct/"));
        assert_eq!(own_of(Some("name=systemd")).as_deref(), Some("/sys/fs/cgroup/systemd/"));
        assert_eq!(own_of(None).as_deref(), Some("/sys/fs/cgroup/unified/ci"));
        assert_eq!(own_of(Some("rdma")), None, "it is mounted nowhere");
        assert_eq!(found.last().map(|it| it.selector.clone()), Some(None), "version 2 comes last");
    }

    #[test]
    fn a_partial_mount_is_resolved() {
        let mounts = "50 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let found = parse(mounts, "4:memory:/docker/abc/job");
        assert_eq!(found[0].own, Path::new("/sys/fs/cgroup/memory/job"));
        assert_eq!(parse(mounts, "4:memory:/elsewhere"), [], "a cgroup that the mount does not show");
    }

    #[test]
    fn removing_a_missing_cgroup_succeeds() {
        remove(&["/sys/fs/cgroup/no-such-cgroup".into()]).expect("nothing to do");
    }
}
