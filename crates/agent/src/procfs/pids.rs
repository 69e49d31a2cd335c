//! The numbers of all processes.

use super::{ProcRoot, ProcfsError};

/// A buffer for names of the folder; 32 KiB hold about 1,300 processes.
const BUFFER_BYTES: usize = 32 * 1024;

/// Lists process ids without allocating.
#[derive(Debug)]
pub(super) struct PidList {
    buffer: Vec<u8>,
}

impl PidList {
    pub(super) fn new() -> Self {
        Self { buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    /// Passes every process id to `visit`, in ascending order where the kernel keeps to it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn visit(&mut self, root: &ProcRoot, mut visit: impl FnMut(u32)) -> Result<(), ProcfsError> {
        use rustix::fd::AsFd;
        rustix::fs::seek(root, rustix::fs::SeekFrom::Start(0)).map_err(std::io::Error::from)?;
        let mut entries = rustix::fs::RawDir::new(root.as_fd(), self.buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) => {
                    if let Some(pid) = pid(entry.file_name().to_bytes()) {
                        visit(pid);
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        Ok(())
    }

    /// The same for systems whose folders must be read by the standard library's means.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn visit(&mut self, root: &ProcRoot, visit: impl FnMut(u32)) -> Result<(), ProcfsError> {
        use rustix::fd::AsFd;
        visit_portably(root.as_fd(), visit)
    }
}

/// Reads the folder with what every Unix has. Compiled on Linux for its test.
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
pub(super) fn visit_portably(
    root: rustix::fd::BorrowedFd<'_>,
    mut visit: impl FnMut(u32),
) -> Result<(), ProcfsError> {
    for entry in rustix::fs::Dir::read_from(root).map_err(std::io::Error::from)? {
        let entry = entry.map_err(std::io::Error::from)?;
        if let Some(pid) = pid(entry.file_name().to_bytes()) {
            visit(pid);
        }
    }
    Ok(())
}

fn pid(name: &[u8]) -> Option<u32> {
    // Most names are numbers, and those that are not do not begin like one.
    name.first().filter(|byte| byte.is_ascii_digit())?;
    std::str::from_utf8(name).ok()?.parse().ok()
}
