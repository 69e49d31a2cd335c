//! The body of an answer, read within the limits of its cluster.

use super::budget::{Budget, Share};
use super::shape::Shape;
use super::{Call, Limits, TransportError, limits, status};
use bytes::Bytes;
use http::{Response, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use std::pin::Pin;
use tower::BoxError;

/// The body of an answer.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// The largest size that is allocated at once because the server announces it.
const FIRST_ALLOCATION: usize = 64 << 10;

/// The limits of one answer.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    bytes: usize,
    values: usize,
    items: usize,
}

impl Bounds {
    fn of(call: &Call, query: &str, limits: &Limits) -> Self {
        if call.verb != "list" {
            return Self { bytes: limits.answer_bytes, values: limits.values_per_object, items: usize::MAX };
        }
        let asked: Option<usize> = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("limit="))
            .and_then(|limit| limit.parse().ok());
        let items = asked.map_or(limits.objects_per_page, |asked| asked.min(limits.objects_per_page));
        // The requested limit is enforced only for servers that page: the management cluster has no bound.
        let items = if limits.objects_per_page == usize::MAX { usize::MAX } else { items };
        let values = items.saturating_mul(limits.values_per_object).min(limits.values_per_page);
        Self { bytes: limits.list_page_bytes, values, items }
    }

    fn check(&self, bytes: usize, shape: &Shape) -> Result<(), TransportError> {
        if bytes > self.bytes {
            return Err(TransportError::AnswerTooLarge { limit: self.bytes });
        }
        if shape.items() > self.items {
            return Err(TransportError::TooManyObjects { limit: self.items });
        }
        if shape.values() > self.values {
            return Err(TransportError::TooManyValues { limit: self.values });
        }
        Ok(())
    }
}

/// Reads an answer as a whole. A redirect is refused. Of an error response only a `Status` is passed on.
pub(super) async fn read<B>(
    response: Response<B>,
    call: &Call,
    query: &str,
    limits: &Limits,
    budget: &Budget,
) -> Result<Response<AnswerBody>, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = response.into_parts();
    if head.status.is_redirection() {
        return Err(TransportError::Redirected(head.status.as_u16()).into());
    }
    let mut share = budget.share();
    if !head.status.is_success() {
        let body = read_start(body, &mut share).await?;
        let body =
            if is_of_a_program(call, limits) { body } else { status::sanitised(head.status, &body, limits) };
        head.headers.remove(header::CONTENT_LENGTH);
        return Ok(Response::from_parts(head, held(body.into(), share)));
    }
    let bounds = Bounds::of(call, query, limits);
    let declared =
        head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    bounds.check(declared.unwrap_or(0), &Shape::default())?;
    let bytes = read_all(body, &bounds, declared, &mut share).await?;
    Ok(Response::from_parts(head, held(bytes.into(), share)))
}

/// Returns true if a program answers through the proxy of the management cluster, such as `/ready` of the controller, whose
/// reasons `5spot doctor` shows. The controller itself never asks for that.
fn is_of_a_program(call: &Call, limits: &Limits) -> bool {
    *limits == Limits::MANAGEMENT && call.subresource.as_deref() == Some("proxy")
}

async fn read_all<B>(
    body: B,
    bounds: &Bounds,
    declared: Option<usize>,
    share: &mut Share,
) -> Result<Vec<u8>, BoxError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = Vec::with_capacity(declared.unwrap_or(0).min(FIRST_ALLOCATION));
    let mut counted = Shape::default();
    while let Some(frame) = next_frame(&mut body).await {
        let Ok(data) = frame.map_err(Into::into)?.into_data() else { continue };
        counted.read(&data);
        bounds.check(bytes.len() + data.len(), &counted)?;
        share.grow(data.len())?;
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Reads the body of an error response up to a bound, and ignores the rest.
async fn read_start<B>(body: B, share: &mut Share) -> Result<Vec<u8>, BoxError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = next_frame(&mut body).await {
        let Ok(data) = frame.map_err(Into::into)?.into_data() else { continue };
        share.grow(data.len())?;
        bytes.extend_from_slice(&data);
        if bytes.len() > limits::ERROR_BYTES {
            break;
        }
    }
    Ok(bytes)
}

/// A body that keeps its share of the budget until it has been read.
fn held(bytes: Bytes, share: Share) -> AnswerBody {
    let frames = futures::stream::unfold(Some((bytes, share)), |held| async move {
        let (bytes, share) = held?;
        drop(share);
        Some((Ok(Frame::data(bytes)), None))
    });
    StreamBody::new(frames).boxed_unsync()
}

pub(super) async fn next_frame<B: http_body::Body>(
    body: &mut Pin<&mut B>,
) -> Option<Result<Frame<B::Data>, B::Error>> {
    std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
}

/// The line of a watch that is being read.
#[derive(Debug)]
pub(super) struct Line {
    bytes: usize,
    shape: Shape,
    share: Share,
    limits: Limits,
}

impl Line {
    pub(super) fn new(limits: Limits, budget: &Budget) -> Self {
        Self { bytes: 0, shape: Shape::default(), share: budget.share(), limits }
    }

    /// Reads the next bytes of the watch.
    pub(super) fn read(&mut self, data: &[u8]) -> Result<(), TransportError> {
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            self.bytes += piece.len();
            if self.bytes > self.limits.watch_line_bytes {
                return Err(TransportError::LineTooLong { limit: self.limits.watch_line_bytes });
            }
            self.shape.read(piece);
            if self.shape.values() > self.limits.values_per_object {
                return Err(TransportError::TooManyValues { limit: self.limits.values_per_object });
            }
            if piece.ends_with(b"\n") {
                (self.bytes, self.shape) = (0, Shape::default());
                self.share.clear();
            } else {
                self.share.grow(piece.len())?;
            }
        }
        Ok(())
    }
}
