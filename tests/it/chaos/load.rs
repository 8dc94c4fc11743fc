//! Clients that work through all of it: those of the harness, which never give up, and the official SDKs.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use portolan_tests::{
    caller::{Caller, Plan},
    fleet::Fleet,
    history::{History, Outcome},
    mcp::{LEGACY, McpClient},
    oauth::{OAuthClient, tokens},
    sdk::{Sdk, SdkLoad},
};
use tokio::{process::ChildStdin, task::JoinSet, time::sleep};

use super::Dice;

/// Registered clients in each workspace. Limits are per client.
const CLIENTS: usize = 3;
/// Clients of each SDK at a time.
const SDK_CLIENTS: usize = 2;
/// Well within the life of a token.
const REFRESH: Duration = Duration::from_secs(240);

/// Somebody's access to one server.
#[derive(Debug, Clone)]
struct Access {
    url: String,
    token: Arc<Mutex<String>>,
    /// Without an address, but at the place where the link in front listens.
    front: Option<McpClient>,
}

impl Access {
    fn client(&self) -> Result<McpClient> {
        match &self.front {
            Some(front) => front.clone(),
            None => McpClient::new(&self.url)?,
        }
        .with_token(&self.token())
    }

    fn token(&self) -> String {
        self.token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The running clients.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) history: History,
    stop: Arc<AtomicBool>,
    workers: JoinSet<Result<()>>,
    refreshers: JoinSet<()>,
    /// Closed, they tell the SDKs' programs to end.
    sdks: Vec<ChildStdin>,
}

impl Load {
    /// Starts so many clients in two workspaces: of three, two in sessions and one without.
    pub(super) async fn start(fleet: &Fleet, clients: u64, seed: u64) -> Result<Self> {
        let mut load = Self {
            history: History::default(),
            stop: Arc::default(),
            workers: JoinSet::new(),
            refreshers: JoinSet::new(),
            sdks: Vec::new(),
        };
        let second = fleet
            .owner
            .console()
            .publish_fixture("quay", &fleet.fixture)
            .await?;
        let mut accesses = Vec::new();
        for number in 0..2 * CLIENTS {
            let url = [&fleet.published.url, &second.url][number % 2];
            accesses.push(load.access(fleet, url, number, None).await?);
        }
        // Every fourth client comes over a network that fails.
        for access in accesses.clone() {
            let front = fleet.cluster.in_front(&McpClient::new(&access.url)?)?;
            accesses.push(Access {
                front: Some(front),
                ..access
            });
        }
        for number in 0..clients {
            let place = usize::try_from(number)?;
            let over_front = if number % 4 == 1 { 2 * CLIENTS } else { 0 };
            let access = accesses[place % (2 * CLIENTS) + over_front].clone();
            let worker = Worker {
                name: format!("client-{number}"),
                access,
                history: load.history.clone(),
                stop: load.stop.clone(),
                dice: Dice::new(seed ^ (number + 1).wrapping_mul(0xdead_beef_cafe)),
                calls: 0,
            };
            if number % 3 == 2 {
                load.workers.spawn(worker.stateless());
            } else {
                load.workers.spawn(worker.in_sessions());
            }
        }
        let folder = fleet.cluster.postgres.folder();
        for (number, sdk) in Sdk::ALL.into_iter().enumerate() {
            let url = [&fleet.published.url, &second.url][number % 2];
            let file = folder.join(format!("{}.token", sdk.name()));
            load.access(fleet, url, 100 + number, Some(&file)).await?;
            let (program, stdin) =
                SdkLoad::start(sdk, url, &file, SDK_CLIENTS, folder, &load.history)?;
            load.workers.spawn(program.follow());
            load.sdks.push(stdin);
        }
        Ok(load)
    }

