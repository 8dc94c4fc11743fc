//! The cost of a refresh with rotation, against the least durable write: a transaction that changes
//! one row (AUTH-K8). And the answers to fifty processes that present one token at the same moment
//! (AUTH-K9, CASE-119).
//!
//! Both are compared by elapsed time, turn about, because the disk decides it: the same Postgres
//! with the same settings, and a generator of one thread for either. Each has as many at once as
//! its rate grows with: refreshes of the same moment share their messages and their commits (ADR
//! 31), transactions share the writing of the log. A refresh has its HTTP, the node's work and its
//! signature on top, and each bare transaction has a row of its own, as a refresh has a family.

use std::{collections::BTreeSet, path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, future::try_join_all, stream};
use portolan_tests::{oauth::OAuthClient, sql::Sql};
use serde::Deserialize;

use crate::{
    Arguments,
    figure::{Bar, Figure, Spread, Table, each, number},
    issuer::Issuer,
    load::Connection,
    process::cpu_seconds_of_children,
    scene::{Alone, LET_IN_AT_ONCE},
};

/// Clients that refresh at once: two full messages of them.
const CLIENTS: usize = 128;
/// Of these, those that refresh while the others do not, for comparison.
const FEW: usize = 16;
/// Bare connections. With half of them the rate is the same or lower, and Postgres lets in no more than 50 by itself.
const CONNECTIONS: usize = 32;
/// Refreshes of a round, by each client.
const REFRESHES: usize = 8;
/// Bare transactions of a round, on each connection.
const UPDATES: usize = 40;
/// How often a family may be refreshed in a minute (AUTH-K17): then the next one's turn has come.
const OF_A_FAMILY: usize = 60;
/// More rounds would need more families, and letting their clients in would take longer than to
/// measure; a person may have 50 with one (AUTH-M9).
const MOST_ROUNDS: usize = 100;
/// Processes with one token.
const RACERS: usize = 50;
/// Races, each with a family of its own.
const RACES: usize = 5;
/// The owner of the data folder, and a database for administration.
const SUPERUSER: &str = "postgres";

/// The answer of the token endpoint.
#[derive(Deserialize)]
struct Tokens {
    refresh_token: String,
}

/// A client that refreshes, one request at a time.
struct Chain {
    connection: Option<Connection>,
    client_id: String,
    families: Vec<Family>,
}

/// The state of one grant.
struct Family {
    newest: String,
    refreshed: usize,
}

impl Chain {
    /// Registers a client, and has it let in so often.
    async fn begin(alone: &Alone, number: usize, families: usize) -> Result<Self> {
        let client = OAuthClient::register(alone.url(), &format!("Refresher {number}")).await?;
        let mut begun = Vec::with_capacity(families);
        for _ in 0..families {
            let tokens = client.authorize(&alone.owner, &alone.published.url).await?;
            begun.push(Family {
                newest: tokens.refresh,
                refreshed: 0,
            });
        }
        Ok(Self {
            connection: None,
            client_id: client.client_id,
            families: begun,
        })
    }

    /// Presents the newest token of a family, and keeps its successor.
    async fn refresh(&mut self, issuer: &Issuer) -> Result<()> {
        let family = self
            .families
            .iter_mut()
            .find(|family| family.refreshed < OF_A_FAMILY)
            .context("every family was refreshed as often as it may be")?;
        let request = issuer.refresh(&self.client_id, &family.newest);
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(Connection::open(issuer.address).await?),
        };
        let answer = connection.call(&request).await?;
        answer.check("\"access_token\"")?;
        let tokens: Tokens = serde_json::from_slice(answer.body)?;
        ensure!(
            tokens.refresh_token != family.newest,
            "the refresh token was not rotated"
        );
        family.newest = tokens.refresh_token;
        family.refreshed += 1;
        Ok(())
    }
}

/// Every client, so often, one after the other. Answers how many refreshes that was.
async fn refresh(chains: &mut [Chain], issuer: &Issuer) -> Result<usize> {
    let all = chains.iter_mut().map(|chain| async move {
        for _ in 0..REFRESHES {
            chain.refresh(issuer).await?;
        }
        anyhow::Ok(REFRESHES)
    });
    Ok(try_join_all(all).await?.into_iter().sum())
}

