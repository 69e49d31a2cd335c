//! Log lines: one JSON object a line for machines, or text for people.
//!
//! Every line of a reconcile carries the fields of its `reconcile` span ([`reconcile_span`]), whatever `RUST_LOG` says of
//! spans: a line that does not name its object is of no use. The lines of the reconciles of a namespace are
//! limited ([`limit::LineLimit`]).

mod fields;
mod filter;
mod json;
mod limit;
mod panics;
mod plain;
mod span;

pub use filter::{FilterError, LogFilter};
pub(crate) use limit::report_suppressed_lines;
pub use span::reconcile_span;

use clap::ValueEnum;
use json::JsonLines;
use limit::{LineLimit, LineRate};
use plain::PlainFields;
use std::io::IsTerminal;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Filter, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, Registry};

/// The targets of our own crates begin with this.
const OURS: &str = "five_spot";

/// The target of the lines about requests.
pub(crate) const REQUESTS: &str = "five_spot_controller::api";

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line
    Json,
    /// For people, with colours on a terminal
    Text,
}

impl LogFormat {
    /// As it is written on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

/// Begins to log to standard output, for the whole program, and says panics in the same format.
///
/// It fails if something in this process logs already.
pub fn start(format: LogFormat, filter: LogFilter) -> Result<(), TryInitError> {
    // https://no-color.org: any value but an empty one means no colours.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = std::io::stdout().is_terminal() && !no_color;
    subscriber(format, filter, std::io::stdout, colours).try_init()?;
    if format == LogFormat::Json {
        panics::report_as_log_lines();
    }
    Ok(())
}

/// Logs to `writer` in the JSON format while `log` runs, before or without a logger.
pub fn log_json<W>(writer: W, log: impl FnOnce())
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = LogFilter::from(LevelFilter::INFO);
    tracing::subscriber::with_default(subscriber(LogFormat::Json, filter, writer, false), log);
}

/// Writes what `filter` lets through to `writer`, within the limit of each namespace.
pub fn subscriber<W>(
    format: LogFormat,
    filter: LogFilter,
    writer: W,
    colours: bool,
) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = filter.into_layer_filter();
    let rate = LineRate::of_level(Filter::<Registry>::max_level_hint(&filter));
    limited(format, filter, rate, writer, colours)
}

fn limited<W, F>(
    format: LogFormat,
    filter: F,
    rate: LineRate,
    writer: W,
    colours: bool,
) -> impl Subscriber + Send + Sync + use<W, F>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
    F: Filter<Registry> + Send + Sync + 'static,
{
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Json => JsonLines::new(writer).boxed(),
        LogFormat::Text => tracing_subscriber::fmt::layer()
            .with_ansi(colours)
            .fmt_fields(PlainFields)
            .with_writer(writer)
            .boxed(),
    };
    tracing_subscriber::registry().with(LineLimit::new(layer, rate).with_filter(filter))
}

#[cfg(test)]
mod tests;
