//! The refresh token grant (AUTH-K6 to AUTH-K18).
//!
//! The rules of the chain are [`portolan_model::token_family`]. [`at_once`] serves the common case:
//! a public client with the newest token of its family, and no reason to refuse. It reads, and
//! rotates the token if no other request was faster. It refuses no request.
//!
//! Every other case goes to [`refresh`], which takes the family's lock. The processes of one client
//! therefore pass one after the other, and all receive the same head.

use http::HeaderMap;
use portolan_cluster::revocations::Revocation;
use portolan_keys::{
    Secret, SecretToken, TokenForm,
    seal::{open_under_token, seal_under_token},
};
use portolan_model::{
    Digest, Timestamp,
    audit::{Actor, Event, Outcome},
    client::AuthMethod,
    id::FamilyId,
    scope::{self, ScopeSet},
    token_family::{PresentedFrom, Verdict},
};
use portolan_net::client_ip;
use portolan_site::{mail, request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason, SystemTx,
    accounts::users,
    oauth::{
        clients::Client,
        grants::{self, Grant},
        refresh_tokens::{self, PresentedToken, ReplayFrom, Rotation},
    },
    platform::{audit, mails::Mail},
};
use serde_json::json;
use time::Duration;

use crate::{
    clients,
    error::{ErrorCode, OAuthError},
    parameters::Parameters,
    token::{
        form::{Tokens, read_resource},
        issue,
        trail::Trail,
    },
};

const NO_GOOD: OAuthError =
    OAuthError::invalid_grant("the refresh token is invalid, expired or revoked");

/// Interval at which the audit log records at most one use of a family from another network.
const ELSEWHERE_AGAIN: Duration = Duration::HOUR;

/// The refusal of AUTH-C5, CASE-75. The family stays, because the client may prove itself by key
/// again.
const DOWNGRADED: OAuthError = OAuthError::invalid_grant(
    "this client proved itself by key when it was allowed to connect, and does not any more: authorize it again",
);

/// Reads the presented token. A text that cannot be one of ours is refused without a query.
pub(crate) fn read(form: &Parameters) -> Result<SecretToken, OAuthError> {
    let presented = form
        .first("refresh_token")
        .ok_or(OAuthError::invalid_request("refresh_token is missing"))?;
    SecretToken::parse(TokenForm::Refresh, presented).ok_or(NO_GOOD)
}

/// Serves an ordinary refresh with two messages to the database, which concurrent refreshes share.
///
/// Returns `None` if the request is no such refresh, or if another request was faster. Nothing was
/// changed then, and [`refresh`] finds the reason.
pub(crate) async fn at_once(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    form: &Parameters,
    trail: &mut Trail,
) -> Result<Option<Tokens>, OAuthError> {
    let (Some(client_id), Ok(presented)) = (clients::unproved(headers, form), read(form)) else {
        return Ok(None);
    };
    let now = state.now();
    let seen = refresh_tokens::look(&state.store, &client_id, &presented.digest()).await?;
    let Some((client, found)) = seen else {
        return Ok(None);
    };
    let grant = &found.state.grant;
    if client.auth_method != AuthMethod::None
        || client.is_blocked
        || grant.client != client.id
        || issue::is_downgraded(&client, grant)
        || found
            .presented
            .verdict(now, PresentedFrom::AnotherOrUnknown)
            != Verdict::Rotate
    {
        return Ok(None);
    }
    let Some(standing) = issue::standing(state, &client, &found.state)? else {
        return Ok(None);
    };
    let asked = (
        narrowed_scopes(form, grant),
        granted_audience(state, form, grant),
    );
    let (Ok(scopes), Ok(Some(audience))) = asked else {
        return Ok(None);
    };
    let family = found.family.to_string();
    if state.oauth.refreshes.take(&family, now).is_err() {
        return Ok(None);
    }
    trail.client_name = Some(client.name.clone());
    trail.grant = Some((grant.id, grant.tenant));
    let (successor, sealed) = successor(&presented, found.family)?;
    // The token is signed before anything is written: a failure here leaves the presented token the
    // head (AUTH-T7).
    let (access, expires_in) =
        issue::access_token(state, &client, grant, &standing, &scopes, audience)?;
    let (head, next) = (presented.digest(), successor.digest());
    let network = network(&presented, context);
    let rotation = Rotation::new(&found, &head, &next, sealed, network, now);
    if !refresh_tokens::rotate_at_once(&state.store, rotation).await? {
        // [`refresh`] takes from the budget again, so that the request counts once.
        state.oauth.refreshes.give_back(&family);
        return Ok(None);
    }
    Ok(Some(Tokens {
        access,
        issued_token_type: None,
        expires_in,
        scope: scopes.to_string(),
        refresh: Some(Secret::new(successor.expose().to_owned())),
    }))
}

