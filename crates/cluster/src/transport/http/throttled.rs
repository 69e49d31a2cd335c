//! A connection that is read no faster than the rate of its namespace permits.
//!
//! Whatever a server sends has to be decrypted and parsed: pages of lists, events of watches, and frames of HTTP/2 that carry
//! nothing. A tenant with many servers could keep all processors busy with it. What is not read stays with the server.

use super::rate::Rate;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection, and the rate at which it may be read.
#[derive(Debug)]
pub(super) struct Throttled<S> {
    stream: S,
    /// Shared with the other connections of the namespace. Absent if the server is trusted.
    received: Option<Rate>,
    /// The pause before the next read.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Throttled<S> {
    pub(super) const fn new(stream: S, received: Option<Rate>) -> Self {
        Self { stream, received, pause: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Throttled<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(context));
            this.pause = None;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len().saturating_sub(before);
        if bytes > 0
            && let Some(received) = &this.received
        {
            let pause = received.take(bytes);
            this.pause = (!pause.is_zero()).then(|| Box::pin(sleep(pause)));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Throttled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::{Duration, Instant};

    /// A connection on which this many bytes have arrived, and the other end of it.
    async fn connection(bytes: usize, received: Option<Rate>) -> (Throttled<DuplexStream>, DuplexStream) {
        let (mut server, client) = duplex(1 << 20);
        server.write_all(&vec![0; bytes]).await.expect("there is room");
        (Throttled::new(client, received), server)
    }

    async fn read(client: &mut Throttled<DuplexStream>, bytes: usize) {
        for _ in 0..bytes / 100 {
            client.read_exact(&mut [0; 100]).await.expect("it is there");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_response_is_read_at_the_permitted_rate() {
        let rate = Rate::new(600);
        let (mut one, _server) = connection(1200, Some(rate.clone())).await;
        let began = Instant::now();
        read(&mut one, 600).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "a minute's worth at once");
        read(&mut one, 600).await;
        let took = began.elapsed().as_secs();
        assert!((45..=60).contains(&took), "{took} s");
        let (mut other, _server) = connection(300, Some(rate)).await;
        let began = Instant::now();
        read(&mut other, 300).await;
        let took = began.elapsed().as_secs();
        assert!((15..=45).contains(&took), "{took} s: all connections of a namespace together");
    }

    #[tokio::test(start_paused = true)]
    async fn a_trusted_server_is_read_at_any_speed() {
        let (mut client, _server) = connection(100_000, None).await;
        let began = Instant::now();
        read(&mut client, 100_000).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_does_not_keep_requests_from_being_sent() {
        let (mut client, mut server) = connection(100, Some(Rate::new(10))).await;
        read(&mut client, 100).await;
        let began = Instant::now();
        client.write_all(b"request").await.expect("it is open");
        server.read_exact(&mut [0; 7]).await.expect("it arrives");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
