//! What happened: calls, errors, durations and bytes over time, and by tool, server, client and
//! outcome, with the period before.
//!
//! Sums are read from counts, which are exact (METER-1). Quantiles are within 4.4 % (METER-4).
//! Causes of failures and people are read from the log ([`groups`], METER-13).

pub mod groups;

use std::collections::{BTreeMap, HashMap};

use axum::{Json, extract::State};
use portolan_metering::{
    Histogram, Totals,
    key::{outcome_code, outcome_of},
};
use portolan_model::{Timestamp, id::ServerId, member::Action, registry::CallOutcome};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    TenantTx,
    platform::usage::{self, Level, Sum},
    registry::servers,
};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use utoipa::{IntoParams, ToSchema};

use crate::{input::QueryParameters, tool_budget::BYTES_OF_A_TOKEN, workspace::Workspace};

/// Most rows of one table of the answer; the rest is the difference to the totals.
const ROWS: usize = 100;

/// A period, up to now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
pub enum Period {
    /// One hour, by minute.
    #[serde(rename = "1h")]
    Hour,
    /// Six hours, by five minutes.
    #[serde(rename = "6h")]
    SixHours,
    /// A day, by hour.
    #[default]
    #[serde(rename = "24h")]
    Day,
    /// A week, by six hours.
    #[serde(rename = "7d")]
    Week,
    /// 30 days (UTC), by day.
    #[serde(rename = "30d")]
    Month,
    /// 90 days (UTC), by day.
    #[serde(rename = "90d")]
    Quarter,
}

impl Period {
    /// Seconds of a step, and the number of steps.
    const fn steps(self) -> (i64, i64) {
        match self {
            Self::Hour => (60, 60),
            Self::SixHours => (300, 72),
            Self::Day => (3_600, 24),
            Self::Week => (6 * 3_600, 28),
            Self::Month => (86_400, 30),
            Self::Quarter => (86_400, 90),
        }
    }

    const fn level(self) -> Level {
        match self {
            Self::Hour | Self::SixHours => Level::Minute,
            Self::Day | Self::Week => Level::Hour,
            Self::Month | Self::Quarter => Level::Day,
        }
    }

    /// Its beginning and its end: the end of the present step.
    fn span(self, now: Timestamp) -> Result<(Timestamp, Timestamp), ConsoleError> {
        let (step, count) = self.steps();
        let end = (now.unix_timestamp().div_euclid(step) + 1) * step;
        let to = Timestamp::from_unix_timestamp(end)
            .map_err(|error| ConsoleError::internal("end of the period", error))?;
        Ok((to - Duration::seconds(step * count), to))
    }
}

/// The wanted sums. Without a filter: all calls.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct InsightsQuery {
    /// `1h`, `6h`, `24h`, `7d`, `30d` or `90d`.
    #[serde(default)]
    #[param(inline)]
    period: Period,
    /// Of this tool.
    tool: Option<String>,
    /// Through the server with this slug.
    server: Option<String>,
    /// Of the client with this name.
    client: Option<String>,
    /// `ok`, `tool_error`, `invalid_arguments`, `upstream_error` or `internal`.
    outcome: Option<String>,
}

impl InsightsQuery {
    /// The number of the wanted outcome. 422 for a word that is none.
    fn outcome_code(&self) -> Result<Option<i16>, ConsoleError> {
        match self.outcome.as_deref().map(str::parse::<CallOutcome>) {
            None => Ok(None),
            Some(Ok(outcome)) => Ok(Some(outcome_code(outcome))),
            Some(Err(_)) => {
                let text = "Use ok, tool_error, invalid_arguments, upstream_error or internal.";
                Err(ConsoleError::invalid("invalid_filter", text).field("outcome"))
            }
        }
    }
}

/// Sums and durations of calls.
#[derive(Debug, Serialize, ToSchema)]
pub struct Measured {
    calls: u64,
    /// Calls that failed: at the API, on the way to it, or here.
    errors: u64,
    /// Calls that were rejected for their arguments: nothing was sent.
    rejected: u64,
    /// Bytes of parameters.
    bytes_in: u64,
    /// Bytes of answers.
    bytes_out: u64,
    /// Tokens of answers, estimated: a quarter of the bytes. An answer that has its content as text
    /// and as structure counts with both.
    tokens_out: u64,
    /// Milliseconds below which half of the calls took. Absent without a measured call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    p95_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    p99_ms: Option<f64>,
}

