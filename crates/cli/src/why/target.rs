//! `KIND/NAME`: the words of the caller, and the object that they name.

use super::catalog::{Catalog, Served};
use five_spot_diagnose::why::ObjectId;
use std::str::FromStr;

/// The most similar kinds that are suggested.
const SUGGESTIONS: usize = 5;

/// The words of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `pod`, `po`, `machine.cluster.x-k8s.io`.
    pub kind: String,
    pub name: String,
}

/// Words that name no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("{0:?} is not KIND/NAME, such as pod/web-0 or namespace/shop")]
    Malformed(String),
    #[error("this cluster serves no kind {kind:?}{}{}", suggestions(.similar), unknown_kinds(.unavailable))]
    Unknown { kind: String, similar: Vec<String>, unavailable: Vec<String> },
    #[error("{kind:?} is ambiguous in this cluster; name one of {}", .candidates.join(", "))]
    Ambiguous { kind: String, candidates: Vec<String> },
}

fn suggestions(similar: &[String]) -> String {
    if similar.is_empty() {
        "; `kubectl api-resources` lists the kinds".to_owned()
    } else {
        format!("; did you mean {}?", similar.join(", "))
    }
}

/// The APIs that could have the kind, if their servers answered.
fn unknown_kinds(unavailable: &[String]) -> String {
    if unavailable.is_empty() {
        return String::new();
    }
    format!(" (the kinds of {} are unknown, because its server does not answer)", unavailable.join(", "))
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && is_path_segment(name) => {
                Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
            }
            Some(_) | None => Err(TargetError::Malformed(text.to_owned())),
        }
    }
}

/// True if a name can be part of the path of a request as it is. Roles have colons in their names.
pub(super) fn is_path_segment(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_graphic() && !"/%?#<>\"{}|\\^`".contains(c);
    !name.is_empty() && name != "." && name != ".." && name.chars().all(is_allowed)
}

impl Target {
    /// The object in a cluster. A cluster-scoped object has no namespace, whatever `-n` says.
    pub fn resolve(&self, catalog: &Catalog, namespace: &str) -> Result<ObjectId, TargetError> {
        let served = self.find(catalog)?;
        Ok(if served.namespaced {
            ObjectId::namespaced(&served.group, &served.kind, namespace, &self.name)
        } else {
            ObjectId::cluster_scoped(&served.group, &served.kind, &self.name)
        })
    }

    /// The kind in a cluster.
    pub fn find<'a>(&self, catalog: &'a Catalog) -> Result<&'a Served, TargetError> {
        let (word, group) = match self.kind.split_once('.') {
            Some((word, group)) => (word, Some(group)),
            None => (self.kind.as_str(), None),
        };
        let in_group = |served: &&Served| group.is_none_or(|group| is_group(served, group));
        let named = |served: &&Served| is_named(served, word);
        let short = |served: &&Served| served.short_names.iter().any(|name| name.eq_ignore_ascii_case(word));
        let mut found: Vec<&Served> = catalog.kinds.iter().filter(in_group).filter(named).collect();
        if found.is_empty() {
            found = catalog.kinds.iter().filter(in_group).filter(short).collect();
        }
        // Kubernetes' own kinds come first, as in kubectl: `events` exist in two groups.
        if found.len() > 1 && found.iter().any(|served| is_built_in(served)) {
            found.retain(|served| is_built_in(served));
            found.truncate(1);
        }
        match found.as_slice() {
            [served] => Ok(served),
            [] => Err(TargetError::Unknown {
                kind: self.kind.clone(),
                similar: similar(catalog, word),
                unavailable: catalog.unavailable.clone(),
            }),
            several => Err(TargetError::Ambiguous {
                kind: self.kind.clone(),
                candidates: several
                    .iter()
                    .map(|served| format!("{}/{}", served.full_name(), self.name))
                    .collect(),
            }),
        }
    }
}

/// By plural, singular or kind, in any case.
fn is_named(served: &Served, word: &str) -> bool {
    [&served.plural, &served.singular, &served.kind].iter().any(|name| name.eq_ignore_ascii_case(word))
}

/// The group alone, or with its version before it.
fn is_group(served: &Served, words: &str) -> bool {
    served.group == words || words.strip_prefix(&format!("{}.", served.version)) == Some(&served.group)
}

fn is_built_in(served: &Served) -> bool {
    !served.group.contains('.') || (served.group.ends_with(".k8s.io") && !served.group.contains("x-k8s"))
}

