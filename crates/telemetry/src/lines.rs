//! Lines of log, written by a thread of their own: a slow terminal or a full pipe must not hold up
//! a request.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Most bytes that wait. Further lines are dropped, and the loss is reported when there is space
/// again.
const WAITING_BYTES: usize = 4 * 1024 * 1024;
/// Lines are collected for so long and go out in one write: waking a thread costs more than writing
/// a line.
const COLLECT_FOR: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct WaitingLines {
    text: Vec<u8>,
    lost: u64,
    stop: bool,
}

#[derive(Debug, Default)]
struct LineQueue {
    waiting: Mutex<WaitingLines>,
    changed: Condvar,
}

impl LineQueue {
    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Destination of the lines.
#[derive(Debug, Clone)]
pub(crate) struct Lines(Arc<LineQueue>);

/// The thread; stopping it writes what is waiting.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<LineQueue>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread over `out`.
    pub(crate) fn start(out: impl Write + Send + 'static) -> io::Result<(Self, Lines)> {
        let queue = Arc::new(LineQueue::default());
        let theirs = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(out, &theirs))?;
        let lines = Lines(Arc::clone(&queue));
        let thread = Some(thread);
        Ok((Self { queue, thread }, lines))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.lock().stop = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread cannot be logged here.
            let _ = thread.join();
        }
    }
}

fn write_all(mut out: impl Write, queue: &LineQueue) {
    let mut batch = Vec::with_capacity(64 * 1024);
    loop {
        let idle = |waiting: &mut WaitingLines| waiting.text.is_empty() && !waiting.stop;
        let waiting = queue.changed.wait_while(queue.lock(), idle);
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let collecting = queue
            .changed
            .wait_timeout_while(waiting, COLLECT_FOR, |waiting| !waiting.stop);
        let (mut waiting, _) = collecting.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.text, &mut batch);
        let (lost, stop) = (std::mem::take(&mut waiting.lost), waiting.stop);
        drop(waiting);
        if lost > 0 {
            batch.extend_from_slice(
                format!("{lost} log lines were dropped: the output is too slow\n").as_bytes(),
            );
        }
        // A closed output (a pipe to a process that ended) is no reason to end this one.
        let _ = out.write_all(&batch).and_then(|()| out.flush());
        batch.clear();
        batch.shrink_to(256 * 1024);
        if stop {
            return;
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

/// The formatter hands over each line whole, in one call.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.lock();
        if waiting.text.len() + line.len() > WAITING_BYTES {
            waiting.lost += 1;
        } else {
            let first = waiting.text.is_empty();
            waiting.text.extend_from_slice(line);
            drop(waiting);
            if first {
                self.0.changed.notify_one();
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, part: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(part);
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_is_written_whole_and_in_order_before_the_stop() {
        let sink = Sink::default();
        let (writer, lines) = Writer::start(sink.clone()).unwrap();
        for n in 0..1000 {
            let line = format!("line {n}\n");
            lines.make_writer().write_all(line.as_bytes()).unwrap();
        }
        drop(writer);
        let expected = (0..1000).fold(String::new(), |all, n| all + &format!("line {n}\n"));
        assert_eq!(
            String::from_utf8(sink.0.lock().unwrap().clone()).unwrap(),
            expected
        );
    }

    #[test]
    fn a_stuck_output_drops_lines_and_says_how_many() {
        struct Stuck(std::sync::mpsc::Receiver<()>, Sink);
        impl Write for Stuck {
            fn write(&mut self, part: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                self.1.write(part)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (release, held) = std::sync::mpsc::channel();
        let sink = Sink::default();
        let (writer, lines) = Writer::start(Stuck(held, sink.clone())).unwrap();
        let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
        // One batch may be with the writer and one waits; the third is dropped.
        for _ in 0..3 * WAITING_BYTES / line.len() {
            lines.make_writer().write_all(&line).unwrap();
        }
        drop(release);
        drop(writer);
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert!(
            text.contains("log lines were dropped"),
            "{} bytes",
            text.len()
        );
    }
}
