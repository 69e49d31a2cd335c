//! The recorded responses of a real server, on disk.

use super::case::CaseError;
use super::run::Answers;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The responses of a real server, by case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The id of a case, and its normalised responses.
    pub answers: BTreeMap<String, Value>,
}

impl Recording {
    /// Reads all areas of a directory.
    pub fn load(directory: &Path) -> Result<Self, CaseError> {
        let read = |source| CaseError::Read { path: directory.to_owned(), source };
        let mut recording = Self::default();
        for entry in std::fs::read_dir(directory).map_err(read)? {
            let path = entry.map_err(read)?.path();
            let text = std::fs::read_to_string(&path)
                .map_err(|source| CaseError::Read { path: path.clone(), source })?;
            let answers: BTreeMap<String, Value> = serde_json::from_str(&text)
                .map_err(|error| CaseError::Parse { path: path.clone(), message: error.to_string() })?;
            recording.answers.extend(answers);
        }
        Ok(recording)
    }

    /// Adds the responses of one case.
    pub fn record(&mut self, case: &str, answers: &Answers) {
        self.answers.insert(case.to_owned(), answers.to_value());
    }

    /// Writes one file for each area with one case per line, so that a diff shows the changed cases.
    pub fn save(&self, directory: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(directory)?;
        let mut areas: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (case, answers) in &self.answers {
            let area = case.split(':').next().unwrap_or_default();
            areas.entry(area).or_default().push(format!("{}: {answers}", Value::from(case.as_str())));
        }
        for (area, lines) in areas {
            std::fs::write(
                directory.join(format!("{area}.json")),
                format!("{{\n{}\n}}\n", lines.join(",\n")),
            )?;
        }
        Ok(())
    }
}
