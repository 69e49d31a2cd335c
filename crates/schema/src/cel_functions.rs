//! The functions of rules: those of CEL, those of Kubernetes, and a few in which the `cel` crate differs from
//! the API server.

use super::pattern::Pattern;
use chrono::TimeDelta;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};
use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::{Context, ExecutionError, Value};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

/// The number of compiled patterns in the cache. Patterns are literals in rules, so there are few.
const MAX_PATTERNS: usize = 1024;

thread_local! {
    /// Creating the context costs more than evaluating a rule.
    static CONTEXT: Context<'static> = context();
    static PATTERNS: RefCell<HashMap<String, Pattern>> = RefCell::default();
}

/// The names of time zones with their exact spelling: looking up a zone ignores case, the API server does
/// not.
static ZONE_NAMES: LazyLock<HashSet<String>> =
    LazyLock::new(|| TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect());

/// Calls `run` with a context that contains all functions.
pub(super) fn with_context<T>(run: impl FnOnce(&Context<'static>) -> T) -> T {
    CONTEXT.with(run)
}

/// A part of a time that rules can get, in any time zone.
struct Part {
    function: &'static str,
    of_time: fn(&Zoned) -> i64,
    /// The same part of a duration, if it has one.
    of_duration: Option<fn(&TimeDelta) -> i64>,
}

const PARTS: [Part; 9] = [
    Part { function: "getFullYear", of_time: |time| time.year().into(), of_duration: None },
    Part { function: "getMonth", of_time: |time| i64::from(time.month()) - 1, of_duration: None },
    Part { function: "getDate", of_time: |time| time.day().into(), of_duration: None },
    Part { function: "getDayOfMonth", of_time: |time| i64::from(time.day()) - 1, of_duration: None },
    Part {
        function: "getDayOfWeek",
        of_time: |time| time.weekday().to_sunday_zero_offset().into(),
        of_duration: None,
    },
    Part { function: "getDayOfYear", of_time: |time| i64::from(time.day_of_year()) - 1, of_duration: None },
    Part {
        function: "getHours",
        of_time: |time| time.hour().into(),
        of_duration: Some(TimeDelta::num_hours),
    },
    Part {
        function: "getMinutes",
        of_time: |time| time.minute().into(),
        of_duration: Some(TimeDelta::num_minutes),
    },
    Part {
        function: "getSeconds",
        of_time: |time| time.second().into(),
        of_duration: Some(TimeDelta::num_seconds),
    },
];

fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("matches", matches);
    context.add_function("size", size);
    for part in PARTS {
        context.add_function(part.function, move |This(this): This<Value>, Arguments(args): Arguments| {
            part.get(&this, &args)
        });
    }
    context
}

/// Like the function of the crate, but a pattern is compiled once instead of for every value.
fn matches(This(this): This<Arc<String>>, Arguments(args): Arguments) -> Result<Value, ExecutionError> {
    // The pattern is the last argument, both of the method and of the function.
    let Some(Value::String(pattern)) = args.last() else {
        return Err(ExecutionError::NoSuchOverload);
    };
    PATTERNS.with_borrow_mut(|patterns| {
        if let Some(known) = patterns.get(pattern.as_str()) {
            return Ok(Value::Bool(known.is_match(&this)));
        }
        let new = Pattern::new(pattern).map_err(|error| ExecutionError::function_error("matches", error))?;
        let verdict = new.is_match(&this);
        if patterns.len() < MAX_PATTERNS {
            patterns.insert(pattern.to_string(), new);
        }
        Ok(Value::Bool(verdict))
    })
}

/// Like the function of the crate, but the size of strings is in characters instead of bytes.
fn size(This(this): This<Value>) -> Result<Value, ExecutionError> {
    let size = if let Value::String(text) = &this {
        text.chars().count()
    } else if let Value::List(values) = &this {
        values.len()
    } else if let Value::Map(map) = &this {
        map.map.len()
    } else if let Value::Bytes(bytes) = &this {
        bytes.len()
    } else {
        return Err(ExecutionError::NoSuchOverload);
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

impl Part {
    /// The part of a time, in UTC or in the given zone.
    fn get(&self, this: &Value, args: &[Value]) -> Result<Value, ExecutionError> {
        let error = |message: String| ExecutionError::function_error(self.function, message);
        if let (Value::Duration(duration), Some(of_duration)) = (this, self.of_duration) {
            return Ok(Value::Int(of_duration(duration)));
        }
        let Value::Timestamp(time) = this else {
            return Err(error("no such overload".to_owned()));
        };
        let time = Timestamp::from_second(time.timestamp()).map_err(|fault| error(fault.to_string()))?;
        let zone = match args {
            [Value::String(name), ..] => {
                zone(name).ok_or_else(|| error(format!("unknown time zone {name}")))?
            }
            _ => TimeZone::UTC,
        };
        Ok(Value::Int((self.of_time)(&time.to_zoned(zone))))
    }
}

fn zone(name: &str) -> Option<TimeZone> {
    if name == "UTC" || name.is_empty() {
        return Some(TimeZone::UTC);
    }
    ZONE_NAMES.contains(name).then(|| TimeZoneDatabase::bundled().get(name).ok()).flatten()
}
