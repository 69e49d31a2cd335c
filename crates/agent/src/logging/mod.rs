//! Log lines: one JSON object a line for machines, in the shape of the controller's, or text for people.

mod fields;
mod json;

use clap::ValueEnum;
use json::JsonLines;
use std::io::IsTerminal;
use tracing::Subscriber;
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The value of `RUST_LOG` when it is not set.
const DEFAULT_DIRECTIVES: &str = "info";

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line
    Json,
    /// For people, with colours on a terminal
    Text,
}

/// Reads directives as `RUST_LOG` has them; nothing and the empty text mean `info`.
pub fn filter(directives: Option<&str>) -> Result<Targets, ParseError> {
    directives.filter(|text| !text.is_empty()).unwrap_or(DEFAULT_DIRECTIVES).parse()
}

/// Begins to log to standard output, for the whole program, panics included.
pub fn start(format: LogFormat, filter: Targets) {
    // https://no-color.org: any value but an empty one means no colours.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = std::io::stdout().is_terminal() && !no_color;
    // It fails only where something logs already; then the lines go there.
    let _ = subscriber(format, filter, std::io::stdout, colours).try_init();
    if format == LogFormat::Json {
        std::panic::set_hook(Box::new(report_panic));
    }
}

/// Logs a panic as one line: a collector of JSON lines cannot read what the standard hook prints.
fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let message = payload.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let location = panic.location().map(ToString::to_string);
    let thread = std::thread::current();
    tracing::error!(location, thread = thread.name(), "panicked: {message}");
}

/// Writes the lines that `filter` lets through to `writer`.
pub fn subscriber<W>(
    format: LogFormat,
    filter: Targets,
    writer: W,
    colours: bool,
) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Json => JsonLines::new(writer).boxed(),
        LogFormat::Text => tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(writer).boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(filter))
}

#[cfg(test)]
mod tests;
