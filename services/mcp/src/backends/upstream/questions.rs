//! Questions of servers of the session era, on their way to the client and back.

use portolan_protocol::{
    ask::AskMethod,
    error::RpcError,
    jsonrpc::{Raw, RequestId},
    task as tasks,
    visible::Visible,
};
use portolan_upstream::{Connection, UpstreamError};

use super::{Forward, UpstreamSource};
use crate::{ask::Unanswered, state::McpState};

/// A question of a legacy server, answered by the client, or refused where it cannot be asked (X-30, X-3A, X-3F).
pub(super) async fn answer(
    state: &McpState,
    source: &UpstreamSource,
    ask: &Forward<'_>,
    connection: &Connection,
    (id, method, params): (RequestId, String, Raw),
) -> Result<(), UpstreamError> {
    let known = AskMethod::from_name(&method);
    // XT-12: the server's own task is nobody's business.
    let params = tasks::unrelated(&params);
    let unknown = || RpcError {
        code: -32601,
        message: format!("Method not found: {method}"),
        data: None,
    };
    let outcome = match (known, ask.asker) {
        (Some(known), Some(asker)) => {
            match asker.ask(connection.revision(), known, &params).await {
                Ok(answer) => {
                    if known == AskMethod::ListRoots {
                        let upstreams = &state.upstreams;
                        upstreams.told_roots(source, ask.who, connection, &answer);
                    }
                    Ok(answer)
                }
                Err(Unanswered::NotAskable(_)) => Err(unknown()),
                // As the client said it.
                Err(Unanswered::Refused(error)) => Err(refusal_of(&error)),
                Err(why) => unanswered(known, why),
            }
        }
        _ => Err(unknown()),
    };
    connection.answer(&id, &outcome).await
}

/// what a server hears of a question that nobody answered.
fn unanswered(method: AskMethod, why: Unanswered) -> Result<Raw, RpcError> {
    match portolan_protocol::ask::refusal(method).filter(|_| method == AskMethod::Elicit) {
        Some(refusal) => Ok(refusal),
        None => Err(RpcError {
            code: -32603,
            message: Visible::from(why).text(),
            data: None,
        }),
    }
}

fn refusal_of(error: &Raw) -> RpcError {
    let code = error
        .get("code")
        .and_then(|code| code.as_str().parse().ok());
    let message = error.get("message").and_then(|message| message.string());
    RpcError {
        code: code.unwrap_or(-32603),
        message: message.unwrap_or_default(),
        data: error.get("data"),
    }
}
