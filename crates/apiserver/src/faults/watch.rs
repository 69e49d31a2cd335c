//! Watches that lose or delay events, or end early.

use super::plan::{FaultPlan, WatchFault};
use crate::error::ApiError;
use crate::frontend::{BoxError, ResponseBody};
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::json;

/// The stream of a watch with a fault. Each frame of this server is one event.
pub(super) fn faulty_watch(body: ResponseBody, fault: WatchFault) -> ResponseBody {
    let watch = Watch { body, fault, next: 0, has_ended: false };
    let frames = stream::unfold(watch, |mut watch| async move {
        let frame = watch.next().await?;
        Some((frame, watch))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The stream of a watch whose events are recorded.
pub(super) fn counted_watch(body: ResponseBody, plan: FaultPlan, number: usize) -> ResponseBody {
    let frames = stream::unfold((body, plan), move |(mut body, plan)| async move {
        let frame = body.frame().await?;
        plan.delivered(number);
        Some((frame, (body, plan)))
    });
    StreamBody::new(frames).boxed_unsync()
}

struct Watch {
    body: ResponseBody,
    fault: WatchFault,
    next: u64,
    has_ended: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        loop {
            if self.has_ended {
                return None;
            }
            let frame = self.body.frame().await?;
            let number = self.next;
            self.next += 1;
            match self.fault {
                WatchFault::LoseEvent(lost) if lost == number => {}
                WatchFault::DelayEvent(late, duration) if late == number => {
                    tokio::time::sleep(duration).await;
                    return Some(frame);
                }
                WatchFault::CloseBefore(last) if last <= number => return None,
                WatchFault::HangBefore(last) if last <= number => std::future::pending().await,
                WatchFault::GoneBefore(last) if last <= number => {
                    self.has_ended = true;
                    let status = ApiError::expired("too old resource version: injected fault").to_status();
                    let line = format!("{}\n", json!({"type": "ERROR", "object": status}));
                    return Some(Ok(Frame::data(line.into())));
                }
                WatchFault::LoseEvent(_)
                | WatchFault::DelayEvent(..)
                | WatchFault::CloseBefore(_)
                | WatchFault::HangBefore(_)
                | WatchFault::GoneBefore(_) => return Some(frame),
            }
        }
    }
}
