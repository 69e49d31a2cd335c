//! The functions that rules may call: the language's own, those of Kubernetes, and a few in which the
//! library and the API server differ.

use jiff::tz::{TimeZone, TimeZoneDatabase};
use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value};
use regex::Regex;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

/// How many patterns are kept. Patterns are literals in rules, so there are only a few.
const MAX_PATTERNS: usize = 1024;

thread_local! {
    /// Setting it up costs more than running a rule.
    static CONTEXT: Context<'static> = context();
    static PATTERNS: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// The names of zones as they are spelled: looking a zone up would forgive wrong case, the API server does not.
static ZONE_NAMES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect()
});

/// Calls `run` with a context that knows all functions.
pub(super) fn with_context<T>(run: impl FnOnce(&Context<'static>) -> T) -> T {
    CONTEXT.with(run)
}

fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("matches", matches);
    context.add_function("size", size);
    context.add_function("getFullYear", |This(this): This<Value>, Arguments(args): Arguments| {
        part("getFullYear", &this, &args, |time| i64::from(time.year()))
    });
    context.add_function("getMonth", |This(this): This<Value>, Arguments(args): Arguments| {
        part("getMonth", &this, &args, |time| i64::from(time.month()) - 1)
    });
    context.add_function("getDate", |This(this): This<Value>, Arguments(args): Arguments| {
        part("getDate", &this, &args, |time| i64::from(time.day()))
    });
    context.add_function("getDayOfMonth", |This(this): This<Value>, Arguments(args): Arguments| {
        part("getDayOfMonth", &this, &args, |time| i64::from(time.day()) - 1)
    });
    context.add_function("getDayOfWeek", |This(this): This<Value>, Arguments(args): Arguments| {
        part("getDayOfWeek", &this, &args, |time| i64::from(time.weekday().to_sunday_zero_offset()))
    });
    context.add_function("getDayOfYear", |This(this): This<Value>, Arguments(args): Arguments| {
        part("getDayOfYear", &this, &args, |time| i64::from(time.day_of_year()) - 1)
    });
    context.add_function("getHours", |This(this): This<Value>, Arguments(args): Arguments| match this {
        Value::Duration(duration) => Ok(Value::Int(duration.num_hours())),
        this => part("getHours", &this, &args, |time| i64::from(time.hour())),
    });
    context.add_function("getMinutes", |This(this): This<Value>, Arguments(args): Arguments| match this {
        Value::Duration(duration) => Ok(Value::Int(duration.num_minutes())),
        this => part("getMinutes", &this, &args, |time| i64::from(time.minute())),
    });
    context
}

/// Like the library's, but a pattern is compiled once and not for every value.
fn matches(
    function: &FunctionContext<'_, '_>,
    This(this): This<Arc<String>>,
    pattern: Arc<String>,
) -> Result<Value, ExecutionError> {
    PATTERNS.with_borrow_mut(|patterns| {
        if let Some(regex) = patterns.get(pattern.as_str()) {
            return Ok(Value::Bool(regex.is_match(&this)));
        }
        let regex = Regex::new(&pattern).map_err(|error| function.error(error))?;
        let verdict = regex.is_match(&this);
        if patterns.len() < MAX_PATTERNS {
            patterns.insert(pattern.to_string(), regex);
        }
        Ok(Value::Bool(verdict))
    })
}

/// Like the library's, but strings are measured in characters and not in bytes.
fn size(function: &FunctionContext<'_, '_>, This(this): This<Value>) -> Result<Value, ExecutionError> {
    let size = match &this {
        Value::String(text) => text.chars().count(),
        Value::List(values) => values.len(),
        Value::Map(map) => map.map.len(),
        Value::Bytes(bytes) => bytes.len(),
        other => return Err(function.error(format!("no such overload: size({})", other.type_of()))),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

/// A part of a time, in UTC or in the zone that is named.
fn part(
    function: &str,
    this: &Value,
    args: &[Value],
    part: fn(&jiff::Zoned) -> i64,
) -> Result<Value, ExecutionError> {
    let error = |message: String| ExecutionError::function_error(function, message);
    let Value::Timestamp(time) = this else { return Err(error("no such overload".to_owned())) };
    let time = jiff::Timestamp::from_second(time.timestamp()).map_err(|fault| error(fault.to_string()))?;
    let zone = match args {
        [Value::String(name), ..] => zone(name).ok_or_else(|| error(format!("unknown time zone {name}")))?,
        _ => TimeZone::UTC,
    };
    Ok(Value::Int(part(&time.to_zoned(zone))))
}

fn zone(name: &str) -> Option<TimeZone> {
    if name == "UTC" || name.is_empty() {
        return Some(TimeZone::UTC);
    }
    ZONE_NAMES.contains(name).then(|| TimeZoneDatabase::bundled().get(name).ok()).flatten()
}
