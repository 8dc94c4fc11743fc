//! What a modern request brings from an earlier round (MR-5…MR-8): looked at before anything is done for it.

use std::sync::Arc;

use portolan_protocol::{
    input_required::Brought,
    jsonrpc::{ProgressToken, Request},
    method::Method,
    revision::Era,
};

use super::{Continued, Standing, retry::Retry, state::Opened};
use crate::{dispatch::Context, error::McpError};

/// Where a request stands among the rounds of its call.
#[derive(Debug)]
pub(crate) enum Earlier {
    /// At the beginning.
    Nothing,
    /// The upstream is to be called again with what the client brings.
    Continued(Box<Continued>),
    /// Its call waits somewhere.
    Parked(Box<Retry>),
}

/// Opens the state that a request brings, if it brings one. Requests of sessions bring none.
pub(crate) fn earlier(
    cx: &Context<'_>,
    method: Method,
    request: &Request,
    brought: Brought,
    progress: Option<&ProgressToken>,
) -> Result<Earlier, McpError> {
    let Brought { responses, state } = brought;
    if cx.revision.era() != Era::Modern {
        return Ok(Earlier::Nothing);
    }
    let Some(state) = state else {
        // MR-5: a server that keeps no state takes answers to questions that it has not asked yet. One round is used up by that.
        return Ok(responses.map_or(Earlier::Nothing, |responses| {
            Earlier::Continued(Box::new(Continued {
                responses: Some(responses),
                state: None,
                round: 1,
            }))
        }));
    };
    let standing = Standing::new(cx, method, &request.id, &request.params);
    Ok(match standing.open(&state)? {
        Opened::Parked(at) => Earlier::Parked(Box::new(Retry {
            standing: Arc::new(standing),
            at,
            responses,
            progress: progress.cloned(),
        })),
        Opened::HandedOn(earlier) => Earlier::Continued(Box::new(Continued {
            responses,
            ..earlier
        })),
    })
}
