//! Servers as processes, and what the kernel charges them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A bare server: this program under another role. Ends with the value.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it and waits for the address that it prints.
    pub(crate) fn start(role: &[&str]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(role)
            .stdin(Stdio::null())
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

/// The same of everything that it started and of theirs: the embedded Postgres.
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
