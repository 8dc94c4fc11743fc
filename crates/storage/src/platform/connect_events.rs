//! Connection diagnostics: the steps of an AI client's attempt to connect to a tenant (AUTH-X2).
//! [`crate::platform::recorder`] writes them in batches; readers group them into attempts.

mod read;

use std::collections::{HashMap, HashSet};

use portolan_model::{
    Digest, Timestamp,
    id::{GrantId, RequestId, TenantId, UserId},
};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use time::Duration;
use uuid::Uuid;

pub use self::read::{Read, RecordedStep, Which, list};
use crate::{StorageError, Tx};

/// Steps of one computer that are this far apart may belong together.
pub const TOGETHER: Duration = Duration::minutes(10);
/// How long steps are kept.
pub const KEPT: Duration = Duration::days(7);

/// A step on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// The server's address answered 401 and said where to read on.
    Challenge,
    /// The protected resource metadata was read (RFC 9728).
    ResourceMetadata,
    /// The authorization server metadata was read (RFC 8414).
    ServerMetadata,
    /// The client registered itself (RFC 7591).
    Register,
    /// Its metadata document was looked at.
    ClientDocument,
    /// The authorization request.
    Authorize,
    /// The person was sent to sign in.
    SignIn,
    /// The consent page.
    Consent,
    /// A code was exchanged for tokens.
    Token,
    /// A refresh that was refused.
    Refresh,
    /// A request with the token.
    Request,
}

impl Step {
    const ALL: [Self; 11] = [
        Self::Challenge,
        Self::ResourceMetadata,
        Self::ServerMetadata,
        Self::Register,
        Self::ClientDocument,
        Self::Authorize,
        Self::SignIn,
        Self::Consent,
        Self::Token,
        Self::Refresh,
        Self::Request,
    ];

    /// The word in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Challenge => "challenge",
            Self::ResourceMetadata => "resource_metadata",
            Self::ServerMetadata => "server_metadata",
            Self::Register => "register",
            Self::ClientDocument => "client_document",
            Self::Authorize => "authorize",
            Self::SignIn => "sign_in",
            Self::Consent => "consent",
            Self::Token => "token",
            Self::Refresh => "refresh",
            Self::Request => "request",
        }
    }

    /// A step that costs a stranger nothing.
    pub const fn is_discovery(self) -> bool {
        matches!(
            self,
            Self::Challenge | Self::ResourceMetadata | Self::ServerMetadata
        )
    }
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepOutcome {
    /// As the client hoped.
    Ok,
    /// A person has to act.
    Waiting,
    /// A rule said no.
    Refused,
    /// The fault is ours.
    Failed,
}

impl StepOutcome {
    const ALL: [Self; 4] = [Self::Ok, Self::Waiting, Self::Refused, Self::Failed];

    /// The word in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Which tenant a step concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepTenant {
    /// The tenant is unknown so far.
    Unknown,
    /// The request named this slug; the writer looks up its tenant.
    Slug(String),
    /// This one.
    Tenant(TenantId),
}

/// A step to be written.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// When.
    pub at: Timestamp,
    /// Which.
    pub step: Step,
    /// How it ended.
    pub outcome: StepOutcome,
    /// Where.
    pub place: StepTenant,
    /// Slug of the one server that was named.
    pub server: Option<String>,
    /// Id of the request, as pages of faults show it.
    pub request_id: String,
    /// The authorization request that it belongs to.
    pub authorization: Option<RequestId>,
    /// The grant that it led to.
    pub grant: Option<GrantId>,
    /// Who decided.
    pub user: Option<UserId>,
    /// The client on the wire, with the digest of that.
    pub client: Option<(String, Digest)>,
    /// As it calls itself, cleaned.
    pub client_name: Option<String>,
    /// Network block.
    pub ip_block: String,
    /// The client's self-description, truncated and cleaned.
    pub agent: Option<String>,
    /// The rule that decided.
    pub rule: Option<&'static str>,
    /// The error sent to the client or shown to its user.
    pub fault: Option<String>,
    /// The sent data, as far as it may be kept (AUTH-X1).
    pub detail: Value,
}

/// A client's repeated use of a refused refresh token: the grant, the rule and the error text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Loop {
    grant: GrantId,
    rule: Option<&'static str>,
    fault: Option<String>,
}

