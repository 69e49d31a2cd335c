//! The software bill of materials of a program, in the format `CycloneDX`, by cargo-cyclonedx, checked against what cargo
//! links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Shipped;
use super::revision::Revision;
use super::sources::Sources;
use crate::{cargo, cargo_tool};

/// The version of cargo-cyclonedx.
const VERSION: &str = "0.5.9";

/// The version of `CycloneDX`.
const SPECIFICATION: &str = "1.5";

/// The name that cargo-cyclonedx is told to write under, beside the manifest of each package.
const NAME: &str = "5spot-image-sbom";

/// Edges of the tree of dependencies to crates that are linked.
const LINKED: &str = "normal,no-proc-macro";

/// Edges of the tree of dependencies to crates that are linked, or that run while the program is built.
const BUILT: &str = "normal,build";

/// Writes the SBOM of a program, and returns the number of its components. Fails if a crate that is linked is missing from it.
pub(super) fn write(
    shipped: &Shipped,
    target: &str,
    file: &Path,
    revision: &Revision,
    sources: &Sources,
) -> anyhow::Result<usize> {
    let text = by_cyclonedx(shipped, target, revision)?;
    // Packages of the repository are identified by their paths. Those of every machine are to be the same.
    let text = text.replace(&format!("file://{}", sources.repository.display()), "file:///5spot");
    let mut sbom: Value = serde_json::from_str(&text).context("cargo-cyclonedx wrote no JSON")?;
    keep_only(&mut sbom, &crates(shipped, target, BUILT)?);
    let components = check(&sbom, shipped, &crates(shipped, target, LINKED)?)
        .with_context(|| format!("the SBOM of {} is wrong", shipped.program))?;
    fs::write(file, format!("{sbom:#}\n")).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(components)
}

/// The output of cargo-cyclonedx for the package of a program.
fn by_cyclonedx(shipped: &Shipped, target: &str, revision: &Revision) -> anyhow::Result<String> {
    let program = cargo_tool::installed("cargo-cyclonedx", VERSION)?;
    let package = package_directory(shipped)?;
    let status = Command::new(program)
        .args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", SPECIFICATION])
        .args(["--target", target, "--override-filename", NAME, "--features", &shipped.features.join(",")])
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .env("SOURCE_DATE_EPOCH", revision.epoch())
        .status()
        .context("failed to run cargo-cyclonedx")?;
    ensure!(status.success(), "cargo-cyclonedx failed: {status}");
    // It writes one file for each package of the workspace.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut text = None;
    for folder in ["crates", "tests", "."] {
        for entry in fs::read_dir(root.join(folder))?.flatten() {
            let written = entry.path().join(NAME).with_extension("json");
            if !written.is_file() {
                continue;
            }
            if entry.path().canonicalize()? == package {
                text = Some(fs::read_to_string(&written)?);
            }
            fs::remove_file(&written)?;
        }
    }
    text.with_context(|| format!("cargo-cyclonedx wrote nothing for {}", shipped.package))
}

/// The crates of a program along these edges, as `name version`.
fn crates(shipped: &Shipped, target: &str, edges: &str) -> anyhow::Result<BTreeSet<String>> {
    let output = cargo::cargo()
        .args(["tree", "--locked", "--edges", edges, "--prefix", "none", "--format", "{p}"])
        .args(["--package", shipped.package, "--features", &shipped.features.join(","), "--target", target])
        .output()
        .context("failed to run cargo tree")?;
    ensure!(output.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(parse_tree(&String::from_utf8_lossy(&output.stdout)))
}

/// The crates of a tree: lines such as `serde v1.0.229 (*)`.
fn parse_tree(text: &str) -> BTreeSet<String> {
    let crates = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        Some(format!("{name} {}", rest.split(' ').next()?))
    });
    crates.collect()
}

/// Removes components that are not among `built`. cargo-cyclonedx lists what the features of all programs of the workspace
/// together need: half as much again for the agent.
fn keep_only(sbom: &mut Value, built: &BTreeSet<String>) {
    let mut removed = BTreeSet::new();
    if let Some(components) = sbom.get_mut("components").and_then(Value::as_array_mut) {
        components.retain(|component| {
            let keeps = name(component).is_some_and(|name| built.contains(&name));
            if !keeps {
                removed.extend(component["bom-ref"].as_str().map(str::to_owned));
            }
            keeps
        });
    }
    let is_kept = |reference: &Value| !reference.as_str().is_some_and(|text| removed.contains(text));
    if let Some(dependencies) = sbom.get_mut("dependencies").and_then(Value::as_array_mut) {
        dependencies.retain(|dependency| is_kept(&dependency["ref"]));
        for dependency in dependencies {
            if let Some(others) = dependency.get_mut("dependsOn").and_then(Value::as_array_mut) {
                others.retain(is_kept);
            }
        }
    }
}

