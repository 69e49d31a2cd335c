//! The fields of a line in the text format, without anything that a terminal or a log reader would act upon.
//!
//! A text from outside may hold a newline, and after it what looks like a line of ours, or an escape sequence.

use super::fields::Fields;
use five_spot_core::text::bounded;
use serde_json::Value;
use std::fmt;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// Writes the message, then `name=value` for every other field. A value that is text stands in quotes where it has to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainFields;

impl<'writer> FormatFields<'writer> for PlainFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut recorded = Fields::default();
        fields.record(&mut recorded);
        for (index, (name, value)) in recorded.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            let Value::String(text) = value else {
                write!(writer, "{separator}{name}={value}")?;
                continue;
            };
            let text = bounded(text, usize::MAX);
            if name == "message" {
                write!(writer, "{separator}{text}")?;
            } else if text.contains([' ', '"', '=']) || text.is_empty() {
                write!(writer, "{separator}{name}={text:?}")?;
            } else {
                write!(writer, "{separator}{name}={text}")?;
            }
        }
        Ok(())
    }
}
