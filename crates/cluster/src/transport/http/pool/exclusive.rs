//! HTTP/1.1 connections, each used by one request until its answer has been read.

use super::body::PooledBody;
use super::{Failed, KEPT_IDLE};
use crate::transport::http::connect::Stream;
use crate::transport::http::limits::{HTTP1_BUFFER, IDLE_CONNECTIONS};
use http::{HeaderValue, Request, Response, Uri, header};
use hyper::client::conn::http1::{self, SendRequest};
use kube::client::Body;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

pub(super) type Sender = SendRequest<Body>;

/// Connections whose last answer has been read.
#[derive(Debug, Default)]
pub(super) struct Idle {
    senders: Mutex<Vec<(Sender, Instant)>>,
}

impl Idle {
    /// The connection that was used last, if it is still open.
    pub(super) async fn take(&self) -> Option<Sender> {
        loop {
            let (mut sender, since) = self.lock().pop()?;
            // The end of an answer is read before its connection is ready for the next request.
            if since.elapsed() < KEPT_IDLE && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    /// Keeps a connection for the next request.
    pub(super) fn give_back(&self, sender: Sender) {
        let mut senders = self.lock();
        senders.retain(|(sender, since)| !sender.is_closed() && since.elapsed() < KEPT_IDLE);
        if senders.len() < IDLE_CONNECTIONS && !sender.is_closed() {
            senders.push((sender, Instant::now()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Sender, Instant)>> {
        // Every change is one insertion or removal.
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) async fn open(stream: Stream) -> Result<Sender, hyper::Error> {
    let (sender, connection) = http1::Builder::new().max_buf_size(HTTP1_BUFFER).handshake(stream).await?;
    // It ends when the server closes it, or with the last sender. A caller that waits for an answer gets the
    // error.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

pub(super) async fn send(
    mut sender: Sender,
    request: Request<Body>,
    idle: &Arc<Idle>,
) -> Result<Response<PooledBody>, Failed> {
    // In case it is given to a connection of HTTP/2 afterwards.
    let absolute = request.uri().clone();
    match sender.try_send_request(in_origin_form(request)).await {
        Ok(answer) => Ok(answer.map(|body| PooledBody::exclusive(body, sender, idle.clone()))),
        Err(error) => {
            let mut failed = Failed::from(error);
            if let Some(unsent) = &mut failed.unsent {
                *unsent.uri_mut() = absolute;
            }
            Err(failed)
        }
    }
}

/// A request in the form of HTTP/1.1: the path in its first line, the server in a header.
fn in_origin_form(mut request: Request<Body>) -> Request<Body> {
    let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
    request
}
