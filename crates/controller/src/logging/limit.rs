//! The limit of the log lines of each namespace.
//!
//! A tenant causes reconciles, by changing its objects in a loop for instance, and each writes about five lines. Without a
//! limit it fills the disk of the log, and hides the lines of others. So the reconciles of one namespace have a token bucket
//! for their lines, and another one for warnings, errors and the audit trail: what is of most use is never suppressed because
//! of the rest.

use super::span::{RECONCILE, is_ours};
use crate::audit;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level};
use tracing_subscriber::layer::Context;
use tracing_subscriber::{Layer, Registry};

/// The rate of log lines of one namespace.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRate {
    pub(super) burst: u32,
    pub(super) per_minute: u32,
}

impl LineRate {
    /// 10,000 machines of one namespace that open within a few minutes write about twelve lines each, 120,000 together. After
    /// that 30,000 lines a minute, about 10 MB, are a few reconciles a second of each of a thousand busy objects.
    const NORMAL: Self = Self { burst: 150_000, per_minute: 30_000 };

    /// At debug level the operator has asked for more, usually for a short time.
    const DETAILED: Self = Self { burst: 10 * Self::NORMAL.burst, per_minute: 10 * Self::NORMAL.per_minute };

    /// The rate for lines up to this level: ten times as high if that is more than information.
    pub(super) fn of_level(most_detailed: Option<LevelFilter>) -> Self {
        if most_detailed.is_none_or(|level| level > LevelFilter::INFO) {
            Self::DETAILED
        } else {
            Self::NORMAL
        }
    }
}

/// A layer that writes lines, but suppresses those of a namespace which exceed its rate.
///
/// It is no `Filter`: one that disables an event in `event_enabled` leaves a mark that disables the next event of the thread.
pub(super) struct LineLimit<L> {
    lines: L,
    rate: LineRate,
    namespaces: Mutex<BTreeMap<Arc<str>, Lines>>,
}

/// The lines of one namespace.
#[derive(Debug)]
struct Lines {
    ordinary: Bucket,
    important: Bucket,
    suppressed: u64,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    updated: Instant,
}

impl Bucket {
    fn full(rate: LineRate, now: Instant) -> Self {
        Self { tokens: f64::from(rate.burst), updated: now }
    }

    fn refill(&mut self, rate: LineRate, now: Instant) {
        let minutes = now.saturating_duration_since(self.updated).as_secs_f64() / 60.0;
        self.tokens = (self.tokens + minutes * f64::from(rate.per_minute)).min(f64::from(rate.burst));
        self.updated = now;
    }

    fn take(&mut self, rate: LineRate, now: Instant) -> bool {
        self.refill(rate, now);
        let permitted = self.tokens >= 1.0;
        if permitted {
            self.tokens -= 1.0;
        }
        permitted
    }

    fn is_full(&mut self, rate: LineRate, now: Instant) -> bool {
        self.refill(rate, now);
        self.tokens >= f64::from(rate.burst)
    }
}

/// The namespace of a reconcile, kept with its span.
struct OfNamespace(Arc<str>);

#[derive(Default)]
struct NamespaceVisitor(Option<Arc<str>>);

