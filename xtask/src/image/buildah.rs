//! The same images, built by buildah from the `Containerfile`, to be compared with those that this program writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use five_spot_image::Image;
use serde_json::Value;

use super::Shipped;

/// The name of the image in buildah's own store, which is deleted afterwards.
const NAME: &str = "localhost/5spot-compared";

/// Builds the image of a program from `context`, which contains the root file systems, and fails if it differs from `image`
/// in any file or in how it is run. The layers must be the same byte for byte.
pub(super) fn compare(shipped: &Shipped, image: &Image, context: &Path) -> anyhow::Result<()> {
    let directory = tempfile::tempdir().context("failed to create a directory for buildah")?;
    let layout = build(shipped, image, context, directory.path())?;
    let (ours, theirs) = (image.configuration(), blob(&layout, &manifest(&layout)?["config"])?);
    let different = run_differences(&ours, &theirs);
    ensure!(
        different.is_empty(),
        "the image that buildah makes is run differently: {}",
        different.join("; ")
    );
    if ours["rootfs"]["diff_ids"] != theirs["rootfs"]["diff_ids"] {
        let file = directory.path().join("layer.tar");
        fs::write(&file, image.layer()).context("failed to write the layer")?;
        let layer = blob_path(&layout, &manifest(&layout)?["layers"][0])?;
        bail!(
            "the image that buildah makes has other files:\n{}",
            differences(&listing(&file)?, &listing(&layer)?)
        );
    }
    Ok(())
}

/// Builds the image and returns the OCI layout with it.
fn build(shipped: &Shipped, image: &Image, context: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
    let containerfile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/images/Containerfile");
    let architecture = image.configuration()["architecture"].as_str().unwrap_or_default().to_owned();
    let mut build = buildah(directory);
    // Without these times, labels and steps the image depends on nothing but the files.
    build.args(["build", "--quiet", "--isolation", "chroot", "--timestamp", "0", "--identity-label=false"]);
    build.args(["--arch", &architecture, "--target", shipped.stage, "--tag", NAME, "--file"]);
    run(build.arg(containerfile).arg(context))?;
    let layout = directory.join("image");
    run(buildah(directory).args(["push", "--quiet", NAME]).arg(format!("oci:{}", layout.display())))?;
    Ok(layout)
}

/// A command line of buildah, to be continued, with a store of its own.
fn buildah(directory: &Path) -> Command {
    let mut command = Command::new("buildah");
    command.arg("--root").arg(directory.join("storage")).arg("--runroot").arg(directory.join("run"));
    command.args(["--storage-driver", "vfs"]);
    command
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .output()
        .with_context(|| format!("failed to run {command:?}: install the package buildah"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn manifest(layout: &Path) -> anyhow::Result<Value> {
    let index = fs::read(layout.join("index.json")).context("buildah wrote no index")?;
    let index: Value = serde_json::from_slice(&index).context("the index is not JSON")?;
    blob(layout, &index["manifests"][0])
}

fn blob(layout: &Path, descriptor: &Value) -> anyhow::Result<Value> {
    let path = blob_path(layout, descriptor)?;
    let content = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
    serde_json::from_slice(&content).with_context(|| format!("{} is not JSON", path.display()))
}

fn blob_path(layout: &Path, descriptor: &Value) -> anyhow::Result<PathBuf> {
    let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    Ok(layout.join("blobs/sha256").join(digest.context("a part of the image has no digest")?))
}

/// The settings that differ. Labels that only `cargo xtask image` can know, such as the commit, may be missing from the other.
fn run_differences(ours: &Value, theirs: &Value) -> Vec<String> {
    let mut different = Vec::new();
    let mut compare = |name: &str, ours: &Value, theirs: &Value| {
        if ours != theirs {
            different.push(format!("{name} is {theirs} instead of {ours}"));
        }
    };
    for name in ["architecture", "os"] {
        compare(name, &ours[name], &theirs[name]);
    }
    let (ours, theirs) = (&ours["config"], &theirs["config"]);
    for name in ["Entrypoint", "Cmd", "Env", "User", "Volumes", "ExposedPorts"] {
        compare(name, &ours[name], &theirs[name]);
    }
    for (name, label) in theirs["Labels"].as_object().into_iter().flatten() {
        compare(&format!("label {name}"), &ours["Labels"][name], label);
    }
    different
}

/// Every entry of a layer with mode, owner, size, time and name, and the sum of its content.
fn listing(layer: &Path) -> anyhow::Result<BTreeSet<String>> {
    let tar = |arguments: &[&str]| run(Command::new("tar").arg("--file").arg(layer).args(arguments));
    let entries = tar(&["--list", "--verbose", "--numeric-owner", "--full-time", "--utc"])?;
    let sums = tar(&["--extract", "--to-command", "echo \"$(sha256sum | cut -c 1-64) $TAR_FILENAME\""])?;
    Ok(entries.lines().chain(sums.lines()).map(str::to_owned).collect())
}

fn differences(ours: &BTreeSet<String>, theirs: &BTreeSet<String>) -> String {
    let only_ours = ours.difference(theirs).map(|line| format!("  cargo xtask image: {line}"));
    let only_theirs = theirs.difference(ours).map(|line| format!("  buildah:           {line}"));
    let lines: Vec<_> = only_ours.chain(only_theirs).collect();
    if lines.is_empty() { "  the same files, packed in another way".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use five_spot_image::RootFileSystem;
    use serde_json::json;

    fn image(content: &str) -> Image {
        let mut root = RootFileSystem::default();
        root.file("bin/tool", 0o755, content);
        Image::new("tool", &["/bin/tool"])
            .run_as("65532:65532")
            .label("a", "b")
            .label("commit", "1")
            .with_root(root)
    }

    #[test]
    fn another_user_or_label_is_named_a_missing_label_is_not() {
        let ours = image("x").configuration();
        let mut theirs = ours.clone();
        theirs["config"]["Labels"] = json!({"a": "b"});
        assert!(run_differences(&ours, &theirs).is_empty());
        theirs["config"]["User"] = json!("0:0");
        theirs["config"]["Labels"] = json!({"a": "c"});
        assert_eq!(
            run_differences(&ours, &theirs),
            [r#"User is "0:0" instead of "65532:65532""#, r#"label a is "c" instead of "b""#]
        );
    }

    #[test]
    fn a_file_that_differs_is_named_with_both_versions() {
        let folder = tempfile::tempdir().expect("a directory");
        let listed = |content| {
            let file = folder.path().join(content);
            fs::write(&file, image(content).layer()).expect("write");
            listing(&file).expect("tar")
        };
        let different = differences(&listed("one"), &listed("two"));
        let lines: Vec<_> = different.lines().collect();
        assert_eq!(lines.len(), 2, "{different}");
        assert!(lines.iter().all(|line| line.ends_with(" bin/tool")), "{different}");
    }
}
