//! A process of the command: lines in, lines out.

use std::{ffi::OsString, path::PathBuf, process::Stdio, time::Duration};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::mpsc,
    time::{Instant, timeout},
};

/// Longest line of the command that is read, in bytes.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// Longest line of its standard error that is logged.
const LONGEST_NOTE: usize = 2000;
/// Lines to the command that wait.
const WAITING: usize = 256;
/// How long a process may take to end after its input is closed, and after a signal.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// The command with its arguments.
#[derive(Debug, Clone)]
pub struct CommandLine {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The folder that it runs in; the present one if absent.
    pub folder: Option<PathBuf>,
}

/// A running process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) started: Instant,
    /// Lines to its standard input. When all senders are gone the input is closed.
    pub(crate) input: mpsc::Sender<Bytes>,
    /// Its messages.
    pub(crate) output: Output,
    pub(crate) child: Child,
}

/// The messages of a process.
#[derive(Debug)]
pub(crate) struct Output {
    reader: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl CommandLine {
    /// Starts a process in a group of its own.
    pub(crate) fn start(&self) -> std::io::Result<Process> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            // The key opens the workspace: it is no business of the command.
            .env_remove("PORTOLAN_ATTACH_KEY")
            .kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let gone = || std::io::Error::other("the process ended at once");
        let pid = child.id().ok_or_else(gone)?;
        let stdin = child.stdin.take().ok_or_else(gone)?;
        let stdout = child.stdout.take().ok_or_else(gone)?;
        if let Some(stderr) = child.stderr.take() {
            #[expect(clippy::disallowed_methods, reason = "it ends with the pipe")]
            tokio::spawn(async move {
                let mut lines = BufReader::new(stderr).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    let line: String = line.chars().take(LONGEST_NOTE).collect();
                    tracing::info!(pid, "{}", line.trim_end());
                }
            });
        }
        let (input, lines) = mpsc::channel(WAITING);
        #[expect(clippy::disallowed_methods, reason = "it ends with the pipe")]
        tokio::spawn(write(stdin, lines));
        Ok(Process {
            pid,
            started: Instant::now(),
            input,
            output: Output {
                reader: BufReader::new(stdout),
                line: Vec::new(),
            },
            child,
        })
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            stdin.write_all(&line).await?;
            stdin.write_all(b"\n").await?;
            stdin.flush().await
        };
        if written.await.is_err() {
            // The process has closed its input or ended; its output shows which.
            return;
        }
    }
}

impl Output {
    /// The next line; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let (used, ended) = {
                let found = self.reader.fill_buf().await.ok()?;
                if found.is_empty() {
                    return None;
                }
                let end = found.iter().position(|byte| *byte == b'\n');
                let used = end.map_or(found.len(), |end| end + 1);
                self.line.extend_from_slice(&found[..used]);
                (used, end.is_some())
            };
            self.reader.consume(used);
            if self.line.len() > LONGEST_LINE {
                tracing::error!(
                    bytes = self.line.len(),
                    "the command wrote a line that is too long; it is ended"
                );
                return None;
            }
            if ended {
                return Some(Bytes::from(std::mem::take(&mut self.line)));
            }
        }
    }
}

/// Ends a process in the order of MCP: its input is closed already, then `SIGTERM`, then `SIGKILL`.
/// Signals reach all processes of its group. Returns its last words.
pub(crate) async fn end(child: &mut Child, pid: u32) -> String {
    let signal = |signal| {
        if let Ok(pid) = i32::try_from(pid)
            && let Some(pid) = Pid::from_raw(pid)
        {
            // Without a process left in the group this fails, as it should.
            let _ = kill_process_group(pid, signal);
        }
    };
    let mut status = timeout(CLOSE_WITHIN, child.wait()).await;
    if status.is_err() {
        signal(Signal::TERM);
        status = timeout(CLOSE_WITHIN, child.wait()).await;
    }
    // Also processes that the command has started and left behind.
    signal(Signal::KILL);
    let status = match status {
        Ok(status) => status,
        Err(_elapsed) => child.wait().await,
    };
    match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}
