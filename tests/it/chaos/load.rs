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
    behind,
    caller::{Caller, Plan, able},
    checker::everyone_knows,
    fleet::{Fleet, sign_up},
    history::{History, Outcome, What},
    mcp::{LEGACY, McpClient},
    oauth::{OAuthClient, Tokens, tokens},
    process::eventually,
    sdk::{Sdk, SdkLoad},
};
use reqwest::Method;
use serde_json::json;
use tokio::{process::ChildStdin, task::JoinSet, time::sleep};

use super::{
    Dice,
    lists::{self, Editor, Listener},
};

/// Registered clients in each workspace. Limits are per client.
const CLIENTS: usize = 3;
/// Clients of each SDK at a time.
const SDK_CLIENTS: usize = 2;
/// Clients that are asked before they get an answer.
const ASKED: u64 = 4;
/// Clients of a workspace that lets in few calls, each with one call at a time; and how few, a minute.
const LIMITED: u64 = 3;
const FEW: u64 = 30;
/// Those who listen to each list: in sessions, and without.
const LISTENERS: usize = 2;
/// A listener is notified of a change within this time (TEST-C10); the checker reports those that
/// were not.
const TOLD: Duration = Duration::from_secs(12);
/// Calls that take so many milliseconds run long enough to be cancelled.
const LONG: u64 = 2_500;
/// Well within the life of a token.
const REFRESH: Duration = Duration::from_secs(240);

/// A person's access to one server.
#[derive(Debug, Clone)]
pub(super) struct Access {
    url: String,
    token: Arc<Mutex<String>>,
    /// Without an address, but at the place where the link in front listens.
    front: Option<McpClient>,
}

impl Access {
    pub(super) fn client(&self) -> Result<McpClient> {
        match &self.front {
            Some(front) => front.clone(),
            None => McpClient::new(&self.url)?,
        }
        .with_token(&self.token())
    }

