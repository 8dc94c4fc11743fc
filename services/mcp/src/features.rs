//! The methods of the protocol, one file a method, and the dispatch to them.
//!
//! A request of either era goes to the handler of its method. A modern request may bring state
//! from an earlier round (MCP-MR-5…MCP-MR-8), which is checked before any work.

pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod lists;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod task_result;
pub(crate) mod tasks;
pub(crate) mod tools;
pub(crate) mod upstream_read;

use std::sync::Arc;

use portolan_protocol::{
    error::ErrorKind,
    input_required::Brought,
    jsonrpc::{self, Misfit, ProgressToken, Request},
    logging::{Level, SetLevelParams},
    method::Method,
    revision::Era,
};

use crate::{
    call::{
        request_state::{Continued, Opened},
        retry::Retry,
    },
    catalog::pages::List,
    error::McpError,
    features::{context::Context, task_result::Wait, tools::PreparedCall, upstream_read::Pass},
};

/// The result of a handler.
#[derive(Debug)]
pub(crate) enum Work {
    /// The whole answer.
    Done(Vec<u8>),
    /// A call that has not begun; its transport decides the effect of a disconnect.
    Call(Box<PreparedCall>),
    /// The same for a prompt or a resource of an upstream server.
    Pass(Box<Pass>),
    /// The retry that a suspended call waits for (MCP-X-22).
    Suspended(Box<Retry>),
    /// A request that waits for a task (MCP-TK-7).
    Wait(Box<Wait>),
}

/// Handles one request of a method that its revision knows.
pub(crate) async fn dispatch(
    cx: &Context<'_>,
    method: Method,
    request: &Request,
) -> Result<Work, McpError> {
    cx.limit_request(&request.id).await?;
    let id = &request.id;
    let fixed = cx.server.fixed(cx.revision);
    let done = |result: &[u8]| Ok(Work::Done(jsonrpc::response(id, result)));
    let fail = |kind: &ErrorKind| Err(cx.fail(kind, id));
    match method {
        Method::Ping => done(&fixed.empty),
        Method::Discover => done(&fixed.discover),
        Method::ToolsList => lists::answer(cx, List::Tools, request).map(Work::Done),
        Method::ToolsCall => tools::prepare(cx, request).await,
        Method::PromptsList => lists::answer(cx, List::Prompts, request).map(Work::Done),
        Method::ResourcesList => lists::answer(cx, List::Resources, request).map(Work::Done),
        Method::ResourceTemplatesList => {
            lists::answer(cx, List::Templates, request).map(Work::Done)
        }
        // Boxed: these handlers would make the future of every request larger.
        Method::PromptsGet => Box::pin(prompts::get(cx, request)).await,
        Method::ResourcesRead => Box::pin(resources::read(cx, request)).await,
        Method::ResourcesSubscribe => Box::pin(resources::subscribe(cx, request))
            .await
            .map(Work::Done),
        Method::ResourcesUnsubscribe => Box::pin(resources::unsubscribe(cx, request))
            .await
            .map(Work::Done),
        Method::Complete => Box::pin(completion::complete(cx, request))
            .await
            .map(Work::Done),
        Method::TasksGet
        | Method::TasksList
        | Method::TasksResult
        | Method::TasksCancel
        | Method::TasksUpdate => Box::pin(tasks::answer(cx, method, request)).await,
        Method::SetLevel => {
            let params: SetLevelParams = read(cx, request)?;
            if let Some(session) = cx.session {
                let level = Level::ALL
                    .iter()
                    .position(|level| *level == params.level)
                    .unwrap_or(0);
                let level = u8::try_from(level).unwrap_or(0);
                session
                    .change(cx.state, cx.caller, cx.now, |body| body.level = level)
                    .await?;
                cx.tell_level(params.level);
            }
            done(&fixed.empty)
        }
        other => fail(&ErrorKind::MethodNotFound(other.name().to_owned())),
    }
}

fn read<T: serde::de::DeserializeOwned>(
    cx: &Context<'_>,
    request: &Request,
) -> Result<T, McpError> {
    request
        .params
        .read()
        .map_err(|misfit: Misfit| cx.fail(&misfit.into(), &request.id))
}

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
