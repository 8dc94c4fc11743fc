//! A TCP stream that knows how long its peer has been silent.
//!
//! hyper's own timer for heads also runs on idle kept-alive connections, and costs an allocation
//! and a timer entry per request. Here a timer is armed only when a read has to wait, and stays
//! armed from request to request.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// Reports from the service of a connection to its stream.
#[derive(Debug, Default)]
pub(super) struct Activity {
    running: AtomicU32,
    begun: AtomicU64,
}

impl Activity {
    /// Called when a head was complete; the request runs until the value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> RunningConnection {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        RunningConnection(Arc::clone(self))
    }
}

/// A running request.
pub(super) struct RunningConnection(Arc<Activity>);

impl RunningConnection {
    /// The connection has a running exchange from now on, until it ends.
    pub(super) fn keep(&self) {
        self.0.running.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for RunningConnection {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The stream. Reads fail with `TimedOut` when a head takes too long or nothing happens at all.
pub(super) struct Watched {
    stream: TcpStream,
    activity: Arc<Activity>,
    head_within: Duration,
    idle: Duration,
    last_byte: Instant,
    /// First byte of a head that was not complete when last looked, and the number of requests
    /// begun by then.
    head: Option<(Instant, u64)>,
    timer: Pin<Box<Sleep>>,
    lingering: Option<Linger>,
}

/// End of a connection whose peer may still be sending. Closing it with unread bytes would make the
/// system send a reset, which can overtake the answer (413, 431).
struct Linger {
    bytes_left: usize,
    until: Instant,
}

const LINGER_BYTES: usize = 64 * 1024;
const LINGER_FOR: Duration = Duration::from_secs(1);

impl Watched {
    pub(super) fn new(
        stream: TcpStream,
        activity: Arc<Activity>,
        head_within: Duration,
        idle: Duration,
    ) -> Self {
        let now = Instant::now();
        // A fresh connection owes its first head at once.
        let timer = Box::pin(tokio::time::sleep_until(now + head_within));
        Self {
            stream,
            activity,
            head_within,
            idle,
            last_byte: now,
            head: Some((now, 0)),
            timer,
            lingering: None,
        }
    }

    /// Time at which the peer was idle for too long; none while a request runs.
    fn deadline(&self) -> Option<Instant> {
        if self.activity.running.load(Ordering::Relaxed) > 0 {
            return None;
        }
        match self.head {
            Some((since, begun)) if begun == self.activity.begun.load(Ordering::Relaxed) => {
                Some(since + self.head_within)
            }
            _ => Some(self.last_byte + self.idle),
        }
    }

    fn too_late(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = self.deadline();
        // While a request runs the timer ticks on: hyper need not read again when the answer is
        // written, and then only the timer brings us back here.
        let idle = self.idle;
        let look_again = || deadline.unwrap_or_else(|| Instant::now() + idle);
        // Each read that waits comes here. A timer that ends early enough is left alone, without a
        // look at the clock.
        if self.timer.deadline() > deadline.unwrap_or(self.last_byte + idle) {
            let look_again = look_again();
            if self.timer.deadline() > look_again {
                self.timer.as_mut().reset(look_again);
            }
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return true;
            }
            self.timer.as_mut().reset(look_again());
        }
        false
    }

    /// Reads and forgets until the peer has closed its side too, or long enough.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(linger) = &mut self.lingering else {
            return Poll::Ready(());
        };
        let mut scratch = [0_u8; 4096];
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() && linger.bytes_left > 0 => {
                    linger.bytes_left = linger.bytes_left.saturating_sub(buf.filled().len());
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if Instant::now() >= linger.until => return Poll::Ready(()),
                Poll::Pending => return self.timer.as_mut().poll(cx),
            }
        }
    }

    fn read_something(&mut self) {
        let now = Instant::now();
        self.last_byte = now;
        let begun = self.activity.begun.load(Ordering::Relaxed);
        let same_head = self.head.is_some_and(|(_, at)| at == begun);
        if !same_head && self.activity.running.load(Ordering::Relaxed) == 0 {
            self.head = Some((now, begun));
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(done) => {
                if buf.filled().len() > before {
                    self.read_something();
                }
                Poll::Ready(done)
            }
            Poll::Pending if self.too_late(cx) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if written.is_ready() {
            self.last_byte = Instant::now();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            let until = Instant::now() + LINGER_FOR;
            self.lingering = Some(Linger {
                bytes_left: LINGER_BYTES,
                until,
            });
            self.timer.as_mut().reset(until);
        }
        self.poll_linger(cx).map(Ok)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if written.is_ready() {
            self.last_byte = Instant::now();
        }
        written
    }
}
