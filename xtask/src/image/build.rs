//! Statically linked programs.

use std::path::PathBuf;

use super::Shipped;
use super::sources::Sources;
use crate::cargo;

/// Links the C library and everything else into the program.
const STATIC: &str = "target-feature=+crt-static";

/// Packs the places that the program corrects when it is loaded into bitmaps, instead of 24 bytes for each. The C library
/// must be glibc 2.36 or newer, and the linker lld or that of binutils 2.38 or newer.
const PACKED_RELOCATIONS: &str = "link-arg=-Wl,-z,pack-relative-relocs";

/// The settings of jemalloc, unless `MALLOC_CONF` says otherwise. By default it has four arenas for each core, each of which keeps
/// memory of its own, and returns unused memory after ten seconds. Two arenas are enough for the few threads of the controller.
/// Memory that a storm needed goes back within a second or so, at the cost of page faults in the next one.
const ALLOCATOR_SETTINGS: &str = "narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0";

/// The shipped program: optimised, with its symbols, and without paths of this machine, so that every machine builds the
/// same.
pub(super) fn release(shipped: &Shipped, target: &str, sources: &Sources) -> anyhow::Result<PathBuf> {
    let features = shipped.features.join(",");
    let manifest = sources.repository.join("Cargo.toml").display().to_string();
    let directory = sources.target_directory.display().to_string();
    let arguments = [
        "--release",
        "--locked",
        "--manifest-path",
        &manifest,
        "--target-dir",
        &directory,
        "--package",
        shipped.package,
        "--target",
        target,
        "--features",
        &features,
    ];
    let variables = [
        ("CARGO_ENCODED_RUSTFLAGS", release_flags(sources)),
        ("CFLAGS", c_flags(sources, std::env::var("CFLAGS").ok())),
        ("JEMALLOC_SYS_WITH_MALLOC_CONF", ALLOCATOR_SETTINGS.to_owned()),
        // They are taken out afterwards, and kept: see `symbols`.
        ("CARGO_PROFILE_RELEASE_STRIP", "none".to_owned()),
    ];
    cargo::build_with(shipped.program, "build", &arguments, &variables)
}

/// The program of the end-to-end tests. Only its last step differs from the ordinary build without optimisations, so that
/// everything else is compiled once.
pub(super) fn unoptimised(shipped: &Shipped) -> anyhow::Result<PathBuf> {
    let features = shipped.features.join(",");
    let arguments = [
        "--package",
        shipped.package,
        "--bin",
        shipped.program,
        "--features",
        &features,
        "--",
        "-C",
        STATIC,
        "-C",
        "strip=symbols",
    ];
    cargo::build_with(shipped.program, "rustc", &arguments, &[])
}

/// The flags of the Rust compiler, in the encoding of cargo.
fn release_flags(sources: &Sources) -> String {
    let fixed = ["-C", STATIC, "-C", PACKED_RELOCATIONS].map(str::to_owned);
    let replaced = sources.replacements().into_iter();
    let replaced = replaced.map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    fixed.into_iter().chain(replaced).collect::<Vec<_>>().join("\u{1f}")
}

/// The flags of the C compiler: those of the environment, and the same replacements.
fn c_flags(sources: &Sources, given: Option<String>) -> String {
    let replaced = sources.replacements().into_iter();
    let replaced = replaced.map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display()));
    given.into_iter().chain(replaced).collect::<Vec<_>>().join(" ")
}

/// The triple of this machine.
pub(super) fn host_triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// The architecture of a triple.
pub(super) fn architecture(target: &str) -> &str {
    target.split('-').next().unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_are_replaced() {
        let sources = Sources {
            repository: "/home/me/5spot".into(),
            target_directory: "/home/me/5spot/target".into(),
            registries: vec!["/home/me/.cargo/registry/src/mirror".into()],
        };
        assert_eq!(
            release_flags(&sources).split('\u{1f}').skip(4).collect::<Vec<_>>(),
            [
                "--remap-path-prefix=/home/me/5spot=/5spot",
                "--remap-path-prefix=/home/me/5spot/target=/target",
                "--remap-path-prefix=/home/me/.cargo/registry/src/mirror=/crates",
            ]
        );
        assert_eq!(
            c_flags(&sources, Some("-O2".to_owned())),
            "-O2 -ffile-prefix-map=/home/me/5spot=/5spot -ffile-prefix-map=/home/me/5spot/target=/target \
             -ffile-prefix-map=/home/me/.cargo/registry/src/mirror=/crates"
        );
        assert_eq!(architecture("aarch64-unknown-linux-gnu"), "aarch64");
    }
}
