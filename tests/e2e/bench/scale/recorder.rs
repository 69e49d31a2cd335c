//! A recording of the requests that the controller sends for one object: an HTTP server in front of the API server.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use five_spot_apiserver::{BoxError, HttpServer, ResponseBody, serve};
use futures::future::BoxFuture;
use http::{Method, Request, Response, header};
use http_body::Body;
use http_body_util::BodyExt as _;
use kube::Client;

/// A request as it was sent.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub(super) method: Method,
    /// Path and query.
    pub(super) uri: String,
    pub(super) content_type: Option<String>,
    pub(super) body: String,
    /// The status of the answer; 0 if there was none.
    code: Arc<AtomicU16>,
}

impl Recorded {
    /// The status of the answer.
    pub(super) fn code(&self) -> u16 {
        self.code.load(Ordering::SeqCst)
    }
}

/// The server, and what it has recorded.
pub(super) struct Recorder {
    server: HttpServer,
    records: Arc<Mutex<VecDeque<Recorded>>>,
}

impl Recorder {
    /// Passes everything on to `client`.
    pub(super) async fn start(client: Client) -> std::io::Result<Self> {
        let records = Arc::new(Mutex::new(VecDeque::new()));
        let service = RecordingService { client, records: records.clone() };
        let server = serve(service, ([127, 0, 0, 1], 0).into()).await?;
        Ok(Self { server, records })
    }

    /// A kubeconfig that leads here.
    pub(super) fn kubeconfig(&self) -> String {
        self.server.kubeconfig()
    }

    /// The requests since the last call that name one of these words in their path or body; watches are left out.
    pub(super) fn take(&self, words: &[&str]) -> Vec<Recorded> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |record: &Recorded| {
            let is_watch = record.uri.contains("watch=true");
            !is_watch && words.iter().any(|word| record.uri.contains(word) || record.body.contains(word))
        };
        records.drain(..).filter(is_meant).collect()
    }
}

#[derive(Clone)]
struct RecordingService {
    client: Client,
    records: Arc<Mutex<VecDeque<Recorded>>>,
}

impl<B> tower::Service<Request<B>> for RecordingService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (client, records) = (self.client.clone(), self.records.clone());
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let content_type = parts.headers.get(header::CONTENT_TYPE);
            let code = Arc::new(AtomicU16::new(0));
            records.lock().unwrap_or_else(PoisonError::into_inner).push_back(Recorded {
                method: parts.method.clone(),
                uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
                content_type: content_type.and_then(|value| value.to_str().ok()).map(str::to_owned),
                body: String::from_utf8_lossy(&body).into_owned(),
                code: code.clone(),
            });
            parts.headers.remove(header::HOST);
            let request = Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
            let response = client.send(request).await?;
            let (answered, body) = response.into_parts();
            code.store(answered.status.as_u16(), Ordering::SeqCst);
            let mut response = Response::builder().status(answered.status);
            if let Some(value) = answered.headers.get(header::CONTENT_TYPE) {
                response = response.header(header::CONTENT_TYPE, value);
            }
            Ok(response.body(body.map_err(BoxError::from).boxed_unsync())?)
        })
    }
}