/// Answers with a new access token and the head of the chain. The caller has just authenticated the
/// client, in `tx` if it is still open.
pub(crate) async fn refresh(
    state: &AuthState,
    context: &RequestContext,
    tx: Option<SystemTx>,
    client: &Client,
    form: &Parameters,
    presented: &SecretToken,
    trail: &mut Trail,
) -> Result<Tokens, OAuthError> {
    let now = state.now();
    let mut tx = match tx {
        Some(tx) => tx,
        None => state.store.system(Reason::OAuth).await?,
    };
    let locked = refresh_tokens::lock(&mut tx, &presented.digest())
        .await?
        .ok_or(NO_GOOD)?;
    let grant = &locked.state.grant;
    if grant.client != client.id {
        return Err(foreign(context, tx, client, grant, now).await?);
    }
    trail.grant = Some((grant.id, grant.tenant));
    if issue::is_downgraded(client, grant) {
        return Err(DOWNGRADED);
    }
    if let Err(wait) = state.oauth.refreshes.take(&locked.family.to_string(), now) {
        return Err(OAuthError::TooMany {
            retry_after: wait.whole_seconds() + 1,
        });
    }
    let came_from = network(presented, context);
    let superseded_by = refresh_tokens::network_of(&mut tx, &presented.digest()).await?;
    let is_same = superseded_by.map(|by| portolan_keys::digests_equal(&by, &came_from));
    let (known_from, from) = match is_same {
        Some(true) => (PresentedFrom::SameNetwork, ReplayFrom::SameNetwork),
        None => (PresentedFrom::AnotherOrUnknown, ReplayFrom::SameNetwork),
        Some(false) => (PresentedFrom::AnotherOrUnknown, ReplayFrom::AnotherNetwork),
    };
    let verdict = locked.presented.verdict(now, known_from);
    match verdict {
        Verdict::Ended => return Err(NO_GOOD),
        Verdict::Throttled => return Err(OAuthError::TooMany { retry_after: 30 }),
        Verdict::Reuse => {
            return Err(kill(state, context, tx, client, grant, "refresh_reuse").await?);
        }
        Verdict::Rotate | Verdict::ReplayInWindow | Verdict::ReplayLostAnswer => {}
    }
    let Some(standing) = issue::standing(state, client, &locked.state)? else {
        // This is permanent: a later membership or unlocking must not revive the old token
        // (CASE-126).
        return Err(kill(state, context, tx, client, grant, "not_active").await?);
    };
    // Scopes and audience are checked before anything is consumed (AUTH-K14, AUTH-K15).
    let scopes = narrowed_scopes(form, grant)?;
    let audience = audience(state, &mut tx, form, grant).await?;

    let head = match verdict {
        // Only this client can use the token, because each request needs its key. The token need
        // not change, and no process of the client can be late (AUTH-K8).
        Verdict::Rotate if client.auth_method == AuthMethod::PrivateKeyJwt => {
            refresh_tokens::keep(&mut tx, &locked, &presented.digest(), now).await?;
            presented.clone()
        }
        Verdict::Rotate => rotate(&mut tx, &locked, presented, came_from, now).await?,
        _ => {
            count_replay(verdict);
            note_replay(context, &mut tx, client, (&locked, presented), from, now).await?;
            follow(&mut tx, &locked, presented).await?.ok_or(NO_GOOD)?
        }
    };
    let (access, expires_in) =
        issue::access_token(state, client, grant, &standing, &scopes, audience)?;
    tx.commit().await?;
    Ok(Tokens {
        access,
        issued_token_type: None,
        expires_in,
        scope: scopes.to_string(),
        refresh: Some(Secret::new(head.expose().to_owned())),
    })
}

fn count_replay(verdict: Verdict) {
    let kind = if verdict == Verdict::ReplayInWindow {
        "window"
    } else {
        "lost"
    };
    metrics::counter!("oauth_refresh_replay_total", "kind" => kind).increment(1);
}

