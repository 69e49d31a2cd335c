//! The filter of log lines: `RUST_LOG`, and our own lines at debug level under `--verbose`.

use super::{OURS, REQUESTS};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{FilterExt, FilterFn, ParseError};
use tracing_subscriber::layer;
use tracing_subscriber::registry::LookupSpan;

/// The filter of log lines.
#[derive(Debug)]
pub struct LogFilter {
    directives: EnvFilter,
    verbose: bool,
}

/// The error in the directives of a filter.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(#[from] ParseError);

impl LogFilter {
    /// Understands directives as `RUST_LOG` has them.
    ///
    /// Unless they name a target of `kube`, or ask for everything at debug level, nothing of its client is logged: it
    /// logs failures without saying which cluster they are about, and whole answers that it cannot parse. Whoever asked
    /// says both, with the cluster and without the answer.
    ///
    /// `tower_http=debug`, which shows requests in other controllers of kube-rs, shows the lines about our requests.
    pub fn parse(directives: &str) -> Result<Self, FilterError> {
        let mut filter = EnvFilter::builder().parse(directives)?;
        let asks_for_kube = directives.split(',').any(|directive| directive.trim().starts_with("kube"));
        let asks_for_much = filter.max_level_hint().is_some_and(|level| level > LevelFilter::INFO)
            && directives.split(',').any(|directive| matches!(directive.trim(), "debug" | "trace"));
        if !asks_for_kube && !asks_for_much {
            filter = filter.add_directive("kube_client=off".parse()?);
        }
        let names_requests = directives.split(',').any(|directive| directive.trim().starts_with(REQUESTS));
        if let Some(level) = directives.split(',').filter_map(level_of_requests).next_back()
            && !names_requests
        {
            filter = filter.add_directive(format!("{REQUESTS}={level}").parse()?);
        }
        Ok(Self { directives: filter, verbose: false })
    }

    /// The same with our own crates at debug level at least, whatever the directives say of them.
    #[must_use]
    pub fn verbose(self, verbose: bool) -> Self {
        Self { verbose, ..self }
    }

    /// In a form that a layer can be given.
    pub(super) fn into_layer_filter<S>(self) -> impl layer::Filter<S> + Send + Sync
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        let Self { directives, verbose } = self;
        let ours = move |metadata: &Metadata<'_>| {
            let wanted = metadata.is_span() || (verbose && *metadata.level() <= Level::DEBUG);
            wanted && metadata.target().starts_with(OURS)
        };
        let highest = if verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
        directives.or(FilterFn::new(ours).with_max_level_hint(highest))
    }
}

/// The level of a directive for `tower_http` that shows requests. `tower_http=info` hides none of our lines.
fn level_of_requests(directive: &str) -> Option<LevelFilter> {
    let (target, level) = directive.trim().split_once('=').unwrap_or((directive.trim(), "trace"));
    let is_about_requests = target == "tower_http" || target.starts_with("tower_http::");
    let level: LevelFilter = level.parse().ok().filter(|_| is_about_requests)?;
    (level >= LevelFilter::DEBUG).then_some(level)
}

impl From<LevelFilter> for LogFilter {
    fn from(level: LevelFilter) -> Self {
        Self { directives: EnvFilter::default().add_directive(level.into()), verbose: false }
    }
}
