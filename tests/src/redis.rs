//! A Redis server of the test's own, that can be stopped, emptied and held like a real one that is in trouble.

use std::{
    fs::File,
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::{
    process::{eventually, signal},
    stack::{free_port, program},
};

/// Longest time that the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time that it may take to read what it had written, on a machine that does something else at the same time.
const START: Duration = Duration::from_secs(90);
/// A password that no server accepts: a replica that sends it receives nothing.
const NOBODYS: &str = "nobody's";

/// A `redis-server` on a free port. It keeps its writes over a restart. Stopped and deleted when
/// dropped.
#[derive(Debug)]
pub struct RedisServer {
    address: SocketAddr,
    folder: TempDir,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts it, empty, and waits until it answers.
    pub async fn start() -> Result<Self> {
        let mut server = Self {
            address: free_port()?,
            folder: TempDir::with_prefix("portolan-redis-")?,
            child: None,
        };
        server.start_again().await?;
        Ok(server)
    }

    /// Starts a replica of this one.
    pub async fn standby(&self) -> Result<Self> {
        let standby = Self::start().await?;
        standby.follow(self.address).await?;
        standby.caught_up(self).await?;
        Ok(standby)
    }

    /// From now on it takes no writes, and learns what the server there knows. Connections to it stay.
    pub async fn follow(&self, master: SocketAddr) -> Result<()> {
        let port = master.port().to_string();
        let follow = ["REPLICAOF", "127.0.0.1", &port];
        self.command(&follow).await.map(|_| ())
    }

    /// Waits until it knows all that this server knows now, which it follows.
    pub async fn caught_up(&self, master: &Self) -> Result<()> {
        eventually("the replica follows", START, async || {
            self.is_linked(true).await
        })
        .await?;
        let told = master.info("master_repl_offset").await?;
        eventually("the replica knows all", START, async || {
            let heard = self.info("slave_repl_offset").await;
            heard.is_ok_and(|heard| heard >= told)
        })
        .await
    }

    async fn is_linked(&self, is_up: bool) -> bool {
        let state = if is_up { "up" } else { "down" };
        let info = self.command(&["INFO", "replication"]).await;
        info.is_ok_and(|info| info.contains(&format!("master_link_status:{state}")))
    }

    /// From now on it receives nothing from the master that it follows, as if the network between
    /// them were cut. Others reach both.
    pub async fn cut_off_from(&self, master: &Self) -> Result<()> {
        self.command(&["CONFIG", "SET", "masterauth", NOBODYS])
            .await?;
        master
            .command(&["CLIENT", "KILL", "TYPE", "replica"])
            .await?;
        eventually("the replica is cut off", PATIENCE, async || {
            self.is_linked(false).await
        })
        .await
    }

    /// The end of that.
    pub async fn reconnect(&self) -> Result<()> {
        let nothing = ["CONFIG", "SET", "masterauth", ""];
        self.command(&nothing).await.map(|_| ())
    }

    /// Whether it takes writes.
    pub async fn is_master(&self) -> bool {
        let info = self.command(&["INFO", "replication"]).await;
        info.is_ok_and(|info| info.contains("role:master"))
    }

    /// From now on it follows no master and accepts writes.
    pub async fn promote(&self) -> Result<()> {
        self.command(&["REPLICAOF", "NO", "ONE"]).await.map(|_| ())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets it use no more memory than half of what it uses, or as much as it likes.
    pub async fn starve(&self, starve: bool) -> Result<()> {
        let limit = if starve {
            self.info("used_memory").await? / 2
        } else {
            0
        };
        let limit = limit.to_string();
        self.command(&["CONFIG", "SET", "maxmemory", &limit])
            .await
            .map(|_| ())
    }

    /// Has it do nothing at all for so long. Returns when it is over.
    pub async fn sleep(&self, length: Duration) -> Result<()> {
        let secs = length.as_secs_f64().to_string();
        self.command(&["DEBUG", "SLEEP", &secs]).await.map(|_| ())
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Kills it. Acknowledged writes stay on disk.
    pub fn stop(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Starts it at the address and on the data that it had.
    pub async fn start_again(&mut self) -> Result<()> {
        self.launch(None).await
    }

    /// The same, as one that follows another from the start.
    pub async fn start_again_behind(&mut self, master: SocketAddr) -> Result<()> {
        self.launch(Some(master)).await
    }

    async fn launch(&mut self, master: Option<SocketAddr>) -> Result<()> {
        ensure!(self.child.is_none(), "redis-server is running");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))?;
        let mut command = binary()?;
        command
            .args(["--bind", "127.0.0.1", "--port"])
            .arg(self.address.port().to_string())
            .arg("--dir")
            .arg(self.folder.path())
            // Acknowledged writes are in the file by then: a server that is killed loses nothing.
            .args(["--save", "", "--appendonly", "yes", "--appendfsync", "no"])
            // Without a rewrite of the file, a restart reads hours of writes.
            .args(["--auto-aof-rewrite-min-size", "8mb"])
            .args(["--maxmemory-policy", "noeviction"])
            // For `DEBUG SLEEP`, and a standby that need not wait for a child process.
            .args(["--enable-debug-command", "yes"])
            .args([
                "--repl-diskless-sync",
                "yes",
                "--repl-diskless-sync-delay",
                "0",
            ]);
        if let Some(master) = master {
            let port = master.port().to_string();
            command.args(["--replicaof", "127.0.0.1", &port]);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.child = Some(child);
        let deadline = Instant::now() + START;
        loop {
            match self.command(&["PING"]).await {
                Ok(answer) if answer == "PONG" => return Ok(()),
                _ if Instant::now() < deadline => sleep(Duration::from_millis(10)).await,
                other => bail!("redis-server does not answer: {other:?}"),
            }
        }
    }

    /// Holds it (`SIGSTOP`): connections stay, nothing is answered.
    pub fn pause(&self) -> Result<()> {
        signal(self.id()?, "STOP")
    }

    /// Lets it go on.
    pub fn go_on(&self) -> Result<()> {
        signal(self.id()?, "CONT")
    }

    /// Forgets everything, as after the loss of its disk.
    pub async fn empty(&self) -> Result<()> {
        self.command(&["FLUSHALL"]).await.map(|_| ())
    }

    /// Is there a process, held or not?
    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Its process id.
    pub fn id(&self) -> Result<u32> {
        Ok(self
            .child
            .as_ref()
            .context("redis-server is not running")?
            .id())
    }

    /// All writes that it ever accepted, as they stand on disk.
    pub fn written(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for file in std::fs::read_dir(self.folder.path().join("appendonlydir"))? {
            bytes.extend(std::fs::read(file?.path())?);
        }
        Ok(bytes)
    }

    /// The newest dump, after `SAVE`.
    pub fn dumped(&self) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.folder.path().join("dump.rdb"))?)
    }

    /// All its output.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Sends one command on a connection of its own. Answers simple, bulk and integer replies as text.
    pub async fn command(&self, words: &[&str]) -> Result<String> {
        ask(self.address, words).await
    }

    /// One number of `INFO`.
    pub async fn info(&self, name: &str) -> Result<u64> {
        let text = self.command(&["INFO", "everything"]).await?;
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .with_context(|| format!("INFO has no {name}"))?
            .trim()
            .parse()
            .with_context(|| format!("{name} is no number"))
    }

    /// Starts to write down every command that clients send. Commands inside of scripts are not theirs.
    pub async fn watch(&self) -> Result<Watch> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(&written(&["MONITOR"])).await?;
        let mut lines = BufReader::new(stream);
        let mut first = String::new();
        lines.read_line(&mut first).await?;
        ensure!(first.starts_with("+OK"), "MONITOR: {first}");
        Ok(Watch { lines })
    }
}