/// Records a replay, and reports one from another network.
async fn note_replay(
    context: &RequestContext,
    tx: &mut SystemTx,
    client: &Client,
    (locked, presented): (&PresentedToken, &SecretToken),
    from: ReplayFrom,
    now: Timestamp,
) -> Result<(), OAuthError> {
    let digest = presented.digest();
    let before = refresh_tokens::note_replay(tx, locked, &digest, from, now).await?;
    if from == ReplayFrom::AnotherNetwork
        && before.is_none_or(|before| now - before > ELSEWHERE_AGAIN)
    {
        note_elsewhere(context, tx, client, &locked.state.grant, now).await?;
    }
    Ok(())
}

/// Digest of a token and of the address block that presents it, as the database records it. The
/// table alone does not allow trying all blocks, because it does not contain the token.
fn network(presented: &SecretToken, context: &RequestContext) -> Digest {
    let block = client_ip::network_block(context.ip);
    portolan_keys::digest(format!("{}\n{block}", presented.expose()).as_bytes())
}

/// Makes the successor and seals it under the presented token.
fn successor(
    presented: &SecretToken,
    family: FamilyId,
) -> Result<(SecretToken, Vec<u8>), OAuthError> {
    let successor = SecretToken::generate(TokenForm::Refresh)?;
    let sealed = seal_under_token(
        presented.expose(),
        successor.expose().as_bytes(),
        family.uuid().as_bytes(),
    )?;
    Ok((successor, sealed))
}

async fn rotate(
    tx: &mut SystemTx,
    locked: &PresentedToken,
    presented: &SecretToken,
    network: Digest,
    now: Timestamp,
) -> Result<SecretToken, OAuthError> {
    let (successor, sealed) = successor(presented, locked.family)?;
    let (head, next) = (presented.digest(), successor.digest());
    let rotation = Rotation::new(locked, &head, &next, sealed, network, now);
    if refresh_tokens::rotate(tx, &rotation).await? {
        Ok(successor)
    } else {
        Err(NO_GOOD)
    }
}

/// Follows the chain from a superseded token to the head: each token opens the next. `None` if a
/// link is missing (AUTH-K18).
async fn follow(
    tx: &mut SystemTx,
    locked: &PresentedToken,
    presented: &SecretToken,
) -> Result<Option<SecretToken>, OAuthError> {
    let mut sealed = locked.successor_sealed.clone();
    let mut current = presented.clone();
    // The loop is bounded: the chain between two generations has no more links than that.
    for _ in locked.presented.generation..locked.presented.head_generation {
        let Some(bytes) = sealed else { return Ok(None) };
        let Some(next) = opened(&current, &bytes, locked.family) else {
            return Ok(None);
        };
        sealed = refresh_tokens::successor_of(tx, locked.family, &next.digest()).await?;
        current = next;
    }
    Ok(Some(current))
}

fn opened(holder: &SecretToken, sealed: &[u8], family: FamilyId) -> Option<SecretToken> {
    let text = open_under_token(holder.expose(), sealed, family.uuid().as_bytes()).ok()?;
    SecretToken::parse(TokenForm::Refresh, std::str::from_utf8(text.expose()).ok()?)
}

/// Reads the scopes of a refresh (AUTH-K14). A subset narrows the access token alone, unknown words
/// are dropped, and `offline_access` is tolerated. A known scope that was not granted is refused.
fn narrowed_scopes(form: &Parameters, grant: &Grant) -> Result<ScopeSet, OAuthError> {
    let refused = |description| OAuthError::refused(ErrorCode::InvalidScope, description);
    let Some(text) = form.first("scope") else {
        return Ok(grant.scopes.clone());
    };
    let asked =
        ScopeSet::from_request(text).map_err(|_| refused("scope is malformed or too long"))?;
    if !grant
        .scopes
        .covers(&asked.clone().without(scope::OFFLINE_ACCESS))
    {
        return Err(refused("scope was not granted"));
    }
    let narrowed = asked.intersection(&grant.scopes);
    // No known scope is left except perhaps `offline_access`: the same as no `scope` parameter.
    Ok(if narrowed.contains(scope::MCP) {
        narrowed
    } else {
        grant.scopes.clone()
    })
}

/// The audience of AUTH-K15 as far as it needs no query: an equal or absent resource. `None` for
/// anything else.
fn granted_audience(
    state: &AuthState,
    form: &Parameters,
    grant: &Grant,
) -> Result<Option<String>, OAuthError> {
    let Some(asked) = read_resource(state, form)? else {
        return Ok(Some(grant.resource.clone()));
    };
    let granted = state.oauth.resources.read_canonical(&grant.resource);
    Ok((granted.as_ref() == Some(&asked)).then(|| state.oauth.resources.url(&asked)))
}

