//! `cargo xtask image`: the container images of the controller and the reclaim agent, without base image, daemon or
//! registry. Each has a root file system for the `Containerfile`, an OCI archive with the same files, and an SBOM.

mod build;
mod buildah;
mod contents;
mod reproduce;
mod revision;
mod sbom;
mod sources;
mod symbols;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use five_spot_image::Image;

use reproduce::SecondCopy;
use revision::Revision;
use sources::Sources;

/// A program that has an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shipped {
    /// The package.
    package: &'static str,
    /// The program, which is also the name of the image.
    pub(crate) program: &'static str,
    /// The features of the build.
    features: &'static [&'static str],
    /// The user. The agent starts as root with one capability, as its manifest says.
    user: &'static str,
    /// The stage of the `Containerfile`.
    stage: &'static str,
    /// The most bytes that the program may have. Nodes load the agent over whatever network a desk has.
    most_bytes: u64,
    description: &'static str,
}

/// The programs that have images.
pub(crate) const SHIPPED: [Shipped; 2] = [
    Shipped {
        package: "five-spot-controller",
        program: "5spot-controller",
        features: &["jemalloc"],
        user: "65532:65532",
        stage: "controller",
        most_bytes: 12_000_000,
        description: "Lends physical machines to Cluster API clusters on a schedule",
    },
    Shipped {
        package: "five-spot-agent",
        program: "5spot-reclaim-agent",
        features: &[],
        user: "0:0",
        stage: "agent",
        most_bytes: 6_000_000,
        description: "Requests the return of a lent machine when its owner starts a program",
    },
];

/// Flags of `image`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory for root file systems, archives and SBOMs.
    #[arg(long, default_value = "target/image")]
    output: PathBuf,
    /// The target triple, for other architectures; its std and a linker for it must be installed.
    #[arg(long, default_value_t = build::host_triple())]
    target: String,
    /// The prefix of the image names, such as `registry.example/platform/`.
    #[arg(long, default_value = "")]
    registry: String,
    /// The tag. Default: the version.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    tag: String,
    /// Write no SBOM.
    #[arg(long)]
    no_sbom: bool,
    /// Build the images with buildah from the Containerfile too, and fail if they differ.
    #[arg(long)]
    compare_buildah: bool,
    /// Build the programs a second time, from a clone of the commit in another directory, and fail if a digest differs.
    #[arg(long)]
    compare_rebuild: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let revision = Revision::of_repository();
    let sources = Sources::of_this_repository()?;
    let second_copy = if args.compare_rebuild {
        ensure!(!revision.is_dirty(), "--compare-rebuild builds the commit: commit your changes first");
        Some(SecondCopy::of(&sources)?)
    } else {
        None
    };
    fs::create_dir_all(&args.output)
        .with_context(|| format!("failed to create {}", args.output.display()))?;
    for shipped in SHIPPED {
        let program = build::release(&shipped, &args.target, &sources)?;
        let stripped = args.output.join(shipped.program);
        let kept = args.output.join(format!("{}.debug", shipped.program));
        symbols::split(&program, &kept, &stripped)?;
        let size = check_size(&shipped, &stripped)?;
        let image = new(&shipped, &args.registry, &args.tag);
        let image = revision.label(image).for_architecture(build::architecture(&args.target));
        let made = make(&shipped, &stripped, &args.output, image)?;
        fs::remove_file(&stripped).with_context(|| format!("failed to remove {}", stripped.display()))?;
        println!("{}@{}", made.image.name(), made.image.digest());
        println!("  {}, {} bytes of files, {size} of them the program", made.archive.display(), made.size);
        println!("  {}", kept.display());
        if !args.no_sbom {
            let file = args.output.join(format!("{}.cdx.json", shipped.program));
            let components = sbom::write(&shipped, &args.target, &file, &revision, &sources)?;
            println!("  {}, {components} components", file.display());
        }
        if args.compare_buildah {
            buildah::compare(&shipped, &made.image, &args.output)?;
            println!(
                "  buildah makes the same layer, {}",
                made.image.configuration()["rootfs"]["diff_ids"][0]
            );
        }
        if let Some(second_copy) = &second_copy {
            second_copy.compare(&shipped, &args.target, &made.image, &args.output)?;
            println!("  a second build has the same digest");
        }
    }
    Ok(())
}

/// Builds a program as it ships, for this machine, and says where it is. It still has its symbols.
pub(crate) fn shipped_program(shipped: &Shipped) -> anyhow::Result<PathBuf> {
    build::release(shipped, &build::host_triple(), &Sources::of_this_repository()?)
}

/// Returns the size of a program, or an error if it is above its limit.
fn check_size(shipped: &Shipped, program: &Path) -> anyhow::Result<u64> {
    let size = fs::metadata(program).with_context(|| format!("failed to read {}", program.display()))?.len();
    ensure!(
        size <= shipped.most_bytes,
        "{} has {size} bytes, and may have {}: docs/performance.md says what keeps it small",
        shipped.program,
        shipped.most_bytes
    );
    Ok(size)
}

