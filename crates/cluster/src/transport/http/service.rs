//! The handling of one request.

use super::answer::{self, AnswerBody};
use super::request_context::RequestContext;
use super::{ANSWER_DEADLINE, Call, Exchange, Transport, TransportError, WATCH_SILENCE};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use std::task::{Context, Poll};
use tokio::time::{Instant, timeout};
use tower::BoxError;

/// A service behind the transport.
#[derive(Clone, Debug)]
pub struct TransportService<S> {
    transport: Transport,
    inner: S,
}

impl<S> TransportService<S> {
    pub(super) const fn new(transport: Transport, inner: S) -> Self {
        Self { transport, inner }
    }
}

impl<S, Q, B> tower::Service<Request<Q>> for TransportService<S>
where
    S: tower::Service<Request<Q>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        let call = Call::of(&request);
        request.headers_mut().insert(header::USER_AGENT, self.transport.user_agent.clone());
        if call.writes()
            && let Err(why) = self.transport.check_write_guards()
        {
            return Box::pin(std::future::ready(Err(TransportError::Guarded(why).into())));
        }
        request.extensions_mut().insert(RequestContext::new(&call, &self.transport.write_guards));
        let transport = self.transport.clone();
        let uri = request.uri().to_string();
        // The service is called now, because it is the one whose readiness was checked. A future does nothing
        // before it is polled, which for a watch happens only when it may start.
        let answer = self.inner.call(request);
        Box::pin(async move {
            // Checked again when the request is first polled: the process may have been stopped in between.
            // Nothing is awaited before a write is sent.
            if call.writes()
                && let Err(why) = transport.check_write_guards()
            {
                return Err(TransportError::Guarded(why).into());
            }
            if let Err(refused) = transport.permit(&call, &uri) {
                return Err(transport.failed(&call, refused.into()));
            }
            if call.verb == "watch" {
                transport.watches.turn(&uri).await;
            }
            let began = Instant::now();
            let answer = match transport
                .responsiveness
                .as_ref()
                .map(|responsiveness| responsiveness.ask(finds_out(&call, &uri)))
            {
                None => bounded(&transport, &call, &uri, answer).await,
                Some(Err(silent)) => Err(silent.into()),
                Some(Ok(waiting)) => {
                    let answer = bounded(&transport, &call, &uri, answer).await;
                    if !answer.as_ref().is_err_and(is_deadline) {
                        waiting.note_answer();
                    }
                    answer
                }
            };
            let status = answer.as_ref().ok().map(Response::status);
            if let Ok(answer) = &answer {
                transport.clock_skew.note(answer.headers());
            }
            if let Some(status) = status {
                transport.storage.answered(&call, status);
            }
            if call.verb == "watch" && !status.is_some_and(|status| status.is_success()) {
                transport.watches.failed_to_start(&uri);
            }
            let answer = match answer {
                Ok(answer) => {
                    transport.answered();
                    Ok(answer)
                }
                Err(error) => Err(transport.failed(&call, error)),
            };
            transport.observer.answered(&Exchange { call, status, took: began.elapsed() });
            answer
        })
    }
}

/// True if a request may be sent to a cluster that does not answer: no reconcile waits for watches and their lists,
/// and a request for the version is the probe.
fn finds_out(call: &Call, uri: &str) -> bool {
    matches!(call.verb, "watch" | "list") || uri.ends_with("/version")
}

fn is_deadline(error: &BoxError) -> bool {
    matches!(error.downcast_ref::<TransportError>(), Some(TransportError::Deadline(_)))
}

async fn bounded<B, E>(
    transport: &Transport,
    call: &Call,
    uri: &str,
    answer: impl Future<Output = Result<Response<B>, E>>,
) -> Result<Response<AnswerBody>, BoxError>
where
    E: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let whole = async {
        let response = answer.await.map_err(Into::into)?;
        if call.verb == "watch" && response.status().is_success() {
            let (head, body) = response.into_parts();
            let body = transport.watches.follow(transport, uri, body, WATCH_SILENCE);
            return Ok(Response::from_parts(head, body));
        }
        let query = uri.split_once('?').map_or("", |(_, query)| query);
        answer::read(response, call, query, &transport.limits, &transport.budget).await
    };
    timeout(ANSWER_DEADLINE, whole)
        .await
        .unwrap_or_else(|_| Err(TransportError::Deadline(ANSWER_DEADLINE).into()))
}
