//! The versions of all third-party components, in one place. The cache is keyed by them, so changing one rebuilds
//! that component and nothing else.

/// Kubernetes: API server, controller-manager, scheduler, kubelet and kubectl.
pub const KUBERNETES: &str = "v1.36.4";
/// The version of Kubernetes' staging modules (`k8s.io/api` and its like) that belongs to [`KUBERNETES`].
pub const KUBERNETES_STAGING: &str = "v0.36.4";
/// etcd, the store behind both API servers.
pub const ETCD: &str = "v3.6.14";
/// kwok, which simulates the kubelets of the workload cluster.
pub const KWOK: &str = "v0.8.0";
/// containerd, the container runtime of real nodes.
pub const CONTAINERD: &str = "v2.4.2";
/// Helm, which renders and checks the chart.
pub const HELM: &str = "v3.21.4";
/// The Prometheus Operator, of which only the CRDs are used.
pub const PROMETHEUS_OPERATOR: &str = "v0.85.0";
/// Cluster API's core provider.
pub const CLUSTER_API: &str = "v1.14.0";

/// The oldest Go release that compiles all of the above: the `go` line of their modules.
pub const GO: GoVersion = GoVersion { major: 1, minor: 26, patch: 0 };

/// The revision of the recipes. Increase it when the build of a component changes but its version does not, so
/// that old cache entries are not used.
pub const RECIPE: u32 = 1;

/// A released version of the Go tool chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoVersion {
    /// The 1 of `go1.26.8`.
    pub major: u32,
    /// The 26 of `go1.26.8`.
    pub minor: u32,
    /// The 8 of `go1.26.8`; pre-releases such as `go1.27rc1` count as 0.
    pub patch: u32,
}

impl GoVersion {
    /// Parses the output of `go env GOVERSION`: `go1.26.8`, `go1.27rc1`, `go1.26.8-custom`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().strip_prefix("go")?.splitn(3, '.').map(leading_number);
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Self { major, minor, patch: parts.next().flatten().unwrap_or(0) })
    }
}

impl std::fmt::Display for GoVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).map_or(text, |end| &text[..end]);
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_as_the_tool_prints_them() {
        let version = |major, minor, patch| Some(GoVersion { major, minor, patch });
        for (text, expected) in [
            ("go1.26.8\n", version(1, 26, 8)),
            ("go1.26", version(1, 26, 0)),
            ("go1.27rc1", version(1, 27, 0)),
            ("go1.26.3-corporate X:nocoverageredesign", version(1, 26, 3)),
            ("devel go1.28-abcdef", None),
            ("", None),
        ] {
            assert_eq!(GoVersion::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn staging_modules_follow_kubernetes() {
        assert_eq!(KUBERNETES.strip_prefix("v1."), KUBERNETES_STAGING.strip_prefix("v0."));
    }
}
