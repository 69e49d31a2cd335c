//! Container images made by hand: one layer, a configuration and a manifest in the archive format of `docker save`. No
//! registry is needed, and nothing but the named files is in them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use ring::digest::{SHA256, digest};
use serde_json::json;

use super::tar::Archive;

/// An image under construction.
#[derive(Debug)]
pub struct Image {
    name: String,
    layer: Archive,
    entrypoint: Vec<String>,
}

impl Image {
    /// An empty image of this name and tag that runs this program.
    pub fn new(name: &str, entrypoint: &[&str]) -> Self {
        let mut layer = Archive::default();
        // Mount points have to exist where the root file system is read-only.
        for (directory, mode) in [
            ("bin", 0o755),
            ("dev", 0o755),
            ("etc", 0o755),
            ("host", 0o755),
            ("host/etc", 0o755),
            ("proc", 0o555),
            ("run", 0o755),
            ("sys", 0o555),
            ("tmp", 0o1777),
            ("var", 0o755),
        ] {
            layer.directory(directory, mode);
        }
        Self { name: name.into(), layer, entrypoint: entrypoint.iter().map(ToString::to_string).collect() }
    }

    /// Adds an executable file of this machine, and the shared libraries that it needs, if any. `path` has no leading
    /// slash.
    pub fn program(mut self, path: &str, source: &Path) -> io::Result<Self> {
        self.layer.file(path, 0o755, &fs::read(source)?);
        for library in libraries(source)? {
            let place = library.trim_start_matches('/').to_owned();
            self.layer.file(&place, 0o755, &fs::read(&library)?);
        }
        Ok(self)
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(mut self, path: &str, target: &str) -> Self {
        self.layer.link(path, target);
        self
    }

    /// The name with its tag, as a pod says it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The archive, to be imported by a container runtime.
    pub fn archive(self) -> Vec<u8> {
        let layer = self.layer.finish();
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": { "Entrypoint": self.entrypoint, "Env": ["PATH=/bin"] },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", hex_digest(&layer))] },
        });
        let config = config.to_string().into_bytes();
        let config_name = format!("{}.json", hex_digest(&config));
        let manifest = json!([{ "Config": config_name, "RepoTags": [self.name], "Layers": ["layer.tar"] }]);
        let mut archive = Archive::default();
        archive.file("layer.tar", 0o644, &layer);
        archive.file(&config_name, 0o644, &config);
        archive.file("manifest.json", 0o644, manifest.to_string().as_bytes());
        archive.finish()
    }
}

/// The shared libraries of a program, its loader among them; none of a statically linked one.
fn libraries(program: &Path) -> io::Result<Vec<String>> {
    let output = Command::new("ldd").arg(program).output()?;
    Ok(parse_ldd(&String::from_utf8_lossy(&output.stdout)))
}

fn parse_ldd(text: &str) -> Vec<String> {
    let paths = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    paths.map(str::to_owned).collect()
}

fn hex_digest(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// Two hexadecimal digits for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha256sum() {
        assert_eq!(hex_digest(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn libraries_are_those_that_ldd_names() {
        let dynamic = "\tlinux-vdso.so.1 (0x00007f)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(parse_ldd(dynamic), ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(parse_ldd("\tnot a dynamic executable\n"), [""; 0]);
    }

    #[test]
    fn the_same_files_make_the_same_image() {
        let image = || {
            let image = Image::new("localhost/sh:1", &["/bin/sh"]);
            image.program("bin/sh", Path::new("/bin/sh")).expect("a shell").link("bin/bash", "sh").archive()
        };
        assert!(image() == image());
    }
}