impl Visit for NamespaceVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "namespace" {
            self.0 = Some(value.into());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl<L> LineLimit<L> {
    pub(super) fn new(lines: L, rate: LineRate) -> Self {
        Self { lines, rate, namespaces: Mutex::default() }
    }

    fn namespaces(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Lines>> {
        // Every change is one insertion or removal, or the assignment of numbers.
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn permits(&self, namespace: &Arc<str>, is_important: bool) -> bool {
        let (rate, now) = (self.rate, Instant::now());
        let mut namespaces = self.namespaces();
        let lines = namespaces.entry(namespace.clone()).or_insert_with(|| Lines {
            ordinary: Bucket::full(rate, now),
            important: Bucket::full(rate, now),
            suppressed: 0,
        });
        let bucket = if is_important { &mut lines.important } else { &mut lines.ordinary };
        let permitted = bucket.take(rate, now);
        lines.suppressed += u64::from(!permitted);
        permitted
    }

    /// The namespaces of which lines were suppressed since the last call, and how many. Forgets those at rest.
    pub(super) fn take_suppressed(&self) -> Vec<(Arc<str>, u64)> {
        let (rate, now) = (self.rate, Instant::now());
        let (mut suppressed, mut namespaces) = (Vec::new(), self.namespaces());
        for (namespace, lines) in &mut *namespaces {
            let count = std::mem::take(&mut lines.suppressed);
            if count > 0 {
                suppressed.push((namespace.clone(), count));
            }
        }
        namespaces
            .retain(|_, lines| !(lines.ordinary.is_full(rate, now) && lines.important.is_full(rate, now)));
        suppressed
    }
}

impl<L: Layer<Registry>> Layer<Registry> for LineLimit<L> {
    fn on_layer(&mut self, registry: &mut Registry) {
        self.lines.on_layer(registry);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, Registry>) {
        let mut spans = context.event_scope(event).into_iter().flatten();
        let namespace = spans
            .find_map(|span| span.extensions().get::<OfNamespace>().map(|namespace| namespace.0.clone()));
        let metadata = event.metadata();
        let is_important = *metadata.level() <= Level::WARN || metadata.target() == audit::TARGET;
        if namespace.is_none_or(|namespace| self.permits(&namespace, is_important)) {
            self.lines.on_event(event, context);
        }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, Registry>) {
        let metadata = attributes.metadata();
        if metadata.name() == RECONCILE && is_ours(metadata) {
            let mut visitor = NamespaceVisitor::default();
            attributes.record(&mut visitor);
            if let (Some(namespace), Some(span)) = (visitor.0, context.span(id)) {
                span.extensions_mut().replace(OfNamespace(namespace));
            }
        }
        self.lines.on_new_span(attributes, id, context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, Registry>) {
        self.lines.on_record(id, values, context);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, Registry>) {
        self.lines.on_enter(id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, Registry>) {
        self.lines.on_exit(id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, Registry>) {
        self.lines.on_close(id, context);
    }
}

/// The layer that a program logs with.
pub(super) type LimitedLines = LineLimit<Box<dyn Layer<Registry> + Send + Sync>>;

/// Logs of which namespaces lines were suppressed since the last call. Call it once a minute.
pub(crate) fn report_suppressed_lines() {
    let suppressed = tracing::dispatcher::get_default(|dispatch| {
        dispatch.downcast_ref::<LimitedLines>().map(LimitedLines::take_suppressed)
    });
    for (namespace, suppressed) in suppressed.into_iter().flatten() {
        tracing::warn!(
            namespace = &*namespace,
            suppressed,
            "Log lines of the namespace were suppressed: its reconciles write too many"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::advance;

    fn limit(level: LevelFilter) -> LineLimit<()> {
        LineLimit::new((), LineRate::of_level(Some(level)))
    }

    #[tokio::test(start_paused = true)]
    async fn ten_thousand_openings_at_once_are_not_cut() {
        let (limit, namespace) = (limit(LevelFilter::INFO), "shop".into());
        assert!((0..10_000 * 12).all(|_| limit.permits(&namespace, false)));
        assert_eq!(limit.take_suppressed(), []);
        advance(Duration::from_mins(4)).await;
        assert!((0..10_000 * 12).all(|_| limit.permits(&namespace, false)), "nor are they when they close");
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_has_30000_lines_a_minute_in_the_long_run() {
        let (limit, namespace): (_, Arc<str>) = (limit(LevelFilter::INFO), "shop".into());
        let written = |is_important| (0..200_000).filter(|_| limit.permits(&namespace, is_important)).count();
        assert_eq!(written(false), 150_000);
        assert_eq!(limit.take_suppressed(), [(namespace.clone(), 50_000)]);
        assert_eq!(limit.take_suppressed(), [], "each is reported once");
        advance(Duration::from_mins(1)).await;
        assert_eq!(written(false), 30_000);
        assert_eq!(written(true), 150_000, "what is important has an allowance of its own");
        assert!(limit.permits(&"other".into(), false));
        advance(Duration::from_mins(5)).await;
        limit.take_suppressed();
        assert!(limit.namespaces().is_empty(), "those at rest take no memory");
    }

    #[test]
    fn who_asks_for_debug_lines_gets_ten_times_as_many() {
        let (limit, namespace) = (limit(LevelFilter::DEBUG), "shop".into());
        assert_eq!((0..1_600_000).take_while(|_| limit.permits(&namespace, false)).count() / 100_000, 15);
    }
}