/// The crate that a component is, as `name version`.
fn name(component: &Value) -> Option<String> {
    Some(format!("{} {}", component["name"].as_str()?, component["version"].as_str()?))
}

/// Returns the number of components of an SBOM that names the program, and every linked crate with its package URL and
/// license.
fn check(sbom: &Value, shipped: &Shipped, linked: &BTreeSet<String>) -> anyhow::Result<usize> {
    ensure!(
        sbom["bomFormat"] == "CycloneDX" && sbom["specVersion"] == SPECIFICATION,
        "it is not CycloneDX {SPECIFICATION}"
    );
    let program = &sbom["metadata"]["component"];
    ensure!(
        program["name"] == shipped.package,
        "it is about {} and not {}",
        program["name"],
        shipped.package
    );
    let components = sbom["components"].as_array().context("it has no components")?;
    let complete = components.iter().filter(|component| {
        let has_license = component["licenses"].as_array().is_some_and(|licenses| !licenses.is_empty());
        has_license && component["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/"))
    });
    let mut named: BTreeSet<String> = complete.filter_map(name).collect();
    named.extend(name(program));
    let missing: Vec<_> = linked.difference(&named).map(String::as_str).collect();
    ensure!(missing.is_empty(), "it lacks, or has without license or package URL: {}", missing.join(", "));
    Ok(components.len())
}

/// The directory of a package: its name without the prefix.
fn package_directory(shipped: &Shipped) -> anyhow::Result<PathBuf> {
    let folder = shipped.package.trim_start_matches("five-spot-");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(folder);
    path.canonicalize().with_context(|| format!("no package in {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::SHIPPED;
    use super::*;
    use serde_json::json;

    #[test]
    fn linked_crates_are_those_of_the_tree() {
        let tree = "five-spot-agent v0.1.0 (/home/me/5spot/crates/agent)\nserde v1.0.229\nserde v1.0.229 (*)\n\
                    toml v1.1.8+spec-1.1.0\n\n";
        let expected = ["five-spot-agent 0.1.0", "serde 1.0.229", "toml 1.1.8+spec-1.1.0"];
        assert_eq!(parse_tree(tree), expected.map(str::to_owned).into());
    }

    #[test]
    fn crates_of_other_programs_are_removed_with_references() {
        let component = |name: &str| json!({"name": name, "version": "1.0.0", "bom-ref": format!("#{name}")});
        let mut sbom = json!({
            "components": [component("serde"), component("regex")],
            "dependencies": [
                {"ref": "#five-spot-agent", "dependsOn": ["#serde", "#regex"]},
                {"ref": "#regex", "dependsOn": ["#serde"]},
                {"ref": "#serde"},
            ],
        });
        keep_only(&mut sbom, &["serde 1.0.0".to_owned()].into());
        let expected = json!({
            "components": [component("serde")],
            "dependencies": [{"ref": "#five-spot-agent", "dependsOn": ["#serde"]}, {"ref": "#serde"}],
        });
        assert_eq!(sbom, expected);
    }

    #[test]
    fn a_crate_without_a_license_is_missing() {
        let mut sbom = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "metadata": {"component": {"name": "five-spot-agent", "version": "0.1.0"}},
            "components": [{
                "name": "serde", "version": "1.0.229", "purl": "pkg:cargo/serde@1.0.229",
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            }],
        });
        let agent = &SHIPPED[1];
        let linked = ["five-spot-agent 0.1.0".to_owned(), "serde 1.0.229".to_owned()].into();
        assert_eq!(check(&sbom, agent, &linked).expect("it is complete"), 1);
        sbom["components"][0]["licenses"] = json!([]);
        let error = check(&sbom, agent, &linked).expect_err("a license is missing").to_string();
        assert_eq!(error, "it lacks, or has without license or package URL: serde 1.0.229");
        assert!(check(&sbom, &SHIPPED[0], &linked).is_err());
    }
}
