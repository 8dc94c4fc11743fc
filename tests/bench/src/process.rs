//! Servers as processes, and what the kernel charges them.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

/// A bare server: this program under another role. Ends with the value, and by itself when this process is gone: its input ends then.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it and waits for the address that it prints.
    pub(crate) fn start(role: &[&str]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let started = child
            .stdout
            .take()
            .context("a pipe")
            .and_then(|pipe| Ok(BufReader::new(pipe).read_line(&mut line)?))
            .and_then(|_| {
                line.trim()
                    .parse()
                    .with_context(|| format!("{role:?} said {line:?}"))
            });
        match started {
            Ok(address) => Ok(Self { child, address }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kernel counts in hundredths of a second for every program (`USER_HZ`), whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// User and system time of a process, all threads, from `/proc/<pid>/stat`.
pub(crate) fn cpu_seconds(process: u32) -> Result<f64> {
    let (_, own, _) = stat(process)?;
    Ok(own)
}

/// Processor time of a process, thread by thread and to the nanosecond: a round of calls takes no more than some dozens of the ticks
/// that [`cpu_seconds`] counts.
pub(crate) struct Spent(HashMap<u32, u64>);

impl Spent {
    /// Up to now.
    pub(crate) fn by(process: u32) -> Result<Self> {
        let mut by_thread = HashMap::new();
        for thread in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
            // A thread may end while we look.
            let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else {
                continue;
            };
            let id = thread.file_name().to_str().and_then(|id| id.parse().ok());
            let nanos = text.split_whitespace().next();
            let nanos = nanos.and_then(|nanos| nanos.parse().ok());
            by_thread.insert(id.context("a thread")?, nanos.context("its time")?);
        }
        Ok(Self(by_thread))
    }

    /// Seconds since then, of the threads that are still there.
    pub(crate) fn since(&self, before: &Self) -> f64 {
        let nanos = self.0.iter().map(|(thread, now)| {
            let then = before.0.get(thread).copied().unwrap_or(0);
            Duration::from_nanos(now.saturating_sub(then))
        });
        nanos.sum::<Duration>().as_secs_f64()
    }
}

/// User and system time of everything that a process started and of theirs: the embedded Postgres.
pub(crate) fn cpu_seconds_of_children(process: u32) -> Result<f64> {
    let all: Vec<(u32, u32, f64, f64)> = fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        // A process may end while we look.
        .filter_map(|id| {
            stat(id)
                .ok()
                .map(|(parent, own, ended)| (id, parent, own, ended))
        })
        .collect();
    let mut family = vec![process];
    let mut sum = 0.0;
    while let Some(parent) = family.pop() {
        for (id, _, own, ended) in all.iter().filter(|(_, of, ..)| *of == parent) {
            family.push(*id);
            sum += own + ended;
        }
    }
    Ok(sum)
}

/// Bytes of memory that are charged to a process: its own, and its share of what it shares (`Pss`). Waits until the figure stands
/// still, because allocators give back what was freed a little later.
pub(crate) async fn memory(process: u32) -> Result<f64> {
    let mut last = memory_now(process)?;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = memory_now(process)?;
        if (now - last).abs() < last * 0.001 {
            return Ok(now);
        }
        last = now;
    }
    Ok(last)
}

/// The same as it is now.
pub(crate) fn memory_now(process: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let kibibytes: f64 = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .context("Pss")?
        .parse()?;
    Ok(kibibytes * 1024.0)
}

/// How many files and sockets a process has open.
pub(crate) fn open_files(process: u32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
}

/// How many files and sockets this process and its children may have open.
pub(crate) fn most_files() -> Result<usize> {
    let text = fs::read_to_string("/proc/self/limits")?;
    let soft = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|rest| rest.split_whitespace().next())
        .context("Max open files")?;
    Ok(soft.parse().unwrap_or(usize::MAX))
}

/// Parent, own seconds, seconds of ended children.
fn stat(process: u32) -> Result<(u32, f64, f64)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program stands in parentheses and may contain anything.
    let (_, rest) = text.rsplit_once(')').context("a process line")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |n: usize| {
        fields
            .get(n)
            .and_then(|field| field.parse::<f64>().ok())
            .context("a number")
    };
    let parent = fields
        .get(1)
        .and_then(|field| field.parse().ok())
        .context("a parent")?;
    Ok((
        parent,
        (number(11)? + number(12)?) / TICKS_PER_SECOND,
        (number(13)? + number(14)?) / TICKS_PER_SECOND,
    ))
}
