//! The configuration of a reclaim agent: the value of the key `reclaim.toml` in its ConfigMap. The controller writes it
//! and the agent reads it with the code in this module.

use std::fmt::Write as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const MATCH_COMMANDS: &str = "match_commands";
const MATCH_ARGV_SUBSTRINGS: &str = "match_argv_substrings";
const MATCH_UIDS: &str = "match_uids";
const POLL_INTERVAL_MS: &str = "poll_interval_ms";

/// The poll interval of an agent whose configuration does not set one.
pub const DEFAULT_POLL_INTERVAL_MS: u32 = 250;
/// The minimum poll interval. A shorter one would use CPU time without a benefit.
pub const MIN_POLL_INTERVAL_MS: u32 = 50;
/// The maximum poll interval. An owner waits up to this long.
pub const MAX_POLL_INTERVAL_MS: u32 = 60_000;
/// The maximum number of entries in a list.
pub const MAX_LIST_ENTRIES: usize = 1000;
/// The maximum length of a pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;

/// The processes that a reclaim agent looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Exact process names.
    pub match_commands: Vec<String>,
    /// Substrings of the command line, with one space between its arguments.
    pub match_argv_substrings: Vec<String>,
    /// The ids of the users whose processes may match; empty for all users.
    pub match_uids: Vec<u32>,
    /// The time between two scans of the process list, if the agent polls.
    pub poll_interval_ms: u32,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            match_commands: Vec::new(),
            match_argv_substrings: Vec::new(),
            match_uids: Vec::new(),
            poll_interval_ms: DEFAULT_POLL_INTERVAL_MS,
        }
    }
}

/// A configuration, and the keys in its text that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedConfig {
    /// The configuration without the unknown keys.
    pub config: AgentConfig,
    /// The keys that have no effect: misspelled ones, and those of a later version.
    pub unknown_keys: Vec<String>,
}

/// An error in the text of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The number of the line with the error, starting at 1; absent if the error concerns the whole text.
    pub line: Option<usize>,
    /// The description, in one line.
    pub message: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

impl AgentConfig {
    /// Returns true if no process can match: the agent is armed but inert.
    pub fn is_inert(&self) -> bool {
        self.match_commands.is_empty() && self.match_argv_substrings.is_empty()
    }

    /// Returns the configuration as TOML, in the form that [`AgentConfig::parse`] reads. Characters that a TOML string
    /// cannot hold, such as U+007F, are escaped, so every Rust string can be written.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let commands = strings(&self.match_commands);
        let substrings = strings(&self.match_argv_substrings);
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{MATCH_COMMANDS} = {commands}\n{MATCH_ARGV_SUBSTRINGS} = {substrings}\n\
             {POLL_INTERVAL_MS} = {}\n",
            self.poll_interval_ms
        );
        if !self.match_uids.is_empty() {
            let _ = writeln!(text, "{MATCH_UIDS} = {:?}", self.match_uids);
        }
        text
    }

    /// Parses a configuration. Absent keys have their defaults. A value of the wrong type or out of bounds is an error,
    /// because an agent that guesses could reclaim a machine for no reason.
    pub fn parse(text: &str) -> Result<ParsedConfig, ConfigError> {
        let table = DeTable::parse(text).map_err(|error| {
            // The message of the parser may have several lines.
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            ConfigError { line: error.span().map(|span| line_of(text, span.start)), message }
        })?;
        let mut parsed = ParsedConfig { config: Self::default(), unknown_keys: Vec::new() };
        let config = &mut parsed.config;
        for (key, value) in table.get_ref() {
            let at = |message: String| ConfigError {
                line: Some(line_of(text, key.span().start)),
                message: format!("{}: {message}", key.get_ref()),
            };
            match key.get_ref().as_ref() {
                MATCH_COMMANDS => config.match_commands = list(value, pattern).map_err(at)?,
                MATCH_ARGV_SUBSTRINGS => config.match_argv_substrings = list(value, pattern).map_err(at)?,
                MATCH_UIDS => config.match_uids = list(value, integer).map_err(at)?,
                POLL_INTERVAL_MS => config.poll_interval_ms = poll_interval(value.get_ref()).map_err(at)?,
                unknown => parsed.unknown_keys.push(unknown.to_owned()),
            }
        }
        Ok(parsed)
    }
}

/// A TOML array of basic strings; without control characters it is also JSON.
fn strings(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
    format!("[{}]", quoted.join(","))
}

/// A TOML basic string.
fn quote(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // TOML allows no raw control characters, and unlike JSON counts U+007F among them.
            '\0'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

fn list<T>(
    value: &Spanned<DeValue<'_>>,
    entry: impl Fn(&DeValue<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let DeValue::Array(array) = value.get_ref() else {
        return Err(format!("expected a list, found {}", value.get_ref().type_str()));
    };
    if array.len() > MAX_LIST_ENTRIES {
        return Err(format!("found {} entries, at most {MAX_LIST_ENTRIES} are allowed", array.len()));
    }
    array.iter().map(|value| entry(value.get_ref())).collect()
}

fn pattern(value: &DeValue<'_>) -> Result<String, String> {
    let DeValue::String(text) = value else {
        return Err(format!("expected a list of strings, found an entry of type {}", value.type_str()));
    };
    if text.is_empty() {
        return Err("an empty pattern would match every process".to_owned());
    }
    if text.len() > MAX_PATTERN_BYTES {
        return Err(format!(
            "found a pattern of {} bytes, at most {MAX_PATTERN_BYTES} are allowed",
            text.len()
        ));
    }
    Ok(text.to_string())
}

fn integer(value: &DeValue<'_>) -> Result<u32, String> {
    let DeValue::Integer(integer) = value else {
        return Err(format!("expected a whole number, found {}", value.type_str()));
    };
    u32::from_str_radix(integer.as_str(), integer.radix())
        .map_err(|_| format!("'{}' is not a whole number from 0 to {}", integer.as_str(), u32::MAX))
}

fn poll_interval(value: &DeValue<'_>) -> Result<u32, String> {
    let milliseconds = integer(value)?;
    if !(MIN_POLL_INTERVAL_MS..=MAX_POLL_INTERVAL_MS).contains(&milliseconds) {
        return Err(format!(
            "{milliseconds} is out of range; it must be from {MIN_POLL_INTERVAL_MS} to {MAX_POLL_INTERVAL_MS}"
        ));
    }
    Ok(milliseconds)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
