//! The files of a bundle, their limits, and the index. Everything passes the redaction on its way in.

use five_spot_diagnose::redact::{is_secret, redact_object, redact_text};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The limits of a bundle.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bytes of one file. Logs are cut at the front: the end is what matters.
    file: usize,
    /// Bytes of all files before compression.
    total: usize,
}

impl Default for Limits {
    /// Text compresses about ten times, so that a bundle can be attached to an issue.
    fn default() -> Self {
        Self { file: 8 << 20, total: 96 << 20 }
    }
}

/// The longest part of a path that comes from a name.
const MAX_NAME: usize = 80;

/// The folder in the archive.
pub const ROOT: &str = "5spot-debug";

/// A file of the bundle.
#[derive(Clone, Debug)]
struct File {
    about: String,
    content: Vec<u8>,
    redactions: usize,
    truncated: bool,
}

/// Something that is not in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Missing {
    pub what: String,
    pub reason: String,
}

/// The files, sorted by path.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    limits: Limits,
    files: BTreeMap<String, File>,
    missing: Vec<Missing>,
    total: usize,
}

/// The facts in the index about the bundle itself.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The time by the clock of the API server.
    pub created: String,
    /// The version of this program.
    pub program: String,
    /// The address of the API server.
    pub server: String,
    /// The namespace that was asked for; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IndexedFile<'a> {
    path: &'a str,
    about: &'a str,
    bytes: usize,
    redactions: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Bundle {
    /// Adds text.
    pub fn add_text(&mut self, path: &str, about: &str, text: &str) {
        let (text, redactions) = redact_text(text);
        let truncated = text.len() > self.limits.file;
        let content = if truncated { tail(&text, self.limits.file) } else { &text };
        self.insert(path, File { about: about.to_owned(), content: content.into(), redactions, truncated });
    }

    /// Adds an object as YAML. Secrets are left out, whoever returned them.
    pub fn add_object(&mut self, path: &str, about: &str, object: &Value) {
        self.add_objects(path, about, std::slice::from_ref(object));
    }

    /// Adds objects as YAML documents.
    pub fn add_objects(&mut self, path: &str, about: &str, objects: &[Value]) {
        let mut redactions = 0;
        let mut text = String::new();
        for object in objects.iter().filter(|object| !is_secret(object)) {
            let mut object = object.clone();
            redactions += redact_object(&mut object);
            match serde_saphyr::to_string(&object) {
                Ok(yaml) => {
                    let _ = write!(text, "---\n{yaml}");
                }
                Err(error) => self.miss(path, &format!("an object cannot be written as YAML: {error}")),
            }
        }
        let (text, further) = redact_text(&text);
        let truncated = text.len() > self.limits.file;
        let content = if truncated { head(&text, self.limits.file) } else { &text };
        let redactions = redactions + further;
        self.insert(path, File { about: about.to_owned(), content: content.into(), redactions, truncated });
    }

    /// Notes something that could not be read.
    pub fn miss(&mut self, what: &str, reason: &str) {
        let (reason, _) = redact_text(reason);
        self.missing.push(Missing { what: what.to_owned(), reason: reason.into_owned() });
    }

    /// The number of things that are missing.
    pub fn missing(&self) -> usize {
        self.missing.len()
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    fn insert(&mut self, path: &str, file: File) {
        if self.total + file.content.len() > self.limits.total {
            self.miss(
                path,
                &format!("left out: the bundle would have more than {} bytes", self.limits.total),
            );
            return;
        }
        self.total += file.content.len();
        self.files.insert(path.to_owned(), file);
    }

    /// The files with their index, in the order of their paths. The index and the README come first.
    pub fn finish(mut self, origin: &Origin) -> Vec<(String, Vec<u8>)> {
        self.missing.sort();
        self.missing.dedup();
        let index = serde_json::json!({
            "origin": origin,
            "files": self.indexed(),
            "missing": self.missing,
        });
        let mut json = serde_json::to_string_pretty(&index).unwrap_or_default();
        json.push('\n');
        let readme = self.readme(origin);
        let first =
            [("index.json".to_owned(), json.into_bytes()), ("README.txt".to_owned(), readme.into_bytes())];
        let files = self.files.into_iter().map(|(path, file)| (path, file.content));
        first.into_iter().chain(files).map(|(path, content)| (format!("{ROOT}/{path}"), content)).collect()
    }

    fn indexed(&self) -> Vec<IndexedFile<'_>> {
        let files = self.files.iter().map(|(path, file)| IndexedFile {
            path,
            about: &file.about,
            bytes: file.content.len(),
            redactions: file.redactions,
            truncated: file.truncated,
        });
        files.collect()
    }

    fn readme(&self, origin: &Origin) -> String {
        let redactions: usize = self.files.values().map(|file| file.redactions).sum();
        let mut text = format!(
            "5-Spot debug bundle\n\ncreated  {}\nprogram  {}\nserver   {}\nscope    {}\n\n\
             It contains no Secret. {redactions} values that look like credentials were removed; check the\n\
             files yourself before you give them to someone else.\n\nFiles\n",
            origin.created,
            origin.program,
            origin.server,
            origin
                .namespace
                .as_ref()
                .map_or_else(|| "all namespaces".to_owned(), |it| format!("namespace {it}")),
        );
        for (path, file) in &self.files {
            let cut = if file.truncated { ", cut" } else { "" };
            let _ = writeln!(text, "  {path}  ({} bytes{cut})\n      {}", file.content.len(), file.about);
        }
        if !self.missing.is_empty() {
            text.push_str("\nNot in the bundle\n");
            for missing in &self.missing {
                let _ = writeln!(text, "  {}\n      {}", missing.what, missing.reason);
            }
        }
        text
    }
}

