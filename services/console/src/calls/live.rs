//! New calls as server-sent events.

use std::{collections::HashSet, convert::Infallible, time::Duration};

use axum::{
    extract::State,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;
use http::header;
use portolan_model::{Timestamp, id::CallId, member::Action};
use portolan_site::{console_error::ConsoleError, state::AuthState, watchers::Watching};
use portolan_storage::platform::calls::{self, Wanted};

use super::CallFilter;
use crate::{
    caller::Caller,
    input::QueryParameters,
    overview::{CallLog, call_logs},
    workspace::Workspace,
};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Most calls of one look: people read no faster.
const MOST: i64 = 50;

/// How long a call may have run before its entry is written, for it to be seen here.
const LONGEST: time::Duration = time::Duration::minutes(5);

/// After so many looks the stream ends, and the browser opens another one: a stopping process does
/// not wait for long.
const LOOKS: u32 = 20;

/// The remedy, when no place is free. A stream ends after [`LOOKS`] seconds.
const CROWDED: &str = "Too many live views of calls are open. Close one, or reload the list: it shows the same calls.";

/// The state of a stream.
struct Tail {
    state: AuthState,
    workspace: Workspace,
    wanted: Wanted,
    seen: HashSet<CallId>,
    looks: u32,
    _place: Watching,
}

/// New calls that the filter wants, as server-sent events: `calls`, a list of at most 50, as the
/// items of the list of calls, newest first. The stream ends after some 20 s, and when the caller may
/// read it no longer; clients open it again. A person or token has 8 at once; beyond that the answer
/// is 429 `too_many_live_views`.
#[utoipa::path(get, path = "/workspaces/{ws}/calls/live", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), CallFilter),
    responses((status = 200, description = "Events.", body = serde_json::Value, content_type = "text/event-stream")))]
pub(crate) async fn watch_calls(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(filter): QueryParameters<CallFilter>,
) -> Result<Response, ConsoleError> {
    workspace.require(Action::Read)?;
    let caller = match &workspace.caller {
        Caller::Browser(session) => session.user.to_string(),
        Caller::Token(token) => token.id.to_string(),
    };
    let place = state.watchers().take(workspace.id, &caller);
    let crowded = || ConsoleError::too_much("too_many_live_views", CROWDED, 20);
    let place = place.ok_or_else(crowded)?;
    let mut tail = Tail {
        wanted: filter.wanted(&state, &workspace).await?,
        seen: HashSet::new(),
        looks: 0,
        _place: place,
        state,
        workspace,
    };
    // Earlier calls are in the list.
    tail.look().await?;
    let events = stream::unfold(tail, |mut tail| async move {
        tail.looks += 1;
        if tail.looks > LOOKS {
            return None;
        }
        tokio::time::sleep(LOOK).await;
        let event = match tail.look().await {
            Ok(calls) if !calls.is_empty() => Event::default().event("calls").json_data(calls),
            Ok(_) => Ok(Event::default().comment("")),
            // A database that is away for a moment: the next look shows what it missed.
            Err(error) if error.status().is_server_error() => Ok(Event::default().comment("")),
            Err(_) => return None,
        };
        let event = event.unwrap_or_default();
        Some((Ok::<_, Infallible>(event), tail))
    });
    let answer = Sse::new(events).keep_alive(KeepAlive::default());
    // Proxies must not collect it.
    Ok((
        [(header::HeaderName::from_static("x-accel-buffering"), "no")],
        answer,
    )
        .into_response())
}

impl Tail {
    /// Calls that were not seen yet. A refusal if the caller may read no longer (METER-22).
    async fn look(&mut self) -> Result<Vec<CallLog>, ConsoleError> {
        let since: Timestamp = self.state.now() - LONGEST;
        let wanted = Wanted {
            from: Some(self.wanted.from.map_or(since, |from| from.max(since))),
            ..self.wanted.clone()
        };
        let mut tx = self.state.store.tenant(self.workspace.id).await?;
        let mut entries = calls::list(&mut tx, &wanted, MOST).await?;
        drop(tx);
        // After the calls were read: none is sent that is younger than the caller's rights.
        self.workspace = self.workspace.again(&self.state).await?;
        self.workspace.require(Action::Read)?;
        let shown: HashSet<CallId> = entries.iter().map(|entry| entry.id).collect();
        entries.retain(|entry| !self.seen.contains(&entry.id));
        self.seen = shown;
        call_logs(&self.state, &self.workspace, entries).await
    }
}