/// The audience of AUTH-K15: an equal resource, one below it, or an absent one.
async fn audience(
    state: &AuthState,
    tx: &mut SystemTx,
    form: &Parameters,
    grant: &Grant,
) -> Result<String, OAuthError> {
    if let Some(audience) = granted_audience(state, form, grant)? {
        return Ok(audience);
    }
    let refused = || OAuthError::refused(ErrorCode::InvalidTarget, "resource was not granted");
    let asked = read_resource(state, form)?.ok_or_else(refused)?;
    let granted = state
        .oauth
        .resources
        .read_canonical(&grant.resource)
        .ok_or_else(refused)?;
    let names_tenant = match asked.tenant() {
        Some(slug) => grants::names_tenant(tx, slug, grant.tenant).await?,
        None => false,
    };
    if granted.narrows_to(&asked, |_| names_tenant) {
        return Ok(state.oauth.resources.url(&asked));
    }
    Err(refused())
}

/// Ends the family and its grant (AUTH-K11), and commits before the refusal is sent.
async fn kill(
    state: &AuthState,
    context: &RequestContext,
    mut tx: SystemTx,
    client: &Client,
    grant: &Grant,
    reason: &'static str,
) -> Result<OAuthError, OAuthError> {
    let now = state.now();
    let revoked = grants::revoke(&mut tx, grant.id, reason, now).await?;
    let is_reuse = reason == "refresh_reuse";
    let event = Event {
        tenant: Some(grant.tenant),
        actor: Actor::Anonymous,
        action: if is_reuse {
            "refresh.reuse"
        } else {
            "grant.ended"
        },
        target_kind: "grant",
        target_id: grant.id.to_string(),
        outcome: Outcome::Refused,
        detail: json!({"client_id": client.client_id, "reason": reason}),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let mail = if is_reuse && revoked {
        warning(state, &mut tx, client, grant, now).await?
    } else {
        None
    };
    tx.commit().await?;
    if let Some(mail) = mail {
        state.mailer.deliver(&mail);
    }
    if revoked {
        state
            .oauth
            .revocations
            .insert(Revocation::Grant(grant.id), now + grants::REVOCATION_MEMORY);
    }
    if is_reuse {
        metrics::counter!("oauth_refresh_replay_total", "kind" => "reuse").increment(1);
        tracing::warn!(grant.id = %grant.id, client.id = %client.id, "a refresh token was used again: grant revoked");
    }
    Ok(NO_GOOD)
}

/// Records a replay that is answered and came from another network than the rotation did
/// (REVIEW-S-10).
async fn note_elsewhere(
    context: &RequestContext,
    tx: &mut SystemTx,
    client: &Client,
    grant: &Grant,
    now: Timestamp,
) -> Result<(), OAuthError> {
    metrics::counter!("oauth_refresh_replay_total", "kind" => "elsewhere").increment(1);
    let event = Event {
        tenant: Some(grant.tenant),
        actor: Actor::Anonymous,
        action: "refresh.elsewhere",
        target_kind: "grant",
        target_id: grant.id.to_string(),
        outcome: Outcome::Ok,
        detail: json!({"client_id": client.client_id}),
    };
    Ok(audit::record(tx, &event, &context.origin(), now).await?)
}

/// Queues a message to the person, at most one a day.
async fn warning(
    state: &AuthState,
    tx: &mut SystemTx,
    client: &Client,
    grant: &Grant,
    now: Timestamp,
) -> Result<Option<Mail>, OAuthError> {
    let Some(user) = users::find(tx, grant.user).await? else {
        return Ok(None);
    };
    if state
        .oauth
        .warnings
        .take(&grant.user.to_string(), now)
        .is_err()
    {
        return Ok(None);
    }
    let letter = mail::texts::reuse(&client.name);
    Ok(Some(mail::queue(tx, &user.email, &letter, now).await?))
}

/// Refuses and records a valid token that another client presents. The rightful client keeps its
/// tokens (CASE-123).
async fn foreign(
    context: &RequestContext,
    mut tx: SystemTx,
    client: &Client,
    grant: &Grant,
    now: Timestamp,
) -> Result<OAuthError, OAuthError> {
    let event = Event {
        tenant: Some(grant.tenant),
        actor: Actor::Anonymous,
        action: "refresh.foreign_client",
        target_kind: "grant",
        target_id: grant.id.to_string(),
        outcome: Outcome::Refused,
        detail: json!({"client_id": client.client_id}),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    tracing::warn!(grant.id = %grant.id, client.id = %client.id, "a refresh token was presented by another client");
    Ok(NO_GOOD)
}
