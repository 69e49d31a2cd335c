//! Command-line flags of `5spot preview`, and the request that they resolve to.

use crate::cluster_access::{ClusterArgs, NamespaceArgs};
use crate::environment::ProcessEnvironment;
use crate::manifest::Source;
use crate::range::{DEFAULT_DAYS, MAX_DAYS, Range, parse_instant};
use crate::style::{self, Charset, Style};
use clap::{ValueEnum, ValueHint};
use jiff::Timestamp;
use std::ffi::OsString;

/// Show when machines will be up
///
/// Reads ScheduledMachine objects and shows when each machine is wanted: to the second, in the machine's own
/// time zone, with exceptions, lead time and override taken into account. Notes explain where daylight saving
/// moves, repeats or skips a window. With --filename, no cluster is contacted.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are the help text")]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Names of ScheduledMachines in the cluster of your kubeconfig
    #[arg(value_name = "NAME", conflicts_with = "filenames", value_parser = parse_name)]
    pub names: Vec<String>,

    /// File with YAML or JSON, `-` for standard input; may be repeated
    ///
    /// A file may contain several documents and Lists; objects of other kinds are skipped with a note.
    #[arg(short, long = "filename", visible_alias = "file", value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present = "names")]
    filenames: Vec<OsString>,

    /// Start of the range, such as 2026-11-01T00:00:00-04:00 [default: now]
    #[arg(long, value_name = "RFC3339", value_parser = parse_instant)]
    from: Option<Timestamp>,

    /// End of the range (exclusive), in the same format as --from
    #[arg(long, value_name = "RFC3339", value_parser = parse_instant, conflicts_with = "days")]
    to: Option<Timestamp>,

    /// Length of the range, in days of 24 hours
    #[arg(long, value_name = "N", default_value_t = DEFAULT_DAYS)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_DAYS)))]
    days: u16,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// When to colour the text; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,

    /// Columns of the text [default: those of the terminal, or COLUMNS, or 80]
    #[arg(long, value_name = "COLUMNS")]
    #[arg(value_parser = clap::value_parser!(u16).range(style::MIN_WIDTH as i64..=style::MAX_WIDTH as i64))]
    width: Option<u16>,

    /// Use only ASCII characters, which is the default if the locale is not UTF-8
    #[arg(long)]
    ascii: bool,

    #[command(flatten)]
    pub namespace: NamespaceArgs,

    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Parses a name, and refuses file names, which belong after --filename.
fn parse_name(text: &str) -> Result<String, String> {
    let is_file = [".yaml", ".yml", ".json"].iter().any(|ending| text.ends_with(ending));
    if is_file { Err(format!("to read a file, write -f {text}")) } else { Ok(text.to_owned()) }
}

const EXAMPLES: &str = "\
Examples:
  5spot preview -f machines.yaml
  5spot preview -f machines.yaml --from 2026-11-01T00:00:00-04:00 --days 7
  5spot preview -f machines.yaml -o svg > machines.svg
  5spot preview desk-17 -n desks
  kubectl get scheduledmachines -A -o yaml | 5spot preview -f - -o json

Exit status: 0 on success, 1 if a file or the cluster cannot be read or the output cannot be written,
2 if the command line or an object is invalid; then only the errors are shown.";

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A chart by local day, for terminals
    Text,
    /// An array with one element per object
    Json,
    /// The same data as YAML
    Yaml,
    /// An SVG image
    Svg,
}

/// The use of colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

/// The parsed command line: inputs, range and output format.
#[derive(Debug)]
pub struct Request {
    pub sources: Vec<Source>,
    pub range: Range,
    pub format: Format,
    /// Used by [`Format::Text`] only.
    pub style: Style,
}

impl Args {
    /// Fills in the defaults, or returns an error that says which flags conflict.
    pub fn resolve(&self, process_environment: &ProcessEnvironment) -> Result<Request, String> {
        let sources = Source::all(&self.filenames)?;
        let from = self.from.unwrap_or(process_environment.now);
        let range = match self.to {
            Some(to) => Range::between(from, to),
            None => Range::of_days(from, self.days),
        }?;
        Ok(Request { sources, range, format: self.output, style: self.style(process_environment) })
    }

    fn style(&self, process_environment: &ProcessEnvironment) -> Style {
        let around = Style::of(process_environment);
        Style {
            width: self.width.map_or(around.width, usize::from),
            charset: if self.ascii { Charset::Ascii } else { around.charset },
            colored: match self.color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => around.colored,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args as TopArgs, Command};
    use clap::Parser;

    fn resolve(line: &str, process_environment: &ProcessEnvironment) -> Result<Request, String> {
        let words = ["5spot", "preview"].into_iter().chain(line.split_whitespace());
        let args = TopArgs::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Preview(args) = args.command else { panic!("another command") };
        args.resolve(process_environment)
    }

    #[test]
    fn the_default_is_two_weeks_as_text_of_80_columns() {
        let request = resolve("-f a.yaml", &ProcessEnvironment::quiet()).expect("valid");
        assert_eq!(request.range.from.to_string(), "2026-11-15T09:00:00Z");
        assert_eq!(request.range.to.to_string(), "2026-11-29T09:00:00Z");
        assert_eq!(request.format, Format::Text);
        assert_eq!(request.style, Style { width: 80, charset: Charset::Unicode, colored: false });
    }

    #[test]
    fn a_terminal_gives_width_and_colour_and_flags_win_over_it() {
        let terminal = ProcessEnvironment {
            stdout_is_terminal: true,
            columns: Some(132),
            ..ProcessEnvironment::quiet()
        };
        let style = |line: &str, around: &ProcessEnvironment| resolve(line, around).expect("valid").style;
        assert_eq!(style("-f a", &terminal), Style { width: 132, charset: Charset::Unicode, colored: true });
        assert!(!style("-f a --color never", &terminal).colored);
        assert!(!style("-f a", &ProcessEnvironment { no_color: true, ..terminal.clone() }).colored);
        assert!(
            style(
                "-f a --color always",
                &ProcessEnvironment { no_color: true, ..ProcessEnvironment::quiet() }
            )
            .colored
        );
        assert_eq!(style("-f a --width 60", &terminal).width, 60);
        assert_eq!(style("-f a --ascii", &terminal).charset, Charset::Ascii);
        let tiny = ProcessEnvironment { columns: Some(3), ..terminal };
        assert_eq!(style("-f a", &tiny).width, style::MIN_WIDTH);
    }

    #[test]
    fn conflicting_flags_are_refused() {
        for (line, message) in [
            ("", "--filename"),
            ("-f", "--filename"),
            ("-f - -f -", "standard input can be read only once"),
            ("-f a --days 0", "1..=3660"),
            ("-f a --days 3661", "1..=3660"),
            ("-f a --days x", "invalid"),
            ("-f a --days 3 --to 2026-12-01T00:00:00Z", "cannot be used with"),
            ("-f a --to 2026-11-01T00:00:00Z", "not after"),
            ("-f a --from 2026-11-01T00:00:00", "with a zone"),
            ("-f a -o xml", "possible values: text, json, yaml, svg"),
            ("-f a --color red", "possible values: auto, always, never"),
            ("-f a --width 39", "40..=400"),
            ("-f a --colour never", "unexpected argument"),
            ("desk -f b.yaml", "cannot be used with"),
        ] {
            let refused = resolve(line, &ProcessEnvironment::quiet()).expect_err(line);
            assert!(refused.contains(message), "{line}: {refused}");
        }
    }
}
