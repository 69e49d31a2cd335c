//! A panic, said as one log line: a collector of JSON lines cannot read what the standard hook prints.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

/// From now on a panic is an ERROR line, with the fields of the reconcile in which it happened.
pub(super) fn report_as_log_lines() {
    std::panic::set_hook(Box::new(report));
}

pub(super) fn report(panic: &PanicHookInfo<'_>) {
    let message = text(panic.payload());
    let location = panic.location().map(ToString::to_string);
    let thread = std::thread::current();
    // Taken only if `RUST_BACKTRACE` asks for it, as the standard hook does.
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(location, thread = thread.name(), backtrace, "panicked: {message}");
}

/// The message of a panic.
fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
