//! The environment of the process, read once, so that everything else is a function of values.

use jiff::Timestamp;
use std::env;
use std::io::IsTerminal;
use terminal_size::{Width, terminal_size_of};

/// The clock, the terminal and the environment at the start.
#[derive(Clone, Debug)]
pub struct ProcessEnvironment {
    pub now: Timestamp,
    pub stdout_is_terminal: bool,
    /// The width of the terminal that stdout is, or what `COLUMNS` says.
    pub columns: Option<usize>,
    /// `NO_COLOR` is set and not empty (no-color.org), or the terminal is `dumb`.
    pub no_color: bool,
    /// The locale names a character set, and it is not UTF-8.
    pub ascii_only: bool,
    /// The time zone of the reader, if it is known: `TZ`, or the one that `/etc/localtime` leads to.
    pub timezone: Option<String>,
}

impl ProcessEnvironment {
    /// A Sunday morning without a terminal and without wishes.
    #[cfg(test)]
    pub fn quiet() -> Self {
        Self {
            now: "2026-11-15T09:00:00.75Z".parse().expect("an instant"),
            stdout_is_terminal: false,
            columns: None,
            no_color: false,
            ascii_only: false,
            timezone: None,
        }
    }

    pub fn observe() -> Self {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let terminal_width =
            terminal_size_of(std::io::stdout()).map(|(Width(columns), _)| usize::from(columns));
        let columns_variable = || variable("COLUMNS").and_then(|columns| columns.parse().ok());
        Self {
            now: Timestamp::now(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            columns: terminal_width.or_else(columns_variable),
            no_color: variable("NO_COLOR").is_some() || variable("TERM").is_some_and(|term| term == "dumb"),
            ascii_only: ["LC_ALL", "LC_CTYPE", "LANG"]
                .into_iter()
                .find_map(variable)
                .is_some_and(|locale| is_not_utf8(&locale)),
            timezone: variable("TZ").or_else(|| {
                let target = std::fs::read_link("/etc/localtime").ok()?;
                Some(zone_name(target.to_str()?)?.to_owned())
            }),
        }
    }
}

/// `de_DE.ISO-8859-1`, `C` and `POSIX` are; `C.UTF-8` is not, and neither is a bare `en_US`, which says
/// nothing about the terminal.
fn is_not_utf8(locale: &str) -> bool {
    let charset = locale.split_once('.').map(|(_, charset)| charset.to_ascii_lowercase().replace('-', ""));
    match charset {
        Some(charset) => !charset.starts_with("utf8"),
        None => matches!(locale, "C" | "POSIX"),
    }
}

/// The zone that a path in a time-zone database stands for.
fn zone_name(path: &str) -> Option<&str> {
    path.split_once("zoneinfo/").map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_the_end_of_its_path() {
        assert_eq!(zone_name("/usr/share/zoneinfo/Europe/Berlin"), Some("Europe/Berlin"));
        assert_eq!(zone_name("/etc/localtime"), None);
    }

    #[test]
    fn a_locale_is_taken_at_its_word_only() {
        for locale in ["C", "POSIX", "de_DE.ISO-8859-1", "en_US.US-ASCII", "de_DE.ISO8859-15@euro"] {
            assert!(is_not_utf8(locale), "{locale}");
        }
        for locale in ["C.UTF-8", "en_US.utf8", "de_DE.UTF-8@euro", "en_US"] {
            assert!(!is_not_utf8(locale), "{locale}");
        }
    }
}
