//! Machines to preview.

/// A valid object with this name and the schedule that `fields` gives, one per line; lines that start with
/// `spec.` are fields beside it.
pub fn machine(name: &str, fields: &str) -> String {
    let (beside, schedule): (Vec<&str>, Vec<&str>) = fields
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .partition(|line| line.starts_with("spec."));
    let indented = |lines: Vec<&str>, indent: &str| -> String {
        lines.iter().map(|line| [indent, line.trim_start_matches("spec."), "\n"].concat()).collect()
    };
    [
        "---\napiVersion: 5spot.finos.org/v1alpha1\nkind: ScheduledMachine\nmetadata:\n  name: ",
        name,
        "\nspec:\n  clusterName: lab\n",
        "  bootstrapSpec: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: K0sWorkerConfig, spec: {}}\n",
        "  infrastructureSpec: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Host, spec: {}}\n",
        &indented(beside, "  "),
        "  schedule:\n",
        &indented(schedule, "    "),
    ]
    .concat()
}
