//! The body of an answer, which holds its part of a connection until it has been read or dropped.

use super::exclusive::{Idle, Sender};
use super::shared::Reserved;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of an answer.
#[derive(Debug)]
pub(in crate::transport::http) struct PooledBody {
    incoming: Incoming,
    held: Held,
}

/// The content of a body.
#[derive(Debug)]
enum Held {
    /// A stream of a connection of HTTP/2.
    Stream(Reserved),
    /// A connection of HTTP/1.1, which is kept for the next request if the body is read to its end.
    Connection(Option<Sender>, Arc<Idle>),
}

impl PooledBody {
    pub(super) fn shared(incoming: Incoming, stream: Reserved) -> Self {
        Self { incoming, held: Held::Stream(stream) }
    }

    pub(super) fn exclusive(incoming: Incoming, sender: Sender, idle: Arc<Idle>) -> Self {
        let mut body = Self { incoming, held: Held::Connection(Some(sender), idle) };
        if http_body::Body::is_end_stream(&body.incoming) {
            body.ended();
        }
        body
    }

    fn ended(&mut self) {
        match &mut self.held {
            Held::Stream(_) => {}
            Held::Connection(sender, idle) => {
                if let Some(sender) = sender.take() {
                    idle.give_back(sender);
                }
            }
        }
    }
}

impl http_body::Body for PooledBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(context));
        match (&frame, &self.held) {
            (None, _) => self.ended(),
            (Some(Ok(_)), Held::Stream(stream)) => stream.note_received(),
            (Some(_), Held::Stream(_) | Held::Connection(..)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