/// One step of the period.
#[derive(Debug, Serialize, ToSchema)]
pub struct InsightsStep {
    /// Its beginning.
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    #[serde(flatten)]
    measured: Measured,
    /// Calls by duration, shortest first, without empty buckets.
    durations: Vec<DurationBucket>,
}

/// Calls longer than half of `upto_us` and not longer than `upto_us`. The shortest bucket is
/// everything up to 1 µs, the longest everything from 9.5 hours.
#[derive(Debug, Serialize, ToSchema)]
pub struct DurationBucket {
    /// Microseconds, a power of two.
    upto_us: u64,
    calls: u64,
}

/// One tool, server, client or outcome.
#[derive(Debug, Serialize, ToSchema)]
pub struct InsightsRow {
    /// Its name; empty for calls of the console, which have no server, and of clients without a
    /// name.
    name: String,
    #[serde(flatten)]
    measured: Measured,
    /// Calls in the period before.
    calls_before: u64,
}

/// What happened in a period.
#[derive(Debug, Serialize, ToSchema)]
pub struct Insights {
    #[serde(with = "time::serde::rfc3339")]
    from: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    to: OffsetDateTime,
    /// Seconds of a step.
    step_seconds: i64,
    total: Measured,
    /// The same in the period before.
    before: Measured,
    /// Oldest first, empty steps too.
    steps: Vec<InsightsStep>,
    /// Most calls first, at most 100.
    tools: Vec<InsightsRow>,
    servers: Vec<InsightsRow>,
    clients: Vec<InsightsRow>,
    outcomes: Vec<InsightsRow>,
}

/// Sums while they are added up.
#[derive(Debug, Default)]
struct Adding {
    totals: Totals,
    errors: u64,
    rejected: u64,
}

impl Adding {
    fn add(&mut self, sum: &Sum) {
        self.totals.merge(&sum.totals);
        if sum.outcome == outcome_code(CallOutcome::InvalidArguments) {
            self.rejected += sum.totals.calls;
        } else if sum.outcome != outcome_code(CallOutcome::Ok) {
            self.errors += sum.totals.calls;
        }
    }

    fn measured(&self) -> Measured {
        let quantile = |q| self.totals.durations.quantile(q).map(|us| us / 1000.0);
        Measured {
            calls: self.totals.calls,
            errors: self.errors,
            rejected: self.rejected,
            bytes_in: self.totals.bytes_in,
            bytes_out: self.totals.bytes_out,
            tokens_out: self.totals.bytes_out / BYTES_OF_A_TOKEN.unsigned_abs(),
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
        }
    }
}

/// Calls by power of two of their duration.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounds are powers of two from 1 to 2^36"
)]
fn by_power(durations: &Histogram) -> Vec<DurationBucket> {
    let mut coarse = durations.clone();
    coarse.downscale(0);
    coarse
        .buckets()
        .map(|(upto, calls)| DurationBucket {
            upto_us: upto.round() as u64,
            calls,
        })
        .collect()
}

/// Sums by name, of the period and of the one before.
#[derive(Debug, Default)]
struct Table<'s>(HashMap<&'s str, (Adding, u64)>);

impl<'s> Table<'s> {
    fn add(&mut self, name: &'s str, sum: &Sum, is_before: bool) {
        let row = self.0.entry(name).or_default();
        if is_before {
            row.1 += sum.totals.calls;
        } else {
            row.0.add(sum);
        }
    }

    fn rows(self) -> Vec<InsightsRow> {
        let rows = self
            .0
            .into_iter()
            .map(|(name, (adding, calls_before))| InsightsRow {
                name: name.to_owned(),
                measured: adding.measured(),
                calls_before,
            });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| {
            let by_calls = b.measured.calls.cmp(&a.measured.calls);
            by_calls.then_with(|| a.name.cmp(&b.name))
        });
        rows.truncate(ROWS);
        rows
    }
}

/// Which sums are wanted.
struct Filter {
    tool: Option<String>,
    server: Option<Option<ServerId>>,
    client: Option<String>,
    outcome: Option<i16>,
}

impl Filter {
    fn wants(&self, sum: &Sum) -> bool {
        let is_client = |client: &String| sum.client.as_deref().unwrap_or_default() == client;
        self.tool.as_ref().is_none_or(|tool| *tool == sum.item)
            && self.client.as_ref().is_none_or(is_client)
            && self.outcome.is_none_or(|outcome| outcome == sum.outcome)
            && self
                .server
                .is_none_or(|server| server.is_some() && server == sum.server)
    }
}

