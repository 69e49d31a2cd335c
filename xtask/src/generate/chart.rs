//! The parts of the Helm chart that must be the same as in the kustomizations: its CRDs, and the objects that no value changes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Generated;

/// The chart, relative to the root of the repository.
const CHART: &str = "deploy/helm/5spot";

/// Files of `deploy` that the chart contains unchanged, in its directory `files`.
const COPIES: [&str; 16] = [
    "ha/disruption-budget.yaml",
    "ha/fence.yaml",
    "ha/rbac.yaml",
    "monitoring/dashboard.json",
    "monitoring/servicemonitor.yaml",
    "node-agent/pods.yaml",
    "node-agent/policy.yaml",
    "node-agent/rbac.yaml",
    "policies/agent-configs.yaml",
    "rbac-namespaced/controller.yaml",
    "rbac-namespaced/namespace.yaml",
    "rbac-nodes/nodes.yaml",
    "rbac/controller.yaml",
    "rbac/kubeconfig-reader.yaml",
    "rbac/machine-claims.yaml",
    "workload-cluster/service-account.yaml",
];

/// The files of the chart. `definition` and `rule` are those that the kustomizations contain.
pub(super) fn files(root: &Path, definition: &Generated, rule: &Generated) -> anyhow::Result<Vec<Generated>> {
    let name = definition.path.file_name().context("the definition has no file name")?;
    let mut files = vec![
        Generated { path: Path::new(CHART).join("crds").join(name), content: definition.content.clone() },
        Generated { path: place("monitoring/prometheusrule.yaml"), content: rule.content.clone() },
    ];
    for copy in COPIES {
        let source = root.join("deploy").join(copy);
        let text =
            fs::read_to_string(&source).with_context(|| format!("failed to read {}", source.display()))?;
        files.push(Generated { path: place(copy), content: with_origin(copy, &text) });
    }
    Ok(files)
}

fn place(file: &str) -> PathBuf {
    Path::new(CHART).join("files").join(file)
}

/// The text with a line that says where it comes from; JSON has no comments.
fn with_origin(file: &str, text: &str) -> String {
    if Path::new(file).extension().is_some_and(|ending| ending == "yaml") {
        format!("# Copied by `cargo xtask generate` from deploy/{file}. Do not edit.\n{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn names_in(folder: &Path, below: &Path, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                names_in(&path, below, names);
            } else {
                names.insert(path.strip_prefix(below).expect("below").display().to_string());
            }
        }
    }

    #[test]
    fn the_chart_contains_and_uses_every_copy_and_no_other_file() {
        let chart = super::super::repository().join(CHART);
        let copied: BTreeSet<String> =
            COPIES.into_iter().chain(["monitoring/prometheusrule.yaml"]).map(str::to_owned).collect();
        let mut found = BTreeSet::new();
        names_in(&chart.join("files"), &chart.join("files"), &mut found);
        assert_eq!(found, copied);

        let templates: String = fs::read_dir(chart.join("templates"))
            .expect("templates")
            .flatten()
            .map(|entry| fs::read_to_string(entry.path()).expect("a template"))
            .collect();
        // A file is named as "rbac/controller.yaml" or as "files/monitoring/dashboard.json".
        for file in copied {
            let is_used = [format!("\"{file}\""), format!("\"files/{file}\"")]
                .iter()
                .any(|name| templates.contains(name));
            assert!(is_used, "no template uses {file}");
        }
    }

    #[test]
    fn json_is_copied_as_it_is() {
        assert_eq!(with_origin("a.json", "{}\n"), "{}\n");
        assert_eq!(
            with_origin("a.yaml", "kind: A\n"),
            "# Copied by `cargo xtask generate` from deploy/a.yaml. Do not edit.\nkind: A\n"
        );
    }
}
