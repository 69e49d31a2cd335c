//! Refuses requests that a web page could have sent.
//!
//! The API has no credentials, so every client that can connect can do everything. The port is on loopback,
//! but a browser on the same machine can connect to it too, and any web page can send requests from there. A
//! page whose host name resolves to loopback (DNS rebinding) is detected by its `Host` header, any other page
//! by its `Origin` header, and a form, which a browser sends without a preflight request, by a missing or
//! unexpected content type. `kubectl`, client-go and the Python client pass all three checks.

use super::service::{BoxError, ResponseBody, full};
use crate::error::ApiError;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use serde_json::Value;
use std::net::IpAddr;
use std::task::{Context, Poll};
use tower::Service;

/// A service that only answers requests to this host that do not come from web pages.
#[derive(Clone, Debug)]
pub(super) struct Guarded<S> {
    inner: S,
}

impl<S> Guarded<S> {
    pub(super) const fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, B> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>, Response = Response<ResponseBody>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if let Err(why) = check(request.method(), request.uri(), request.headers()) {
            return Box::pin(std::future::ready(Ok(refuse(why))));
        }
        Box::pin(self.inner.call(request))
    }
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Host,
    Origin,
    ContentType,
}

fn check(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = uri.authority().map(http::uri::Authority::as_str).or_else(|| text(header::HOST));
    if !host.is_some_and(is_own_host) {
        return Err(Refused::Host);
    }
    let is_own =
        |origin: &str| origin.split_once("://").is_some_and(|(_, authority)| Some(authority) == host);
    if !text(header::ORIGIN).is_none_or(is_own) {
        return Err(Refused::Origin);
    }
    let has_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
    if has_body && !text(header::CONTENT_TYPE).is_some_and(is_for_an_api) {
        return Err(Refused::ContentType);
    }
    Ok(())
}

/// The names of this machine that no web page can have.
fn is_own_host(host: &str) -> bool {
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

/// A content type that a browser does not send without a preflight request.
fn is_for_an_api(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media.starts_with("application/") && media != "application/x-www-form-urlencoded"
}

fn refuse(why: Refused) -> Response<ResponseBody> {
    let (code, reason, message) = match why {
        Refused::Host => (
            StatusCode::FORBIDDEN,
            "Forbidden",
            "the Host of the request is not this machine: use localhost or a loopback address",
        ),
        Refused::Origin => {
            (StatusCode::FORBIDDEN, "Forbidden", "requests of web pages from elsewhere are refused")
        }
        Refused::ContentType => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "the request has no content type of an API: use application/json or one of a patch",
        ),
    };
    let status = ApiError { code, reason, message: message.to_owned(), details: Value::Null }.to_status();
    let mut response = Response::new(full(status.to_string().into()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(method: &Method, headers: &[(&str, &str)], expected: Result<(), Refused>) {
        let mut request = Request::builder().method(method.clone()).uri("/api/v1/nodes");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        assert_eq!(
            check(request.method(), request.uri(), request.headers()),
            expected,
            "{method} {headers:?}"
        );
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in
            ["localhost:6443", "127.0.0.1:6443", "127.0.0.1", "[::1]:6443", "LOCALHOST", "127.1.2.3:1"]
        {
            case(&Method::GET, &[("host", host)], Ok(()));
        }
        for host in
            ["evil.example", "localhost.evil.example:6443", "127.0.0.1.evil.example", "10.0.0.1", "", "a b"]
        {
            case(&Method::GET, &[("host", host)], Err(Refused::Host));
        }
        case(&Method::GET, &[], Err(Refused::Host));
    }

    #[test]
    fn pages_from_elsewhere_are_refused() {
        let host = ("host", "127.0.0.1:6443");
        case(&Method::GET, &[host, ("origin", "http://127.0.0.1:6443")], Ok(()));
        for origin in ["https://evil.example", "null", "http://127.0.0.1:8080", ""] {
            case(&Method::GET, &[host, ("origin", origin)], Err(Refused::Origin));
        }
    }

    #[test]
    fn requests_that_a_form_can_send_are_refused() {
        let host = ("host", "localhost:6443");
        for method in [Method::POST, Method::PUT, Method::PATCH] {
            case(&method, &[host], Err(Refused::ContentType));
            for media in
                ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
            {
                case(&method, &[host, ("content-type", media)], Err(Refused::ContentType));
            }
            for media in [
                "application/json",
                "application/json; charset=utf-8",
                "application/apply-patch+yaml",
                "application/vnd.kubernetes.protobuf",
                "application/yaml",
                "application/merge-patch+json",
            ] {
                case(&method, &[host, ("content-type", media)], Ok(()));
            }
        }
        case(&Method::DELETE, &[host], Ok(()));
    }
}
