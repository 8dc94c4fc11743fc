//! A workspace with many calls: its size on disk, the time of its pages, and of the daily fold.
//!
//! The log has the calls of thirty days. The counts have those and as many of the thirty days
//! before, to which insights compare. All of it is written and folded by the functions of the
//! product, as if the time were that of the calls; meanwhile the product itself is stopped, because
//! it would fold with the present time.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use axum::http::Method;
use portolan_metering::{CallEra, CallerKind, Key, Measures, MeteringConfig, Pending, Totals, key};
use portolan_model::{
    Clock, Timestamp,
    id::{CallId, ServerId, TenantId, UserId},
    registry::CallOutcome,
};
use portolan_storage::{
    Reason, Store,
    platform::{
        calls::{self, Call},
        usage::{
            self,
            folds::{self, Step},
        },
    },
};
use portolan_tests::{console::text, sql::Sql, stack::repository};
use time::{Time, format_description::well_known::Rfc3339};
use tokio::task::JoinSet;

use crate::{
    Arguments,
    figure::{Bar, Figure, Spread, Table, number},
    metering,
    scene::Alone,
};

/// Days of the log; the counts have twice as many.
const DAYS: i64 = 30;

/// Hours whose counts are flushed by minute. Minutes of earlier ones are dropped already.
const FINE: time::Duration = time::Duration::hours(48);

/// How long after an hour its counts are folded.
const SETTLED: time::Duration = time::Duration::minutes(10);

/// Entries of the log in one statement, and statements at once.
const ENTRIES: usize = 5_000;
const WRITERS: usize = 3;

/// Requests of a page, and the time after which no further one is made.
const REQUESTS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// The bar of each page, in milliseconds.
const PAGE: f64 = 300.0;

/// Tools, clients and people of the workspace.
const TOOLS: u64 = 40;
const CLIENTS: [(&str, CallerKind, CallEra); 6] = [
    ("Claude", CallerKind::Person, CallEra::Session),
    ("Cursor", CallerKind::Person, CallEra::Session),
    ("VS Code", CallerKind::Person, CallEra::Stateless),
    ("ChatGPT", CallerKind::Person, CallEra::Stateless),
    ("nightly", CallerKind::Service, CallEra::Session),
    ("pipeline", CallerKind::ApiKey, CallEra::Stateless),
];
const PEOPLE: usize = 200;

/// Measures a workspace for each size.
pub(crate) async fn measure(
    arguments: &Arguments,
    api: std::net::SocketAddr,
    table: &mut Table,
) -> Result<()> {
    for calls in &arguments.history {
        let mut alone = Alone::new(api).await?;
        let written = seed(&mut alone, *calls).await?;
        let size = format!("{} million calls", number(usize::try_from(*calls)?) / 1e6);
        on_disk(&alone, &size, &written, table).await?;
        pages(&alone, &size, table).await?;
        if arguments.look {
            look(&alone).await?;
        }
    }
    Ok(())
}

/// The browser test of the page, with the calls of thirty days. Pictures go to `artifacts`.
async fn look(alone: &Alone) -> Result<()> {
    let artifacts = repository().join("artifacts");
    std::fs::create_dir_all(&artifacts)?;
    let status = tokio::process::Command::new("node")
        .arg(repository().join("tests/browser/insights.mjs"))
        .env("PORTOLAN_URL", alone.url().origin().ascii_serialization())
        .env("PORTOLAN_ARTIFACTS", artifacts)
        .env("WORKSPACE", &alone.published.workspace)
        .env("PERIOD", "30d")
        .env("EMAIL", &alone.owner.email)
        .env("PASSWORD", &alone.owner.password)
        .status()
        .await?;
    ensure!(status.success(), "the browser test of insights: {status}");
    Ok(())
}

/// The written calls.
struct Written {
    /// Entries of the log.
    entries: usize,
    /// Milliseconds of each fold of a day.
    days: Vec<f64>,
    took: Duration,
}

/// Writes the calls while the product is stopped.
async fn seed(alone: &mut Alone, calls: u64) -> Result<Written> {
    let console = alone.owner.console();
    let me = console.get("/me").await?;
    let tenant: TenantId = text(&me["workspaces"][0], "id")?.parse()?;
    let server: ServerId = alone.published.server_id.parse()?;
    let stopped = Stopped::between_folds(alone).await?;
    let history = History {
        tenant,
        server: (server, "harbour".into()),
        tools: (0..TOOLS).map(|n| format!("tool_{n}").into()).collect(),
        clients: CLIENTS.map(|(name, caller, era)| (name.into(), caller, era)),
        people: (0..PEOPLE).map(|_| UserId::generate()).collect(),
        calls_an_hour: calls / u64::try_from(DAYS * 24)?,
    };
    write(&*stopped.0, history).await
}

