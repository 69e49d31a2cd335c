//! The API as a `tower` service.

use super::answer::{Answer, Reply};
use crate::error::ApiError;
use crate::service_state::Shared;
use crate::verbs::{self, WatchStream};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The longest body of a request in bytes, that of a kube-apiserver.
pub(crate) const MOST_BODY: usize = 3 << 20;

/// The error of a request or response body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response: complete, or a stream of events.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Answers requests from the state of one API server.
#[derive(Clone, Debug)]
pub struct ApiService {
    shared: Arc<Shared>,
}

impl ApiService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The revision of the latest change.
    pub(crate) fn revision(&self) -> u64 {
        self.shared.lock().store.revision()
    }

    fn respond(&self, request: &Request<Bytes>) -> Response<ResponseBody> {
        let (reply, now) = self.shared.change(|state| (verbs::handle(state, request), state.clock.now()));
        let mut response = self.to_response(reply);
        // A real server sends the date too, so that a client can compare its clock.
        if let Ok(date) = HeaderValue::from_str(&now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()) {
            response.headers_mut().insert(header::DATE, date);
        }
        response
    }

    fn to_response(&self, reply: Reply) -> Response<ResponseBody> {
        let mut response =
            Response::builder().status(reply.code).header(header::CONTENT_TYPE, reply.content_type);
        for warning in &reply.warnings {
            let text = format!("299 - {warning:?}");
            if let Ok(value) = HeaderValue::from_str(&text) {
                response = response.header(header::WARNING, value);
            }
        }
        if let Some(seconds) = reply.retry_after {
            response = response.header(header::RETRY_AFTER, seconds);
        }
        let body = match reply.answer {
            Answer::Json(value) => full(value.to_string().into()),
            Answer::Bytes(bytes) => full(bytes),
            Answer::Watch(plan) => watch_body(WatchStream::new(self.shared.clone(), *plan)),
        };
        response.body(body).expect("the parts of an answer are valid")
    }
}

/// The answer to a request whose body is too long, in the words of a kube-apiserver.
fn too_large() -> Reply {
    let message = format!("Request entity too large: limit is {MOST_BODY}");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message).into()
}

/// A complete body.
pub(crate) fn full(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn watch_body(watch: WatchStream) -> ResponseBody {
    let frames = stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((Ok(Frame::data(line)), watch))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let bytes = match Limited::new(body, MOST_BODY).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) if error.is::<LengthLimitError>() => return Ok(service.to_response(too_large())),
                Err(error) => return Err(error),
            };
            Ok(service.respond(&Request::from_parts(head, bytes)))
        })
    }
}
