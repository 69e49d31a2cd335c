//! The layers of this crate: `transport`, `cache`, `view` and `execute`, each of which uses only those before it. The
//! modules inside a layer form no cycles either.
//!
//! The test reads the sources. Modules name each other by their full path (`crate::cache::store::Store`), so that every
//! dependency shows in the text. A folder with a `mod.rs` counts as one module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layers, the lowest first.
const LAYERS: [&str; 4] = ["transport", "cache", "view", "execute"];

/// A module directly below a layer.
type Module = (String, String);

#[test]
fn a_layer_uses_only_the_layers_before_it() {
    let position = |layer: &str| LAYERS.iter().position(|known| *known == layer);
    let wrong: Vec<String> = dependencies()
        .into_iter()
        .filter(|(from, to)| position(&from.0) < position(&to.0))
        .map(|(from, to)| format!("{} uses {}", name(&from), name(&to)))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn modules_form_no_cycles() {
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (from, to) in dependencies() {
        edges.entry(from).or_default().insert(to);
    }
    // Modules that use nothing any more are removed, one after the other. What is left is a cycle, or uses one.
    let mut left: BTreeSet<Module> = edges.keys().cloned().collect();
    loop {
        let uses_none = |module: &Module| edges[module].iter().all(|used| !left.contains(used));
        let removable: Vec<Module> = left.iter().filter(|module| uses_none(module)).cloned().collect();
        if removable.is_empty() {
            break;
        }
        left.retain(|module| !removable.contains(module));
    }
    let cycle: Vec<String> = left.iter().map(name).collect();
    assert_eq!(cycle, Vec::<String>::new(), "these modules are part of a cycle or depend on one");
}

#[test]
fn modules_name_each_other_by_their_full_path() {
    let modules = modules();
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        for path in crate_paths(&text) {
            let segments: Vec<&str> = path.split("::").collect();
            let is_full = match segments.as_slice() {
                [layer, module, ..] => modules.contains(&((*layer).to_owned(), (*module).to_owned())),
                _ => false,
            };
            if !is_full {
                wrong.push(format!("{}: crate::{path}", file.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn paths_are_found_in_nested_imports() {
    let text = "use crate::cache::{a, b::{C, d::E}};\nlet x = crate::view::f::g();\n// crate::no::comment\n";
    assert_eq!(crate_paths(text), ["cache::a", "cache::b::C", "cache::b::d::E", "view::f::g"]);
}

fn name((layer, module): &Module) -> String {
    format!("{layer}::{module}")
}

/// Every use of one module by another, tests of the modules included.
fn dependencies() -> BTreeSet<(Module, Module)> {
    let modules = modules();
    let mut found = BTreeSet::new();
    for (file, text) in sources() {
        let Some(from) = module_of(&file).filter(|module| modules.contains(module)) else { continue };
        for path in crate_paths(&text).into_iter().chain(sibling_paths(&file, &text, &from.0)) {
            let mut segments = path.split("::").map(str::to_owned);
            if let (Some(layer), Some(module)) = (segments.next(), segments.next()) {
                let to = (layer, module);
                if modules.contains(&to) && to != from {
                    found.insert((from.clone(), to));
                }
            }
        }
    }
    assert!(found.len() > 50, "the sources were not found");
    found
}

/// The modules directly below the layers.
fn modules() -> BTreeSet<Module> {
    sources().iter().filter_map(|(file, _)| module_of(file)).collect()
}

/// The module of a file; `None` for the `mod.rs` of a layer and for `lib.rs`.
fn module_of(file: &Path) -> Option<Module> {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        [layer, "mod.rs"] if LAYERS.contains(layer) => None,
        [layer, module] => Some(((*layer).to_owned(), module.trim_end_matches(".rs").to_owned())),
        [layer, folder, ..] => Some(((*layer).to_owned(), (*folder).to_owned())),
        _ => None,
    }
}

/// The sources of the layers, with paths relative to `src`, without comments.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = LAYERS.iter().map(|layer| root.join(layer)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                found.push((path.strip_prefix(&root).expect("below src").to_owned(), text));
            }
        }
    }
    found
}

/// All paths that begin with `crate::`, without that, one for each leaf of an import.
fn crate_paths(text: &str) -> Vec<String> {
    paths_after(text, "crate::")
}

/// Paths that begin with `super::` in a file directly below a layer, where they lead to another module of the layer.
fn sibling_paths(file: &Path, text: &str, layer: &str) -> Vec<String> {
    if file.iter().count() != 2 {
        return Vec::new();
    }
    paths_after(text, "super::").into_iter().map(|path| format!("{layer}::{path}")).collect()
}

fn paths_after(text: &str, prefix: &str) -> Vec<String> {
    let code: String = text.lines().flat_map(|line| [line.split("//").next().unwrap_or(""), "\n"]).collect();
    let mut paths = Vec::new();
    for (start, _) in code.match_indices(prefix) {
        // `pub(in crate::a)` and `$crate::` are not uses.
        if code[..start].ends_with(['$', '_']) || code[..start].ends_with(char::is_alphanumeric) {
            continue;
        }
        expand(&code[start + prefix.len()..], "", &mut paths);
    }
    paths
}

/// Expands one path or tree of paths. Returns the rest of the text after it.
fn expand<'a>(text: &'a str, before: &str, paths: &mut Vec<String>) -> &'a str {
    let mut rest = text.trim_start();
    if let Some(tree) = rest.strip_prefix('{') {
        rest = tree;
        loop {
            rest = expand(rest, before, paths).trim_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next.trim_start(),
                None => break,
            }
            if rest.starts_with('}') {
                break;
            }
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (segment, after) = rest.split_at(end);
    let path = if before.is_empty() { segment.to_owned() } else { format!("{before}::{segment}") };
    match after.strip_prefix("::") {
        Some(next) if !next.starts_with('<') => expand(next, &path, paths),
        _ => {
            paths.push(path);
            after
        }
    }
}
