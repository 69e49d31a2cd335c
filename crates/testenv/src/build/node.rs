//! Builds everything that a real node runs: kubelet and containerd from Go modules, the pause program from Kubernetes'
//! own source, the rest from packages of the distribution.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::recipe::NODE_RECIPES;
use super::{BuildError, Builder, Built, debian, missing};
use crate::cache::{self, Cache};
use crate::node::NodeBinaries;

/// The outcome of building a node's programs.
#[derive(Debug)]
pub struct NodeBuildReport {
    /// The paths of everything.
    pub binaries: NodeBinaries,
    /// The programs that had to be built; empty if all existed.
    pub built: Vec<Built>,
}

/// Builds the missing programs of a real node into `cache`. `say` is called with each line of progress.
pub fn build_node(cache: &Cache, mut say: impl FnMut(&str)) -> Result<NodeBuildReport, BuildError> {
    let binaries = NodeBinaries::at(cache);
    if is_complete(cache, &binaries) {
        return Ok(NodeBuildReport { binaries, built: Vec::new() });
    }
    let _lock = cache.lock(|| say("waiting for another build into the same cache to finish"))?;
    let mut builder = Builder::new(cache, &mut say);
    // Packages first: they take seconds, and if the distribution does not have them, the error comes before
    // the long builds.
    for package in debian::PACKAGES {
        if !cache::is_complete(&debian::place(cache, package)) {
            let begun = Instant::now();
            builder.say(&format!("unpacking the package {package}"));
            debian::unpack(cache, package)?;
            builder.built.push(Built { name: package.into(), took: begun.elapsed() });
        }
    }
    for (recipe, item) in missing(cache, None, &NODE_RECIPES) {
        builder.make(&recipe, item)?;
    }
    if !cache::is_complete(&binaries.pause) {
        let begun = Instant::now();
        compile_pause(&binaries)?;
        builder.built.push(Built { name: "pause".into(), took: begun.elapsed() });
    }
    Ok(NodeBuildReport { binaries, built: builder.built })
}

fn is_complete(cache: &Cache, binaries: &NodeBinaries) -> bool {
    debian::PACKAGES.iter().all(|package| cache::is_complete(&debian::place(cache, package)))
        && missing(cache, None, &NODE_RECIPES).is_empty()
        && cache::is_complete(&binaries.pause)
}

/// Compiles the program that holds the namespaces of a pod.
fn compile_pause(binaries: &NodeBinaries) -> Result<(), BuildError> {
    let source = binaries.pause_source.as_path();
    cache::clear(&binaries.pause)?;
    let error = |what: String| BuildError::Pause { path: source.to_path_buf(), what };
    let output = Command::new("cc")
        .args(["-Os", "-static", "-DVERSION=5spot", "-o"])
        .args([cache::partial(&binaries.pause).as_path(), Path::new(source)])
        .output()
        .map_err(|source| error(source.to_string()))?;
    if !output.status.success() {
        return Err(error(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(cache::install(&binaries.pause)?)
}