impl Loop {
    /// `None` for all steps but a refresh that was refused, with a token that proved to be the client's.
    pub fn of(event: &NewEvent) -> Option<Self> {
        let is_one = event.step == Step::Refresh && event.outcome == StepOutcome::Refused;
        Some(Self {
            grant: event.grant.filter(|_| is_one)?,
            rule: event.rule,
            fault: event.fault.clone(),
        })
    }
}

/// A loop that went round once more, or several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// Which.
    pub which: Loop,
    /// How often.
    pub count: i32,
    /// When last.
    pub last_at: Timestamp,
}

impl Repeat {
    /// Of one step; `None` if that is in no loop.
    pub fn of(event: &NewEvent) -> Option<Self> {
        Some(Self {
            which: Loop::of(event)?,
            count: 1,
            last_at: event.at,
        })
    }

    /// So many more, the last one then.
    pub fn add(&mut self, count: i32, last_at: Timestamp) {
        self.count = self.count.saturating_add(count);
        self.last_at = self.last_at.max(last_at);
    }
}

#[derive(Serialize)]
struct StepRow<'a> {
    at: i128,
    tenant_id: Option<Uuid>,
    step: &'static str,
    outcome: &'static str,
    request_id: &'a str,
    authorization_id: Option<Uuid>,
    grant_id: Option<Uuid>,
    user_id: Option<Uuid>,
    client_digest: Option<String>,
    client_id: Option<&'a str>,
    client_name: Option<&'a str>,
    server_slug: Option<&'a str>,
    ip_block: &'a str,
    agent: Option<&'a str>,
    rule: Option<&'static str>,
    fault: Option<&'a str>,
    detail: &'a Value,
    repeats: i32,
    last_at: Option<i128>,
}

/// Microseconds since the epoch.
fn micros(at: Timestamp) -> i128 {
    at.unix_timestamp_nanos() / 1000
}

/// The same refusals of a batch as one, each with its first step.
fn rounds(events: &[NewEvent]) -> Vec<(Repeat, &NewEvent)> {
    let mut places: HashMap<Loop, usize> = HashMap::new();
    let mut all: Vec<(Repeat, &NewEvent)> = Vec::new();
    for event in events {
        let Some(one) = Repeat::of(event) else {
            continue;
        };
        match places.get(&one.which) {
            Some(place) => all[*place].0.add(1, event.at),
            None => {
                places.insert(one.which.clone(), all.len());
                all.push((one, event));
            }
        }
    }
    all
}

/// Writes many steps, all new ones in one statement. A step whose slug belongs to no tenant is left
/// out, because strangers can invent any number of slugs. A refusal that is already recorded is
/// counted there. Returns those named slugs that belong to a tenant.
pub async fn insert_many(
    tx: &mut impl Tx,
    events: &[NewEvent],
) -> Result<HashSet<String>, StorageError> {
    let slugs: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.place {
            StepTenant::Slug(slug) => Some(slug.clone()),
            _ => None,
        })
        .collect();
    let tenants: HashMap<String, Uuid> = sqlx::query!(
        "select slug, tenant_id from tenant_slugs where slug = any($1) and state <> 'tombstone'",
        &slugs
    )
    .fetch_all(tx.raw())
    .await?
    .into_iter()
    .map(|row| (row.slug, row.tenant_id))
    .collect();
    let rounds = rounds(events);
    let repeats: Vec<Repeat> = rounds.iter().map(|(repeat, _)| repeat.clone()).collect();
    let gone: HashSet<Loop> = repeated(tx, &repeats)
        .await?
        .into_iter()
        .map(|repeat| repeat.which)
        .collect();
    let first = rounds
        .iter()
        .filter(|(repeat, _)| gone.contains(&repeat.which))
        .map(|(repeat, event)| (*event, Some(repeat)));
    let others = events
        .iter()
        .filter(|event| Loop::of(event).is_none())
        .map(|event| (event, None));
    let rows: Vec<StepRow<'_>> = others
        .chain(first)
        .filter_map(|(event, repeat)| {
            let tenant = match &event.place {
                StepTenant::Unknown => None,
                StepTenant::Tenant(tenant) => Some(tenant.uuid()),
                StepTenant::Slug(slug) => Some(*tenants.get(slug)?),
            };
            Some(row(event, tenant, repeat))
        })
        .collect();
    sqlx::query!(
        "insert into connect_events (at, tenant_id, step, outcome, request_id, authorization_id, grant_id, user_id, client_digest, client_id,
           client_name, server_slug, ip_block, agent, rule, fault, detail, repeats, last_at)
         select to_timestamp(0) + r.at * interval '1 microsecond', r.tenant_id, r.step, r.outcome, r.request_id, r.authorization_id, r.grant_id,
           r.user_id, decode(r.client_digest, 'hex'), r.client_id, r.client_name, r.server_slug, r.ip_block, r.agent, r.rule, r.fault, r.detail,
           r.repeats, to_timestamp(0) + r.last_at * interval '1 microsecond'
         from jsonb_to_recordset($1) as r(at bigint, tenant_id uuid, step text, outcome text, request_id text, authorization_id uuid,
           grant_id uuid, user_id uuid, client_digest text, client_id text, client_name text, server_slug text, ip_block text, agent text,
           rule text, fault text, detail jsonb, repeats int, last_at bigint)
         on conflict (grant_id) where step = 'request' and outcome = 'ok' do nothing",
        Json(rows) as _,
    )
    .execute(tx.raw())
    .await?;
    Ok(tenants.into_keys().collect())
}

