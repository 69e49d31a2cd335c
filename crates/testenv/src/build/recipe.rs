//! The build recipes: the wrapper modules, packages and flags that build each component from the Go module
//! proxy, the only source that has all of them.

use std::fmt::Write as _;

use crate::versions::{
    CLUSTER_API, CONTAINERD, ETCD, GO, HELM, KUBERNETES, KUBERNETES_STAGING, KWOK, PROMETHEUS_OPERATOR,
};

/// One Go module, and the programs and files taken from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recipe {
    /// Names the component's directory in the cache.
    pub(crate) component: &'static str,
    /// The version that the directory is keyed by.
    pub(crate) version: &'static str,
    /// The modules that the wrapper requires, at `version`; the first is the one that assets are copied from.
    pub(crate) modules: &'static [&'static str],
    /// `replace` lines of the wrapper.
    pub(crate) replaces: &'static [Replace],
    /// Build tags.
    pub(crate) tags: &'static str,
    /// Packages whose version variables the linker sets, as in the project's own release.
    pub(crate) version_packages: &'static [&'static str],
    /// The programs.
    pub(crate) programs: &'static [Program],
    /// Manifests that `up` needs; they are copied so that it does not need Go.
    pub(crate) assets: &'static [Asset],
}

/// Modules of one project that must be pinned together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replace {
    pub(crate) prefix: &'static str,
    pub(crate) modules: &'static [&'static str],
    pub(crate) version: &'static str,
}

/// A program and the package it is built from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
}

/// A directory of manifests: `files` of the module; a trailing `/*.yaml` selects all files of a directory
/// except its kustomization.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asset {
    pub(crate) directory: &'static str,
    pub(crate) files: &'static [&'static str],
}

/// The module that contains the programs of Kubernetes.
const KUBERNETES_RECIPE: Recipe = Recipe {
    component: "kubernetes",
    version: KUBERNETES,
    modules: &["k8s.io/kubernetes"],
    replaces: &[Replace { prefix: "k8s.io/", modules: STAGING_MODULES, version: KUBERNETES_STAGING }],
    tags: "selinux,notest",
    // Without them, the server reports the version v0.0.0-master, which Cluster API refuses.
    version_packages: &["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"],
    programs: &[],
    assets: &[],
};

/// The Go programs of a real node. Only tests that need one build them.
pub(crate) const NODE_RECIPES: [Recipe; 2] = [
    Recipe {
        programs: &[Program { name: "kubelet", package: "k8s.io/kubernetes/cmd/kubelet" }],
        assets: &[Asset { directory: "pause-source", files: &["build/pause/linux/pause.c"] }],
        ..KUBERNETES_RECIPE
    },
    Recipe {
        component: "containerd",
        version: CONTAINERD,
        modules: &["github.com/containerd/containerd/v2"],
        replaces: &[],
        // Snapshotters that need C libraries, or kernels that are not tested.
        tags: "no_btrfs,no_devmapper,no_zfs,no_aufs",
        version_packages: &[],
        programs: &[
            Program { name: "containerd", package: "github.com/containerd/containerd/v2/cmd/containerd" },
            Program {
                name: "containerd-shim-runc-v2",
                package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            },
            Program { name: "ctr", package: "github.com/containerd/containerd/v2/cmd/ctr" },
        ],
        assets: &[],
    },
];

/// Helm, and the CRDs of the Prometheus Operator. Only the tests of the installation need them.
pub(crate) const INSTALLATION_RECIPES: [Recipe; 2] = [
    Recipe {
        component: "helm",
        version: HELM,
        modules: &["helm.sh/helm/v3"],
        // The modules that kubectl is built from, so that Go compiles them once.
        replaces: &[Replace { prefix: "k8s.io/", modules: STAGING_MODULES, version: KUBERNETES_STAGING }],
        tags: "",
        version_packages: &[],
        programs: &[Program { name: "helm", package: "helm.sh/helm/v3/cmd/helm" }],
        assets: &[],
    },
    Recipe {
        component: "prometheus-operator",
        version: PROMETHEUS_OPERATOR,
        modules: &["github.com/prometheus-operator/prometheus-operator"],
        replaces: &[],
        tags: "",
        version_packages: &[],
        programs: &[],
        assets: &[Asset {
            directory: "monitoring-crds",
            files: &[
                "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
                "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
            ],
        }],
    },
];

