//! Three sentinels of Redis, which watch a master and its replica and decide by vote who the master is.

use std::{fs, net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{
    process::{Daemon, eventually},
    redis::{ask, binary},
    stack::free_port,
};

/// How they call what they watch.
const NAME: &str = "portolan";
const COUNT: usize = 3;
/// Votes that it takes.
const QUORUM: usize = 2;
/// After so long a silence of the master they act, while no test wants them to.
const PATIENT: Duration = Duration::from_secs(60);
/// And when one does: small, because a second of a test is dear.
const IMPATIENT: Duration = Duration::from_secs(1);
/// Of a vote that came to nothing the next one is so far apart, twice.
const VOTE: Duration = Duration::from_secs(10);
/// A sentinel that got no CPU for two seconds believes nothing for thirty (its TILT mode): a busy machine has them.
const DECIDE: Duration = Duration::from_secs(150);

/// The sentinels. Stopped when dropped.
#[derive(Debug)]
pub struct Sentinels {
    places: Vec<SocketAddr>,
    daemons: Vec<Daemon>,
    folder: TempDir,
}

impl Sentinels {
    /// Starts them, and waits until they know the master, its one replica, and each other.
    pub async fn watch(master: SocketAddr) -> Result<Self> {
        let mut sentinels = Self {
            places: Vec::new(),
            daemons: Vec::new(),
            folder: TempDir::with_prefix("portolan-sentinels-")?,
        };
        for _ in 0..COUNT {
            sentinels.add(master)?;
        }
        sentinels.agree_on(master).await?;
        Ok(sentinels)
    }

    fn add(&mut self, master: SocketAddr) -> Result<()> {
        let (place, folder) = (free_port()?, self.folder.path());
        let settings = format!(
            "bind 127.0.0.1\nport {port}\ndir {folder}\n\
             sentinel monitor {NAME} {host} {master} {QUORUM}\n\
             sentinel down-after-milliseconds {NAME} {patience}\n\
             sentinel failover-timeout {NAME} {vote}\n\
             sentinel parallel-syncs {NAME} 1\n",
            port = place.port(),
            folder = folder.display(),
            host = master.ip(),
            master = master.port(),
            patience = PATIENT.as_millis(),
            vote = VOTE.as_millis(),
        );
        // It writes down there what it learns.
        let file = folder.join(format!("{}.conf", place.port()));
        fs::write(&file, settings)?;
        let mut command = binary()?;
        command.arg(&file).arg("--sentinel");
        let log = folder.join(format!("{}.log", place.port()));
        self.daemons.push(Daemon::start(command, &log)?);
        self.places.push(place);
        Ok(())
    }

    /// Waits until all of them name this master, with one replica that lives, and know each other.
    pub async fn agree_on(&self, master: SocketAddr) -> Result<()> {
        let wanted = format!("status=ok,address={master},slaves=1,sentinels={COUNT}");
        let agreed = eventually("the sentinels agree", DECIDE, async || {
            self.saying(&wanted).await == COUNT
        });
        agreed.await.with_context(|| self.last_words())
    }

    /// The master is dead: waits until they have made another one of the server there.
    pub async fn replace_the_dead(&self, heir: SocketAddr) -> Result<()> {
        self.act_after(IMPATIENT).await?;
        self.name(heir).await?;
        self.act_after(PATIENT).await
    }

    /// The master lives: has them make another one of the server there all the same.
    pub async fn replace_the_living(&self, heir: SocketAddr) -> Result<()> {
        let order = ["SENTINEL", "FAILOVER", NAME];
        eventually("a sentinel takes the order", DECIDE, async || {
            ask(self.places[0], &order).await.is_ok()
        })
        .await
        .with_context(|| self.last_words())?;
        self.name(heir).await
    }

    async fn act_after(&self, silence: Duration) -> Result<()> {
        let millis = silence.as_millis().to_string();
        for place in &self.places {
            let set = ["SENTINEL", "SET", NAME, "down-after-milliseconds", &millis];
            ask(*place, &set).await?;
        }
        Ok(())
    }

    /// Waits until enough of them name this master.
    async fn name(&self, heir: SocketAddr) -> Result<()> {
        let wanted = format!("address={heir},");
        let named = eventually("the sentinels have a new master", DECIDE, async || {
            self.saying(&wanted).await >= QUORUM
        });
        named.await.with_context(|| self.last_words())
    }

    /// How many say this of what they watch.
    async fn saying(&self, what: &str) -> usize {
        let mut count = 0;
        for place in &self.places {
            let said = ask(*place, &["INFO", "sentinel"]).await;
            count += usize::from(said.is_ok_and(|said| said.contains(what)));
        }
        count
    }

    fn last_words(&self) -> String {
        let all = self.daemons.iter().map(Daemon::last_words);
        all.collect::<Vec<_>>().join("\n--\n")
    }
}