/// Bare connections to the same Postgres, each with a row of its own in a table of the benchmark's.
struct Updates {
    connections: Vec<Sql>,
    /// How often the rows were changed.
    made: usize,
}

impl Updates {
    async fn begin(folder: &Path) -> Result<Self> {
        let mut connections = Vec::with_capacity(CONNECTIONS);
        for number in 1..=CONNECTIONS {
            let mut sql = Sql::connect(folder, SUPERUSER, SUPERUSER).await?;
            sql.ask("reset role").await?;
            if number == 1 {
                sql.ask(&format!(
                    "create schema bench;
                     create table bench.counts (id int primary key, count bigint not null);
                     insert into bench.counts select id, 0 from generate_series(1, {CONNECTIONS}) id"
                ))
                .await?;
            }
            // Parsed and planned once, as a driver does it.
            sql.ask(&format!(
                "prepare one_more as update bench.counts set count = count + 1 where id = {number}"
            ))
            .await?;
            connections.push(sql);
        }
        Ok(Self {
            connections,
            made: 0,
        })
    }

    /// So many transactions on each connection, one after the other, with a round trip for each of their three parts. Answers how many.
    async fn run(&mut self) -> Result<usize> {
        let all = self.connections.iter_mut().map(|sql| async move {
            for _ in 0..UPDATES {
                sql.ask("begin").await?;
                sql.ask("execute one_more").await?;
                sql.ask("commit").await?;
            }
            anyhow::Ok(UPDATES)
        });
        let made: usize = try_join_all(all).await?.into_iter().sum();
        self.made += made;
        Ok(made)
    }

    /// Fails unless every transaction changed its row, and for good.
    async fn check(&mut self) -> Result<()> {
        let sql = self.connections.first_mut().context("a connection")?;
        let rows = sql.ask("select sum(count) from bench.counts").await?;
        let counted: usize = rows.concat().concat().parse()?;
        ensure!(
            counted == self.made,
            "{} bare transactions changed {counted} rows",
            self.made
        );
        Ok(())
    }
}

/// Seconds for each piece of work.
struct Cost {
    /// By the clock.
    elapsed: f64,
    /// Of Postgres's processor time.
    database: f64,
}

impl Cost {
    /// Measures work that returns its amount.
    async fn of(process: u32, work: impl Future<Output = Result<usize>>) -> Result<Self> {
        let database = cpu_seconds_of_children(process)?;
        let begun = Instant::now();
        let count = work.await?;
        let elapsed = begun.elapsed().as_secs_f64();
        Ok(Self {
            elapsed: each(elapsed, count),
            database: each(cpu_seconds_of_children(process)? - database, count),
        })
    }
}

/// Refreshes against bare transactions.
pub(crate) async fn rotation(
    arguments: &Arguments,
    alone: &Alone,
    issuer: &Issuer,
    table: &mut Table,
) -> Result<()> {
    let rounds = arguments.rounds.min(MOST_ROUNDS);
    // One round more, to begin with.
    let families = ((rounds + 1) * REFRESHES).div_ceil(OF_A_FAMILY);
    let mut chains: Vec<Chain> = stream::iter(1..=CLIENTS)
        .map(|number| {
            let share = if number <= FEW { 2 } else { 1 };
            Chain::begin(alone, number, share * families)
        })
        .buffered(LET_IN_AT_ONCE)
        .try_collect()
        .await?;
    let mut updates = Updates::begin(&alone.postgres()).await?;
    let process = alone.process_id();

    refresh(&mut chains, issuer).await?;
    updates.run().await?;
    let (mut ratios, mut few_ratios) = (Vec::new(), Vec::new());
    let (mut refreshes, mut bare) = (Vec::new(), Vec::new());
    let (mut for_refreshes, mut for_updates) = (0.0, 0.0);
    for round in 0..rounds {
        let few = Cost::of(process, refresh(&mut chains[..FEW], issuer)).await?;
        let (cost, update) = if round % 2 == 0 {
            let cost = Cost::of(process, refresh(&mut chains, issuer)).await?;
            (cost, Cost::of(process, updates.run()).await?)
        } else {
            let update = Cost::of(process, updates.run()).await?;
            let cost = Cost::of(process, refresh(&mut chains, issuer)).await?;
            (cost, update)
        };
        ratios.push(update.elapsed / cost.elapsed);
        few_ratios.push(update.elapsed / few.elapsed);
        refreshes.push(cost.elapsed);
        bare.push(update.elapsed);
        for_refreshes += cost.database;
        for_updates += update.database;
    }
    updates.check().await?;
    let spread = Spread::of(&mut ratios);
    table.add(Figure {
        what: "a refresh with rotation : a transaction of one UPDATE".to_owned(),
        seen: spread.median,
        unit: "",
        bar: Bar::AtLeast(0.5),
        note: format!(
            "{}; {:.2} ms each, {CLIENTS} at once, bare {:.2} ms, {CONNECTIONS} at once; Postgres worked {:.1} times as long for it; {FEW} at once {:.2}",
            spread.text(),
            1e3 * Spread::of(&mut refreshes).median,
            1e3 * Spread::of(&mut bare).median,
            for_refreshes / for_updates,
            Spread::of(&mut few_ratios).median
        ),
    });
    Ok(())
}

