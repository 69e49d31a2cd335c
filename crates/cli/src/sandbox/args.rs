//! Command-line flags of `5spot sandbox`, and the request that they resolve to.

use crate::environment::ProcessEnvironment;
use crate::manifest::Source;
use crate::range::{Range, parse_instant};
use crate::sandbox::span;
use crate::style::Style;
use clap::{ValueEnum, ValueHint};
use jiff::{SignedDuration, Timestamp};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Simulate a fleet for a week, in minutes
///
/// Everything runs on this machine; nothing needs to be installed. The sandbox starts an in-memory Kubernetes
/// API, stand-ins for Cluster API, a provider and kubelets, a demo fleet, and the real controller, on a
/// simulated clock. During the demo week, users change the fleet: one sets a kill switch, one starts a
/// program on a lent machine.
///
/// In a terminal, it shows a live timeline with one row per machine and the latest events below. Otherwise it
/// prints one line per event. It also prints a KUBECONFIG= line: objects that you apply with kubectl behave
/// like those of the demo and get a row of their own. After the span, the clock continues in real time until
/// Ctrl-C; then the sandbox prints a summary.
///
/// With --once, the span runs in virtual time, as fast as possible. The sandbox then prints the timeline and
/// the summary. The exit status says whether every machine was up exactly when its schedule, override, kill
/// switch and timeouts required it.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are the help text")]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Run the span as fast as possible, print the timeline and the summary, and exit
    #[arg(long)]
    once: bool,

    /// Length of the run: a number followed by m, h, d or w
    #[arg(long = "for", value_name = "SPAN", default_value = "7d", value_parser = span::parse)]
    span: SignedDuration,

    /// Start of the run, such as 2026-11-01T00:00:00-04:00 [default: now minus the span]
    #[arg(long, value_name = "RFC3339", value_parser = parse_instant)]
    start: Option<Timestamp>,

    /// Simulated seconds per real second [default: 2016, a week in five minutes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_SPEED))]
    speed: Option<u32>,

    /// Seed for UIDs, names and the time that machines take to join; the same seed and start give the same
    /// run
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// File with your own ScheduledMachines instead of the demo; `-` reads standard input; may be repeated
    ///
    /// Objects of other kinds in the files (Namespaces, Deployments, PodDisruptionBudgets, ...) are created
    /// too. Missing Namespaces are created, and provider kinds without a CRD get one.
    #[arg(short, long = "filename", visible_alias = "file", value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath)]
    filenames: Vec<OsString>,

    /// Address of the API for kubectl; a loopback address, as there is no authentication [default: 127.0.0.1,
    /// any port]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// File for the kubeconfig [default: a temporary file, removed at exit]
    #[arg(long, value_name = "PATH")]
    kubeconfig_out: Option<PathBuf>,

    /// File for the controller's metrics, one sample per simulated minute, in the OpenMetrics format
    ///
    /// To try dashboards and alerts on them, create a Prometheus database: promtool tsdb create-blocks-from
    /// openmetrics FILE DIR
    #[arg(long, value_name = "FILE")]
    metrics_out: Option<PathBuf>,

    /// Output format; svg needs --once
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// The highest speed: above it, one step of the clock is longer than a window.
const MAX_SPEED: i64 = 100_000;

/// A week in five minutes.
const DEFAULT_SPEED: u32 = 2016;

const EXAMPLES: &str = "\
Examples:
  5spot sandbox
  5spot sandbox --once
  5spot sandbox --once -f examples/fleet.yaml --start 2026-10-26T00:00:00Z --for 2w
  5spot sandbox --once -o json | jq 'select(.type == \"transition\")'
  5spot sandbox --once -o svg > week.svg
  5spot sandbox --once --metrics-out week.om && promtool tsdb create-blocks-from openmetrics week.om data
  5spot sandbox --speed 60 --kubeconfig-out sandbox.kubeconfig

