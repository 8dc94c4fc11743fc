//! `resources/read`, `resources/subscribe` and `resources/unsubscribe` (`docs/revisions.md`,
//! section 10).

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portolan_http_tools::{Caller as Calling, Content, Structured, ToolAnswer, execute};
use portolan_model::{
    prompt::{Escape, fill},
    registry::CallOutcome,
};
use portolan_protocol::{
    content::ResourceContents,
    error::ErrorKind,
    jsonrpc::{self, Misfit, Raw},
    resource::{UriParams, read_result},
    result::CacheHint,
};
use serde_json::{Map, Value};

use crate::{
    backends::{
        account::Linking,
        http::{AccountCall, Called},
    },
    call::Call,
    catalog::{
        backend::Access,
        offers::{HttpRead, Resource, ResourceBackend},
    },
    error::McpError,
    features::{upstream_read::UpstreamRead, work::Work},
    session::{MOST_SUBSCRIPTION_BYTES, MOST_SUBSCRIPTIONS},
    streams::services::StreamServices,
    upstream_subscriptions::{self, NotSubscribed},
};

fn uri(call: &Call) -> Result<String, McpError> {
    call.read::<UriParams>().map(|params| params.uri)
}

fn not_found(call: &Call, uri: String) -> McpError {
    call.fail(&ErrorKind::ResourceNotFound { uri })
}

/// Answers `resources/read`.
pub(crate) async fn read(state: &StreamServices, call: Box<Call>) -> Result<Work, McpError> {
    let uri = uri(&call)?;
    let server = Arc::clone(&call.server);
    let Some((resource, values)) = server.offers.resource(&uri) else {
        return Err(not_found(&call, uri));
    };
    let contents = match &resource.backend {
        ResourceBackend::Stored { is_text, .. } => {
            stored(state, &call, resource, *is_text, &uri, &values).await?
        }
        ResourceBackend::Upstream(place) => {
            let own = resource.own_uri(&uri).and_then(|own| Raw::of(&own).ok());
            let own = ("uri", own.as_ref().unwrap_or(&place.own));
            return UpstreamRead::prepare(call, &place.source, own)
                .await
                .map(Work::Run);
        }
        ResourceBackend::Http(http) => {
            match asked(state, &call, resource, http, &uri, values).await? {
                Asked::Contents(contents) => contents,
                Asked::Closed(body) => return Ok(Work::Done(body)),
            }
        }
    };
    let Some(contents) = contents else {
        return Err(not_found(&call, uri));
    };
    let (identity, hint) = (&server.identity, CacheHint::READ);
    let result = read_result(call.revision, identity, &[contents], hint);
    Ok(Work::Done(call.result(&result)))
}