/// Builds the programs without optimisation and writes their archives, for the end-to-end tests. Returns the directory of the
/// archives.
pub(crate) fn for_tests() -> anyhow::Result<PathBuf> {
    let mut directory = PathBuf::new();
    for shipped in SHIPPED {
        let program = build::unoptimised(&shipped)?;
        directory = program.parent().context("the program is in no directory")?.join("images");
        make(&shipped, &program, &directory, new(&shipped, "", env!("CARGO_PKG_VERSION")))?;
    }
    Ok(directory)
}

/// The archives of all programs in a directory that `cargo xtask image` has written, or an error if one is missing.
pub(crate) fn archives_in(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let archives = SHIPPED.iter().map(|shipped| {
        let archive = archive_in(directory, shipped);
        let place = directory.display();
        ensure!(
            archive.is_file(),
            "{} does not exist: run `cargo xtask image --output {place}`",
            archive.display()
        );
        Ok(archive)
    });
    archives.collect()
}

/// Copies the archives of all programs into a directory, over those that it has.
pub(crate) fn copy_archives(from: &Path, to: &Path) -> anyhow::Result<()> {
    for archive in archives_in(from)? {
        let copy = to.join(archive.file_name().unwrap_or_default());
        let bytes =
            fs::copy(&archive, &copy).with_context(|| format!("failed to write {}", copy.display()))?;
        println!("testing {}, {bytes} bytes", archive.display());
    }
    Ok(())
}

fn archive_in(directory: &Path, shipped: &Shipped) -> PathBuf {
    directory.join(format!("{}.oci.tar", shipped.program))
}

/// An image that was made.
struct Made {
    image: Image,
    /// Bytes of all files.
    size: usize,
    archive: PathBuf,
}

/// Writes the root file system and the archive of one program.
fn make(shipped: &Shipped, program: &Path, output: &Path, image: Image) -> anyhow::Result<Made> {
    let root = contents::root(shipped, program)?;
    let directory = output.join("rootfs").join(shipped.program);
    root.write_to(&directory).with_context(|| format!("failed to write {}", directory.display()))?;
    let size = root.size();
    let image = image.with_root(root);
    let archive = archive_in(output, shipped);
    fs::write(&archive, image.archive()).with_context(|| format!("failed to write {}", archive.display()))?;
    Ok(Made { image, size, archive })
}

/// The image of a program, without its files, with the labels that say what it is.
fn new(shipped: &Shipped, registry: &str, tag: &str) -> Image {
    let name = format!("{registry}{}:{tag}", shipped.program);
    Image::new(&name, &[&format!("/{}", contents::program_path(shipped))])
        .run_as(shipped.user)
        .label("org.opencontainers.image.title", shipped.program)
        .label("org.opencontainers.image.description", shipped.description)
        .label("org.opencontainers.image.licenses", "Apache-2.0")
        .label("org.opencontainers.image.version", tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_above_its_limit_is_refused_with_both_numbers() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let agent = SHIPPED[1];
        file.as_file().set_len(agent.most_bytes).expect("a size");
        assert_eq!(check_size(&agent, file.path()).expect("it fits"), 6_000_000);
        file.as_file().set_len(agent.most_bytes + 1).expect("a size");
        let error = check_size(&agent, file.path()).expect_err("it does not fit").to_string();
        assert!(error.starts_with("5spot-reclaim-agent has 6000001 bytes, and may have 6000000"), "{error}");
    }

    #[test]
    fn archives_replace_those_of_the_tests() {
        let (from, to) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let written = |name: &str| fs::read_to_string(to.path().join(name)).expect("an archive");
        fs::write(from.path().join("5spot-controller.oci.tar"), "optimised").expect("write");
        fs::write(to.path().join("5spot-controller.oci.tar"), "unoptimised").expect("write");
        let error = copy_archives(from.path(), to.path()).expect_err("one is missing").to_string();
        assert!(error.contains("5spot-reclaim-agent.oci.tar does not exist: run `cargo xtask"), "{error}");
        assert_eq!(written("5spot-controller.oci.tar"), "unoptimised");
        fs::write(from.path().join("5spot-reclaim-agent.oci.tar"), "optimised").expect("write");
        copy_archives(from.path(), to.path()).expect("both are there");
        for name in ["5spot-controller.oci.tar", "5spot-reclaim-agent.oci.tar"] {
            assert_eq!(written(name), "optimised");
        }
    }

    #[test]
    fn the_containerfile_says_what_the_images_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/images/Containerfile");
        let text = fs::read_to_string(path).expect("the Containerfile");
        for shipped in SHIPPED {
            for line in [
                format!("FROM scratch AS {}", shipped.stage),
                format!("COPY rootfs/{}/ /", shipped.program),
                format!("USER {}", shipped.user),
                format!("ENTRYPOINT [\"/{}\"]", contents::program_path(&shipped)),
            ] {
                assert!(text.lines().any(|found| found == line), "{line}");
            }
            assert!(text.contains(shipped.description) && text.contains(env!("CARGO_PKG_VERSION")));
        }
    }
}