Exit status: 0 if every machine was lent exactly when it was wanted, 1 if one was not or something failed,
2 if the command line or an object is invalid.";

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A timeline and a summary
    Text,
    /// One JSON object per line: one per event, and one for the summary
    Json,
    /// The timeline as an SVG image
    Svg,
}

/// The parsed command line: the run and its output format.
#[derive(Debug)]
pub struct Request {
    pub range: Range,
    /// Simulated seconds per real second; `None` means as fast as possible.
    pub speed: Option<u32>,
    pub seed: u64,
    /// The input files; the demo fleet if empty.
    pub sources: Vec<Source>,
    /// The address of the API for `kubectl`; `None` if it is not served.
    pub serving: Option<Serving>,
    /// The file for the metrics.
    pub metrics: Option<PathBuf>,
    pub format: Format,
    pub style: Style,
    /// Redraw a live timeline instead of printing one line per event.
    pub is_live: bool,
}

/// The address of the API for `kubectl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    pub address: SocketAddr,
    /// The file for the kubeconfig; `None` means a temporary file.
    pub kubeconfig: Option<PathBuf>,
}

impl Args {
    /// Fills in the defaults, or returns an error that says which flags conflict.
    pub fn resolve(&self, process_environment: &ProcessEnvironment) -> Result<Request, String> {
        if self.output == Format::Svg && !self.once {
            return Err("-o svg needs --once: the image shows a finished run".to_owned());
        }
        if self.once && self.speed.is_some() {
            return Err("--speed conflicts with --once, which runs as fast as possible: remove one of them"
                .to_owned());
        }
        if let Some(address) = self.listen.filter(|address| !address.ip().is_loopback()) {
            return Err(format!(
                "--listen {address}: the sandbox has no authentication, so anyone who can connect could do anything; \
                 use a loopback address such as 127.0.0.1:{}",
                address.port()
            ));
        }
        if self.kubeconfig_out.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return Err("--kubeconfig-out '' is not a file name: give a path, or remove the flag".to_owned());
        }
        let is_served = !self.once || self.listen.is_some() || self.kubeconfig_out.is_some();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let serving = is_served.then(|| Serving {
            address: self.listen.unwrap_or(anywhere),
            kubeconfig: self.kubeconfig_out.clone(),
        });
        Ok(Request {
            range: self.range(process_environment.now)?,
            speed: (!self.once).then(|| self.speed.unwrap_or(DEFAULT_SPEED)),
            seed: self.seed,
            sources: Source::all(&self.filenames)?,
            serving,
            metrics: self.metrics_out.clone(),
            format: self.output,
            style: Style::of(process_environment),
            is_live: !self.once
                && self.output == Format::Text
                && process_environment.stdout_is_terminal
                && !process_environment.no_color,
        })
    }

    fn range(&self, now: Timestamp) -> Result<Range, String> {
        let too_far = |_| "--start and --for must lie between the years 1970 and 9998".to_owned();
        let start = match self.start {
            Some(start) => start,
            None => now.checked_sub(self.span).map_err(too_far)?,
        };
        let end = start.checked_add(self.span).map_err(too_far)?;
        Range::between(start, end).map_err(|_| {
            format!("--start {start}: --start and --for must lie between the years 1970 and 9998")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args as TopArgs, Command};
    use clap::Parser;

    fn resolve(line: &str, process_environment: &ProcessEnvironment) -> Result<Request, String> {
        let words = ["5spot", "sandbox"].into_iter().chain(line.split_whitespace());
        let words = words.map(|word| if word == "''" { "" } else { word });
        let args = TopArgs::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Sandbox(args) = args.command else { panic!("another command") };
        args.resolve(process_environment)
    }

    fn valid(line: &str) -> Request {
        resolve(line, &ProcessEnvironment::quiet()).expect(line)
    }

    #[test]
    fn without_flags_the_last_week_runs_in_five_minutes() {
        let request = valid("");
        assert_eq!(request.range.from.to_string(), "2026-11-08T09:00:00Z");
        assert_eq!(request.range.to.to_string(), "2026-11-15T09:00:00Z");
        assert_eq!((request.speed, request.seed, request.format), (Some(2016), 0, Format::Text));
        assert!(request.sources.is_empty());
        let serving = request.serving.expect("the API is served");
        assert_eq!((serving.address.to_string().as_str(), serving.kubeconfig), ("127.0.0.1:0", None));
    }

    #[test]
    fn every_flag_has_its_effect() {
        let request = valid("--once --for 2w --start 2026-03-01T00:00:00+01:00 --seed 9 -o json");
        assert_eq!(request.range.from.to_string(), "2026-02-28T23:00:00Z");
        assert_eq!(request.range.duration(), SignedDuration::from_hours(14 * 24));
        assert_eq!((request.speed, request.seed, request.format), (None, 9, Format::Json));
        assert_eq!(request.serving, None);
        assert_eq!(valid("--speed 60").speed, Some(60));
        assert_eq!(valid("-f a.yaml --filename b.yaml --file -").sources.len(), 3);
        assert_eq!(valid("--once -o svg").format, Format::Svg);
        let kubeconfig = Some(PathBuf::from("k"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 8001));
        let serving = |line: &str| valid(line).serving.expect("served");
        assert_eq!(serving("--listen 127.0.0.1:8001 --kubeconfig-out k"), Serving { address, kubeconfig });
        assert_eq!(serving("--once --listen [::1]:0").address.to_string(), "[::1]:0");
        assert_eq!(serving("--once --kubeconfig-out k").address.port(), 0);
    }

    #[test]
    fn the_timeline_is_live_only_on_a_colour_terminal_with_a_speed() {
        let terminal = ProcessEnvironment {
            stdout_is_terminal: true,
            columns: Some(132),
            ..ProcessEnvironment::quiet()
        };
        let is_live = |line: &str, around: &ProcessEnvironment| resolve(line, around).expect(line).is_live;
        assert!(is_live("", &terminal));
        assert!(!is_live("", &ProcessEnvironment::quiet()));
        assert!(!is_live("--once", &terminal));
        assert!(!is_live("-o json", &terminal));
        assert!(!is_live("", &ProcessEnvironment { no_color: true, ..terminal }));
    }

    #[test]
    fn invalid_flags_are_refused_with_advice() {
        for (line, message) in [
            ("--for 7", "such as 36h, 7d or 2w"),
            ("--for 0d", "such as 36h, 7d or 2w"),
            ("--for", "--for <SPAN>"),
            ("--start 2026-11-01T00:00:00", "with a zone"),
            ("--start 1969-01-01T00:00:00Z", "--start 1969-01-01T00:00:00Z: --start and --for must lie"),
            ("--start 9999-12-30T00:00:00Z", "--start and --for must lie"),
            ("--speed 0", "1..=100000"),
            ("--speed 100001", "1..=100000"),
            ("--speed fast", "invalid digit"),
            ("--once --speed 3", "remove one of them"),
            ("--seed=-1", "--seed"),
            ("--seed x", "invalid digit"),
            ("-f", "--filename"),
            ("-f ''", "is not a file name"),
            ("-f - -f -", "standard input can be read only once"),
            ("--listen 8001", "--listen"),
            ("--listen localhost:8001", "--listen"),
            ("--listen 0.0.0.0:8001", "use a loopback address such as 127.0.0.1:8001"),
            ("--listen [::]:0", "the sandbox has no authentication"),
            ("--kubeconfig-out ''", "--kubeconfig-out"),
            ("-o svg", "needs --once"),
            ("-o yaml", "possible values: text, json, svg"),
            ("--twice", "unexpected argument"),
            ("machines.yaml", "unexpected argument"),
        ] {
            let refused = resolve(line, &ProcessEnvironment::quiet()).expect_err(line);
            assert!(refused.contains(message), "{line}: {refused}");
        }
    }
}
