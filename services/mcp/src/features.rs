//! The methods of the protocol, one file a method, and the dispatch to them.
//!
//! A request of either era goes to the handler of its method.

pub(crate) mod completion;
pub(crate) mod lists;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod task_result;
pub(crate) mod tasks;
pub(crate) mod tools;
pub(crate) mod upstream_read;
pub(crate) mod work;

use portolan_protocol::{
    error::ErrorKind,
    header::Headers,
    logging::{Level, SetLevelParams},
    method::Method,
};

use crate::{
    call::Call, catalog::pages::List, error::McpError, features::work::Work, session::OfSession,
    streams::services::StreamServices,
};

/// Handles one request of a method that its revision knows.
pub(crate) async fn dispatch(
    state: &StreamServices,
    call: Box<Call>,
    headers: &Headers<'_>,
) -> Result<Work, McpError> {
    call.limit_request().await?;
    let done = match call.method {
        Method::Ping => Ok(call.empty_result()),
        Method::Discover => Ok(call.result(&call.server.fixed(call.revision).discover)),
        Method::ToolsList => lists::answer(&call, List::Tools),
        Method::PromptsList => lists::answer(&call, List::Prompts),
        Method::ResourcesList => lists::answer(&call, List::Resources),
        Method::ResourceTemplatesList => lists::answer(&call, List::Templates),
        Method::ToolsCall => return tools::prepare(call, headers).await.map(Work::Run),
        // Boxed: these handlers would make the future of every request larger.
        Method::PromptsGet => return Box::pin(prompts::get(state, call)).await,
        Method::ResourcesRead => return Box::pin(resources::read(state, call)).await,
        Method::TasksResult => return Box::pin(tasks::wait(state, call)).await,
        Method::ResourcesSubscribe => Box::pin(resources::subscribe(state, &call)).await,
        Method::ResourcesUnsubscribe => Box::pin(resources::unsubscribe(state, &call)).await,
        Method::Complete => Box::pin(completion::complete(state, call)).await,
        Method::TasksGet | Method::TasksList | Method::TasksCancel | Method::TasksUpdate => {
            Box::pin(tasks::answer(state, &call)).await
        }
        Method::SetLevel => Box::pin(set_level(state, &call)).await,
        other => Err(call.fail(&ErrorKind::MethodNotFound(other.name().to_owned()))),
    };
    done.map(Work::Done)
}

/// `logging/setLevel`: the lowest level of log messages that the session receives.
async fn set_level(state: &StreamServices, call: &Call) -> Result<Vec<u8>, McpError> {
    let params: SetLevelParams = call.read()?;
    if let (Some(session), Some(of_session)) = (&call.session, call.of_session()) {
        let index = Level::ALL.iter().position(|level| *level == params.level);
        let index = u8::try_from(index.unwrap_or(0)).unwrap_or(0);
        session
            .change(state, &call.caller, call.now, |body| body.level = index)
            .await?;
        // MCP-X-72: the upstream servers receive the level too, in the background.
        let sources = call.server.upstreams();
        if !sources.is_empty() {
            let of_session = OfSession {
                level: params.level,
                ..of_session
            };
            let state = state.clone();
            let tracker = state.tracker.clone();
            tracker.spawn(async move {
                for source in sources {
                    source.level_changed(&state, of_session).await;
                }
            });
        }
    }
    Ok(call.empty_result())
}
