//! The line between one controller and an embedded API: it dies with the controller, and it is where blows fall.

use super::blow::{Blow, Fate, Planned};
use super::event_order::{EventOrder, HeldEvents, SETTLES_WITHIN, collection};
use bytes::Bytes;
use five_spot_apiserver::faults::FaultyService;
use five_spot_apiserver::{BoxError, ResponseBody};
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::Body;
use serde_json::json;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a controller that has heard of its last write may go on thinking.
const LAST_BREATH: Duration = Duration::from_millis(1);

/// Whether a controller lives.
#[derive(Debug, Default)]
pub(super) struct Life {
    dead: AtomicBool,
}

impl Life {
    pub(super) fn end(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }
}

/// A line to an API.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) api: FaultyService,
    pub(super) life: Arc<Life>,
    pub(super) fate: Arc<Fate>,
    /// What stands between it and the API.
    pub(super) gate: Arc<dyn Gate>,
    /// The events that are held back on it.
    pub(super) events: HeldEvents,
}

/// Who lets requests pass, or does not.
pub(super) trait Gate: Send + Sync {
    /// The answer to a request that may not pass.
    fn refuses(&self, request: &Request<Body>) -> Option<Response<ResponseBody>>;
    /// How long each request takes longer than it should.
    fn delay(&self) -> Duration;
    /// Waits for as long as nothing passes, in either direction. An error if nobody is there.
    fn passes(&self) -> BoxFuture<'static, Result<(), BoxError>>;
}

impl Line {
    async fn answer(mut self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        if self.life.is_over() || self.fate.is_runaway() {
            // Nobody is left to send it, or has lost the right to.
            std::future::pending::<()>().await;
        }
        self.gate.passes().await?;
        tokio::time::sleep(self.gate.delay()).await;
        if let Some(refused) = self.gate.refuses(&request) {
            return Ok(refused);
        }
        let is_write = request.method() != Method::GET;
        let Planned { blow, order } = self.fate.admit(is_write);
        match blow {
            None => self.send_in_order(request, order).await,
            Some(Blow::DiesBefore) => self.die().await,
            Some(Blow::DiesUnaware) => {
                self.send(request).await?;
                self.die().await
            }
            Some(Blow::DiesAware) => {
                let answer = self.send(request).await;
                self.life.end();
                let fate = self.fate.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(LAST_BREATH).await;
                    fate.fell();
                });
                answer
            }
            Some(Blow::LosesRequest) => Err(broken("the request was lost")),
            Some(Blow::LosesReply) => {
                self.send(request).await?;
                Err(broken("the answer was lost"))
            }
        }
    }

    async fn send(&mut self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let passing = Passing {
            gate: self.gate.clone(),
            events: self.events.clone(),
            collection: is_watch(&request).then(|| collection(request.uri().path())),
        };
        let answer = tower::Service::call(&mut self.api, request).await?;
        Ok(answer.map(|body| held_back(body, passing)))
    }

    /// Sends a request, and delivers the event that it causes before or after the response.
    async fn send_in_order(
        &mut self,
        request: Request<Body>,
        order: Option<EventOrder>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        match order {
            None => self.send(request).await,
            Some(EventOrder::BeforeResponse) => {
                let answer = self.send(request).await;
                tokio::time::sleep(SETTLES_WITHIN).await;
                answer
            }
            Some(order @ (EventOrder::AfterResponse | EventOrder::AfterNextReconcile)) => {
                let hold = self.events.hold(collection(request.uri().path()));
                let answer = self.send(request).await;
                hold.release_after(order.lag());
                answer
            }
        }
    }

    /// Nothing is sent or heard from now on.
    async fn die(&self) -> Result<Response<ResponseBody>, BoxError> {
        self.life.end();
        self.fate.fell();
        std::future::pending().await
    }
}

/// What the parts of an answer have to wait for.
struct Passing {
    gate: Arc<dyn Gate>,
    events: HeldEvents,
    /// What is watched, if the answer is that of a watch.
    collection: Option<String>,
}

/// An answer, each part of which waits until it may pass.
fn held_back(body: ResponseBody, passing: Passing) -> ResponseBody {
    let frames = stream::unfold((body, passing), |(mut body, passing)| async move {
        let frame = body.frame().await?;
        if let Some(collection) = &passing.collection {
            passing.events.released(collection).await;
        }
        let frame = passing.gate.passes().await.and(frame);
        Some((frame, (body, passing)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Whether a request starts a watch.
fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.method() == Method::GET && query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

pub(super) fn broken(why: &str) -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, why.to_owned()).into()
}

/// What an API server answers to those it will not listen to.
pub(super) fn refusal(code: StatusCode, reason: &str) -> Response<ResponseBody> {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": reason,
        "reason": reason, "code": code.as_u16(),
    });
    answer(code, "application/json", status.to_string())
}

/// What a web server answers that is no API server.
pub(super) fn page_not_found() -> Response<ResponseBody> {
    answer(StatusCode::NOT_FOUND, "text/plain", "404 page not found\n".to_owned())
}

pub(super) fn answer(code: StatusCode, content_type: &str, text: String) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {});
    Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, content_type)
        .body(body.boxed_unsync())
        .expect("the parts of an answer are valid")
}

impl tower::Service<Request<Body>> for Line {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}
