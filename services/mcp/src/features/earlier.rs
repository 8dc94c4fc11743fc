//! The state from an earlier round in a modern request (MCP-MR-5…MCP-MR-8), checked before any
//! work.

use std::sync::Arc;

use portolan_protocol::{
    input_required::Brought,
    jsonrpc::{ProgressToken, Request},
    method::Method,
    revision::Era,
};

use crate::{
    call::{
        request_state::{Continued, Opened},
        retry::Retry,
    },
    error::McpError,
    features::context::Context,
};

/// The position of a request among the rounds of its call.
#[derive(Debug)]
pub(crate) enum Earlier {
    /// The first round.
    Nothing,
    /// Call the upstream again with what the client brings (MCP-X-29).
    Continued(Box<Continued>),
    /// Its call is suspended on some node (MCP-X-22).
    Suspended(Box<Retry>),
}

/// Opens the `requestState` of a request, if it has one. Requests of sessions have none.
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
        // MCP-MR-5: a server without state accepts answers to questions that it has not asked yet.
        // This uses up one round.
        return Ok(responses.map_or(Earlier::Nothing, |responses| {
            Earlier::Continued(Box::new(Continued {
                responses: Some(responses),
                state: None,
                round: 1,
            }))
        }));
    };
    let scope = cx.scope(method, &request.id, &request.params);
    Ok(match scope.open(&state)? {
        Opened::Suspended(at) => Earlier::Suspended(Box::new(Retry {
            scope: Arc::new(scope),
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
