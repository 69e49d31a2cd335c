//! The difference between the clock of this process and that of a server, by the header `Date` of its answers.

use http::{HeaderMap, header};
use jiff::{SignedDuration, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};

type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The latest difference. Clones share it.
#[derive(Clone, Default)]
pub(super) struct ClockSkew {
    now: Option<Now>,
    latest: Arc<Mutex<Option<SignedDuration>>>,
}

impl ClockSkew {
    pub(super) fn new(now: Now) -> Self {
        Self { now: Some(now), latest: Arc::default() }
    }

    /// Compares the clocks when an answer has just arrived. An unreadable header is ignored.
    pub(super) fn note(&self, headers: &HeaderMap) {
        let Some(now) = &self.now else { return };
        let date = headers.get(header::DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
        if let Some(date) = date {
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(now().duration_since(date));
        }
    }

    pub(super) fn get(&self) -> Option<SignedDuration> {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_by_the_date_of_an_answer() {
        let now: Timestamp = "2026-11-17T19:40:21Z".parse().expect("a time");
        let skew = ClockSkew::new(Arc::new(move || now));
        assert_eq!(skew.get(), None);
        let headers = |date: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::DATE, http::HeaderValue::from_static(date));
            headers
        };
        skew.note(&headers("Tue, 17 Nov 2026 19:28:21 GMT"));
        assert_eq!(skew.get(), Some(SignedDuration::from_mins(12)));
        for unreadable in ["yesterday", ""] {
            skew.note(&headers(unreadable));
            assert_eq!(skew.get(), Some(SignedDuration::from_mins(12)), "{unreadable}");
        }
        skew.note(&headers("Tue, 17 Nov 2026 19:45:21 GMT"));
        assert_eq!(skew.get(), Some(SignedDuration::from_mins(-5)));
    }
}
