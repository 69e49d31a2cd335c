//! The Go tool chain: finds it, checks its version, and explains its errors.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::guard;
use crate::versions::{self, GoVersion};

/// The reason why the tool chain failed. Each message contains the cause and what to do.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// There is no `go` on the `PATH`.
    #[error(
        "Go is missing: building the control plane needs Go {needed} or newer on the PATH; install it from \
         https://go.dev/dl or your distribution, then run this again"
    )]
    Missing {
        /// The oldest supported release.
        needed: GoVersion,
    },
    /// The `go` that was found is older than the modules require.
    #[error(
        "Go is too old: {found} was found, and the control plane needs {needed} or newer; install it from \
         https://go.dev/dl and put it first on the PATH, then run this again"
    )]
    TooOld {
        /// The output of `go env GOVERSION`.
        found: String,
        /// The oldest supported release.
        needed: GoVersion,
    },
    /// The module proxy did not answer.
    #[error(
        "the Go module proxy could not be reached while {doing}: {line}; check the network, or set GOPROXY to a \
         proxy that this machine reaches, then run this again: what is already built is kept"
    )]
    NoNetwork {
        /// The Go command.
        doing: String,
        /// The message of Go.
        line: String,
    },
    /// The disk of the cache, of Go's build cache or of the temporary directory is full.
    #[error(
        "the disk is full while {doing}: {line}; a first build needs about 6 GB for Go's caches (see `go env GOCACHE \
         GOMODCACHE`) and 1 GB in {cache}; make room, then run this again: what is already built is kept"
    )]
    DiskFull {
        /// The Go command.
        doing: String,
        /// The message of Go.
        line: String,
        /// The cache directory of 5-Spot.
        cache: PathBuf,
    },
    /// Anything else that Go reports.
    #[error("go failed while {doing} ({status}); the end of {log}:\n{tail}")]
    Failed {
        /// The Go command.
        doing: String,
        /// The exit status.
        status: std::process::ExitStatus,
        /// The file with all of its output.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// Go could not be started or watched.
    #[error("failed to run go while {doing}: {source}")]
    Io {
        /// The Go command.
        doing: String,
        /// The cause.
        source: io::Error,
    },
}

/// The interval at which a long build reports progress.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// A tool chain that is new enough.
#[derive(Debug)]
pub(crate) struct Go {
    program: PathBuf,
    cache: PathBuf,
}

impl Go {
    /// Finds `go` and checks its version. `cache` is only used in messages.
    pub(crate) fn find(program: &Path, cache: &Path) -> Result<Self, GoError> {
        let output = Command::new(program).args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").output();
        let output = match output {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(GoError::Missing { needed: versions::GO });
            }
            Err(source) => {
                return Err(GoError::Io { doing: "asking for its version".into(), source });
            }
            Ok(output) => output,
        };
        let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match GoVersion::parse(&printed) {
            Some(version) if version >= versions::GO => {
                Ok(Self { program: program.to_path_buf(), cache: cache.to_path_buf() })
            }
            Some(_) | None => Err(GoError::TooOld { found: printed, needed: versions::GO }),
        }
    }

    /// Runs `go` in a wrapper module with its output in `log`. `still_running` is called every half minute with the
    /// last line of Go's output.
    pub(crate) fn run(
        &self,
        doing: &str,
        module: &Path,
        arguments: &[String],
        log: &Path,
        mut still_running: impl FnMut(&str),
    ) -> Result<(), GoError> {
        let io_error = |source| GoError::Io { doing: doing.into(), source };
        let output = File::create(log).map_err(io_error)?;
        let mut command = guard::command(&self.program).map_err(io_error)?;
        in_module(&mut command, module, arguments);
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(io_error)?).stderr(output);
        let mut child = guard::spawn(command).map_err(io_error)?;
        let (ended, end) = mpsc::channel();
        let waiter = std::thread::spawn(move || {
            // The receiver lives until this thread has ended, so the result is not lost.
            let _ = ended.send(child.wait());
        });
        let status = loop {
            match end.recv_timeout(HEARTBEAT) {
                Ok(status) => break status.map_err(io_error)?,
                Err(RecvTimeoutError::Timeout) => still_running(last_line(log).as_str()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io_error(io::Error::other("the thread that waits for go ended")));
                }
            }
        };
        let _ = waiter.join();
        if status.success() { Ok(()) } else { Err(self.explain(doing, status, log)) }
    }

    /// The directory of a module's sources in Go's module cache.
    pub(crate) fn module_directory(&self, wrapper: &Path, module: &str) -> Result<PathBuf, GoError> {
        let doing = format!("looking for the sources of {module}");
        let arguments = ["list", "-m", "-f", "{{.Dir}}", module].map(String::from);
        let mut command = Command::new(&self.program);
        in_module(&mut command, wrapper, &arguments);
        let output = command.output().map_err(|source| GoError::Io { doing: doing.clone(), source })?;
        let directory = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        if output.status.success() && directory.is_dir() {
            return Ok(directory);
        }
        let tail = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(diagnose(&doing, &tail, &self.cache).unwrap_or(GoError::Failed {
            doing,
            status: output.status,
            log: wrapper.to_path_buf(),
            tail,
        }))
    }

    fn explain(&self, doing: &str, status: std::process::ExitStatus, log: &Path) -> GoError {
        let output = fs::read_to_string(log).unwrap_or_default();
        diagnose(doing, &output, &self.cache).unwrap_or_else(|| GoError::Failed {
            doing: doing.into(),
            status,
            log: log.to_path_buf(),
            tail: last_lines(&output, 15),
        })
    }
}