async fn stored(
    state: &StreamServices,
    call: &Call,
    resource: &Resource,
    is_text: bool,
    uri: &str,
    values: &BTreeMap<String, String>,
) -> Result<Option<ResourceContents>, McpError> {
    let Some(bytes) = state.bodies.bytes(call.server.tenant, resource).await? else {
        return Ok(None);
    };
    let (uri, mime_type) = (uri.to_owned(), resource.listed.mime_type.clone());
    if !is_text {
        return Ok(Some(ResourceContents::Blob {
            uri,
            mime_type,
            blob: STANDARD.encode(&bytes),
            meta: None,
        }));
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = if resource.is_template() {
        fill(&text, values, Escape::of(mime_type.as_deref())).map_err(|_| {
            let misfit = Misfit::new("params.uri", "its parts would make the text too long");
            call.misfit(misfit)
        })?
    } else {
        text.into_owned()
    };
    Ok(Some(ResourceContents::Text {
        uri,
        mime_type,
        text,
        meta: None,
    }))
}

/// The result of a read from an HTTP source.
enum Asked {
    /// The contents under that URI, if there are any.
    Contents(Option<ResourceContents>),
    /// No connected account opens the source: the answer to the request.
    Closed(Vec<u8>),
}

/// Reads from the HTTP source. A missing resource is not found; an unavailable source is an error.
async fn asked(
    state: &StreamServices,
    call: &Call,
    resource: &Resource,
    http: &HttpRead,
    uri: &str,
    values: BTreeMap<String, String>,
) -> Result<Asked, McpError> {
    call.limit_call(None).await?;
    let _permit = call.enter().await?;
    let _running = state.call_log.begin();
    let arguments: Map<String, Value> = values
        .into_iter()
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    let arguments = Value::Object(arguments);
    let calling = Calling {
        egress: &state.egress,
        target: &http.target,
        credential: None,
        account: None,
        tokens: &state.tokens,
        trace: call.trace.as_deref(),
        shows_exchange: false,
    };
    let answer = match &http.access {
        Access::Open => Box::pin(execute(&calling, &http.compiled, &arguments)).await,
        Access::With(known) => {
            let calling = Calling {
                credential: Some(&known.slot),
                ..calling
            };
            let answer = Box::pin(execute(&calling, &http.compiled, &arguments)).await;
            http.access.note(state, answer.proof);
            answer
        }
        Access::Account(accounts) => {
            let opened = AccountCall {
                state,
                linking: Linking {
                    accounts,
                    call,
                    // A read from an HTTP source is answered at once: it cannot ask, but names the
                    // connection page.
                    channel: None,
                },
                calling,
            };
            match Box::pin(opened.call(&http.compiled, &arguments)).await {
                Called::Answer(answer) => answer,
                Called::ChannelMessage(visible) => return call.said(&visible).map(Asked::Closed),
                Called::Refused(error) => {
                    let body = jsonrpc::error_response(Some(&call.id), &error);
                    return Ok(Asked::Closed(body));
                }
            }
        }
        Access::Broken => return Err(call.fail(&ErrorKind::Internal)),
    };
    if answer.is_error {
        return match (answer.status, answer.outcome) {
            (Some(404 | 410), _) | (_, CallOutcome::InvalidArguments) => Ok(Asked::Contents(None)),
            (None, CallOutcome::UpstreamError) => Err(call.fail(&ErrorKind::UpstreamUnreachable)),
            _ => Err(call.fail(&ErrorKind::Internal)),
        };
    }
    Ok(Asked::Contents(contents(answer, resource, uri.to_owned())))
}

fn contents(answer: ToolAnswer, resource: &Resource, uri: String) -> Option<ResourceContents> {
    let declared = resource.listed.mime_type.clone();
    let block = answer.content.into_iter().next()?;
    Some(match block {
        Content::Text(text) => ResourceContents::Text {
            uri,
            mime_type: declared.or_else(|| {
                let json = answer.structured != Structured::None;
                Some(
                    if json {
                        "application/json"
                    } else {
                        "text/plain"
                    }
                    .to_owned(),
                )
            }),
            text,
            meta: None,
        },
        Content::Image { mime, data }
        | Content::Audio { mime, data }
        | Content::Blob { mime, data, .. } => ResourceContents::Blob {
            uri,
            mime_type: Some(mime),
            blob: data,
            meta: None,
        },
    })
}

/// Answers `resources/subscribe` (MCP-RE-7): from now on the session is notified of changes, on any
/// node.
pub(crate) async fn subscribe(state: &StreamServices, call: &Call) -> Result<Vec<u8>, McpError> {
    let uri = uri(call)?;
    let Some(version) = call.server.offers.versions.of(&uri) else {
        return Err(not_found(call, uri));
    };
    if let Some(session) = &call.session {
        let own = &session.body.subscriptions;
        let bytes: usize = own.iter().map(|(own, _)| own.len()).sum();
        let is_known = own.iter().any(|(own, _)| *own == uri);
        if !is_known
            && (own.len() >= MOST_SUBSCRIPTIONS || bytes + uri.len() > MOST_SUBSCRIPTION_BYTES)
        {
            let misfit = Misfit::new("params.uri", "this session has too many subscriptions");
            return Err(call.misfit(misfit));
        }
        // MCP-X-42: the upstream server with the resource must notify us.
        let mut subscription = None;
        if let Some((source, own)) = upstream_subscriptions::own_uri(&call.server, &uri) {
            let upstream_subscriptions = &state.upstream_subscriptions;
            let subscribed = upstream_subscriptions.subscribe(state, (&source, own), &uri);
            match Box::pin(subscribed).await {
                Ok(agreed) => subscription = Some(agreed),
                Err(NotSubscribed::Refused) => {
                    let misfit =
                        Misfit::new("params.uri", "Resource does not support subscription");
                    return Err(call.misfit(misfit));
                }
                Err(NotSubscribed::Late) => return Err(not_found(call, uri)),
            }
        }
        let change = |body: &mut crate::session::written::SessionBody| {
            body.subscriptions.retain(|(own, _)| *own != uri);
            body.subscriptions.push((uri.clone(), version));
        };
        session
            .change(state, &call.caller, call.now, change)
            .await?;
        if let Some(subscription) = subscription {
            Box::pin(subscription.send(state, session.id.key, &uri)).await;
        }
    }
    Ok(call.empty_result())
}

/// Answers `resources/unsubscribe`, also for a resource without a subscription (MCP-RE-7).
pub(crate) async fn unsubscribe(state: &StreamServices, call: &Call) -> Result<Vec<u8>, McpError> {
    let uri = uri(call)?;
    if let Some(session) = &call.session {
        let change = |body: &mut crate::session::written::SessionBody| {
            body.subscriptions.retain(|(own, _)| *own != uri);
        };
        session
            .change(state, &call.caller, call.now, change)
            .await?;
        if let Some((source, _)) = upstream_subscriptions::own_uri(&call.server, &uri) {
            let subscription = state.upstream_subscriptions.subscription(state, &source);
            Box::pin(subscription.send(state, session.id.key, &uri)).await;
        }
    }
    Ok(call.empty_result())
}
