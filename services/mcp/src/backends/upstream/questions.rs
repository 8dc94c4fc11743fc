//! Questions of servers of the session era to the client, and the answers.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;
use portolan_protocol::{
    ask::AskMethod,
    error::RpcError,
    jsonrpc::{Raw, RequestId},
    method::Method,
    progress,
    revision::Era,
    task as tasks,
    visible::Visible,
};
use portolan_upstream::{Connection, UpstreamError};

use crate::{
    backends::{
        services::Backends,
        upstream::{meter::Meter, request::Forward},
    },
    call::client_channel::{ClientChannel, Unanswered},
    catalog::upstream::UpstreamSource,
    nodes::notify::AwaitedProgress,
};

/// Most progress notifications of one question that its server receives in a second.
const A_SECOND: u32 = 10;

/// The number of questions of the server that the client has not answered.
///
/// A question ends with the client's answer, and not when the server confirms that it received the
/// answer: its next question can be here before the confirmation.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(AtomicU32);

impl OpenQuestions {
    pub(crate) fn is_none(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    pub(crate) fn begin(&self) -> OpenQuestion<'_> {
        self.0.fetch_add(1, Ordering::AcqRel);
        OpenQuestion(self)
    }
}

/// A question of the server that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenQuestion<'a>(&'a OpenQuestions);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Forwards a question of a legacy server to the client (MCP-X-22, MCP-X-28).
///
/// A question that the client does not support is refused (MCP-X-30, MCP-X-3A, MCP-X-3F). `open`
/// is the question, which ends before the answer is sent (MCP-X-24).
pub(crate) async fn answer(
    state: &Backends,
    source: &UpstreamSource,
    ask: &Forward<'_>,
    connection: &Connection,
    (id, method, params, open): (RequestId, String, Raw, OpenQuestion<'_>),
) -> Result<(), UpstreamError> {
    let known = AskMethod::from_name(&method);
    // MCP-XT-12: the server's own task is not forwarded.
    let params = tasks::unrelated(&params);
    let unknown = || RpcError {
        code: -32601,
        message: format!("Method not found: {method}"),
        data: None,
    };
    let outcome = match (known, ask.channel) {
        (Some(known), Some(channel)) => {
            // MCP-RE-12, MCP-X-6B: the client knows its resources by other URIs.
            let params = ask.known_uris(&params);
            let asked = put((state, ask, channel), connection, known, &params);
            match asked.await {
                Ok(answer) => {
                    if known == AskMethod::ListRoots {
                        let upstreams = &state.upstreams;
                        upstreams.told_roots(source, ask.call, connection, &answer);
                    }
                    Ok(answer)
                }
                Err(Unanswered::NotAskable(_)) => Err(unknown()),
                // The client's own error (MCP-X-28).
                Err(Unanswered::Refused(error)) => Err(refusal_of(&error)),
                Err(why) => unanswered(known, why, ask.call.revision.era()),
            }
        }
        _ => Err(unknown()),
    };
    drop(open);
    connection.answer(&id, &outcome).await
}

/// Sends the question to the client.
///
/// If the server wants progress, it receives that of a client with a session. Other clients have no
/// way to send it (MCP-X-7J).
async fn put(
    (state, ask, channel): (&Backends, &Forward<'_>, &ClientChannel),
    connection: &Connection,
    method: AskMethod,
    params: &Raw,
) -> Result<Raw, Unanswered> {
    let from = connection.revision();
    let theirs = progress::wanted(params);
    let session = ask.call.session.as_ref().filter(|_| theirs.is_some());
    let told = session.and_then(|session| AwaitedProgress::new(state, session.id.key));
    let (Some(theirs), Some(mut told)) = (theirs, told) else {
        return channel.request(from, method, params).await;
    };
    let token = told.token.clone();
    let asked = channel.request_with_progress(from, method, params, Some(&token));
    tokio::pin!(asked);
    let mut gate = progress::Gate::default();
    let mut meter = Meter::new(A_SECOND);
    // One notification at a time is on its way to the server; the answer waits for none.
    let mut telling: Option<BoxFuture<'_, ()>> = None;
    loop {
        let said = tokio::select! {
            biased;
            answer = &mut asked => return answer,
            () = told_so(telling.as_mut()) => {
                telling = None;
                continue;
            }
            said = told.next(), if telling.is_none() => said,
        };
        if let Some((progress, params)) = progress::passed_on(&said, &theirs)
            && meter.passes()
            && gate.passes(progress)
        {
            telling = Some(Box::pin(async move {
                let name = Method::Progress.name();
                // If this fails, the answer shows it.
                let _ = connection.notify(name, Some(&params)).await;
            }));
        }
    }
}

async fn told_so(telling: Option<&mut BoxFuture<'_, ()>>) {
    match telling {
        Some(telling) => telling.await,
        None => std::future::pending().await,
    }
}

/// MCP-X-25: the result of an unanswered question for the server.
///
/// MCP-EL-8: an answer of a session-era client that does not fit is a failed elicitation, not the
/// person's wish to cancel. A client of 2026-07-28 was asked again before.
fn unanswered(method: AskMethod, why: Unanswered, client: Era) -> Result<Raw, RpcError> {
    if why == Unanswered::Unfit && client == Era::Legacy {
        return Err(RpcError {
            code: -32602,
            message: Visible::Unfit.text(),
            data: None,
        });
    }
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
