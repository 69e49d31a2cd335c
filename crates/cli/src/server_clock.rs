//! The clock of the API server. Schedules and deadlines are judged by it, because the clock of the reader's computer may be
//! wrong, and a sandbox has a clock of its own.

use crate::cluster_access::ClusterAccess;
use http::{Request, header};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use std::sync::Arc;

/// Differences that a request and the whole seconds of a `Date` header explain.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

/// Asks for the time of the API server: the first request of a command, so that its failure says whether the cluster can be
/// reached at all. `None` if the server does not tell the time.
pub async fn server_time(client: &Client) -> Result<Option<Timestamp>, kube::Error> {
    let request = Request::get("/version").body(Body::empty()).map_err(kube::Error::HttpError)?;
    let response = client.send(request).await?;
    let date = response.headers().get(header::DATE).and_then(|date| date.to_str().ok());
    Ok(date.and_then(parse))
}

/// An HTTP date: `Tue, 17 Nov 2026 19:00:00 GMT`.
fn parse(date: &str) -> Option<Timestamp> {
    let civil = jiff::civil::DateTime::strptime("%a, %d %b %Y %H:%M:%S GMT", date).ok()?;
    civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

impl ClusterAccess {
    /// The same access with the clock of the API server. Returns it with the difference of the two clocks.
    pub async fn by_server_time(mut self) -> Result<(Self, SignedDuration), kube::Error> {
        let client = self.connection.management()?;
        let server = server_time(&client).await?;
        let local = self.connection.now();
        let difference = server.map_or(SignedDuration::ZERO, |server| server.duration_since(local));
        if difference.abs() > TOLERANCE {
            let now = move || Timestamp::now().saturating_add(difference).unwrap_or(Timestamp::MAX);
            self.connection = self.connection.with_clock(Arc::new(now));
        }
        Ok((self, difference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_are_read_and_nonsense_is_not() {
        let time = parse("Tue, 17 Nov 2026 19:00:05 GMT").expect("a date");
        assert_eq!(time.to_string(), "2026-11-17T19:00:05Z");
        for nonsense in ["", "yesterday", "Tue, 17 Nov 2026 19:00:05", "Tue, 99 Nov 2026 19:00:05 GMT"] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }
}
