//! Rules of style that the compiler does not know, checked on all sources.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The longest name of a test.
const TEST_NAME: usize = 60;

/// The most lines of a file.
const LINES: usize = 600;

/// Words that no doc comment begins with: it begins with a noun phrase or a verb.
const BEGINNINGS: [&str; 5] = ["What", "How", "Whether", "Who", "Whoever"];

/// Names that several public types of libraries may have, each with the reason.
const SHARED_NAMES: [(&str, &str); 8] = [
    ("Args", "the flags of a program; no other crate uses them"),
    ("Case", "one case of a suite: requests of the conformance suite, or a scenario with a fault"),
    ("LogFormat", "the same for two programs that share no crate that could contain it"),
    ("Received", "one of two implementations, chosen by the operating system"),
    ("Step", "one step of a walk through objects, or of a conformance case"),
    ("Subject", "the object that an explanation, or a scenario, is about"),
    ("Subscriber", "one of two implementations, chosen by the operating system"),
    ("SubscriberOptions", "one of two implementations, chosen by the operating system"),
];

/// A Rust file of the repository.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()))
    }

    /// Returns true if the file belongs to a library and contains more than tests.
    fn is_library(&self, libraries: &[&str]) -> bool {
        let is_test = self.path.ends_with("tests.rs") || self.path.contains("/src/tests/");
        let of_library = libraries.iter().any(|library| self.path.starts_with(library));
        of_library && !is_test && !self.path.split("/src/").any(|part| part.contains("/tests/"))
    }
}

/// The Rust files that git knows.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new("git").args(["ls-files", "*.rs"]).current_dir(&root).output().expect("git");
    assert!(output.status.success(), "{output:?}");
    let listed = String::from_utf8(output.stdout).expect("UTF-8");
    // A file that was deleted is listed until that is committed.
    let read = |path: &str| Some((path.to_owned(), std::fs::read_to_string(root.join(path)).ok()?));
    listed.lines().filter_map(read).map(|(path, text)| Source { path, text }).collect()
}

/// Returns the name of the item that a line defines, such as `struct`.
fn defined<'a>(line: &'a str, items: &[&str]) -> Option<&'a str> {
    let rest = items.iter().find_map(|item| line.strip_prefix(item)?.strip_prefix(' '))?;
    rest.split(|character: char| !character.is_alphanumeric() && character != '_').next()
}

/// The tests with names that are too long.
fn long_test_names(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut follows_attribute = false;
    for (number, line) in source.lines() {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            follows_attribute = true;
        } else if let Some(name) = defined(line.trim_start_matches("async "), &["fn"]) {
            if follows_attribute && name.len() > TEST_NAME {
                found.push(format!("{}:{number}: {name} has {} characters", source.path, name.len()));
            }
            follows_attribute = false;
        }
    }
    found
}

/// The doc comments that begin with one of [`BEGINNINGS`].
fn questions(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = None;
    for (number, line) in source.lines() {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim);
        let begins = before.is_none_or(str::is_empty);
        let first = comment.and_then(|text| text.split(|character: char| !character.is_alphabetic()).next());
        if begins && first.is_some_and(|word| BEGINNINGS.contains(&word)) {
            found.push(format!("{}:{number}: {line}", source.path));
        }
        before = comment;
    }
    found
}

/// The names of several public types of libraries, with the files that define them.
fn repeated_names(sources: &[Source]) -> Vec<String> {
    let roots = sources.iter().filter_map(|source| source.path.strip_suffix("lib.rs"));
    let libraries: Vec<&str> = roots.filter(|root| root.ends_with("/src/")).collect();
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_library(&libraries)) {
        for (_, line) in source.lines() {
            if let Some(name) = defined(line, &["pub struct", "pub enum", "pub trait", "pub type"]) {
                files.entry(name).or_default().push(&source.path);
            }
        }
    }
    files.retain(|_, files| files.len() > 1);
    let reason =
        |name: &str| SHARED_NAMES.iter().any(|(allowed, reason)| *allowed == name && !reason.is_empty());
    let mut found: Vec<String> = files
        .iter()
        .filter(|(name, _)| !reason(name))
        .map(|(name, files)| format!("{name} is defined in {}", files.join(", ")))
        .collect();
    let unused = SHARED_NAMES.iter().filter(|(name, _)| !files.contains_key(name));
    found.extend(unused.map(|(name, _)| format!("{name} need not be in SHARED_NAMES")));
    found
}

#[test]
fn test_names_have_at_most_sixty_characters() {
    let found: Vec<String> = sources().iter().flat_map(long_test_names).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn files_have_at_most_six_hundred_lines() {
    let sources = sources();
    assert!(sources.len() > 500, "only {} files", sources.len());
    let long = sources.iter().filter(|source| source.text.lines().count() > LINES);
    let found: Vec<&str> = long.map(|source| source.path.as_str()).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn doc_comments_do_not_begin_like_questions() {
    let found: Vec<String> = sources().iter().flat_map(questions).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn public_types_of_libraries_have_different_names() {
    let found = repeated_names(&sources());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn violations_are_found() {
    let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let name = "a".repeat(TEST_NAME + 1);
    let tests = source("a.rs", &format!("#[test]\nfn {name}() {{}}\nfn b{name}() {{}}"));
    assert_eq!(long_test_names(&tests), [format!("a.rs:2: {name} has 61 characters")]);
    let comments =
        "//! The time.\n//! How long it is.\n\n/// What it is.\n///\n/// Whether it is.\n/// Whose it is.";
    assert_eq!(questions(&source("a.rs", comments)).len(), 2);
    let sources = [
        source("crates/a/src/lib.rs", "pub struct World;\nstruct Private;"),
        source("crates/b/src/lib.rs", "    pub enum World {}\npub(crate) struct Private;"),
        source("crates/c/src/main.rs", "pub struct World;"),
    ];
    let found = repeated_names(&sources);
    assert_eq!(found[0], "World is defined in crates/a/src/lib.rs, crates/b/src/lib.rs");
    assert_eq!(found.len(), 1 + SHARED_NAMES.len());
}