#[derive(Serialize)]
struct Round<'a> {
    number: usize,
    grant_id: Uuid,
    rule: Option<&'static str>,
    fault: Option<&'a str>,
    count: i32,
    at: i128,
}

/// Adds repetitions to the count of the step that records their loop. Each loop occurs at most once
/// in `repeats`. Returns the repeats whose step does not exist.
pub async fn repeated(tx: &mut impl Tx, repeats: &[Repeat]) -> Result<Vec<Repeat>, StorageError> {
    if repeats.is_empty() {
        return Ok(Vec::new());
    }
    // Of several processes that see the first round at once one writes it: "loop" in ASCII, a
    // number of our own among advisory locks.
    sqlx::query!("select pg_advisory_xact_lock(1819242352)")
        .execute(tx.raw())
        .await?;
    let rounds: Vec<Round<'_>> = repeats
        .iter()
        .enumerate()
        .map(|(number, repeat)| Round {
            number,
            grant_id: repeat.which.grant.uuid(),
            rule: repeat.which.rule,
            fault: repeat.which.fault.as_deref(),
            count: repeat.count,
            at: micros(repeat.last_at),
        })
        .collect();
    let counted = sqlx::query_scalar!(
        r#"update connect_events e set repeats = e.repeats + r.count,
             last_at = greatest(e.last_at, to_timestamp(0) + r.at * interval '1 microsecond')
           from jsonb_to_recordset($1) as r(number bigint, grant_id uuid, rule text, fault text, count int, at bigint)
           where e.id = (select min(o.id) from connect_events o where o.grant_id = r.grant_id and o.step = 'refresh' and o.outcome = 'refused'
             and o.rule is not distinct from r.rule and o.fault is not distinct from r.fault)
           returning r.number as "number!""#,
        Json(rounds) as _,
    )
    .fetch_all(tx.raw())
    .await?;
    let counted: HashSet<usize> = counted
        .into_iter()
        .filter_map(|number| usize::try_from(number).ok())
        .collect();
    let gone = repeats.iter().enumerate();
    Ok(gone
        .filter(|(number, _)| !counted.contains(number))
        .map(|(_, repeat)| repeat.clone())
        .collect())
}

fn row<'a>(event: &'a NewEvent, tenant_id: Option<Uuid>, repeat: Option<&Repeat>) -> StepRow<'a> {
    // The first round is the step itself.
    let again = repeat.filter(|repeat| repeat.count > 1);
    StepRow {
        at: micros(event.at),
        tenant_id,
        step: event.step.as_str(),
        outcome: event.outcome.as_str(),
        request_id: &event.request_id,
        authorization_id: event.authorization.map(RequestId::uuid),
        grant_id: event.grant.map(GrantId::uuid),
        user_id: event.user.map(UserId::uuid),
        client_digest: event.client.as_ref().map(|(_, digest)| {
            digest
                .as_bytes()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        }),
        client_id: event.client.as_ref().map(|(id, _)| id.as_str()),
        client_name: event.client_name.as_deref(),
        server_slug: event.server.as_deref(),
        ip_block: &event.ip_block,
        agent: event.agent.as_deref(),
        rule: event.rule,
        fault: event.fault.as_deref(),
        detail: &event.detail,
        repeats: again.map_or(0, |repeat| repeat.count - 1),
        last_at: again.map(|repeat| micros(repeat.last_at)),
    }
}
