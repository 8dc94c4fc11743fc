//! Programs that tests start and treat badly.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::time::{Instant, sleep};

/// Sends a signal by name: `TERM`, `STOP`, `CONT`, `QUIT`.
pub fn signal(id: u32, name: &str) -> Result<()> {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(id.to_string())
        .status()?;
    anyhow::ensure!(sent.success(), "cannot send {name} to {id}");
    Ok(())
}

/// Waits until `condition` holds, asking again and again.
pub async fn eventually(
    what: &str,
    limit: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> Result<()> {
    let deadline = Instant::now() + limit;
    while !condition().await {
        if Instant::now() > deadline {
            bail!("after {limit:?} still not: {what}");
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// A child that writes into a file. Killed when dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts it. Its output goes to the end of `log`.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        let file = File::options().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self {
            child,
            log: log.to_owned(),
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) -> Result<()> {
        signal(self.child.id(), name)
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until it has ended by itself.
    pub async fn end(&mut self, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("still running after {limit:?}:\n{}", self.last_words());
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Kills it (`SIGKILL`) and waits for its end.
    pub fn kill(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
            self.child.wait()?;
        }
        Ok(())
    }

    /// Everything that it and those before it have written.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of it.
    pub fn last_words(&self) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