/// Calls, errors, durations and bytes of a period, with the period before.
#[utoipa::path(get, path = "/workspaces/{ws}/insights", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), InsightsQuery),
    responses((status = 200, description = "What happened.", body = Insights)))]
pub(crate) async fn show_insights(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<InsightsQuery>,
) -> Result<Json<Insights>, ConsoleError> {
    workspace.require(Action::Read)?;
    let (step, _) = query.period.steps();
    let (from, to) = query.period.span(state.now())?;
    let before = from - (to - from);
    let outcome = query.outcome_code()?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let slugs: HashMap<ServerId, String> = servers::list(&mut tx)
        .await?
        .into_iter()
        .map(|server| (server.id, server.slug.clone()))
        .collect();
    let sums = read(&mut tx, query.period.level(), before, from, to).await?;
    drop(tx);
    let id_of = |slug: String| {
        slugs
            .iter()
            .find(|(_, own)| **own == slug)
            .map(|(id, _)| *id)
    };
    let filter = Filter {
        tool: query.tool,
        server: query.server.map(id_of),
        client: query.client,
        outcome,
    };
    Ok(Json(summed(&sums, &filter, &slugs, (from, to, step))))
}

/// Sums from `before` to `to`. Only from `from` on the steps of the period are needed: whole units of
/// the next coarser level before that are read as such, which are a fraction of the rows.
async fn read(
    tx: &mut TenantTx,
    level: Level,
    before: Timestamp,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Sum>, ConsoleError> {
    let (coarse, unit) = match level {
        Level::Minute => (Level::Hour, 3_600),
        Level::Hour | Level::Day => (Level::Day, 86_400),
    };
    let at = |units: i64| {
        Timestamp::from_unix_timestamp(units * unit)
            .map_err(|error| ConsoleError::internal("a unit of the period", error))
    };
    let first = at((before.unix_timestamp() + unit - 1).div_euclid(unit))?;
    let last = at(from.unix_timestamp().div_euclid(unit))?;
    if level == Level::Day || first >= last {
        return Ok(usage::read(tx, level, before, to).await?);
    }
    let mut sums = usage::read(tx, level, before, first).await?;
    sums.extend(usage::read(tx, coarse, first, last).await?);
    sums.extend(usage::read(tx, level, last, to).await?);
    Ok(sums)
}

fn summed(
    sums: &[Sum],
    filter: &Filter,
    slugs: &HashMap<ServerId, String>,
    (from, to, step): (Timestamp, Timestamp, i64),
) -> Insights {
    let (mut total, mut before) = (Adding::default(), Adding::default());
    let mut steps: BTreeMap<i64, Adding> = BTreeMap::new();
    let mut at = from.unix_timestamp();
    while at < to.unix_timestamp() {
        steps.insert(at, Adding::default());
        at += step;
    }
    // Servers that are gone are shown by their id.
    let mut gone: HashMap<ServerId, String> = HashMap::new();
    for id in sums.iter().filter_map(|sum| sum.server) {
        if !slugs.contains_key(&id) {
            gone.entry(id).or_insert_with(|| id.to_string());
        }
    }
    let mut tables: [Table<'_>; 4] = Default::default();
    for sum in sums.iter().filter(|sum| filter.wants(sum)) {
        let is_before = sum.at < from;
        if is_before {
            before.add(sum);
        } else {
            total.add(sum);
            let begin = sum.at.unix_timestamp().div_euclid(step) * step;
            steps.entry(begin).or_default().add(sum);
        }
        let slug = |id| slugs.get(&id).or_else(|| gone.get(&id));
        let names = [
            sum.item.as_str(),
            sum.server.and_then(slug).map_or("", String::as_str),
            sum.client.as_deref().unwrap_or_default(),
            outcome_of(sum.outcome)
                .unwrap_or(CallOutcome::Internal)
                .as_str(),
        ];
        for (table, name) in tables.iter_mut().zip(names) {
            table.add(name, sum, is_before);
        }
    }
    let [tools, servers, clients, outcomes] = tables.map(Table::rows);
    Insights {
        from,
        to,
        step_seconds: step,
        total: total.measured(),
        before: before.measured(),
        steps: steps
            .into_iter()
            .filter_map(|(at, adding)| {
                Some(InsightsStep {
                    at: Timestamp::from_unix_timestamp(at).ok()?,
                    measured: adding.measured(),
                    durations: by_power(&adding.totals.durations),
                })
            })
            .collect(),
        tools,
        servers,
        clients,
        outcomes,
    }
}
