//! The clock of the API server. Schedules and deadlines are judged by it, because the clock of the reader's computer may be
//! wrong, and a sandbox has a clock of its own.

use crate::cluster_access::CallerCluster;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;
use std::sync::Arc;

/// Differences that a request and the whole seconds of a `Date` header explain.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

/// The longest answer to `/version` that is read. That of an API server has a few hundred bytes.
const MAX_VERSION_BYTES: usize = 64 << 10;

/// Asks for the time of the API server: the first request of a command, so that its failure says whether the cluster can be
/// reached at all. `None` if the server does not tell the time.
pub async fn server_time(client: &Client) -> Result<Option<Timestamp>, kube::Error> {
    let request = Request::get("/version").body(Body::empty()).map_err(kube::Error::HttpError)?;
    let response = client.send(request).await?;
    let status = response.status();
    let date = response.headers().get(header::DATE).and_then(|date| date.to_str().ok()).and_then(parse);
    let has_version = if status.is_success() {
        let version = Limited::new(response.into_body(), MAX_VERSION_BYTES).collect().await;
        version.is_ok_and(|version| is_version(&version.to_bytes()))
    } else {
        false
    };
    refuse_strangers(status, has_version)?;
    Ok(date)
}

/// Returns true if this is what an API server answers to `/version`.
fn is_version(body: &[u8]) -> bool {
    serde_json::from_slice(body).is_ok_and(|version: Value| version["gitVersion"].is_string())
}

/// Every API server has a version, and lets at least people who are logged in read it unless someone has forbidden that. What
/// answers anything else is a proxy or another program, and would look like a cluster without any kinds.
fn refuse_strangers(status: StatusCode, has_version: bool) -> Result<(), kube::Error> {
    let message = match status {
        StatusCode::UNAUTHORIZED => "the API server rejects the credentials of the kubeconfig",
        StatusCode::FORBIDDEN => return Ok(()),
        _ if has_version => return Ok(()),
        status if status.is_server_error() => "the API server fails to answer /version",
        _ => "this is not a Kubernetes API server: it has no /version",
    };
    Err(kube::Error::Api(Status::failure(message, "").with_code(status.as_u16()).boxed()))
}

/// An HTTP date: `Tue, 17 Nov 2026 19:00:00 GMT`.
fn parse(date: &str) -> Option<Timestamp> {
    let civil = jiff::civil::DateTime::strptime("%a, %d %b %Y %H:%M:%S GMT", date).ok()?;
    civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

impl CallerCluster {
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
    fn only_an_api_server_has_a_version() {
        let refused = |code: u16| {
            let status = StatusCode::from_u16(code).expect("a status");
            refuse_strangers(status, code == 201).err().map(|error| error.to_string())
        };
        assert_eq!(refused(201), None);
        assert!(refused(200).is_some_and(|text| text.contains("not a Kubernetes API server")), "a web page");
        assert_eq!(refused(403), None, "a cluster may hide its version");
        assert!(refused(401).is_some_and(|text| text.contains("rejects the credentials")));
        assert!(refused(404).is_some_and(|text| text.contains("not a Kubernetes API server")));
        assert!(refused(302).is_some_and(|text| text.contains("not a Kubernetes API server")));
        assert!(refused(503).is_some_and(|text| text.contains("fails to answer")));
    }

    #[test]
    fn a_web_page_is_not_a_version() {
        assert!(is_version(br#"{"major": "1", "minor": "36", "gitVersion": "v1.36.4"}"#));
        for other in ["", "7", "<html></html>", "[]", "{}", r#"{"gitVersion": 1}"#] {
            assert!(!is_version(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn http_dates_are_read_and_nonsense_is_not() {
        let time = parse("Tue, 17 Nov 2026 19:00:05 GMT").expect("a date");
        assert_eq!(time.to_string(), "2026-11-17T19:00:05Z");
        for nonsense in ["", "yesterday", "Tue, 17 Nov 2026 19:00:05", "Tue, 99 Nov 2026 19:00:05 GMT"] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }
}