/// A name as a part of a path: nothing in it leads elsewhere, and it is not too long.
pub fn path_part(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(MAX_NAME).collect();
    if plain.trim_matches('.').is_empty() { "_".to_owned() } else { plain }
}

/// The end of a text, from the beginning of a line.
fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len() - bytes;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].split_once('\n').map_or(&text[start..], |(_, rest)| rest)
}

/// The beginning of a text.
fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn origin() -> Origin {
        Origin {
            created: "2026-11-17T12:00:00Z".to_owned(),
            program: "5spot 0.1.0".to_owned(),
            server: "https://192.0.2.1:6443/".to_owned(),
            namespace: None,
        }
    }

    fn content<'a>(files: &'a [(String, Vec<u8>)], path: &str) -> &'a str {
        let (_, content) = files.iter().find(|(it, _)| it == &format!("{ROOT}/{path}")).expect("a file");
        std::str::from_utf8(content).expect("text")
    }

    #[test]
    fn the_index_lists_every_file_and_what_is_missing() {
        let mut bundle = Bundle::default();
        bundle.add_text("b.log", "a log", "Bearer abc\n");
        bundle.add_object("a.yaml", "an object", &json!({"kind": "ConfigMap", "data": {"a": "b"}}));
        bundle.miss("metrics", "you may not get pods/proxy");
        bundle.miss("metrics", "you may not get pods/proxy");
        let files = bundle.finish(&origin());
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            ["5spot-debug/index.json", "5spot-debug/README.txt", "5spot-debug/a.yaml", "5spot-debug/b.log"]
        );
        let index: Value = serde_json::from_str(content(&files, "index.json")).expect("JSON");
        assert_eq!(
            index["files"][1],
            json!({"path": "b.log", "about": "a log", "bytes": 18, "redactions": 1})
        );
        assert_eq!(index["missing"], json!([{"what": "metrics", "reason": "you may not get pods/proxy"}]));
        assert!(content(&files, "README.txt").contains("you may not get pods/proxy"));
        assert_eq!(content(&files, "b.log"), "Bearer [REDACTED]\n");
    }

    #[test]
    fn secrets_are_left_out() {
        let mut bundle = Bundle::default();
        let secret = json!({"kind": "Secret", "data": {"a": "czNjcmV0"}});
        bundle.add_objects(
            "x.yaml",
            "objects",
            &[secret, json!({"kind": "ConfigMap", "metadata": {"name": "b"}})],
        );
        let files = bundle.finish(&origin());
        assert_eq!(content(&files, "x.yaml"), "---\nkind: ConfigMap\nmetadata:\n  name: b\n");
    }

    #[test]
    fn long_files_are_cut_and_full_bundles_take_no_more() {
        let mut bundle = Bundle { limits: Limits { file: 1000, total: 5000 }, ..Bundle::default() };
        let lines = "0123456789\n".repeat(200);
        bundle.add_text("long.log", "a log", &lines);
        assert!(bundle.files["long.log"].truncated && bundle.files["long.log"].content.len() <= 1000);
        assert!(bundle.files["long.log"].content.starts_with(b"0123456789\n"));
        bundle.add_object("long.yaml", "an object", &json!({"text": "ä".repeat(1000)}));
        assert!(bundle.files["long.yaml"].truncated && bundle.files["long.yaml"].content.len() <= 1000);
        for index in 0..9 {
            bundle.add_text(&format!("{index}.log"), "a log", &lines);
        }
        assert!(bundle.total <= 5000 && bundle.missing() > 0);
    }

    #[test]
    fn names_lead_nowhere_else() {
        for (name, part) in
            [("web-0", "web-0"), ("../../etc", ".._.._etc"), ("..", "_"), ("a/b", "a_b"), ("", "_")]
        {
            assert_eq!(path_part(name), part);
        }
        assert_eq!(path_part(&"a".repeat(300)).len(), MAX_NAME);
    }
}