/// Kinds whose names are like a word.
fn similar(catalog: &Catalog, word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    // Two letters of a short word leave nothing of it.
    let allowed = if word.len() > 4 { 2 } else { 1 };
    let distance = |served: &Served| {
        [served.plural.clone(), served.singular.clone(), served.kind.to_lowercase()]
            .iter()
            .map(|name| {
                if !word.is_empty() && name.starts_with(&word) {
                    1
                } else {
                    strsim::damerau_levenshtein(name, &word)
                }
            })
            .min()
            .unwrap_or(usize::MAX)
    };
    let mut near: Vec<(usize, String)> = catalog
        .kinds
        .iter()
        .map(|served| (distance(served), served.full_name()))
        .filter(|(far, _)| *far <= allowed)
        .collect();
    near.sort();
    near.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, kind: &str, plural: &str, short_names: &[&str], namespaced: bool) -> Served {
        Served {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: short_names.iter().map(|&name| name.to_owned()).collect(),
            namespaced,
            verbs: vec!["get".to_owned(), "list".to_owned()],
        }
    }

    fn catalog() -> Catalog {
        Catalog {
            kinds: vec![
                served("", "Pod", "pods", &["po"], true),
                served("", "Event", "events", &["ev"], true),
                served("", "Namespace", "namespaces", &["ns"], false),
                served("events.k8s.io", "Event", "events", &["ev"], true),
                served("cluster.x-k8s.io", "Machine", "machines", &["ma"], true),
                served("example.org", "Machine", "machines", &["ma", "mach"], true),
                served("5spot.finos.org", "ScheduledMachine", "scheduledmachines", &["sm"], true),
            ],
            unavailable: Vec::new(),
        }
    }

    fn resolve(words: &str) -> Result<String, String> {
        let target: Target = words.parse().map_err(|error: TargetError| error.to_string())?;
        let id = target.resolve(&catalog(), "shop").map_err(|error| error.to_string())?;
        Ok(format!("{} {}", id.group, id.to_ref()))
    }

    #[test]
    fn kinds_are_named_in_every_form_that_kubectl_takes() {
        for (words, expected) in [
            ("pod/a", " Pod shop/a"),
            ("pods/a", " Pod shop/a"),
            ("Pod/a", " Pod shop/a"),
            ("po/a", " Pod shop/a"),
            ("namespace/shop", " Namespace shop"),
            ("ns/shop", " Namespace shop"),
            ("event/a", " Event shop/a"),
            ("ev/a", " Event shop/a"),
            ("sm/desk-17", "5spot.finos.org ScheduledMachine shop/desk-17"),
            ("machine.cluster.x-k8s.io/m", "cluster.x-k8s.io Machine shop/m"),
            ("machines.v1.cluster.x-k8s.io/m", "cluster.x-k8s.io Machine shop/m"),
            ("ma.example.org/m", "example.org Machine shop/m"),
            ("mach/m", "example.org Machine shop/m"),
            ("pod/system:a", " Pod shop/system:a"),
        ] {
            assert_eq!(resolve(words).as_deref(), Ok(expected), "{words}");
        }
    }

    #[test]
    fn ambiguous_and_unknown_kinds_say_what_there_is() {
        for (words, expected) in [
            (
                "ma/m",
                "\"ma\" is ambiguous in this cluster; name one of machines.cluster.x-k8s.io/m, machines.example.org/m",
            ),
            (
                "machine/m",
                "\"machine\" is ambiguous in this cluster; name one of machines.cluster.x-k8s.io/m, machines.example.org/m",
            ),
            ("pdo/a", "this cluster serves no kind \"pdo\"; did you mean pods?"),
            (
                "scheduledmachin/a",
                "this cluster serves no kind \"scheduledmachin\"; did you mean scheduledmachines.5spot.finos.org?",
            ),
            ("gadget/a", "this cluster serves no kind \"gadget\"; `kubectl api-resources` lists the kinds"),
            ("pod.example.org/a", "this cluster serves no kind \"pod.example.org\"; did you mean pods?"),
        ] {
            assert_eq!(resolve(words), Err(expected.to_owned()), "{words}");
        }
    }

    #[test]
    fn an_api_that_does_not_answer_may_have_the_kind() {
        let unavailable = vec!["metrics.k8s.io/v1beta1".to_owned()];
        let target: Target = "nodemetrics/a".parse().expect("an object");
        let error = target.resolve(&Catalog { unavailable, ..catalog() }, "shop").expect_err("no such kind");
        let words = "(the kinds of metrics.k8s.io/v1beta1 are unknown, because its server does not answer)";
        assert!(error.to_string().ends_with(words), "{error}");
    }

    #[test]
    fn words_without_kind_or_name_are_refused() {
        for words in
            ["pod", "pod/", "/a", "a/b/c", "", "pod/a b", "pod/..", "pod/%2e", "pod/a?watch=true", "pod/ä"]
        {
            let error = resolve(words).expect_err(words);
            assert!(error.contains("is not KIND/NAME"), "{error}");
        }
    }
}