/// Sorted by build time, slowest first, so that a machine that cannot build fails early.
pub(crate) const RECIPES: [Recipe; 4] = [
    Recipe {
        programs: &[
            Program { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
            Program {
                name: "kube-controller-manager",
                package: "k8s.io/kubernetes/cmd/kube-controller-manager",
            },
            Program { name: "kube-scheduler", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
            Program { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
        ],
        ..KUBERNETES_RECIPE
    },
    Recipe {
        component: "etcd",
        version: ETCD,
        modules: &["go.etcd.io/etcd/server/v3"],
        replaces: &[],
        tags: "",
        version_packages: &[],
        programs: &[Program { name: "etcd", package: "go.etcd.io/etcd/server/v3" }],
        assets: &[],
    },
    Recipe {
        component: "kwok",
        version: KWOK,
        modules: &["sigs.k8s.io/kwok"],
        replaces: &[],
        tags: "",
        version_packages: &[],
        programs: &[Program { name: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" }],
        assets: &[Asset {
            directory: "stages",
            files: &[
                "kustomize/stage/node/fast/*.yaml",
                "kustomize/stage/node/heartbeat-with-lease/*.yaml",
                "kustomize/stage/node/chaos/node-not-ready.yaml",
                "kustomize/stage/pod/fast/pod-ready.yaml",
                // The stage that ends pods is part of this crate: kwok's own stages either ignore grace
                // periods or choose them at random.
                "kustomize/stage/pod/fast/pod-complete.yaml",
            ],
        }],
    },
    Recipe {
        component: "cluster-api",
        version: CLUSTER_API,
        modules: &["sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api/api"],
        // The module replaces its own API module by a directory, which a wrapper has to undo.
        replaces: &[Replace {
            prefix: "sigs.k8s.io/",
            modules: &["cluster-api", "cluster-api/api"],
            version: CLUSTER_API,
        }],
        tags: "",
        version_packages: &[],
        programs: &[Program { name: "cluster-api", package: "sigs.k8s.io/cluster-api/core" }],
        assets: &[
            Asset { directory: "crds", files: &["core/config/crd/bases/*.yaml"] },
            Asset { directory: "rbac", files: &["core/config/rbac/*.yaml"] },
            Asset { directory: "webhooks", files: &["core/config/webhook/manifests.yaml"] },
            Asset {
                directory: "kubeadm-crds",
                files: &["bootstrap/kubeadm/config/crd/bases/bootstrap.cluster.x-k8s.io_kubeadmconfigs.yaml"],
            },
        ],
    },
];

const STAGING_MODULES: &[&str] = &[
    "api",
    "apiextensions-apiserver",
    "apimachinery",
    "apiserver",
    "cli-runtime",
    "client-go",
    "cloud-provider",
    "cluster-bootstrap",
    "code-generator",
    "component-base",
    "component-helpers",
    "controller-manager",
    "cri-api",
    "cri-client",
    "cri-streaming",
    "csi-translation-lib",
    "dynamic-resource-allocation",
    "endpointslice",
    "externaljwt",
    "kms",
    "kube-aggregator",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "metrics",
    "mount-utils",
    "pod-security-admission",
    "sample-apiserver",
    "sample-cli-plugin",
    "sample-controller",
    "streaming",
];

impl Recipe {
    /// The `go.mod` of the wrapper module.
    pub(crate) fn go_mod(&self) -> String {
        let mut text = format!("module control-plane/{}\n\ngo {GO}\n\nrequire (\n", self.component);
        for module in self.modules {
            let _ = writeln!(text, "\t{module} {}", self.version);
        }
        text.push_str(")\n");
        for Replace { prefix, modules, version } in self.replaces {
            text.push_str("\nreplace (\n");
            for module in *modules {
                let _ = writeln!(text, "\t{prefix}{module} => {prefix}{module} {version}");
            }
            text.push_str(")\n");
        }
        text
    }

    /// The arguments of `go` that build one program to `output`.
    pub(crate) fn build_arguments(&self, program: &Program, output: &str) -> Vec<String> {
        let mut arguments = vec!["build".into(), "-trimpath".into(), "-buildvcs=false".into()];
        if !self.tags.is_empty() {
            arguments.extend(["-tags".into(), self.tags.into()]);
        }
        arguments.extend(["-ldflags".into(), self.linker_flags()]);
        arguments.extend(["-o".into(), output.into(), program.package.into()]);
        arguments
    }

    fn linker_flags(&self) -> String {
        let mut flags = String::from("-s -w");
        let mut numbers = self.version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        for package in self.version_packages {
            let values = [
                ("gitVersion", self.version),
                ("gitMajor", major),
                ("gitMinor", minor),
                ("gitTreeState", "clean"),
            ];
            for (variable, value) in values {
                let _ = write!(flags, " -X {package}.{variable}={value}");
            }
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrapper_of_kubernetes_pins_every_staging_module() {
        let text = RECIPES[0].go_mod();
        assert!(text.contains(&format!("\tk8s.io/kubernetes {KUBERNETES}\n")), "{text}");
        assert_eq!(text.matches(" => ").count(), STAGING_MODULES.len());
        assert!(
            text.contains(&format!("\tk8s.io/client-go => k8s.io/client-go {KUBERNETES_STAGING}\n")),
            "{text}"
        );
    }

    #[test]
    fn the_api_server_knows_its_version() {
        let recipe = &RECIPES[0];
        let arguments = recipe.build_arguments(&recipe.programs[0], "out").join(" ");
        let (_, minor) = KUBERNETES.split_once('.').expect("a dot");
        let minor = minor.split('.').next().expect("a minor version");
        for expected in [
            format!("-X k8s.io/component-base/version.gitVersion={KUBERNETES}"),
            format!("-X k8s.io/client-go/pkg/version.gitMinor={minor}"),
            "-tags selinux,notest".into(),
            "-o out k8s.io/kubernetes/cmd/kube-apiserver".into(),
        ] {
            assert!(arguments.contains(&expected), "{expected} in {arguments}");
        }
    }
}