/// Configures `go` for a wrapper module, without the settings of the caller's shell.
fn in_module(command: &mut Command, module: &Path, arguments: &[impl AsRef<OsStr>]) {
    command
        .args(arguments)
        .current_dir(module)
        // `-mod=mod` lets Go complete the wrapper's go.mod and go.sum; `local` prevents it from downloading another
        // tool chain.
        .env("GOFLAGS", "-mod=mod")
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .env("CGO_ENABLED", "0")
        .env_remove("GOOS")
        .env_remove("GOARCH");
}

/// Recognises the two errors in Go's output that are not bugs.
fn diagnose(doing: &str, output: &str, cache: &Path) -> Option<GoError> {
    const DISK: [&str; 2] = ["no space left on device", "disk quota exceeded"];
    const NETWORK: [&str; 8] = [
        "no such host",
        "connection refused",
        "connection reset",
        "i/o timeout",
        "network is unreachable",
        "tls handshake timeout",
        "temporary failure in name resolution",
        "module lookup disabled by goproxy=off",
    ];
    let find = |phrases: &[&str]| {
        output
            .lines()
            .find(|line| {
                let line = line.to_ascii_lowercase();
                phrases.iter().any(|phrase| line.contains(phrase))
            })
            .map(|line| line.trim().to_owned())
    };
    // A full disk first: it also breaks downloads, and then the network is not the cause.
    if let Some(line) = find(&DISK) {
        return Some(GoError::DiskFull { doing: doing.into(), line, cache: cache.to_path_buf() });
    }
    find(&NETWORK).map(|line| GoError::NoNetwork { doing: doing.into(), line })
}

fn last_line(log: &Path) -> String {
    last_lines(&fs::read_to_string(log).unwrap_or_default(), 1)
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for `go` that executes `script`.
    ///
    /// A shell writes the program, not this process: a child that another thread starts at the same moment
    /// would inherit the file, still open for writing, and the kernel does not execute such a file ("text
    /// file busy").
    fn fake_go(directory: &Path, script: &str) -> PathBuf {
        let path = directory.join("go");
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#;
        let status =
            Command::new("sh").arg("-c").arg(write).arg(&path).arg(script).status().expect("a shell");
        assert!(status.success(), "{} was not written", path.display());
        path
    }

    #[test]
    fn a_missing_go_gives_install_instructions() {
        let error = Go::find(Path::new("/nonexistent/go"), Path::new("/cache")).expect_err("missing");
        assert!(matches!(error, GoError::Missing { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(&format!("needs Go {} or newer", versions::GO)), "{message}");
        assert!(message.contains("https://go.dev/dl"), "{message}");
    }

    #[test]
    fn go_too_old_names_both_versions() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = fake_go(dir.path(), "echo go1.24.9");
        let message = Go::find(&program, Path::new("/cache")).expect_err("too old").to_string();
        assert!(message.contains("go1.24.9 was found"), "{message}");
        assert!(message.contains(&versions::GO.to_string()), "{message}");
    }

    #[test]
    fn the_release_we_need_is_new_enough() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = fake_go(dir.path(), &format!("echo go{}", versions::GO));
        Go::find(&program, Path::new("/cache")).expect("new enough");
    }

    #[test]
    fn known_errors_of_go_are_recognised() {
        let cases = [
            (
                "go: downloading k8s.io/api v0.36.4\ngo: k8s.io/api@v0.36.4: Get \"https://proxy.example/k8s.io/api\": \
                 dial tcp: lookup proxy.example: no such host",
                "the Go module proxy could not be reached while building etcd: go: k8s.io/api@v0.36.4",
            ),
            ("dial tcp 127.0.0.1:1: connect: connection refused", "set GOPROXY"),
            (
                "write /home/x/.cache/go-build/aa/bb: no space left on device",
                "the disk is full while building etcd: write /home/x/.cache/go-build/aa/bb",
            ),
            (
                "Get \"https://proxy.example\": no such host\nmkdir /x: No space left on device",
                "1 GB in /cache",
            ),
        ];
        for (output, expected) in cases {
            let error = diagnose("building etcd", output, Path::new("/cache")).expect("recognised");
            assert!(error.to_string().contains(expected), "{error} should contain {expected}");
        }
        assert!(diagnose("building etcd", "main.go:3: undefined: x", Path::new("/cache")).is_none());
    }
}
