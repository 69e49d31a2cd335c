//! The lines of an answer that does not end.

use super::ClientError;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;

/// A watch with bookmarks has an event about every minute. After this long without one the connection counts as dead.
const SILENCE_LIMIT: Duration = Duration::from_secs(150);

/// The longest line.
const MAX_LINE_BYTES: usize = super::MAX_BODY_BYTES;

/// Splits a body into lines.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are known to hold no line end.
    searched: usize,
}

impl Lines {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, buffer: Vec::new(), searched: 0 }
    }

    /// The next line, or `None` at the end of the body.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(ClientError::Body(format!("a line of more than {MAX_LINE_BYTES} bytes")));
            }
            let frame = tokio::time::timeout(SILENCE_LIMIT, self.body.frame())
                .await
                .map_err(|_| ClientError::Timeout(SILENCE_LIMIT))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(ClientError::Http(error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + end;
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        line.pop();
        self.searched = 0;
        if self.buffer.is_empty() {
            // A large line must not keep its memory forever.
            self.buffer = Vec::new();
        }
        Some(line)
    }
}
