//! A request of either era → the handler of its method.

use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::{self, Misfit, Request},
    logging::{Level, SetLevelParams},
    method::Method,
};

use crate::{
    catalog::pages::List,
    error::McpError,
    features::{completion, context::Context, lists, prompts, resources, tasks, tools, work::Work},
};

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
