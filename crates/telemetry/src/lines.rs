//! Lines of log, written by a thread of their own: a slow terminal or a full pipe must not hold up a request.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait. More are dropped, and the loss is told when there is room again.
const WAITING_LINES: usize = 16 * 1024;

enum Message {
    Line(Vec<u8>),
    Stop,
}

/// Makes one buffer a line.
#[derive(Clone)]
pub(crate) struct Lines {
    queue: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

/// The thread; stopping it writes what is waiting.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Message")
    }
}

impl Writer {
    /// Starts the thread over `out`.
    pub(crate) fn start(out: impl Write + Send + 'static) -> io::Result<(Self, Lines)> {
        let (queue, waiting) = sync_channel(WAITING_LINES);
        let lost = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&lost);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(out, &waiting, &told))?;
        Ok((
            Self {
                queue: queue.clone(),
                thread: Some(thread),
            },
            Lines { queue, lost },
        ))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && self.queue.send(Message::Stop).is_ok()
        {
            // A panic of the thread has nowhere to be told.
            let _ = thread.join();
        }
    }
}

fn write_all(mut out: impl Write, waiting: &Receiver<Message>, lost: &AtomicU64) {
    let mut batch = Vec::with_capacity(16 * 1024);
    while let Ok(first) = waiting.recv() {
        let mut next = Some(first);
        let mut stop = false;
        // Whatever is there already goes out in one write.
        while let Some(message) = next {
            match message {
                Message::Line(line) => batch.extend_from_slice(&line),
                Message::Stop => stop = true,
            }
            next = if batch.len() < 64 * 1024 {
                waiting.try_recv().ok()
            } else {
                None
            };
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            batch.extend_from_slice(
                format!("{lost} log lines were dropped: the output is too slow\n").as_bytes(),
            );
        }
        // A closed output (a pipe to a process that ended) is no reason to end this one.
        let _ = out.write_all(&batch).and_then(|()| out.flush());
        batch.clear();
        if stop {
            return;
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line {
            text: Vec::with_capacity(256),
            lines: self.clone(),
        }
    }
}

/// One line under construction; it goes to the thread when it is dropped.
pub(crate) struct Line {
    text: Vec<u8>,
    lines: Lines,
}

impl Write for Line {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let line = Message::Line(std::mem::take(&mut self.text));
        if let Err(TrySendError::Full(_)) = self.lines.queue.try_send(line) {
            self.lines.lost.fetch_add(1, Ordering::Relaxed);
        }
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
            let mut line = lines.make_writer();
            write!(line, "line ").unwrap();
            writeln!(line, "{n}").unwrap();
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
        struct Stuck(Receiver<()>, Sink);
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
        for _ in 0..WAITING_LINES * 2 {
            writeln!(lines.make_writer(), "x").unwrap();
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