/// The product, while it does nothing. It goes on when this is dropped.
struct Stopped<'a>(&'a mut Alone);

impl<'a> Stopped<'a> {
    /// At a moment at which it folds nothing.
    async fn between_folds(alone: &'a mut Alone) -> Result<Self> {
        let mut sql = alone.owner_sql().await?;
        for _ in 0..100 {
            alone.signal("STOP")?;
            let locks = sql
                .ask(
                    "select count(*) from pg_locks l where l.pid <> pg_backend_pid() and (l.locktype = 'advisory' and l.objid = 1718578276
                       or l.relation in (select oid from pg_class where relname like 'usage%' or relname like 'call_log%'))",
                )
                .await?;
            if locks[0][0] == "0" {
                return Ok(Self(alone));
            }
            alone.signal("CONT")?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the product folds all the time")
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        // It cannot fail while the process is there.
        let _ = self.0.signal("CONT");
    }
}

async fn write(alone: &Alone, history: History) -> Result<Written> {
    let begun = Instant::now();
    let store = metering::open(&alone.postgres()).await?;
    let now = Clock::system().now();
    let end = now - time::Duration::nanoseconds(i64::try_from(now.unix_timestamp_nanos() % HOUR)?);
    let first = end.replace_time(Time::MIDNIGHT) - time::Duration::days(2 * DAYS);
    // As if the service had begun then.
    let mut sql = alone.owner_sql().await?;
    let upto = first.format(&Rfc3339)?;
    sql.ask(&format!("update usage_folds set upto = '{upto}'"))
        .await?;
    let mut writer = Writer {
        store,
        history,
        random: Random(7),
        pending: Pending::default(),
        process: uuid::Uuid::new_v4(),
        log_from: end - time::Duration::days(DAYS),
        entries: 0,
    };
    let (mut at, mut days) = (first, Vec::new());
    while at < end {
        let day = at + time::Duration::DAY;
        let is_fine = day > end - FINE;
        let until = if is_fine {
            at + time::Duration::HOUR
        } else {
            day
        };
        let folds = writer.span(at, until, is_fine).await?;
        if until.time() == Time::MIDNIGHT {
            days.extend(folds.last());
            folds::retire(&writer.store, &MeteringConfig::default(), until).await?;
        }
        at = until;
    }
    Ok(Written {
        entries: writer.entries,
        days,
        took: begun.elapsed(),
    })
}

/// Nanoseconds of an hour.
const HOUR: i128 = 3_600_000_000_000;

/// The workspace and what calls it.
struct History {
    tenant: TenantId,
    server: (ServerId, Arc<str>),
    tools: Vec<Arc<str>>,
    clients: [(Arc<str>, CallerKind, CallEra); 6],
    people: Vec<UserId>,
    calls_an_hour: u64,
}

/// Numbers without a pattern, the same in each run (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Below `end`, small ones more often.
    fn skewed(&mut self, end: u64) -> usize {
        let (a, b) = (self.below(end), self.below(end));
        usize::try_from(a * b / end).unwrap_or(0)
    }
}

impl History {
    /// One call in the hour that begins then.
    fn call(&self, hour: Timestamp, random: &mut Random) -> Call<'static> {
        let at = hour + Duration::from_micros(random.below(3_600_000_000));
        let tool = random.skewed(TOOLS);
        let (client, caller, era) = &self.clients[random.skewed(6)];
        let (outcome, status, error) = match random.below(1_000) {
            0..950 => (CallOutcome::Ok, Some(200), None),
            950..975 => {
                let status = [404, 429, 500, 503][random.skewed(4)];
                let error = format!("The API answered {status}.");
                (CallOutcome::ToolError, Some(status), Some(error))
            }
            975..990 => {
                let error = format!("Arguments that do not fit: /field_{}", random.below(4));
                (CallOutcome::InvalidArguments, None, Some(error))
            }
            990..998 => {
                let error = "The API did not answer in time.".to_owned();
                (CallOutcome::UpstreamError, None, Some(error))
            }
            _ => {
                let error = "The credential of this tool's API cannot be used.".to_owned();
                (CallOutcome::Internal, None, Some(error))
            }
        };
        let slow = if random.below(50) == 0 { 16 } else { 1 };
        let took_us = (2_000_u64 << (tool % 8)) * (64 + random.below(192)) * slow / 128;
        let is_person = *caller == CallerKind::Person;
        let is_session = *era == CallEra::Session;
        Call {
            id: CallId::at(at),
            tenant: self.tenant,
            at,
            server: Some(self.server.clone()),
            item: Arc::clone(&self.tools[tool]),
            client: Some(Arc::clone(client)),
            client_version: Some("1.4.2".into()),
            client_id: Some("https://client.example/metadata.json"),
            caller: *caller,
            user: is_person.then(|| self.people[random.skewed(200)]),
            grant: None,
            revision: Some(if is_session {
                "2025-11-25"
            } else {
                "2026-07-28"
            }),
            era: *era,
            outcome,
            status,
            measures: Measures {
                took_us,
                backend_us: took_us * 9 / 10,
                bytes_in: 40 + random.below(400),
                bytes_out: 200 + random.below(8_000),
            },
            wait_us: 20 + random.below(60),
            error,
            session: is_session.then(|| format!("{:016x}", random.below(5_000))),
            trace: None,
            node: Some("node-1".into()),
            weight: 1,
        }
    }

    fn key(&self, call: &Call<'_>) -> Key {
        Key {
            tenant: self.tenant,
            server: Some(self.server.0),
            item: Arc::clone(&call.item),
            client: call.client.clone(),
            caller: call.caller.code(),
            outcome: key::outcome_code(call.outcome),
            era: call.era.code(),
        }
    }
}

