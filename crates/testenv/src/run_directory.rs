//! The directory of one running control plane: certificates, logs, data, and the record of what it has created outside
//! the directory (processes, cgroups, network interfaces). It exists exactly as long as the control plane does.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::guard::ProcessIdentity;
use crate::{cgroup, link};

const PROCESSES: &str = "processes";
const CGROUPS: &str = "cgroups";
const LINKS: &str = "links";
const LOCK: &str = "alive.lock";

/// A run directory that this process owns. The lock shows other processes that it is in use.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    _lock: File,
}

/// The reason why there is no run directory.
#[derive(Debug, thiserror::Error)]
pub enum RunDirectoryError {
    /// A control plane of that name is running.
    #[error(
        "a control plane named {name} is already running in {path}; stop it first, or choose another name"
    )]
    Taken {
        /// Its name.
        name: String,
        /// Its directory.
        path: PathBuf,
    },
    /// The parent directory belongs to another user, who could replace files in it.
    #[error("{path} belongs to another user; remove it, or set TMPDIR to a directory of your own")]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("failed to prepare {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The parent of the run directories of this user.
pub fn base() -> PathBuf {
    std::env::temp_dir().join(format!("5spot-{}", rustix::process::getuid().as_raw()))
}

impl RunDirectory {
    /// Creates the directory of a control plane. The remains of a dead one of the same name are removed
    /// first.
    pub fn create(base: &Path, name: &str) -> Result<Self, RunDirectoryError> {
        let path = base.join(name);
        let io_error = |source| RunDirectoryError::Io { path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(base).map_err(io_error)?;
        if fs::metadata(base).map_err(io_error)?.uid() != rustix::process::getuid().as_raw() {
            return Err(RunDirectoryError::Foreign { path: base.to_path_buf() });
        }
        // Held until the new directory is locked: until then it looks like one whose owner is dead.
        let _quiet = lock_base(base).map_err(io_error)?;
        if is_alive(&path) {
            return Err(RunDirectoryError::Taken { name: name.into(), path });
        }
        clean_up(&path).map_err(io_error)?;
        for records in [PROCESSES, CGROUPS, LINKS] {
            DirBuilder::new().recursive(true).mode(0o700).create(path.join(records)).map_err(io_error)?;
        }
        let lock = File::create(path.join(LOCK)).map_err(io_error)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(_) => Err(RunDirectoryError::Taken { name: name.into(), path }),
        }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns true if the owner of a run directory is running.
pub fn is_alive(path: &Path) -> bool {
    let Ok(lock) = OpenOptions::new().write(true).open(path.join(LOCK)) else {
        return false;
    };
    lock.try_lock().is_err()
}

/// Removes the directories of control planes whose owner and janitor were both killed. Returns their names.
pub fn sweep(base: &Path) -> Vec<PathBuf> {
    let (Ok(_quiet), Ok(entries)) = (lock_base(base), fs::read_dir(base)) else {
        return Vec::new();
    };
    let dead = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(LOCK).exists() && !is_alive(path));
    dead.filter(|path| clean_up(path).is_ok()).collect()
}

/// Records a started process for the janitor and for `status`.
pub fn record_process(directory: &Path, component: &str, process: ProcessIdentity) -> io::Result<()> {
    fs::write(directory.join(PROCESSES).join(component), serde_json::to_vec(&process)?)
}

/// Records the directories of a cgroup before it is created, so that it is removed with the run directory.
pub fn record_cgroup(directory: &Path, name: &str, directories: &[PathBuf]) -> io::Result<()> {
    fs::write(directory.join(CGROUPS).join(name), serde_json::to_vec(directories)?)
}

/// Records a network interface before it is created, so that it is removed with the run directory.
pub fn record_link(directory: &Path, name: &str) -> io::Result<()> {
    fs::write(directory.join(LINKS).join(name), "")
}

/// Ends and removes everything that is recorded: processes, then cgroups with their processes, then
/// interfaces.
pub fn remove_recorded(directory: &Path) -> io::Result<()> {
    for process in recorded_processes(directory) {
        process.kill_and_wait();
    }
    for record in entries(&directory.join(CGROUPS)) {
        cgroup::remove(&serde_json::from_slice::<Vec<PathBuf>>(&fs::read(&record)?).unwrap_or_default())?;
    }
    for record in entries(&directory.join(LINKS)) {
        link::delete(&record.file_name().unwrap_or_default().to_string_lossy())?;
    }
    Ok(())
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Every process recorded in a run directory.
pub fn recorded_processes(directory: &Path) -> Vec<ProcessIdentity> {
    recorded(directory).into_iter().map(|(_, process)| process).collect()
}

/// Every process recorded in a run directory, with the component's name, sorted by it.
pub fn recorded(directory: &Path) -> Vec<(String, ProcessIdentity)> {
    let mut processes: Vec<_> = entries(&directory.join(PROCESSES))
        .into_iter()
        .filter_map(|record| {
            let process = serde_json::from_slice(&fs::read(&record).ok()?).ok()?;
            Some((record.file_name()?.to_str()?.to_owned(), process))
        })
        .collect();
    processes.sort_by(|(left, _), (right, _)| left.cmp(right));
    processes
}

/// Removes a run directory, and the base directory with it if this was the last.
pub fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if let Some(base) = directory.parent() {
        // The base directory stays while other control planes use it.
        let _ = fs::remove_dir(base);
    }
    Ok(())
}

/// Prevents other programs from creating or removing run directories at the same time.
fn lock_base(base: &Path) -> io::Result<File> {
    let directory = File::open(base)?;
    directory.lock()?;
    Ok(directory)
}

fn clean_up(directory: &Path) -> io::Result<()> {
    remove_recorded(directory)?;
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_use_while_its_owner_runs() {
        let base = tempfile::tempdir().expect("a directory");
        let first = RunDirectory::create(base.path(), "default").expect("free");
        let error = RunDirectory::create(base.path(), "default").expect_err("taken");
        assert!(matches!(error, RunDirectoryError::Taken { .. }), "{error}");
        let path = first.path().to_path_buf();
        fs::write(path.join("leftover"), "").expect("write");
        drop(first);
        let second = RunDirectory::create(base.path(), "default").expect("free again");
        assert!(!second.path().join("leftover").exists());
    }

    #[test]
    fn sweeping_removes_only_runs_of_dead_owners() {
        let base = tempfile::tempdir().expect("a directory");
        let living = RunDirectory::create(base.path(), "living").expect("create");
        let dead = RunDirectory::create(base.path(), "dead").expect("create");
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
        let process = ProcessIdentity::of(child.id()).expect("alive");
        record_process(dead.path(), "cat", process).expect("record");
        let path = dead.path().to_path_buf();
        drop(dead);
        assert_eq!(sweep(base.path()), std::slice::from_ref(&path));
        assert!(!path.exists() && living.path().exists());
        assert!(!process.is_alive());
        child.wait().expect("reap");
    }
}
