//! Deliberate differences, each with a name and a reason.

use super::case::CaseError;
use super::compare::Mismatch;
use serde::Deserialize;
use std::path::Path;

/// One deliberate difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The name.
    pub name: String,
    /// The reason why the response of the in-memory API server may differ.
    pub reason: String,
    /// The cases that it applies to: the start of their ids, or empty for all.
    #[serde(default)]
    pub cases: Vec<String>,
    /// The places that it applies to: JSON pointers into the responses of a case, `*` for any element, `**`
    /// for the rest.
    pub at: Vec<String>,
}

/// All deliberate differences.
#[derive(Debug)]
pub struct Differences(pub Vec<Difference>);

impl Differences {
    /// Reads the file with all differences.
    pub fn load(path: &Path) -> Result<Self, CaseError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| CaseError::Read { path: path.to_owned(), source })?;
        serde_saphyr::from_str(&text)
            .map(Self)
            .map_err(|error| CaseError::Parse { path: path.to_owned(), message: error.to_string() })
    }

    /// The difference that explains a mismatch, if one does.
    pub fn explain(&self, case: &str, mismatch: &Mismatch) -> Option<&Difference> {
        self.0.iter().find(|difference| {
            let is_about = difference.cases.is_empty()
                || difference.cases.iter().any(|one| case.starts_with(one.as_str()));
            is_about && difference.at.iter().any(|pattern| fits(pattern, &mismatch.at))
        })
    }
}

fn fits(pattern: &str, pointer: &str) -> bool {
    let mut parts = pointer.split('/');
    for wanted in pattern.split('/') {
        if wanted == "**" {
            return true;
        }
        match parts.next() {
            Some(part) if wanted == "*" || wanted == part => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_places() {
        assert!(fits("/*/body/metadata/**", "/3/body/metadata/labels/x"));
        assert!(fits("/0/status", "/0/status"));
        assert!(!fits("/0/status", "/0/status/x"));
        assert!(!fits("/*/body", "/0/status"));
    }
}
