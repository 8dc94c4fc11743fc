//! One node of a cluster, and what a test does to it.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use reqwest::StatusCode;

use crate::{
    process::{Daemon, eventually},
    proxy::Behind,
    stack::{free_port, portolan, repository},
};

/// Longest time a node may take to become ready on a machine that builds at the same time.
const START: Duration = Duration::from_secs(60);

/// One `portolan serve`. Its addresses stay when it is started again.
#[derive(Debug)]
pub struct Node {
    /// `auth`, `mcp-1` …
    pub name: String,
    role: &'static str,
    pub(super) place: Behind,
    pub(super) environment: Vec<(String, String)>,
    log: PathBuf,
    /// How wrong its clock is, if that is wrong at its start.
    clock: PathBuf,
    is_clock_wrong: bool,
    process: Option<Daemon>,
}

impl Node {
    pub(super) fn new(
        name: String,
        role: &'static str,
        environment: &[(String, String)],
        folder: &Path,
    ) -> Result<Self> {
        let place = Behind {
            listen: free_port()?,
            admin: free_port()?,
        };
        let mut environment = environment.to_vec();
        environment.push(("PORTOLAN_LISTEN".to_owned(), place.listen.to_string()));
        environment.push(("PORTOLAN_ADMIN_LISTEN".to_owned(), place.admin.to_string()));
        Ok(Self {
            log: folder.join(format!("{name}.log")),
            clock: folder.join(format!("{name}.clock")),
            is_clock_wrong: false,
            name,
            role,
            place,
            environment,
            process: None,
        })
    }

    /// Where it listens for clients.
    pub fn address(&self) -> SocketAddr {
        self.place.listen
    }

    /// Starts it, at the addresses that it had. Does not wait.
    pub fn start(&mut self) -> Result<()> {
        ensure!(!self.is_running()?, "{} is running", self.name);
        let mut command = portolan();
        command
            .args(["serve", "--role", self.role])
            .envs(self.environment.iter().cloned());
        if self.is_clock_wrong {
            // Durations stay true: what a machine counts them by is not what a person can set wrong.
            command
                .env("LD_PRELOAD", faketime()?)
                .env("FAKETIME_TIMESTAMP_FILE", &self.clock)
                .env("FAKETIME_CACHE_DURATION", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("DONT_FAKE_MONOTONIC", "1")
                .env("NO_FAKE_STAT", "1");
        }
        self.process = Some(Daemon::start(command, &self.log)?);
        Ok(())
    }

    /// Sets its clock so many seconds wrong, from its next start on; 0 is right. One that was started with a wrong clock sees it at once.
    pub fn set_clock(&mut self, seconds: i64) -> Result<()> {
        let fresh = self.clock.with_extension("fresh");
        fs::write(&fresh, format!("{seconds:+}s"))?;
        fs::rename(fresh, &self.clock)?;
        self.is_clock_wrong = seconds != 0;
        Ok(())
    }

    /// The binary with this node's settings and another verb: what an operator types on its machine.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = portolan();
        command
            .args(arguments)
            .envs(self.environment.iter().cloned());
        command
    }

    /// True if it reports that it is ready, and its report.
    pub async fn readiness(&self) -> Result<(StatusCode, String)> {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(2))
            .build()?;
        let url = format!("http://{}/readyz", self.place.admin);
        let answer = http.get(url).send().await?;
        Ok((answer.status(), answer.text().await?))
    }

    /// Waits until it reports that it is not ready because of this.
    pub async fn refuses(&self, because: &str) -> Result<()> {
        let words = format!("not ready: {because}");
        eventually("the node says that it is not ready", START, async || {
            self.readiness().await.is_ok_and(|(status, said)| {
                status == StatusCode::SERVICE_UNAVAILABLE && said.contains(&words)
            })
        })
        .await
        .with_context(|| format!("{}:\n{}", self.name, self.last_words()))
    }

    /// Waits until it reports that it is ready.
    pub async fn ready(&mut self) -> Result<()> {
        let mut ended = None;
        eventually("the node is ready", START, async || {
            ended = self
                .process
                .as_mut()
                .and_then(|process| process.ended().ok().flatten());
            let said = self.readiness().await;
            ended.is_some() || said.is_ok_and(|(status, _)| status == StatusCode::OK)
        })
        .await
        .with_context(|| format!("{}:\n{}", self.name, self.last_words()))?;
        ensure!(
            ended.is_none(),
            "{} ended ({ended:?}):\n{}",
            self.name,
            self.last_words()
        );
        Ok(())
    }

    /// Is there a process, held or not?
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(match &mut self.process {
            Some(process) => process.ended()?.is_none(),
            None => false,
        })
    }

    /// Kills it: no connection is closed in order, nothing is written any more.
    pub fn kill(&mut self) -> Result<()> {
        self.process()?.kill()
    }

    /// Its process id.
    pub fn id(&self) -> Result<u32> {
        Ok(self.running()?.id())
    }

    /// Holds it.
    pub fn pause(&self) -> Result<()> {
        self.running()?.signal("STOP")
    }

    /// Lets it go on.
    pub fn go_on(&self) -> Result<()> {
        self.running()?.signal("CONT")
    }

    /// Asks it to drain and to end. Does not wait.
    pub fn drain(&self) -> Result<()> {
        self.running()?.signal("TERM")
    }

    /// Waits until it has ended by itself.
    pub async fn end(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.process()?.end(limit).await
    }

    /// All that it exports.
    pub async fn metrics(&self) -> Result<String> {
        let url = format!("http://{}/metrics", self.place.admin);
        Ok(reqwest::get(url).await?.text().await?)
    }

    /// A number that it exports, summed over all labels.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        self.metrics()
            .await?
            .lines()
            .filter(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(['{', ' ']))
            })
            .map(|line| {
                line.rsplit(' ')
                    .next()
                    .unwrap_or_default()
                    .parse::<f64>()
                    .with_context(|| line.to_owned())
            })
            .sum()
    }

    /// Bytes of memory that it holds.
    pub fn memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.running()?.id()))?;
        let kibibytes: u64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().strip_suffix(" kB"))
            .context("VmRSS")?
            .parse()?;
        Ok(kibibytes * 1024)
    }

    /// Everything that it has written over all its starts.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of it.
    pub fn last_words(&self) -> String {
        self.process
            .as_ref()
            .map(Daemon::last_words)
            .unwrap_or_default()
    }

    fn running(&self) -> Result<&Daemon> {
        self.process
            .as_ref()
            .with_context(|| format!("{} was never started", self.name))
    }

    fn process(&mut self) -> Result<&mut Daemon> {
        self.process
            .as_mut()
            .with_context(|| format!("{} was never started", self.name))
    }
}

/// The library with which a program sees another time than the machine's.
fn faketime() -> Result<PathBuf> {
    let ours = repository().join(".portolan/tools/programs/root/usr/lib");
    let machines = PathBuf::from("/usr/lib");
    [ours, machines]
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
        .find(|file| file.is_file())
        .context("libfaketime is missing; `make test-tools` fetches it")
}
