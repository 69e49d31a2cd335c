//! A service in front of the API server that injects faults.

use super::plan::{FaultPlan, InjectedFault, RequestKind};
use super::watch::{counted_watch, faulty_watch};
use crate::error::ApiError;
use crate::frontend::{ApiService, BoxError, ResponseBody, full};
use crate::verbs::StaleBy;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use http_body::Body;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// An API server with fault injection.
#[derive(Clone, Debug)]
pub struct FaultyService {
    api: ApiService,
    plan: FaultPlan,
    /// The revision before the last write, if there was one. Clones share it.
    before_write: Arc<AtomicU64>,
}

/// The value before the first write.
const NEVER: u64 = u64::MAX;

impl FaultyService {
    /// Applies the faults of `plan` to the requests to `api`.
    pub fn new(api: ApiService, plan: FaultPlan) -> Self {
        Self { api, plan, before_write: Arc::new(AtomicU64::new(NEVER)) }
    }

    async fn answer<B>(mut self, mut request: Request<B>) -> Result<Response<ResponseBody>, BoxError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (path, query) =
            (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
        let (number, fault) = self.plan.admit(request.method(), &path, &query);
        let is_watch = RequestKind::of(request.method(), &query) == RequestKind::Watch;
        let now = self.api.revision();
        if request.method() != Method::GET {
            self.before_write.store(now, Ordering::SeqCst);
        }
        match fault {
            None => {}
            Some(InjectedFault::DropBefore) => return Err(broken("the request was lost")),
            Some(InjectedFault::DropAfter) => {
                tower::Service::call(&mut self.api, request).await?;
                return Err(broken("the answer was lost"));
            }
            Some(InjectedFault::Delay(duration)) => tokio::time::sleep(duration).await,
            Some(InjectedFault::Refuse(code, retry_after)) => {
                return Ok(refusal(code, retry_after, "injected fault"));
            }
            Some(InjectedFault::RefuseSaying(code, text)) => return Ok(refusal(code, None, &text)),
            Some(InjectedFault::Misroute) => return Ok(no_such_page()),
            Some(InjectedFault::Hang) => std::future::pending().await,
            Some(InjectedFault::StaleRead(lag)) => {
                request.extensions_mut().insert(StaleBy(lag));
            }
            Some(InjectedFault::StaleBeforeOwnWrite) => {
                let lag = now.saturating_sub(self.before_write.load(Ordering::SeqCst));
                request.extensions_mut().insert(StaleBy(lag));
            }
            Some(InjectedFault::Watch(fault)) => {
                let response = tower::Service::call(&mut self.api, request).await?;
                self.plan.answered(number, response.status());
                let faulty = |body| counted_watch(faulty_watch(body, fault), self.plan.clone(), number);
                return Ok(response.map(faulty));
            }
        }
        let response = tower::Service::call(&mut self.api, request).await?;
        self.plan.answered(number, response.status());
        if is_watch && response.status().is_success() {
            return Ok(response.map(|body| counted_watch(body, self.plan.clone(), number)));
        }
        Ok(response)
    }
}

fn broken(why: &str) -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, why.to_owned()).into()
}

/// The 404 response of a proxy, or of an API server for a path that it does not serve: without a `Status` and
/// without an object name.
fn no_such_page() -> Response<ResponseBody> {
    let response =
        Response::builder().status(StatusCode::NOT_FOUND).header(header::CONTENT_TYPE, "text/plain");
    response
        .body(full(Bytes::from_static(b"404 page not found\n")))
        .expect("the parts of an answer are valid")
}

fn refusal(code: StatusCode, retry_after: Option<u64>, text: &str) -> Response<ResponseBody> {
    let reason = match code {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        StatusCode::GONE => "Expired",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
        _ => "InternalError",
    };
    let status = ApiError::new(code, reason, text).to_status().to_string();
    let mut response = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after {
        response = response.header(header::RETRY_AFTER, seconds);
    }
    response.body(full(Bytes::from(status))).expect("the parts of a refusal are valid")
}

impl<B> tower::Service<Request<B>> for FaultyService
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
        Box::pin(self.clone().answer(request))
    }
}
