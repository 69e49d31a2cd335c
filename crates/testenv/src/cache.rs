//! The cache of built binaries: outside the repository, keyed by version, safe to interrupt.
//!
//! An item in the cache is complete when it has a matching receipt, which is written last. An item that a killed build
//! or a full disk has left behind has no receipt, or one that does not match, and is built again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::versions;

/// Overrides every other choice of cache directory.
pub const CACHE_DIR_VARIABLE: &str = "FIVE_SPOT_CACHE_DIR";

/// An error of the cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Neither the override nor a home directory is set.
    #[error(
        "no place for the cache of control-plane binaries: none of {CACHE_DIR_VARIABLE}, XDG_CACHE_HOME and HOME is \
         set; set {CACHE_DIR_VARIABLE} to a directory with 2 GB to spare"
    )]
    NoPlace,
    /// A file operation failed.
    #[error(
        "failed to {action} {path}: {source}; the cache may be deleted at any time and is then built again"
    )]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The variables that choose the cache directory, read once so that the choice itself can be tested.
#[derive(Debug, Default, Clone)]
pub struct CacheEnvironment {
    /// `FIVE_SPOT_CACHE_DIR`.
    pub override_dir: Option<PathBuf>,
    /// `XDG_CACHE_HOME`.
    pub xdg_cache_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
}

impl CacheEnvironment {
    /// Reads the variables of this process. An empty variable counts as unset.
    pub fn from_process() -> Self {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            override_dir: path(CACHE_DIR_VARIABLE),
            xdg_cache_home: path("XDG_CACHE_HOME"),
            home: path("HOME"),
        }
    }
}

/// The cache directory that `environment` selects. Creates nothing.
pub fn directory(environment: &CacheEnvironment) -> Result<PathBuf, CacheError> {
    match environment {
        CacheEnvironment { override_dir: Some(dir), .. } => Ok(dir.clone()),
        // The XDG specification requires that a relative path is ignored.
        CacheEnvironment { xdg_cache_home: Some(dir), .. } if dir.is_absolute() => Ok(dir.join("5spot")),
        CacheEnvironment { home: Some(home), .. } => Ok(home.join(".cache").join("5spot")),
        CacheEnvironment { .. } => Err(CacheError::NoPlace),
    }
}

/// The cache directory of one operating system, processor and recipe.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache that `environment` selects. Creates nothing yet.
    pub fn locate(environment: &CacheEnvironment) -> Result<Self, CacheError> {
        let base = directory(environment)?;
        let platform = format!("{}-{}-r{}", std::env::consts::OS, std::env::consts::ARCH, versions::RECIPE);
        Ok(Self { root: base.join("control-plane").join(platform) })
    }

    /// The directory that holds everything of this platform.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of one component at one version.
    pub fn component(&self, name: &str, version: &str) -> PathBuf {
        self.root.join(format!("{name}-{version}"))
    }

    /// Waits until no other process is building into this cache. `on_wait` is called once if it has to wait.
    pub fn lock(&self, on_wait: impl FnOnce()) -> Result<CacheLock, CacheError> {
        create_dir_all(&self.root)?;
        let path = self.root.join("build.lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|source| CacheError::Io { action: "open", path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                on_wait();
                file.lock().map_err(|source| CacheError::Io { action: "lock", path, source })?;
            }
            Err(TryLockError::Error(source)) => {
                return Err(CacheError::Io { action: "lock", path, source });
            }
        }
        Ok(CacheLock { _file: file })
    }
}

/// Held while building; the operating system releases it even if the builder is killed.
#[derive(Debug)]
pub struct CacheLock {
    _file: File,
}

/// Returns true if `path`, a file or a directory, was installed completely and has not changed since.
pub fn is_complete(path: &Path) -> bool {
    let Ok(receipt) = fs::read_to_string(receipt_of(path)) else {
        return false;
    };
    size_of(path).is_ok_and(|size| receipt.trim() == size.to_string())
}

/// The name under which an item is built before [`install`] moves it into place.
pub fn partial(path: &Path) -> PathBuf {
    with_suffix(path, ".partial")
}