    /// Registers a client and keeps its token fresh, in a file too.
    async fn access(
        &mut self,
        fleet: &Fleet,
        url: &str,
        number: usize,
        file: Option<&Path>,
    ) -> Result<Access> {
        let client = OAuthClient::register(fleet.cluster.url(), &format!("Load {number}")).await?;
        let first = client.authorize(&fleet.owner, url).await?;
        if let Some(file) = file {
            replace(file, &first.access)?;
        }
        let token = Arc::new(Mutex::new(first.access));
        let (kept, mut refresh) = (token.clone(), first.refresh);
        let file = file.map(Path::to_owned);
        self.refreshers.spawn(async move {
            loop {
                sleep(REFRESH).await;
                // Postgres may be away: the next try is soon.
                loop {
                    let fresh = async { tokens(client.refresh(&refresh).await?).await }.await;
                    if let Ok(fresh) = fresh {
                        refresh = fresh.refresh;
                        if let Some(file) = &file {
                            let _ = replace(file, &fresh.access);
                        }
                        *kept.lock().unwrap_or_else(PoisonError::into_inner) = fresh.access;
                        break;
                    }
                    sleep(Duration::from_secs(5)).await;
                }
            }
        });
        Ok(Access {
            url: url.to_owned(),
            token,
            front: None,
        })
    }

    /// Lets the running calls end, and no new ones begin.
    pub(super) async fn finish(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.sdks.clear();
        while let Some(worker) = self.workers.join_next().await {
            worker.context("a client fell over")??;
        }
        self.refreshers.shutdown().await;
        Ok(())
    }
}

/// Nobody reads half of it.
fn replace(file: &Path, text: &str) -> Result<()> {
    let fresh = file.with_extension("fresh");
    fs::write(&fresh, text)?;
    Ok(fs::rename(fresh, file)?)
}

struct Worker {
    name: String,
    access: Access,
    history: History,
    stop: Arc<AtomicBool>,
    dice: Dice,
    calls: u64,
}

impl Worker {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn plan(&mut self) -> Plan {
        self.calls += 1;
        let name = format!("{}-{}", self.name, self.calls);
        let millis = self
            .dice
            .pick(&[0, 0, 10, 50, 200, 800, 1_500, 2_500, 5_000, 9_000]);
        let mut plan = Plan::new(name, millis);
        plan.safe = self.dice.below(3) == 0;
        plan.progress = self.dice.below(4) > 0;
        plan.work.size = self.dice.pick(&[0, 0, 0, 1_000, 100_000]);
        plan.cut_after =
            (self.dice.below(6) == 0).then(|| usize::try_from(self.dice.below(3) + 1).unwrap_or(1));
        plan.half_open = self.dice.below(2) == 0;
        if self.dice.below(8) == 0 {
            plan.rest = Duration::from_millis(400);
        }
        // A lost owner costs 12 s, a held node 10 s, and both may meet. An API that hangs costs 3 s.
        plan.deadline += Duration::from_secs(10);
        plan
    }

    async fn pause(&mut self) {
        sleep(Duration::from_millis(self.dice.below(400))).await;
    }

    async fn stateless(mut self) -> Result<()> {
        while !self.is_over() {
            let caller = Caller::stateless(self.access.client()?, &self.history);
            caller.call(&self.plan()).await;
            self.pause().await;
        }
        Ok(())
    }

    async fn in_sessions(mut self) -> Result<()> {
        let mut number = 0;
        while !self.is_over() {
            number += 1;
            let version = self
                .dice
                .pick(&[LEGACY, LEGACY, LEGACY, "2025-06-18", "2025-03-26"]);
            // Without Redis there are no new sessions; the client comes back.
            let Ok((client, _)) = self.access.client()?.initialize(version).await else {
                sleep(Duration::from_secs(1)).await;
                continue;
            };
            let session = format!("{} session {number}", self.name);
            let mut caller = Caller::in_session(client, &session, &self.history);
            let calls = 3 + self.dice.below(20);
            for _ in 0..calls {
                if self.is_over() {
                    return Ok(());
                }
                caller = caller.with_token(&self.access.token())?;
                let outcome = caller.call(&self.plan()).await;
                if outcome == Outcome::Http(404) {
                    break;
                }
                self.pause().await;
            }
            if self.dice.below(2) == 0
                && caller.end().await.is_some_and(|status| status.is_success())
            {
                // It must be dead, wherever this lands.
                caller.call(&self.plan()).await;
            }
        }
        Ok(())
    }
}