/// Writes calls as a node does, and folds as the console does.
struct Writer {
    store: Store,
    history: History,
    random: Random,
    pending: Pending,
    process: uuid::Uuid,
    log_from: Timestamp,
    entries: usize,
}

impl Writer {
    /// The calls between two times, and their folds. Milliseconds of each fold.
    async fn span(&mut self, from: Timestamp, until: Timestamp, is_fine: bool) -> Result<Vec<f64>> {
        for at in [from, until] {
            ensure!(folds::prepare(&self.store, at).await?, "another one folds");
        }
        let mut counts: BTreeMap<i64, HashMap<Key, Totals>> = BTreeMap::new();
        let mut hour = from;
        while hour < until {
            let calls = (0..self.history.calls_an_hour)
                .map(|_| self.history.call(hour, &mut self.random))
                .collect::<Vec<_>>();
            for call in &calls {
                let at = if is_fine { call.at } else { hour };
                let minute = counts
                    .entry(at.unix_timestamp().div_euclid(60))
                    .or_default();
                let totals = minute.entry(self.history.key(call)).or_default();
                totals.add(call.measures);
            }
            if hour >= self.log_from {
                self.log(calls).await?;
            }
            hour += time::Duration::HOUR;
        }
        for (minute, counts) in counts {
            self.pending.add(minute, counts.into_iter().collect());
            self.flush(until).await?;
        }
        self.fold(until + SETTLED).await
    }

    async fn log(&mut self, calls: Vec<Call<'static>>) -> Result<()> {
        self.entries += calls.len();
        let mut writing = JoinSet::new();
        let mut rest = calls.into_iter();
        loop {
            let part: Vec<Call<'_>> = rest.by_ref().take(ENTRIES).collect();
            if part.is_empty() || writing.len() >= WRITERS {
                if let Some(written) = writing.join_next().await {
                    written??;
                } else if part.is_empty() {
                    return Ok(());
                }
            }
            if !part.is_empty() {
                let store = self.store.clone();
                writing.spawn(async move {
                    let mut tx = store.edge(Reason::Metering).await?;
                    calls::insert_many(&mut tx, &part).await?;
                    tx.commit().await
                });
            }
        }
    }

    async fn flush(&mut self, now: Timestamp) -> Result<()> {
        while let Some(batch) = self.pending.next_batch() {
            let mut tx = self.store.edge(Reason::Metering).await?;
            usage::flush(&mut tx, self.process, batch, now).await?;
            tx.commit().await?;
            self.pending.written();
        }
        Ok(())
    }

    async fn fold(&self, now: Timestamp) -> Result<Vec<f64>> {
        let mut folds = Vec::new();
        loop {
            let begun = Instant::now();
            match folds::step(&self.store, now).await? {
                Step::Folded { .. } => folds.push(millis(begun)),
                Step::Idle => return Ok(folds),
                Step::Elsewhere => bail!("another process folds"),
            }
        }
    }
}

