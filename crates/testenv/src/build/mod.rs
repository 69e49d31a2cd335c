//! Builds every binary of the control plane once: complete binaries in the cache are kept, and incomplete
//! ones of an interrupted build are built again.

mod debian;
mod go;
mod node;
mod recipe;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use debian::PackageError;
pub(crate) use debian::place as debian_package;
pub use go::GoError;
pub use node::{NodeBuildReport, build_node};

use crate::binaries::{Binaries, ENVTEST_PROGRAMS};
use crate::cache::{self, Cache, CacheError};
use go::Go;
use recipe::{Asset, INSTALLATION_RECIPES, Program, RECIPES, Recipe};

/// The reason why the control plane could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The cache could not be written.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The tool chain failed or is missing.
    #[error(transparent)]
    Go(#[from] GoError),
    /// A package of the distribution could not be downloaded or unpacked.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The pause program could not be compiled.
    #[error("failed to compile {path} ({what}): a C compiler (`cc`) and the static C library are needed")]
    Pause {
        /// Its source.
        path: PathBuf,
        /// The cause.
        what: String,
    },
    /// A module does not contain a file that the recipe needs, because its version changed and the recipe did
    /// not.
    #[error("failed to copy {path} of {component}: {source}; does the recipe still fit its version?")]
    Asset {
        /// The component.
        component: &'static str,
        /// The file or directory of the module.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// One item that was built, and the time it took.
#[derive(Debug, Clone)]
pub struct Built {
    /// The program or the directory of manifests.
    pub name: String,
    /// The time it took.
    pub took: Duration,
}

/// The report of a build.
#[derive(Debug)]
pub struct BuildReport {
    /// The paths of everything.
    pub binaries: Binaries,
    /// The components that were built; empty if all were cached.
    pub built: Vec<Built>,
}

/// Builds what is missing. `envtest` is a directory of prebuilt programs (`KUBEBUILDER_ASSETS`), which are
/// used instead. `say` is called with each line of progress.
pub fn build(
    cache: &Cache,
    envtest: Option<&Path>,
    mut say: impl FnMut(&str),
) -> Result<BuildReport, BuildError> {
    let built = build_missing(cache, envtest, &RECIPES, &mut say)?;
    Ok(BuildReport { binaries: Binaries::at(cache, envtest), built })
}

/// Builds Helm into `cache`, and copies the CRDs of the Prometheus Operator there, if they are missing. Returns what was built.
/// `say` is called with each line of progress.
pub fn build_for_installation(cache: &Cache, mut say: impl FnMut(&str)) -> Result<Vec<Built>, BuildError> {
    build_missing(cache, None, &INSTALLATION_RECIPES, &mut say)
}

fn build_missing(
    cache: &Cache,
    envtest: Option<&Path>,
    recipes: &[Recipe],
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Built>, BuildError> {
    if missing(cache, envtest, recipes).is_empty() {
        return Ok(Vec::new());
    }
    let _lock = cache.lock(|| say("waiting for another build into the same cache to finish"))?;
    // Checked again: the other build may have built everything.
    let todo = missing(cache, envtest, recipes);
    let mut builder = Builder::new(cache, say);
    for (recipe, item) in todo {
        builder.make(&recipe, item)?;
    }
    Ok(builder.built)
}

/// One item that a recipe builds.
#[derive(Debug, Clone, Copy)]
enum Item {
    Program(Program),
    Asset(Asset),
}

impl Item {
    fn name(&self) -> &'static str {
        match self {
            Self::Program(program) => program.name,
            Self::Asset(asset) => asset.directory,
        }
    }
}

fn missing(cache: &Cache, envtest: Option<&Path>, recipes: &[Recipe]) -> Vec<(Recipe, Item)> {
    let mut missing = Vec::new();
    for recipe in recipes {
        let programs = recipe.programs.iter().copied().map(Item::Program);
        for item in programs.chain(recipe.assets.iter().copied().map(Item::Asset)) {
            let provided = ENVTEST_PROGRAMS.contains(&item.name())
                && envtest.is_some_and(|directory| directory.join(item.name()).is_file());
            if !provided && !cache::is_complete(&place(cache, recipe, item)) {
                missing.push((*recipe, item));
            }
        }
    }
    missing
}

fn place(cache: &Cache, recipe: &Recipe, item: Item) -> PathBuf {
    cache.component(recipe.component, recipe.version).join(item.name())
}

struct Builder<'a> {
    cache: &'a Cache,
    go: Option<Go>,
    start: Instant,
    /// Components whose wrapper module this run has written.
    prepared: Vec<&'static str>,
    built: Vec<Built>,
    say: &'a mut dyn FnMut(&str),
}

impl<'a> Builder<'a> {
    fn new(cache: &'a Cache, say: &'a mut dyn FnMut(&str)) -> Self {
        Self { cache, go: None, start: Instant::now(), prepared: Vec::new(), built: Vec::new(), say }
    }

    fn make(&mut self, recipe: &Recipe, item: Item) -> Result<(), BuildError> {
        let begun = Instant::now();
        let place = place(self.cache, recipe, item);
        cache::clear(&place)?;
        let wrapper = self.wrapper(recipe)?;
        let go = match self.go.take() {
            Some(go) => go,
            None => Go::find(Path::new("go"), self.cache.root())?,
        };
        let made = match item {
            Item::Program(program) => self.program(&go, recipe, &program, &wrapper, &place),
            Item::Asset(asset) => self.asset(&go, recipe, &asset, &wrapper, &place),
        };
        self.go = Some(go);
        made?;
        cache::install(&place)?;
        let took = begun.elapsed();
        self.say(&format!("{} {} done in {:.1} s", recipe.component, item.name(), took.as_secs_f64()));
        self.built.push(Built { name: item.name().into(), took });
        Ok(())
    }

    /// The directory of the wrapper module. Each run rewrites its `go.mod`, since Go completes it in place
    /// and an interrupted run may have left it in any state.
    fn wrapper(&mut self, recipe: &Recipe) -> Result<PathBuf, BuildError> {
        let wrapper =
            self.cache.root().join("modules").join(format!("{}-{}", recipe.component, recipe.version));
        cache::create_dir_all(&wrapper)?;
        let go_mod = wrapper.join("go.mod");
        if !self.prepared.contains(&recipe.component) {
            self.prepared.push(recipe.component);
            fs::write(&go_mod, recipe.go_mod()).map_err(|source| CacheError::Io {
                action: "write",
                path: go_mod,
                source,
            })?;
        }
        Ok(wrapper)
    }

    fn program(
        &mut self,
        go: &Go,
        recipe: &Recipe,
        program: &Program,
        wrapper: &Path,
        place: &Path,
    ) -> Result<(), BuildError> {
        let parent = place.parent().unwrap_or(self.cache.root());
        cache::create_dir_all(parent)?;
        let partial = cache::partial(place);
        let arguments = recipe.build_arguments(program, &partial.display().to_string());
        let doing = format!("building {} {}", program.name, recipe.version);
        let log = wrapper.join(format!("{}.log", program.name));
        self.say(&doing);
        let start = self.start;
        go.run(&doing, wrapper, &arguments, &log, |last| {
            (self.say)(&stamped(start, &format!("still {doing} {last}")));
        })?;
        Ok(())
    }

    fn asset(
        &mut self,
        go: &Go,
        recipe: &Recipe,
        asset: &Asset,
        wrapper: &Path,
        place: &Path,
    ) -> Result<(), BuildError> {
        self.say(&format!("copying {} of {} {}", asset.directory, recipe.component, recipe.version));
        if recipe.programs.is_empty() {
            // No build has downloaded the module.
            let doing = format!("downloading {} {}", recipe.component, recipe.version);
            let arguments =
                ["mod".into(), "download".into(), format!("{}@{}", recipe.modules[0], recipe.version)];
            go.run(&doing, wrapper, &arguments, &wrapper.join("download.log"), |_| {})?;
        }
        let module = go.module_directory(wrapper, recipe.modules[0])?;
        let partial = cache::partial(place);
        cache::create_dir_all(&partial)?;
        for pattern in asset.files {
            let error =
                |path: PathBuf| move |source| BuildError::Asset { component: recipe.component, path, source };
            for file in expand(&module, pattern).map_err(error(module.join(pattern)))? {
                let name = file.file_name().unwrap_or_default();
                // Read and written instead of copied: Go's module cache is read-only, and a copy would be
                // too.
                fs::read(&file)
                    .and_then(|text| fs::write(partial.join(name), text))
                    .map_err(error(file.clone()))?;
            }
        }
        Ok(())
    }

    fn say(&mut self, line: &str) {
        (self.say)(&stamped(self.start, line));
    }
}

fn stamped(start: Instant, line: &str) -> String {
    format!("[{:>4} s] {line}", start.elapsed().as_secs())
}

/// The files that a pattern of [`Asset`] selects, at least one.
fn expand(module: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let Some(directory) = pattern.strip_suffix("/*.yaml") else {
        return Ok(vec![module.join(pattern)]);
    };
    let mut files: Vec<PathBuf> = fs::read_dir(module.join(directory))?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter(|path| path.file_stem().is_none_or(|stem| stem != "kustomization"))
        .collect();
    files.sort();
    if files.is_empty() { Err(io::Error::from(io::ErrorKind::NotFound)) } else { Ok(files) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CacheEnvironment;

    fn cache_in(directory: &Path) -> Cache {
        let environment =
            CacheEnvironment { override_dir: Some(directory.into()), ..CacheEnvironment::default() };
        Cache::locate(&environment).expect("a place")
    }

    fn names(missing: &[(Recipe, Item)]) -> Vec<&'static str> {
        missing.iter().map(|(_, item)| item.name()).collect()
    }

    /// Fills the cache, so that a test can remove one item.
    fn fill(cache: &Cache) {
        for (recipe, item) in missing(cache, None, &RECIPES) {
            let place = place(cache, &recipe, item);
            cache::create_dir_all(place.parent().expect("a parent")).expect("create");
            match item {
                Item::Program(_) => fs::write(cache::partial(&place), "program").expect("write"),
                Item::Asset(_) => cache::create_dir_all(&cache::partial(&place)).expect("create"),
            }
            cache::install(&place).expect("install");
        }
    }

    #[test]
    fn an_empty_cache_lacks_everything() {
        let dir = tempfile::tempdir().expect("a directory");
        let all = names(&missing(&cache_in(dir.path()), None, &RECIPES));
        for name in
            ["kube-apiserver", "kubectl", "etcd", "kwok", "stages", "cluster-api", "crds", "kubeadm-crds"]
        {
            assert!(all.contains(&name), "{name} in {all:?}");
        }
    }

    #[test]
    fn a_full_cache_needs_no_go_and_prints_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let cache = cache_in(dir.path());
        fill(&cache);
        let report = build(&cache, None, |line| panic!("said {line}")).expect("nothing to do");
        assert!(report.built.is_empty());
    }

    #[test]
    fn only_incomplete_items_are_built_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let cache = cache_in(dir.path());
        fill(&cache);
        let kwok = place(&cache, &RECIPES[2], Item::Program(RECIPES[2].programs[0]));
        fs::write(&kwok, "pro").expect("truncate");
        assert_eq!(names(&missing(&cache, None, &RECIPES)), ["kwok"]);
    }

    #[test]
    fn only_the_tests_of_the_installation_build_helm() {
        let dir = tempfile::tempdir().expect("a directory");
        let cache = cache_in(dir.path());
        assert!(!names(&missing(&cache, None, &RECIPES)).contains(&"helm"));
        let [helm, operator] = INSTALLATION_RECIPES;
        assert_eq!(names(&missing(&cache, None, &INSTALLATION_RECIPES)), ["helm", "monitoring-crds"]);
        let place_of_helm = place(&cache, &helm, Item::Program(helm.programs[0]));
        assert_eq!(place_of_helm, crate::binaries::helm(&cache));
        let crds = place(&cache, &operator, Item::Asset(operator.assets[0]));
        assert_eq!(crds, crate::binaries::prometheus_operator_crds(&cache));
    }

    #[test]
    fn programs_of_envtest_are_not_built() {
        let dir = tempfile::tempdir().expect("a directory");
        let envtest = tempfile::tempdir().expect("a directory");
        fs::write(envtest.path().join("etcd"), "program").expect("write");
        let left = names(&missing(&cache_in(dir.path()), Some(envtest.path()), &RECIPES));
        assert!(!left.contains(&"etcd"), "{left:?}");
        assert!(left.contains(&"kube-apiserver"), "what it lacks is built: {left:?}");
    }

    #[test]
    fn patterns_leave_kustomizations_out() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["kustomization.yaml", "b.yaml", "a.yaml", "README.md"] {
            fs::write(dir.path().join(name), "").expect("write");
        }
        let module = dir.path().parent().expect("a parent");
        let pattern = format!("{}/*.yaml", dir.path().file_name().expect("a name").to_string_lossy());
        let files = expand(module, &pattern).expect("expand");
        assert_eq!(files, [dir.path().join("a.yaml"), dir.path().join("b.yaml")]);
    }
}
