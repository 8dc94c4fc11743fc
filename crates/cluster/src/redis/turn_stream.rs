//! A TCP connection whose writes of one turn go out together.
//!
//! A thread of the runtime polls tasks one after another. Many of them send a command to Redis.
//! The client's own connection writes each command when it comes: one system call for each, and
//! each wakes Redis. This connection waits until the thread has polled all tasks that are ready,
//! and then writes what they sent. On an idle thread the turn ends at once. A thread that is held
//! by one long task does not hold the commands of others: they are written when the next one
//! comes, if the turn lasts longer than [`LONGEST`].

use std::{
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use futures_util::task::AtomicWaker;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// The longest turn for which commands wait although others come.
const LONGEST: Duration = Duration::from_micros(500);

/// The connection.
#[derive(Debug)]
pub(super) struct TurnStream {
    stream: TcpStream,
    phase: Phase,
    end: Arc<TurnEnd>,
    longest: Duration,
}

/// The phase of what is written next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Everything is written.
    Flushed,
    /// The turn goes on since then: nothing is written yet.
    Gathering(Instant),
    /// The turn is over.
    Writing,
}

/// The end of a turn, as the runtime announces it.
#[derive(Debug, Default)]
struct TurnEnd {
    is_over: AtomicBool,
    /// The task that writes.
    task: AtomicWaker,
}

impl Wake for TurnEnd {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_over.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl TurnStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            phase: Phase::Flushed,
            end: Arc::default(),
            longest: LONGEST,
        }
    }

    /// Waits for the end of the turn before the first write after a flush.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.end.task.register(cx.waker());
        let is_over = match self.phase {
            Phase::Writing => true,
            Phase::Gathering(since) => {
                self.end.is_over.load(Ordering::Acquire) || since.elapsed() >= self.longest
            }
            Phase::Flushed => {
                self.end.is_over.store(false, Ordering::Release);
                self.phase = Phase::Gathering(Instant::now());
                // The runtime wakes this waker after it has polled all tasks that are ready. A
                // second poll of this future would end the wait early: other tasks wake the writer
                // meanwhile.
                let waker = Waker::from(Arc::clone(&self.end));
                let yielded = pin!(tokio::task::yield_now());
                yielded.poll(&mut Context::from_waker(&waker)).is_ready()
                    || self.end.is_over.load(Ordering::Acquire)
            }
        };
        if !is_over {
            return Poll::Pending;
        }
        self.phase = Phase::Writing;
        Poll::Ready(())
    }
}

impl AsyncWrite for TurnStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        std::task::ready!(self.poll_turn(cx));
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = std::task::ready!(Pin::new(&mut self.stream).poll_flush(cx));
        if self.phase == Phase::Writing {
            self.phase = Phase::Flushed;
        }
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for TurnStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        sync::mpsc,
    };
    use tokio_util::task::TaskTracker;

    use super::*;

    async fn connected() -> (TurnStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        (TurnStream::new(near.unwrap()), far.unwrap().0)
    }

    /// Writes the words that it receives, as the client of Redis does: words that wait go into one
    /// buffer.
    async fn write_all_that_comes(mut stream: TurnStream, mut words: mpsc::Receiver<&'static str>) {
        let mut buffer = Vec::new();
        std::future::poll_fn(|cx| {
            loop {
                match words.poll_recv(cx) {
                    Poll::Ready(Some(word)) => buffer.extend_from_slice(word.as_bytes()),
                    Poll::Ready(None) if buffer.is_empty() => return Poll::Ready(()),
                    Poll::Ready(None) | Poll::Pending if buffer.is_empty() => return Poll::Pending,
                    Poll::Ready(None) | Poll::Pending => {
                        let wrote = Pin::new(&mut stream).poll_write(cx, &buffer);
                        let wrote = std::task::ready!(wrote).unwrap();
                        buffer.drain(..wrote);
                        std::task::ready!(Pin::new(&mut stream).poll_flush(cx)).unwrap();
                    }
                }
            }
        })
        .await;
        stream.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn what_the_ready_tasks_send_is_one_write() {
        let (stream, mut far) = connected().await;
        far.set_nodelay(true).unwrap();
        let (send, words) = mpsc::channel(8);
        let tasks = TaskTracker::new();
        tasks.spawn(write_all_that_comes(stream, words));
        for word in ["one ", "two ", "three "] {
            let send = send.clone();
            tasks.spawn(async move { send.send(word).await.unwrap() });
        }
        let mut read = [0; 64];
        let count = far.read(&mut read).await.unwrap();
        assert_eq!(&read[..count], b"one two three ");
        send.send("four").await.unwrap();
        drop(send);
        let mut rest = String::new();
        far.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "four");
        tasks.close();
        tasks.wait().await;
    }

    /// A task that holds its thread does not end its turn.
    #[tokio::test]
    async fn a_long_turn_holds_no_command_when_another_comes() {
        for (longest, is_written) in [(Duration::MAX, false), (Duration::ZERO, true)] {
            let (mut stream, _far) = connected().await;
            stream.longest = longest;
            std::future::poll_fn(|cx| {
                let first = Pin::new(&mut stream).poll_write(cx, b"one");
                assert!(first.is_pending(), "{longest:?}");
                let second = Pin::new(&mut stream).poll_write(cx, b"one two");
                assert_eq!(second.is_ready(), is_written, "{longest:?}");
                Poll::Ready(())
            })
            .await;
        }
    }

    #[tokio::test]
    async fn an_idle_thread_writes_at_once() {
        let (mut stream, mut far) = connected().await;
        for word in ["one", "two"] {
            stream.write_all(word.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            let mut read = [0; 64];
            let count = far.read(&mut read).await.unwrap();
            assert_eq!(&read[..count], word.as_bytes());
        }
    }
}