fn millis(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

/// Megabytes of all partitions of a table, with their indexes.
async fn megabytes(sql: &mut Sql, parent: &str) -> Result<f64> {
    let statement = format!(
        "select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint from pg_inherits where inhparent = '{parent}'::regclass"
    );
    let rows = sql.ask(&statement).await?;
    Ok(number(rows[0][0].parse()?) / 1e6)
}

async fn on_disk(alone: &Alone, size: &str, written: &Written, table: &mut Table) -> Result<()> {
    let mut sql = alone.owner_sql().await?;
    // In service, autovacuum does it as partitions grow.
    sql.ask("vacuum (analyze) call_log").await?;
    for counts in ["usage_minute", "usage_hour", "usage_day"] {
        sql.ask(&format!("vacuum (analyze) {counts}")).await?;
    }
    let log = megabytes(&mut sql, "call_log").await?;
    table.add(Figure {
        what: format!("{size}: the log on disk, a call"),
        seen: log * 1e6 / number(written.entries),
        unit: "bytes",
        bar: Bar::AtMost(500.0),
        note: format!(
            "{log:.0} MB of {} entries, written in {:.0} s",
            written.entries,
            written.took.as_secs_f64()
        ),
    });
    let mut all = 0.0;
    let mut note = String::new();
    for (name, level) in [
        ("minutes", "usage_minute"),
        ("hours", "usage_hour"),
        ("days", "usage_day"),
    ] {
        let size = megabytes(&mut sql, level).await?;
        all += size;
        let _ = write!(note, "{name} {size:.1} MB; ");
    }
    note.push_str("of 60 days");
    table.add(Figure {
        what: format!("{size}: counts on disk"),
        seen: all,
        unit: "MB",
        bar: Bar::AtMost(2_000.0),
        note,
    });
    let spread = Spread::of(&mut written.days.clone());
    table.add(Figure {
        what: format!("{size}: the fold of a day"),
        seen: spread.median,
        unit: "ms",
        bar: Bar::AtMost(10_000.0),
        note: spread.text(),
    });
    Ok(())
}

/// The time of each page, as a browser of this machine waits for it.
async fn pages(alone: &Alone, size: &str, table: &mut Table) -> Result<()> {
    let now = Clock::system().now();
    let ago = |days| (now - time::Duration::days(days)).format(&Rfc3339);
    let (old, older) = (ago(20)?, ago(21)?);
    let base = format!("/workspaces/{}", alone.published.workspace);
    let console = alone.owner.console();
    let page = console.get(&format!("{base}/calls?to={old}")).await?;
    let call = text(&page["items"][0], "id")?;
    let mut paths = Vec::new();
    for period in ["1h", "6h", "24h", "7d", "30d", "90d"] {
        paths.push(format!("/insights?period={period}"));
    }
    for period in ["24h", "30d"] {
        paths.push(format!("/insights/errors?period={period}"));
        paths.push(format!("/insights/people?period={period}"));
    }
    paths.extend([
        "/calls".to_owned(),
        "/calls?tool=tool_39&client=pipeline".to_owned(),
        "/calls?outcome=error".to_owned(),
        "/calls?outcome=internal&tool=tool_39".to_owned(),
        "/calls?error=The%20API%20answered%20404.".to_owned(),
        "/calls?longer_ms=10000".to_owned(),
        format!("/calls?from={older}&to={old}"),
        "/calls?tool=no_such_tool".to_owned(),
        format!("/calls/{call}"),
        "/calls/export?format=csv".to_owned(),
        "/calls/export?format=jsonl&outcome=error".to_owned(),
    ]);
    for path in paths {
        let (mut spent, note) = asked(alone, &format!("{base}{path}")).await?;
        let spread = Spread::of(&mut spent);
        table.add(Figure {
            what: format!("{size}: {path}"),
            seen: spent[(spent.len() * 19).div_ceil(20) - 1],
            unit: "ms",
            bar: Bar::AtMost(PAGE),
            note: format!("95 of 100; {}{note}", spread.text()),
        });
    }
    Ok(())
}

/// Milliseconds of each request for a page, and a note about failures.
async fn asked(alone: &Alone, path: &str) -> Result<(Vec<f64>, String)> {
    let address = format!("/api/v1{path}");
    let (begun, mut spent, mut note) = (Instant::now(), Vec::new(), String::new());
    while spent.len() < REQUESTS && (spent.len() < 3 || begun.elapsed() < PATIENCE) {
        let begun = Instant::now();
        let request = alone.owner.browser.fetch(Method::GET, &address)?;
        let mut response = request.send().await?;
        if !response.status().is_success() {
            note = format!("; {}", response.status());
        }
        if path.contains("/export") {
            // The first rows: the rest takes as long as the reader.
            response.chunk().await?.context("rows")?;
        } else {
            response.bytes().await?;
        }
        spent.push(millis(begun));
    }
    Ok((spent, note))
}
