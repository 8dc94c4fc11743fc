//! One request of a client through an upstream server: request, notifications and answer.
//!
//! All are in the form of the client's revision.

use std::sync::Arc;

use portolan_model::registry::CallOutcome;
use portolan_protocol::{
    ask::AskMethod,
    input_required::{InputRequired, MOST_ROUNDS},
    jsonrpc::Raw,
    method::Method,
    result,
    revision::{Era, Revision},
    task::Task,
    translate::UrlStep,
    visible::Visible,
};

use crate::{
    backends::{
        services::Backends,
        upstream::{
            conversation::TasksExtension,
            exchange::exchange,
            request::{Answered, Forward},
            task,
        },
    },
    call::client_channel::{ClientChannel, Round},
    catalog::upstream::UpstreamSource,
};

/// Parts of a repeated request from before: answers, and the server's own state.
type Earlier = (Option<Raw>, Option<String>);

/// Forwards a request and writes the answer. Dropping the future cancels it at the server too.
pub(crate) async fn forward(
    state: &Backends,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
) -> Answered {
    let continued = ask.channel.and_then(ClientChannel::continued);
    let mut earlier: Option<Earlier> =
        continued.map(|earlier| (earlier.responses.clone(), earlier.state.clone()));
    let mut steps_left = MOST_ROUNDS;
    let takes_tasks = ask.channel.is_some_and(ClientChannel::takes_tasks);
    let mut tasks = if takes_tasks {
        TasksExtension::Named
    } else {
        TasksExtension::Absent
    };
    let mut asked = false;
    loop {
        let params = with_earlier(&ask.params, earlier.as_ref());
        let replied = exchange(state, source, ask, params, tasks).await;
        source.note(state, &replied);
        let (from, outcome) = match replied {
            Ok(reply) => reply,
            Err(error) => {
                tracing::debug!(source.id = %source.id, reason = %error, "no answer of an upstream server");
                // Asks once: a person without a connection after that gets the reason.
                if asked {
                    return ask.failed(state, &error, source);
                }
                match ask.ask_to_connect(state, source, &error).await {
                    Ok(true) => asked = true,
                    Ok(false) => return ask.failed(state, &error, source),
                    Err(visible) => return ask.said(&visible, CallOutcome::UpstreamError),
                }
                continue;
            }
        };
        match outcome {
            Ok(result) if from.era() == Era::Modern && InputRequired::is(&result) => {
                match ask.round(&result).await {
                    Ok((Round::Again(responses), state)) => earlier = Some((responses, state)),
                    Ok((Round::Answer(body), _)) => {
                        return Answered {
                            body: Ok(body),
                            outcome: CallOutcome::Ok,
                            reason: None,
                        };
                    }
                    Err(visible) => return ask.said(&visible, CallOutcome::UpstreamError),
                }
            }
            Ok(result) if ask.method == Method::ToolsCall && Task::is(&result, from) => {
                let ended = Box::pin(task::follow(state, source, ask, from, &result)).await;
                if let Some(channel) = ask.channel {
                    channel.settle().await;
                }
                return ask.ended(state, ended, source);
            }
            Ok(result) => {
                if let Some(channel) = ask.channel {
                    channel.settle().await;
                }
                return ask.complete(from, &result);
            }
            // MCP-X-52: a client without tasks waits instead.
            Err(error) if tasks == TasksExtension::Absent && ask.needs_task(&error, from) => {
                tasks = TasksExtension::Named;
            }
            Err(error) => match (ask.steps(&error, from), ask.channel) {
                (Some(steps), Some(channel)) if steps_left > 0 => {
                    steps_left -= 1;
                    if let Err(visible) = send_to_pages(channel, from, &steps).await {
                        return ask.said(&visible, CallOutcome::UpstreamError);
                    }
                    earlier = None;
                }
                _ => return ask.refused(&error, from),
            },
        }
    }
}

/// MCP-X-36: lets the person visit the server's pages; then the call is repeated.
async fn send_to_pages(
    channel: &ClientChannel,
    from: Revision,
    steps: &[UrlStep],
) -> Result<(), Visible> {
    for step in steps {
        let answer = channel
            .request(from, AskMethod::Elicit, &step.params())
            .await?;
        let action = answer.get("action").and_then(|action| action.string());
        if action.as_deref() != Some("accept") {
            return Err(Visible::Declined);
        }
    }
    Ok(())
}

fn with_earlier(params: &Raw, earlier: Option<&Earlier>) -> Raw {
    let Some((responses, state)) = earlier else {
        return params.clone();
    };
    let mut out = params.as_bytes().to_vec();
    // `renamed` wrote it: an object that is never empty.
    out.pop();
    if let Some(responses) = responses {
        out.extend_from_slice(br#","inputResponses":"#);
        out.extend_from_slice(responses.as_bytes());
    }
    if let Some(state) = state {
        out.extend_from_slice(br#","requestState":"#);
        result::write_string(state, &mut out);
    }
    out.push(b'}');
    Raw::parse(out).unwrap_or_else(|_| params.clone())
}
