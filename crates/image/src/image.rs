//! An image: its files, and how it is run.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::archive::{self, Blob};
use crate::reference;
use crate::root::RootFileSystem;

/// An image under construction.
#[derive(Debug, Clone)]
pub struct Image {
    name: String,
    root: RootFileSystem,
    entrypoint: Vec<String>,
    user: String,
    labels: BTreeMap<String, String>,
    created: Option<String>,
    architecture: String,
}

impl Image {
    /// An empty image of this name and tag that runs this program, for the architecture of this machine. `PATH` is `/bin`.
    pub fn new(name: &str, entrypoint: &[&str]) -> Self {
        Self {
            name: reference::in_full(name),
            root: RootFileSystem::default(),
            entrypoint: entrypoint.iter().map(ToString::to_string).collect(),
            user: String::new(),
            labels: BTreeMap::new(),
            created: None,
            architecture: oci_architecture(std::env::consts::ARCH).to_owned(),
        }
    }

    /// The same image with these files.
    #[must_use]
    pub fn with_root(mut self, root: RootFileSystem) -> Self {
        self.root = root;
        self
    }

    /// The same image for another architecture, by its name in Rust.
    #[must_use]
    pub fn for_architecture(mut self, architecture: &str) -> Self {
        oci_architecture(architecture).clone_into(&mut self.architecture);
        self
    }

    /// The same image, run as this user: `UID` or `UID:GID`.
    #[must_use]
    pub fn run_as(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// The same image with a label, which is an annotation of its manifest as well.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same image with a time of creation in RFC 3339. It is part of the digest.
    #[must_use]
    pub fn created(mut self, at: &str) -> Self {
        self.created = Some(at.to_owned());
        self
    }

    /// Adds an executable file of this machine, and the shared libraries that it needs, if any. `path` has no leading
    /// slash.
    pub fn program(mut self, path: &str, source: &Path) -> io::Result<Self> {
        self.root.file(path, 0o755, fs::read(source)?);
        for library in libraries(source)? {
            self.root.file(library.trim_start_matches('/'), 0o755, fs::read(&library)?);
        }
        Ok(self)
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(mut self, path: &str, target: &str) -> Self {
        self.root.link(path, target);
        self
    }

    /// The name in full, with its registry and tag.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of the image: `sha256:` and that of its manifest.
    pub fn digest(&self) -> String {
        self.blobs().2.name()
    }

    /// The layer with its files: a tar archive.
    pub fn layer(&self) -> Vec<u8> {
        self.root.layer()
    }

    /// The configuration in the format of OCI: how the image is run, and the digest of its layer.
    pub fn configuration(&self) -> Value {
        self.configuration_with(&Blob::layer(self.layer()))
    }

    /// The OCI archive, to be imported by a container runtime or pushed to a registry.
    pub fn archive(&self) -> Vec<u8> {
        let (layer, config, manifest) = self.blobs();
        let annotations = json!({
            "io.containerd.image.name": self.name,
            "org.opencontainers.image.ref.name": reference::tag(&self.name),
        });
        let platform = json!({"architecture": self.architecture, "os": "linux"});
        archive::archive(&manifest, &[&layer, &config], &annotations, &platform)
    }

    /// The layer, the configuration and the manifest.
    fn blobs(&self) -> (Blob, Blob, Blob) {
        let layer = Blob::layer(self.layer());
        let config = Blob::config(&self.configuration_with(&layer));
        let manifest = Blob::manifest(&config, &layer, &json!(self.labels));
        (layer, config, manifest)
    }

    fn configuration_with(&self, layer: &Blob) -> Value {
        let mut run = json!({"Entrypoint": self.entrypoint, "Env": ["PATH=/bin"], "WorkingDir": "/"});
        if !self.user.is_empty() {
            run["User"] = self.user.as_str().into();
        }
        if !self.labels.is_empty() {
            run["Labels"] = json!(self.labels);
        }
        let mut config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": [layer.name()]},
        });
        if let Some(created) = &self.created {
            config["created"] = created.as_str().into();
        }
        config
    }
}

/// The name of an architecture in OCI images.
fn oci_architecture(name: &str) -> &str {
    match name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_ldd_names() {
        let dynamic = "\tlinux-vdso.so.1 (0x00007f)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(parse_ldd(dynamic), ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(parse_ldd("\tnot a dynamic executable\n"), [""; 0]);
        assert_eq!(parse_ldd("\tstatically linked\n"), [""; 0]);
    }

    fn example() -> Image {
        Image::new("localhost/sh:1", &["/bin/sh"]).link("bin/bash", "sh").run_as("65532:65532")
    }

    #[test]
    fn the_same_files_make_the_same_image() {
        let image = || example().program("bin/sh", Path::new("/bin/sh")).expect("a shell");
        assert!(image().archive() == image().archive());
        assert_eq!(image().digest(), image().digest());
    }

    #[test]
    fn every_setting_is_part_of_the_digest() {
        let others = [
            example().label("a", "b"),
            example().run_as("0"),
            example().created("2026-01-01T00:00:00Z"),
            example().link("bin/dash", "sh"),
            example().for_architecture("riscv64"),
        ];
        for other in others {
            assert_ne!(other.digest(), example().digest(), "{other:?}");
        }
    }

    #[test]
    fn the_index_names_the_manifest_and_blobs_match_digests() {
        let folder = tempfile::tempdir().expect("a directory");
        let image = example().label("org.opencontainers.image.title", "shell");
        fs::write(folder.path().join("image.tar"), image.archive()).expect("write");
        let tar = Command::new("tar").args(["-xf", "image.tar"]).current_dir(folder.path()).status();
        assert!(tar.expect("tar").success());
        let read = |path: &str| fs::read(folder.path().join(path)).expect("a blob");
        let parsed = |path: &str| serde_json::from_slice::<Value>(&read(path)).expect("JSON");
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().expect("a digest").trim_start_matches("sha256:");
            let path = format!("blobs/sha256/{digest}");
            assert_eq!(read(&path).len() as u64, descriptor["size"].as_u64().expect("a size"));
            path
        };
        let index = parsed("index.json");
        assert_eq!(index["manifests"][0]["digest"], image.digest());
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "localhost/sh:1");
        let manifest = parsed(&blob(&index["manifests"][0]));
        assert_eq!(manifest["annotations"]["org.opencontainers.image.title"], "shell");
        let config = parsed(&blob(&manifest["config"]));
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        blob(&manifest["layers"][0]);
        assert_eq!(parsed("oci-layout")["imageLayoutVersion"], "1.0.0");
    }
}