/// A connection that receives every command (`MONITOR`).
#[derive(Debug)]
pub struct Watch {
    lines: BufReader<TcpStream>,
}

impl Watch {
    /// The commands that clients have sent since the start, one line each, up to this moment.
    pub async fn stop(mut self, server: &RedisServer) -> Result<Vec<String>> {
        // A mark of our own: everything before it has been written down when it shows.
        let mark = format!("mark-{}", std::process::id());
        server.command(&["ECHO", &mark]).await?;
        let mut seen = Vec::new();
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, self.lines.read_line(&mut line)).await??;
            ensure!(read > 0, "MONITOR ended");
            if line.contains(&mark) {
                return Ok(seen);
            }
            if !line.contains(" lua] ") {
                seen.push(line.trim_end().to_owned());
            }
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// The program, which is a sentinel too.
pub(crate) fn binary() -> Result<Command> {
    let path = program("redis-server", "these tests need Redis 7.0 or newer")?;
    Ok(Command::new(path))
}

/// Sends one command to a server that speaks the protocol of Redis.
pub(crate) async fn ask(address: SocketAddr, words: &[&str]) -> Result<String> {
    timeout(PATIENCE, async {
        let mut stream = BufReader::new(TcpStream::connect(address).await?);
        stream.get_mut().write_all(&written(words)).await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).context("no reply")?;
        match kind {
            "+" | ":" => Ok(rest.to_owned()),
            "$" if rest == "-1" => Ok(String::new()),
            "$" => {
                let mut bytes = vec![0; rest.parse()?];
                stream.read_exact(&mut bytes).await?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => bail!("redis-server answers {line}"),
        }
    })
    .await
    .context("redis-server does not answer in time")?
}

fn written(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}