/// The outcome of one token that many presented at once.
struct Outcome {
    /// Answers with tokens.
    succeeded: usize,
    /// Different refresh tokens among them.
    successors: usize,
    /// One branch was alive afterwards, and went on.
    goes_on: bool,
}

/// Fifty processes with one token, some times over.
pub(crate) async fn race(alone: &Alone, issuer: &Issuer, table: &mut Table) -> Result<()> {
    let open = (0..RACERS).map(|_| Connection::open(issuer.address));
    let mut racers = try_join_all(open).await?;
    let mut sql = alone.sql().await?;
    let mut outcomes = Vec::with_capacity(RACES);
    for _ in 0..RACES {
        outcomes.push(race_once(alone, issuer, &mut racers, &mut sql).await?);
    }
    let fewest = outcomes.iter().map(|outcome| outcome.succeeded).min();
    let most = outcomes.iter().map(|outcome| outcome.successors).max();
    let lived = outcomes.iter().filter(|outcome| outcome.goes_on).count();
    let what = format!("{RACERS} refreshes at once with one token");
    let races = format!("of {RACES} races, the worst");
    for (what, seen, bar, note) in [
        (
            format!("{what}: good answers"),
            fewest,
            Bar::AtLeast(number(RACERS)),
            races.clone(),
        ),
        (
            format!("{what}: different successors"),
            most,
            Bar::AtMost(1.0),
            races,
        ),
        (
            format!("of {RACES} such families: with one live branch"),
            Some(lived),
            Bar::AtLeast(number(RACES)),
            "in the database, and the successor refreshes".to_owned(),
        ),
    ] {
        table.add(Figure {
            what,
            seen: number(seen.context("a race")?),
            unit: "",
            bar,
            note,
        });
    }
    Ok(())
}

async fn race_once(
    alone: &Alone,
    issuer: &Issuer,
    racers: &mut [Connection],
    sql: &mut Sql,
) -> Result<Outcome> {
    let client = &alone.client;
    let token = client
        .authorize(&alone.owner, &alone.published.url)
        .await?
        .refresh;
    let request = &issuer.refresh(&client.client_id, &token);
    let answers = racers.iter_mut().map(|racer| async move {
        let answer = racer.call(request).await?;
        let is_good = answer.head.starts_with("HTTP/1.1 200");
        let tokens = is_good.then(|| serde_json::from_slice::<Tokens>(answer.body));
        anyhow::Ok(tokens.transpose()?)
    });
    let good: Vec<Tokens> = try_join_all(answers).await?.into_iter().flatten().collect();
    let succeeded = good.len();
    let successors: BTreeSet<String> = good
        .into_iter()
        .map(|tokens| tokens.refresh_token)
        .collect();

    let question = format!(
        "select count(*) from refresh_tokens t join refresh_families f on f.id = t.family_id
         where t.superseded_at is null and f.revoked_at is null
           and f.id = (select family_id from refresh_tokens where digest = sha256(convert_to('{token}', 'UTF8')))"
    );
    let live = sql.ask(&question).await?.concat().concat();
    let mut goes_on = false;
    if let (Some(head), Some(racer)) = (successors.first(), racers.first_mut())
        && *head != token
    {
        let answer = racer.call(&issuer.refresh(&client.client_id, head)).await?;
        goes_on = live == "1" && answer.check("\"access_token\"").is_ok();
    }
    Ok(Outcome {
        succeeded,
        successors: successors.len(),
        goes_on,
    })
}