/// Removes what an interrupted build has left of `path`, so that a new one starts from scratch.
pub fn clear(path: &Path) -> Result<(), CacheError> {
    for leftover in [receipt_of(path), partial(path), path.to_path_buf()] {
        let removed =
            if leftover.is_dir() { fs::remove_dir_all(&leftover) } else { fs::remove_file(&leftover) };
        match removed {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(CacheError::Io { action: "remove", path: leftover, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Moves the finished [`partial`] into place: data to disk, rename, receipt. If this is interrupted at any
/// point, the next [`is_complete`] returns false.
pub fn install(path: &Path) -> Result<(), CacheError> {
    let partial = partial(path);
    let io = |action, path: &Path| {
        let path = path.to_path_buf();
        move |source| CacheError::Io { action, path, source }
    };
    if partial.is_file() {
        File::open(&partial).and_then(|file| file.sync_all()).map_err(io("write to disk", &partial))?;
    }
    fs::rename(&partial, path).map_err(io("move into place", path))?;
    let size = size_of(path).map_err(io("measure", path))?;
    let receipt = receipt_of(path);
    File::create(&receipt)
        .and_then(|mut file| {
            writeln!(file, "{size}")?;
            file.sync_all()
        })
        .map_err(io("write", &receipt))
}

/// Creates a directory and its parents; an error contains its path.
pub fn create_dir_all(path: &Path) -> Result<(), CacheError> {
    fs::create_dir_all(path).map_err(|source| CacheError::Io {
        action: "create",
        path: path.to_path_buf(),
        source,
    })
}

/// The bytes of a file, or of all files below a directory.
pub fn size_of(path: &Path) -> io::Result<u64> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    fs::read_dir(path)?.map(|entry| size_of(&entry?.path())).sum()
}

fn receipt_of(path: &Path) -> PathBuf {
    with_suffix(path, ".complete")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(override_dir: Option<&str>, xdg: Option<&str>, home: Option<&str>) -> CacheEnvironment {
        let path = |text: Option<&str>| text.map(PathBuf::from);
        CacheEnvironment { override_dir: path(override_dir), xdg_cache_home: path(xdg), home: path(home) }
    }

    #[test]
    fn the_override_wins_over_xdg_and_xdg_over_home() {
        for (environment, expected) in [
            (environment(Some("/o"), Some("/x"), Some("/h")), "/o/control-plane"),
            (environment(None, Some("/x"), Some("/h")), "/x/5spot/control-plane"),
            (environment(None, Some("relative"), Some("/h")), "/h/.cache/5spot/control-plane"),
            (environment(None, None, Some("/h")), "/h/.cache/5spot/control-plane"),
        ] {
            let cache = Cache::locate(&environment).expect("a place");
            assert_eq!(cache.root().parent(), Some(Path::new(expected)), "{environment:?}");
        }
        let message = Cache::locate(&environment(None, None, None)).expect_err("no place").to_string();
        assert!(message.contains("set FIVE_SPOT_CACHE_DIR to a directory"), "{message}");
    }

    #[test]
    fn versions_have_directories_of_their_own() {
        let cache = Cache::locate(&environment(Some("/o"), None, None)).expect("a place");
        assert_ne!(cache.component("etcd", "v3.6.13"), cache.component("etcd", "v3.6.14"));
    }

    #[test]
    fn installed_means_complete() {
        let dir = tempfile::tempdir().expect("a directory");
        let binary = dir.path().join("etcd");
        assert!(!is_complete(&binary));
        fs::write(partial(&binary), "program").expect("write");
        assert!(!is_complete(&binary), "a partial file is not the binary");
        install(&binary).expect("install");
        assert!(is_complete(&binary));
        assert!(!partial(&binary).exists());
    }

    #[test]
    fn every_way_to_be_half_written_is_noticed_and_cleared() {
        type Damage = fn(&Path);
        let damage: [(&str, Damage); 4] = [
            ("truncated", |path| fs::write(path, "prog").expect("write")),
            ("receipt lost", |path| {
                fs::remove_file(receipt_of(path)).expect("remove");
            }),
            ("receipt cut short", |path| {
                fs::write(receipt_of(path), "").expect("write");
            }),
            ("binary lost", |path| fs::remove_file(path).expect("remove")),
        ];
        for (what, damage) in damage {
            let dir = tempfile::tempdir().expect("a directory");
            let binary = dir.path().join("etcd");
            fs::write(partial(&binary), "program").expect("write");
            install(&binary).expect("install");
            damage(&binary);
            assert!(!is_complete(&binary), "{what}");
            clear(&binary).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 0, "{what}");
            fs::write(partial(&binary), "program").expect("write");
            install(&binary).expect("install again");
            assert!(is_complete(&binary), "{what}: recovered");
        }
    }

    #[test]
    fn directories_are_installed_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let crds = dir.path().join("crds");
        fs::create_dir_all(partial(&crds).join("deep")).expect("create");
        fs::write(partial(&crds).join("deep/machines.yaml"), "kind: CRD").expect("write");
        install(&crds).expect("install");
        assert!(is_complete(&crds));
        fs::remove_file(crds.join("deep/machines.yaml")).expect("remove");
        assert!(!is_complete(&crds));
    }

    #[test]
    fn a_second_build_waits_for_the_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let cache = Cache::locate(&environment(dir.path().to_str(), None, None)).expect("a place");
        let first = cache.lock(|| panic!("no other build runs")).expect("lock");
        let (waiting, is_waiting) = std::sync::mpsc::channel();
        let second = std::thread::spawn(move || cache.lock(|| waiting.send(()).expect("send")).map(drop));
        is_waiting.recv().expect("the second build says that it waits");
        drop(first);
        second.join().expect("join").expect("lock after the first");
    }
}
