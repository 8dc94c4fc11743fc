//! Operations on sessions: one round trip each, repeated for as long as a request may wait.

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Cached, SessionError, SessionState, Unavailable, WaitingPermit};
use crate::{
    node::{
        guarded_store::GuardedStore,
        inner::Inner,
        settings::{BEGIN_WITHIN, CALL_WITHIN, REDIS_WAIT, VALIDATED_WITHIN, WAITERS},
    },
    store::{self, Begin, Fresh, Principal, Remove, SessionKey, StoreError, Update, Version},
};

/// Pause between two attempts of a request that waits for the store.
const RETRY: Duration = Duration::from_millis(50);

/// Checks the session of a request with `begin`.
pub(crate) async fn begin(
    inner: &Inner,
    session: SessionKey,
    principal: Principal,
    fresh: &Fresh,
) -> Result<SessionState, SessionError> {
    let known = inner
        .sessions
        .cache
        .get(&session)
        .filter(|known| known.principal == principal);
    if let Some(state) = begin_once(inner, session, principal, known.as_ref(), fresh).await? {
        return Ok(state);
    }
    if let Some(state) = known.as_ref().and_then(|known| grace(inner, known)) {
        return Ok(state);
    }
    let Some(_permit) = WaitingPermit::take(&inner.sessions.waiting, WAITERS) else {
        return Err(SessionError::Unavailable);
    };
    let until = Instant::now() + REDIS_WAIT;
    while Instant::now() < until {
        tokio::time::sleep(RETRY).await;
        if let Some(state) = begin_once(inner, session, principal, known.as_ref(), fresh).await? {
            return Ok(state);
        }
    }
    Err(SessionError::Unavailable)
}

/// Makes one attempt. `None` if the store did not reply.
async fn begin_once(
    inner: &Inner,
    session: SessionKey,
    principal: Principal,
    known: Option<&Arc<Cached>>,
    fresh: &Fresh,
) -> Result<Option<SessionState>, SessionError> {
    let version = known.map(|known| known.version);
    let begin = inner
        .guarded_store
        .store
        .begin(session, principal, version, fresh);
    let reply = inner.guarded_store.call("begin", BEGIN_WITHIN, begin).await;
    let sessions = &inner.sessions;
    match reply {
        Ok(Begin::Alive {
            version,
            body: None,
        }) => {
            let Some(known) = known else {
                tracing::error!("the store left out the body of a session that nobody knows");
                return Ok(None);
            };
            known.validated.store(sessions.now(), Ordering::Relaxed);
            Ok(Some(SessionState {
                version,
                body: known.body.clone(),
                rebuilt: false,
            }))
        }
        Ok(Begin::Alive {
            version,
            body: Some(body),
        }) => {
            sessions.keep(session, principal, version, body.clone());
            Ok(Some(SessionState {
                version,
                body,
                rebuilt: false,
            }))
        }
        Ok(Begin::Rebuilt { version }) => {
            let body = fresh.body.clone();
            sessions.keep(session, principal, version, body.clone());
            Ok(Some(SessionState {
                version,
                body,
                rebuilt: true,
            }))
        }
        Ok(Begin::Unknown) => {
            sessions.forget(session);
            Err(SessionError::Unknown)
        }
        Err(_) => Ok(None),
    }
}

/// Records that a session has a record, and removes the records of its principal's oldest sessions
/// beyond the limit, unless they are in use (STREAM-10). No client is refused. A session without a
/// record is made again from its id and loses only the values that its client set.
pub(crate) async fn keep_few(inner: &Inner, session: SessionKey, principal: Principal) {
    let (guarded_store, settings) = (&inner.guarded_store, &inner.settings);
    let most = if guarded_store.slowness.is_full() {
        settings.sessions_of_one / 10
    } else {
        settings.sessions_of_one
    };
    let noted = guarded_store.store.remember(session, principal, most, &[]);
    let Ok(over) = guarded_store.call("remember", CALL_WITHIN, noted).await else {
        return;
    };
    let mut gone = Vec::new();
    for old in over {
        let forget =
            guarded_store
                .store
                .remove(old, principal, Remove::Unused(settings.unused_for));
        let is_gone = guarded_store.call("forget", CALL_WITHIN, forget).await;
        if matches!(is_gone, Ok(true)) {
            gone.push(old);
        } else {
            // The session is in use: list it as the newest again.
            let noted = guarded_store.store.remember(old, principal, most, &[]);
            let _ = guarded_store.call("remember", CALL_WITHIN, noted).await;
        }
    }
    if !gone.is_empty() {
        metrics::counter!("mcp_sessions_forgotten_total").increment(gone.len() as u64);
        let noted = guarded_store
            .store
            .remember(session, principal, most, &gone);
        let _ = guarded_store.call("remember", CALL_WITHIN, noted).await;
    }
}

/// Returns the cached record, if its last check is recent and the outage is short.
fn grace(inner: &Inner, known: &Cached) -> Option<SessionState> {
    let settings = &inner.settings;
    let since = inner.guarded_store.failing_since()?;
    let age = inner
        .sessions
        .now()
        .saturating_sub(known.validated.load(Ordering::Relaxed));
    let is_fresh = u128::from(age) <= VALIDATED_WITHIN.as_millis();
    let is_young = since.elapsed() < settings.session_grace;
    (is_fresh && is_young).then(|| {
        metrics::counter!("mcp_session_grace_total").increment(1);
        SessionState {
            version: known.version,
            body: known.body.clone(),
            rebuilt: false,
        }
    })
}

/// Replaces the body of a record with `update`.
pub(crate) async fn update(
    inner: &Inner,
    session: SessionKey,
    principal: Principal,
    expect: Version,
    body: Bytes,
) -> Result<Update, Unavailable> {
    let update = patiently(inner, "update", || {
        inner
            .guarded_store
            .store
            .update(session, principal, expect, body.clone())
    })
    .await?;
    match &update {
        Update::Done(version) => inner.sessions.keep(session, principal, *version, body),
        Update::Conflict { version, body } => {
            inner
                .sessions
                .keep(session, principal, *version, body.clone());
        }
        Update::Unknown => inner.sessions.forget(session),
    }
    Ok(update)
}

/// Ends a session on all nodes.
pub(crate) async fn end(
    inner: &Inner,
    session: SessionKey,
    principal: Principal,
    life: Duration,
) -> Result<(), Unavailable> {
    patiently(inner, "end", || {
        let remove = Remove::Ended(life);
        inner.guarded_store.store.remove(session, principal, remove)
    })
    .await
    .map(|_| ())
}

/// Repeats an operation for as long as a request may wait for the store.
pub(crate) async fn patiently<T, F: Future<Output = store::Result<T>>>(
    inner: &Inner,
    op: &'static str,
    operation: impl Fn() -> F,
) -> Result<T, Unavailable> {
    let guarded_store: &GuardedStore = &inner.guarded_store;
    let until = Instant::now() + REDIS_WAIT;
    let mut permit = None;
    loop {
        match guarded_store.call(op, CALL_WITHIN, operation()).await {
            Ok(value) => return Ok(value),
            Err(StoreError::Corrupt(_)) => return Err(Unavailable),
            Err(_) if Instant::now() >= until => return Err(Unavailable),
            Err(_) => {}
        }
        if permit.is_none() {
            permit = WaitingPermit::take(&inner.sessions.waiting, WAITERS);
            if permit.is_none() {
                return Err(Unavailable);
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}
