//! Writes the files that are generated from the types in `api`, and those of the Helm chart that are the same as in the
//! kustomizations.

mod chart;
mod reference;

use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Flags of `generate`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only check: fail if a generated file is not current.
    #[arg(long)]
    check: bool,
}

/// A file of the repository and its expected content.
struct Generated {
    /// Relative to the root of the repository.
    path: PathBuf,
    content: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = repository();
    let (definition, rule) = (definition()?, prometheus_rule(&root)?);
    let mut files = chart::files(&root, &definition, &rule)?;
    files.extend([definition, shape(), reference(), rule]);
    if args.check { check(&root, &files) } else { write(&root, &files) }
}

fn repository() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("this crate is a folder of the repository").to_owned()
}

fn definition() -> anyhow::Result<Generated> {
    let crd = five_spot_api::crd();
    let name = crd.metadata.name.as_deref().context("the definition has no name")?;
    let path = Path::new("deploy/crds").join(format!("{name}.yaml"));
    let yaml = serde_saphyr::to_string(&crd).context("failed to write the definition as YAML")?;
    Ok(Generated { path, content: format!("# Written by `cargo xtask generate`. Do not edit.\n{yaml}") })
}

/// The fields of the CRD, which the controller compares with the CRD of a cluster.
fn shape() -> Generated {
    Generated { path: "crates/api/src/shape.json".into(), content: five_spot_api::shape() }
}

fn reference() -> Generated {
    Generated { path: "docs/reference/api.md".into(), content: reference::page(&five_spot_api::crd()) }
}

/// The alert rules as a `PrometheusRule`.
fn prometheus_rule(root: &Path) -> anyhow::Result<Generated> {
    let source = root.join("deploy/monitoring/alerts.yaml");
    let text = fs::read_to_string(&source).with_context(|| format!("failed to read {}", source.display()))?;
    let rules: String =
        text.lines().filter(|line| !line.starts_with('#')).fold(String::new(), |all, line| {
            let indent = if line.is_empty() { "" } else { "  " };
            all + indent + line + "\n"
        });
    let head = "# Written by `cargo xtask generate` from alerts.yaml. Do not edit.\n\
        apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: 5spot\n  namespace: monitoring\n\
        \x20 labels:\n    app: 5spot-controller\nspec:\n";
    Ok(Generated { path: "deploy/monitoring/prometheusrule.yaml".into(), content: format!("{head}{rules}") })
}

fn write(root: &Path, files: &[Generated]) -> anyhow::Result<()> {
    for file in files {
        let path = root.join(&file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
        }
        fs::write(&path, &file.content).with_context(|| format!("failed to write {}", path.display()))?;
        println!("wrote {}", file.path.display());
    }
    Ok(())
}

fn check(root: &Path, files: &[Generated]) -> anyhow::Result<()> {
    let mut stale = Vec::new();
    for file in files {
        let path = root.join(&file.path);
        let current = match fs::read_to_string(&path) {
            Ok(content) => content == file.content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error).with_context(|| format!("failed to read {}", path.display())),
        };
        if !current {
            stale.push(file.path.display().to_string());
        }
    }
    if !stale.is_empty() {
        bail!("not current: {}; run `cargo xtask generate` and commit the result", stale.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_and_missing_files_are_listed_with_advice() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, content: &str| Generated { path: path.into(), content: content.into() };
        write(root.path(), &[file("a/fresh", "1"), file("a/stale", "1")]).unwrap();
        let files = [file("a/fresh", "1"), file("a/stale", "2"), file("missing", "")];
        let error = check(root.path(), &files).unwrap_err().to_string();
        assert_eq!(error, "not current: a/stale, missing; run `cargo xtask generate` and commit the result");
        write(root.path(), &files).unwrap();
        check(root.path(), &files).unwrap();
    }

    #[test]
    fn generation_is_the_same_every_time() {
        assert_eq!(definition().unwrap().content, definition().unwrap().content);
        assert_eq!(reference().content, reference().content);
    }

    #[test]
    fn the_prometheus_rule_contains_the_rules_unchanged() {
        let root = repository();
        let rules = fs::read_to_string(root.join("deploy/monitoring/alerts.yaml")).unwrap();
        let rules: serde_json::Value = serde_saphyr::from_str(&rules).unwrap();
        let object = prometheus_rule(&root).unwrap().content;
        let object: serde_json::Value = serde_saphyr::from_str(&object).unwrap();
        assert_eq!(object["spec"], rules);
    }
}
