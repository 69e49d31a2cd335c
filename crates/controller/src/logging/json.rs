//! One JSON object a line: `timestamp`, `level`, `fields`, `target`, `span`.

use super::fields::Fields;
use super::span::{OBJECT_REASON, OBJECT_REF, RECONCILE, is_ours};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The target of events which come from the `log` crate; their own is in a field.
const LOG_TARGET: &str = "log";

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
    span: Place,
}

/// The place in the program. All fields are always there, and always text: `jq` refuses to search for a
/// name in what is absent.
#[derive(Default, Serialize)]
struct Place {
    name: &'static str,
    #[serde(rename = "object.ref")]
    object_ref: String,
    #[serde(rename = "object.reason")]
    object_reason: String,
}

impl Place {
    /// Takes what names the object out of the fields.
    fn of(name: &'static str, fields: &mut Fields) -> Self {
        let mut text = |name| match fields.take(name) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        Self { name, object_ref: text(OBJECT_REF), object_reason: text(OBJECT_REASON) }
    }
}

impl<W> JsonLines<W> {
    fn line<S>(event: &Event<'_>, context: &Context<'_, S>) -> serde_json::Result<Vec<u8>>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let log_target = (metadata.target() == LOG_TARGET).then(|| fields.take("log.target")).flatten();
        if log_target.is_some() {
            fields.retain(|name| !name.starts_with("log."));
        }
        let name = inherit_from_spans(&mut fields, event, context);
        let span = Place::of(name, &mut fields);
        let mut line = serde_json::to_vec(&Line {
            timestamp: format!("{:.6}", Timestamp::now()),
            level: metadata.level().as_str(),
            fields: &fields,
            target: log_target.as_ref().and_then(Value::as_str).unwrap_or(metadata.target()),
            span,
        })?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Adds the fields of our own spans around an event, the inner ones first, and tells the name of the reconcile among
/// them, or of the innermost. Spans of libraries add nothing: theirs are for tracing, and many.
fn inherit_from_spans<S>(fields: &mut Fields, event: &Event<'_>, context: &Context<'_, S>) -> &'static str
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut name = "";
    for span in context.event_scope(event).into_iter().flatten() {
        if name.is_empty() || span.name() == RECONCILE {
            name = span.name();
        }
        if is_ours(span.metadata())
            && let Some(of_span) = span.extensions().get::<Fields>()
        {
            fields.inherit(of_span);
        }
    }
    name
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        // A line that cannot be written cannot be reported: the log itself would be the place.
        if let Ok(line) = Self::line(event, &context) {
            let _ = self.writer.make_writer_for(event.metadata()).write_all(&line);
        }
    }
}
