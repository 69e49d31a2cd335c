//! The connection between one controller and an embedded API. It ends with the controller, and faults are
//! injected here.

use super::election::Election;
use super::event_order::{EventOrder, HeldEvents, SETTLES_WITHIN, collection};
use super::leader_fault::{AWAY, away_for};
use super::link::{RunState, Traffic};
use super::write_fault::{FaultInjector, Planned, WriteFault};
use crate::environment::LeaderFault;
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
use std::task::{Context, Poll};
use std::time::Duration;

/// The time a crashing controller still runs after the response to its last write.
const LAST_REQUESTS: Duration = Duration::from_millis(1);

/// A connection to an API.
#[derive(Clone)]
pub(super) struct Transport {
    pub(super) api: FaultyService,
    pub(super) process: Arc<RunState>,
    /// The election, if there are several controllers.
    pub(super) election: Option<Arc<Election>>,
    pub(super) injector: Arc<FaultInjector>,
    /// The filter in front of the API.
    pub(super) filter: Arc<dyn RequestFilter>,
    /// The events that are held back on it.
    pub(super) events: HeldEvents,
}

/// A filter of requests.
pub(super) trait RequestFilter: Send + Sync {
    /// The answer to a request that may not pass.
    fn refuses(&self, request: &Request<Body>) -> Option<Response<ResponseBody>>;
    /// The additional time of a request.
    fn delay(&self, request: &Request<Body>) -> Duration;
    /// Waits for as long as nothing passes, in either direction. An error if the server is down.
    fn passes(&self) -> BoxFuture<'static, Result<(), BoxError>>;
}

impl Transport {
    async fn answer(mut self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        if self.process.is_over() || self.injector.is_runaway() {
            // The sender has ended, or may no longer write.
            std::future::pending::<()>().await;
        }
        let (traffic, request) = Traffic::of(request).await?;
        self.process.passes(traffic).await?;
        self.filter.passes().await?;
        tokio::time::sleep(self.filter.delay(&request)).await;
        if traffic == Traffic::Coordination {
            return self.forward(request, traffic).await;
        }
        if let Some(refused) = self.filter.refuses(&request) {
            return Ok(refused);
        }
        let Planned { fault, leader_fault, order } = self.injector.admit(traffic == Traffic::Write);
        if let Some(fault) = leader_fault {
            return self.disturb(request, fault).await;
        }
        match fault {
            None => self.send_in_order(request, order).await,
            Some(WriteFault::DiesBefore) => self.die().await,
            Some(WriteFault::DiesUnaware) => {
                self.send(request).await?;
                self.die().await
            }
            Some(WriteFault::DiesAware) => {
                let answer = self.send(request).await;
                self.process.end();
                let injector = self.injector.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(LAST_REQUESTS).await;
                    injector.report_crash();
                });
                answer
            }
            Some(WriteFault::LosesRequest) => Err(broken("the request was lost")),
            Some(WriteFault::LosesReply) => {
                self.send(request).await?;
                Err(broken("the answer was lost"))
            }
        }
    }

    /// Injects the fault of the process that is about to send this.
    async fn disturb(
        mut self,
        request: Request<Body>,
        fault: LeaderFault,
    ) -> Result<Response<ResponseBody>, BoxError> {
        match fault {
            LeaderFault::Killed => self.die().await,
            LeaderFault::KilledUnaware => {
                self.send(request).await?;
                self.die().await
            }
            LeaderFault::CutOff => {
                away_for(&self.process, fault);
                Err(broken("the request was lost"))
            }
            LeaderFault::CutOffUnaware => {
                self.send(request).await?;
                away_for(&self.process, fault);
                Err(broken("the answer was lost"))
            }
            LeaderFault::Stopped | LeaderFault::Silent => {
                away_for(&self.process, fault);
                // The request was sent, or is sent as soon as the process continues, even if nothing waits for the
                // answer.
                tokio::spawn(async move {
                    tokio::time::sleep(AWAY).await;
                    self.deliver(request, true).await
                })
                .await?
            }
        }
    }

    async fn send(&mut self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        self.deliver(request, false).await
    }

    /// Sends a request, which the fence of an election may refuse. It may arrive late if it was in flight
    /// before.
    async fn deliver(
        &mut self,
        request: Request<Body>,
        may_be_late: bool,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        if let Some(election) = self.election.as_ref().filter(|_| method != Method::GET)
            && let Some(refused) = election.admit(&self.process.identity, (&method, &path), may_be_late).await
        {
            return Ok(refused);
        }
        self.forward(request, Traffic::Read).await
    }

    /// Sends a request. The parts of its answer pass like this traffic.
    async fn forward(
        &mut self,
        request: Request<Body>,
        traffic: Traffic,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let passing = Passing {
            process: self.process.clone(),
            traffic,
            filter: self.filter.clone(),
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

    /// Nothing is sent or received from now on.
    async fn die(&self) -> Result<Response<ResponseBody>, BoxError> {
        self.process.end();
        self.injector.report_crash();
        std::future::pending().await
    }
}

/// The conditions that the parts of an answer wait for.
struct Passing {
    process: Arc<RunState>,
    traffic: Traffic,
    filter: Arc<dyn RequestFilter>,
    events: HeldEvents,
    /// The watched collection, if the request is a watch.
    collection: Option<String>,
}

/// An answer, each part of which waits until it may pass.
fn held_back(body: ResponseBody, passing: Passing) -> ResponseBody {
    let frames = stream::unfold((body, passing), |(mut body, passing)| async move {
        let frame = body.frame().await?;
        if let Some(collection) = &passing.collection {
            passing.events.released(collection).await;
        }
        let passed = passing.process.passes(passing.traffic).await.and(passing.filter.passes().await);
        let frame = passed.and(frame);
        Some((frame, (body, passing)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Returns true if a request starts a watch.
fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.method() == Method::GET && query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

pub(super) fn broken(why: &str) -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, why.to_owned()).into()
}

/// A refusal by an API server.
pub(super) fn refusal(code: StatusCode, reason: &str) -> Response<ResponseBody> {
    refusal_with(code, reason, reason)
}

/// The same with a message.
pub(super) fn refusal_with(code: StatusCode, reason: &str, message: &str) -> Response<ResponseBody> {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code.as_u16(),
    });
    answer(code, "application/json", status.to_string())
}

/// The answer of a web server that is not an API server.
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

impl tower::Service<Request<Body>> for Transport {
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