    pub(super) fn token(&self) -> String {
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
    /// They never end by themselves.
    listeners: JoinSet<()>,
    /// One for each list.
    readers: Vec<(String, Access)>,
    refreshers: JoinSet<()>,
    /// Standard input of the SDKs' programs, which end when it closes.
    sdks: Vec<ChildStdin>,
    secrets: Secrets,
}

/// Values that no log may hold: tokens and session ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets(Arc<Mutex<Vec<String>>>);

impl Secrets {
    fn add(&self, secret: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(secret.to_owned());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Load {
    /// Starts so many clients in two workspaces: of three, two in sessions and one without.
    pub(super) async fn start(fleet: &Fleet, clients: u64, seed: u64) -> Result<Self> {
        let mut load = Self {
            history: History::default(),
            stop: Arc::default(),
            workers: JoinSet::new(),
            listeners: JoinSet::new(),
            readers: Vec::new(),
            refreshers: JoinSet::new(),
            sdks: Vec::new(),
            secrets: Secrets::default(),
        };
        fleet.fixture.held.write_to(&load.history);
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
            load.work(Role::Ordinary, access, number, number % 3 != 2, seed);
        }
        load.beside(fleet, seed).await?;
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

    fn work(&mut self, role: Role, access: Access, number: u64, in_sessions: bool, seed: u64) {
        let name = format!("{}-{number}", role.name());
        let salt = (number + 1 + 1_000 * role as u64).wrapping_mul(0xdead_beef_cafe);
        let worker = Worker {
            name,
            role,
            access,
            history: self.history.clone(),
            secrets: self.secrets.clone(),
            stop: self.stop.clone(),
            dice: Dice::new(seed ^ salt),
            calls: 0,
        };
        if in_sessions {
            self.workers.spawn(worker.in_sessions());
        } else {
            self.workers.spawn(worker.stateless());
        }
    }

    /// Starts the load beside plain calls, in workspaces of another person: questions, a limit, and
    /// lists that change.
    async fn beside(&mut self, fleet: &Fleet, seed: u64) -> Result<()> {
        let owner = sign_up(&fleet.cluster, "bea").await?;
        let client = OAuthClient::register(fleet.cluster.url(), "Beside").await?;
        let console = owner.console();

        console.create_workspace("asks").await?;
        let url = fleet.fixture.asker_url();
        let asks = behind::publish_at(&console, "asks", &url, &json!({})).await?;
        let tokens = client.authorize(&owner, &asks.url).await?;
        let access = self.keep_fresh(&client, tokens, &asks.url, None)?;
        for number in 0..ASKED {
            self.work(Role::Asked, access.clone(), number, number % 2 == 0, seed);
        }

        let few = console.publish_fixture("few", &fleet.fixture).await?;
        let change = json!({"tenant_calls": FEW});
        let path = "/workspaces/few/limits";
        console.expect(Method::PATCH, path, Some(change)).await?;
        let tokens = client.authorize(&owner, &few.url).await?;
        let access = self.keep_fresh(&client, tokens, &few.url, None)?;
        self.history.add(What::Limited {
            calls: Role::Limited.name().to_owned(),
            per_minute: FEW,
            nodes: fleet.cluster.nodes.len() as u64,
            at_a_time: LIMITED,
        });
        for number in 0..LIMITED {
            let role = Role::Limited;
            self.work(role, access.clone(), number, number % 3 == 2, seed);
        }

        let mut lists = Vec::new();
        for name in ["moles", "piers"] {
            let published = console.publish_fixture(name, &fleet.fixture).await?;
            let source = &published.source_id;
            let tools = console.tool_ids(name, source).await?;
            let tool = tools.first().context("a tool")?.as_str();
            lists.push((name.to_owned(), tool.context("an id")?.to_owned()));
            let tokens = client.authorize(&owner, &published.url).await?;
            let access = self.keep_fresh(&client, tokens, &published.url, None)?;
            self.readers.push((name.to_owned(), access.clone()));
            for number in 0..LISTENERS {
                let listener = |how: &str| Listener {
                    name: format!("{name}-{how}-{number}"),
                    list: name.to_owned(),
                    access: access.clone(),
                    history: self.history.clone(),
                };
                let (sessions, alone) = (listener("session"), listener("alone"));
                self.listeners.spawn(sessions.in_sessions());
                self.listeners.spawn(alone.alone());
            }
        }
        let editor = Editor {
            owner,
            lists,
            history: self.history.clone(),
            stop: self.stop.clone(),
            dice: Dice::new(seed ^ 0x11_57_ed),
        };
        self.workers.spawn(editor.work());
        Ok(())
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
        self.keep_fresh(&client, first, url, file)
    }

    fn keep_fresh(
        &mut self,
        client: &OAuthClient,
        first: Tokens,
        url: &str,
        file: Option<&Path>,
    ) -> Result<Access> {
        if let Some(file) = file {
            replace(file, &first.access)?;
        }
        let (client, secrets) = (client.clone(), self.secrets.clone());
        for secret in [&first.access, &first.refresh] {
            secrets.add(secret);
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
                        for secret in [&fresh.access, &fresh.refresh] {
                            secrets.add(secret);
                        }
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

    /// Lets the running calls end, and no new ones begin. Answers what no log may hold.
    pub(super) async fn finish(mut self) -> Result<Vec<String>> {
        self.stop.store(true, Ordering::Relaxed);
        self.sdks.clear();
        while let Some(worker) = self.workers.join_next().await {
            worker.context("a client fell over")??;
        }
        // All is quiet now. A listener that is not notified of the last change within this time is
        // late: the checker reports that.
        let history = &self.history;
        let _ = eventually("everybody knows", TOLD, async || {
            everyone_knows(&history.lines())
        })
        .await;
        for (list, access) in &self.readers {
            let read = async || lists::read(&self.history, list, &access.client()?).await;
            eventually("the list is read", TOLD, async || read().await.is_ok()).await?;
        }
        self.listeners.shutdown().await;
        self.refreshers.shutdown().await;
        Ok(self.secrets.take())
    }
}

/// Replaces the file at once, so that no reader sees half of it.
fn replace(file: &Path, text: &str) -> Result<()> {
    let fresh = file.with_extension("fresh");
    fs::write(&fresh, text)?;
    Ok(fs::rename(fresh, file)?)
}

/// The task of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Calls of every kind.
    Ordinary,
    /// Calls that ask something first.
    Asked,
    /// More calls than are let in.
    Limited,
}

impl Role {
    /// First word of the names of its calls.
    const fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "client",
            Self::Asked => "asked",
            Self::Limited => "limited",
        }
    }
}

struct Worker {
    name: String,
    role: Role,
    access: Access,
    history: History,
    secrets: Secrets,
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
        if self.role != Role::Ordinary {
            let mut plan = Plan::new(name, 0);
            plan.asks = self.role == Role::Asked;
            plan.progress = false;
            plan.deadline += Duration::from_secs(10);
            return plan;
        }
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
        // Over a network that falls silent the close of a connection does not arrive.
        if millis >= LONG && self.access.front.is_none() && self.dice.below(3) == 0 {
            (plan.cut_after, plan.half_open, plan.rest) = (None, false, Duration::ZERO);
            plan.cancel_after = Some(Duration::from_millis(300 + self.dice.below(900)));
        }
        plan
    }

    async fn pause(&mut self) {
        let millis = match self.role {
            Role::Ordinary => self.dice.below(400),
            Role::Asked => self.dice.below(1_000),
            Role::Limited => 300 + self.dice.below(800),
        };
        sleep(Duration::from_millis(millis)).await;
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
            // The oldest of them has no questions, so its clients cannot be asked.
            let (versions, can) = match self.role {
                Role::Asked => (&[LEGACY, LEGACY, "2025-06-18"][..], able()),
                _ => (
                    &[LEGACY, LEGACY, LEGACY, "2025-06-18", "2025-03-26"][..],
                    json!({}),
                ),
            };
            let version = self.dice.pick(versions);
            // Without Redis there are no new sessions; the client comes back.
            let opened = self.access.client()?.initialize_able(version, can).await;
            let Ok((client, _)) = opened else {
                sleep(Duration::from_secs(1)).await;
                continue;
            };
            if let Some(id) = client.header("mcp-session-id") {
                self.secrets.add(id);
            }
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
