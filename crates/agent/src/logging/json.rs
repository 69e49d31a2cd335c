//! One JSON object a line: `timestamp`, `level`, `fields`, `target`, `span`, as the controller writes them.

use super::fields::Fields;
use jiff::Timestamp;
use serde::Serialize;
use std::io::Write;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;

/// Writes a line for every event.
pub(super) struct JsonLines<W> {
    writer: W,
}

impl<W> JsonLines<W> {
    pub(super) const fn new(writer: W) -> Self {
        Self { writer }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    timestamp: String,
    level: &'static str,
    fields: &'a Fields,
    target: &'a str,
    span: Span,
}

/// The agent has no spans. The keys are there because `jq` refuses to search for a name in what is absent.
#[derive(Default, Serialize)]
struct Span {
    name: &'static str,
    #[serde(rename = "object.ref")]
    object_ref: &'static str,
    #[serde(rename = "object.reason")]
    object_reason: &'static str,
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let line = serde_json::to_vec(&Line {
            timestamp: format!("{:.6}", Timestamp::now()),
            level: metadata.level().as_str(),
            fields: &fields,
            target: metadata.target(),
            span: Span::default(),
        });
        // A line that could not be written cannot be reported: the log is the place for it.
        if let Ok(mut line) = line {
            line.push(b'\n');
            let _ = self.writer.make_writer_for(metadata).write_all(&line);
        }
    }
}
