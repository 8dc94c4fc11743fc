//! Messages as lines: a thread reads, a thread writes.
//!
//! Threads, because standard input cannot be read without blocking one. The writer is bounded: a
//! client that does not read slows the server down instead of filling the memory.

use std::{
    io::{BufRead, BufReader, Read, Write},
    thread,
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::mpsc;

/// Lines that wait, in each direction.
const WAITING: usize = 64;
/// Longest line that is taken, in bytes.
pub(crate) const LONGEST: usize = 64 * 1024 * 1024;
/// Size of the reader's buffer.
const BUFFER: usize = 16 * 1024;

/// A line of the client.
#[derive(Debug)]
pub(crate) enum Line {
    /// Text without its line break. Never empty.
    Text(Bytes),
    /// More than [`LONGEST`] bytes. The rest of the line was skipped.
    TooLong,
}

/// Starts the reader. The channel closes at the end of the input.
pub(crate) fn read(input: impl Read + Send + 'static) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(WAITING);
    thread::spawn(move || {
        let mut input = BufReader::with_capacity(BUFFER, input);
        loop {
            let mut line = Vec::new();
            let limit = LONGEST as u64 + 1;
            match Read::take(&mut input, limit).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let is_whole = line.ends_with(b"\n");
            if !is_whole && line.len() > LONGEST {
                if skip(&mut input).is_none() {
                    return;
                }
                if sender.blocking_send(Line::TooLong).is_err() {
                    return;
                }
                continue;
            }
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let text = Bytes::copy_from_slice(text);
            if sender.blocking_send(Line::Text(text)).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads to the end of the line.
fn skip(input: &mut impl BufRead) -> Option<()> {
    loop {
        let buffer = input.fill_buf().ok()?;
        if buffer.is_empty() {
            return None;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(buffer.len(), |end| end + 1);
        input.consume(taken);
        if end.is_some() {
            return Some(());
        }
    }
}

/// The way to the client. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Out(mpsc::Sender<Bytes>);

/// The writer's thread.
#[derive(Debug)]
pub(crate) struct Writer(std::sync::mpsc::Receiver<()>);

impl Out {
    /// Starts the writer. It ends with the last clone, or when the client closes the pipe.
    pub(crate) fn start(mut output: impl Write + Send + 'static) -> (Self, Writer) {
        let (sender, mut receiver) = mpsc::channel::<Bytes>(WAITING);
        let (done, ended) = std::sync::mpsc::channel();
        thread::spawn(move || {
            while let Some(mut line) = receiver.blocking_recv() {
                loop {
                    let written = output
                        .write_all(&line)
                        .and_then(|()| output.write_all(b"\n"));
                    if written.is_err() {
                        return;
                    }
                    match receiver.try_recv() {
                        Ok(next) => line = next,
                        Err(_) => break,
                    }
                }
                if output.flush().is_err() {
                    return;
                }
            }
            let _ = done.send(());
        });
        (Self(sender), Writer(ended))
    }

    /// A way to a reader of this process.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    /// Writes a message. Line breaks in it stand between tokens and become spaces.
    pub(crate) async fn write(&self, json: Bytes) {
        // A client that is gone reads nothing.
        let _ = self.0.send(one_line(json)).await;
    }

    /// Completes when the client has closed the pipe.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

impl Writer {
    /// Waits until everything is written, for a client that reads.
    pub(crate) fn finish(self, within: Duration) {
        let _ = self.0.recv_timeout(within);
    }
}

fn one_line(json: Bytes) -> Bytes {
    if !json.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return json;
    }
    let spaced = json.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        other => *other,
    });
    spaced.collect::<Vec<u8>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_one_line_and_keeps_its_strings() {
        let pretty = Bytes::from_static(b"{\n  \"a\": \"x\\ny\",\r\n  \"b\": 1e2\n}");
        assert_eq!(
            one_line(pretty),
            Bytes::from_static(b"{   \"a\": \"x\\ny\",    \"b\": 1e2 }")
        );
    }

    #[test]
    fn lines_are_read_whole_and_empty_ones_are_skipped() {
        let mut lines = read(&b"{\"a\":1}\r\n\n  \n{\"b\":2}"[..]);
        let mut read = Vec::new();
        while let Some(Line::Text(text)) = lines.blocking_recv() {
            read.push(text);
        }
        assert_eq!(read, [&b"{\"a\":1}"[..], &b"{\"b\":2}"[..]]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_skipped_and_the_next_one_is_read() {
        let long = std::io::repeat(b'x').take(LONGEST as u64 + 10);
        let mut lines = read(long.chain(&b"\n{}\n"[..]));
        assert!(matches!(lines.blocking_recv(), Some(Line::TooLong)));
        assert!(matches!(lines.blocking_recv(), Some(Line::Text(text)) if *text == *b"{}"));
    }
}
