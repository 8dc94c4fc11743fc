//! `resources/read`, `resources/subscribe` and `resources/unsubscribe` (`docs/revisions.md`,
//! section 10).

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portolan_http_tools::{Caller as Calling, Content, Structured, ToolAnswer, execute};
use portolan_model::{
    prompt::{Escape, fill},
    registry::CallOutcome,
};
use portolan_protocol::{
    content::ResourceContents,
    error::ErrorKind,
    jsonrpc::{self, Misfit, Raw, Request},
    method::Method,
    resource::{UriParams, read_result},
    result::CacheHint,
};
use serde_json::{Map, Value};

use crate::{
    backends::{
        account::Linking,
        http::{Called, Opened},
        said,
    },
    catalog::{
        backend::Access,
        offers::{HttpRead, Resource, ResourceBackend},
    },
    error::McpError,
    features::{Work, context::Context, upstream_read::Pass},
    session::{MOST_SUBSCRIPTION_BYTES, MOST_SUBSCRIPTIONS},
    upstream_subscriptions::{self, NotSubscribed},
};

fn uri(cx: &Context<'_>, request: &Request) -> Result<String, McpError> {
    let params: Result<UriParams, Misfit> = request.params.read();
    params
        .map(|params| params.uri)
        .map_err(|misfit| cx.fail(&misfit.into(), &request.id))
}

fn not_found(cx: &Context<'_>, request: &Request, uri: String) -> McpError {
    cx.fail(&ErrorKind::ResourceNotFound { uri }, &request.id)
}

/// Answers `resources/read`.
pub(crate) async fn read(cx: &Context<'_>, request: &Request) -> Result<Work, McpError> {
    let uri = uri(cx, request)?;
    let Some((resource, values)) = cx.server.offers.resource(&uri) else {
        return Err(not_found(cx, request, uri));
    };
    let contents = match &resource.backend {
        ResourceBackend::Stored { is_text, .. } => {
            stored(cx, request, resource, *is_text, &uri, &values).await?
        }
        ResourceBackend::Upstream(place) => {
            let own = resource.own_uri(&uri).and_then(|own| Raw::of(&own).ok());
            let own = ("uri", own.as_ref().unwrap_or(&place.own));
            return Pass::prepare(cx, request, Method::ResourcesRead, &place.source, own).await;
        }
        ResourceBackend::Http(http) => {
            match asked(cx, request, resource, http, &uri, values).await? {
                Asked::Contents(contents) => contents,
                Asked::Closed(body) => return Ok(Work::Done(body)),
            }
        }
    };
    let Some(contents) = contents else {
        return Err(not_found(cx, request, uri));
    };
    let (identity, hint) = (&cx.server.identity, CacheHint::READ);
    let result = read_result(cx.revision, identity, &[contents], hint);
    Ok(Work::Done(jsonrpc::response(&request.id, &result)))
}

async fn stored(
    cx: &Context<'_>,
    request: &Request,
    resource: &Resource,
    is_text: bool,
    uri: &str,
    values: &BTreeMap<String, String>,
) -> Result<Option<ResourceContents>, McpError> {
    let Some(bytes) = cx.state.bodies.bytes(cx.server.tenant, resource).await? else {
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
            cx.fail(&misfit.into(), &request.id)
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
    cx: &Context<'_>,
    request: &Request,
    resource: &Resource,
    http: &HttpRead,
    uri: &str,
    values: BTreeMap<String, String>,
) -> Result<Asked, McpError> {
    let fail = |kind: &ErrorKind| cx.fail(kind, &request.id);
    cx.limit_read(&request.id).await?;
    let _room = cx.enter_call(&request.id).await?;
    let _running = cx.state.call_log.begin();
    let arguments: Map<String, Value> = values
        .into_iter()
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    let arguments = Value::Object(arguments);
    let calling = Calling {
        egress: &cx.state.egress,
        target: &http.target,
        credential: None,
        account: None,
        tokens: &cx.state.tokens,
        trace: cx.trace.map(|trace| &**trace),
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
            http.access.note(cx.state, answer.proof);
            answer
        }
        Access::Account(accounts) => {
            let who = cx.who();
            let opened = Opened {
                state: cx.state,
                linking: Linking {
                    accounts,
                    person: who.person,
                    // A read from an HTTP source is answered at once: it cannot ask, but names the
                    // connection page.
                    channel: None,
                    revision: cx.revision,
                    opens_pages: who.declared.elicitation_url,
                },
                calling,
                tenant_slug: cx.tenant_slug,
                progress: false,
            };
            match Box::pin(opened.call(&http.compiled, &arguments)).await {
                Called::Answer(answer) => answer,
                Called::ChannelMessage(visible) => {
                    let (id, identity) = (&request.id, &cx.server.identity);
                    let body = said(&visible, Method::ResourcesRead, id, cx.revision, identity)?;
                    return Ok(Asked::Closed(body));
                }
                Called::Refused(error) => {
                    let body = jsonrpc::error_response(Some(&request.id), &error);
                    return Ok(Asked::Closed(body));
                }
            }
        }
        Access::Broken => return Err(fail(&ErrorKind::Internal)),
    };
    if answer.is_error {
        return match (answer.status, answer.outcome) {
            (Some(404 | 410), _) | (_, CallOutcome::InvalidArguments) => Ok(Asked::Contents(None)),
            (None, CallOutcome::UpstreamError) => Err(fail(&ErrorKind::UpstreamUnreachable)),
            _ => Err(fail(&ErrorKind::Internal)),
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
pub(crate) async fn subscribe(cx: &Context<'_>, request: &Request) -> Result<Vec<u8>, McpError> {
    let uri = uri(cx, request)?;
    let Some(version) = cx.server.offers.versions.of(&uri) else {
        return Err(not_found(cx, request, uri));
    };
    if let Some(session) = cx.session {
        let own = &session.body.subscriptions;
        let bytes: usize = own.iter().map(|(own, _)| own.len()).sum();
        let is_known = own.iter().any(|(own, _)| *own == uri);
        if !is_known
            && (own.len() >= MOST_SUBSCRIPTIONS || bytes + uri.len() > MOST_SUBSCRIPTION_BYTES)
        {
            let misfit = Misfit::new("params.uri", "this session has too many subscriptions");
            return Err(cx.fail(&misfit.into(), &request.id));
        }
        // MCP-X-42: the upstream server with the resource must notify us.
        let mut subscription = None;
        if let Some((source, own)) = upstream_subscriptions::own_uri(cx.server, &uri) {
            let upstream_subscriptions = &cx.state.upstream_subscriptions;
            let subscribed = upstream_subscriptions.subscribe(cx.state, (&source, own), &uri);
            match Box::pin(subscribed).await {
                Ok(agreed) => subscription = Some(agreed),
                Err(NotSubscribed::Refused) => {
                    let misfit =
                        Misfit::new("params.uri", "Resource does not support subscription");
                    return Err(cx.fail(&misfit.into(), &request.id));
                }
                Err(NotSubscribed::Late) => return Err(not_found(cx, request, uri)),
            }
        }
        let change = |body: &mut crate::session::written::SessionBody| {
            body.subscriptions.retain(|(own, _)| *own != uri);
            body.subscriptions.push((uri.clone(), version));
        };
        session.change(cx.state, cx.caller, cx.now, change).await?;
        if let Some(subscription) = subscription {
            Box::pin(subscription.send(cx.state, session.id.key, &uri)).await;
        }
    }
    Ok(jsonrpc::response(
        &request.id,
        &cx.server.fixed(cx.revision).empty,
    ))
}

/// Answers `resources/unsubscribe`, also for a resource without a subscription (MCP-RE-7).
pub(crate) async fn unsubscribe(cx: &Context<'_>, request: &Request) -> Result<Vec<u8>, McpError> {
    let uri = uri(cx, request)?;
    if let Some(session) = cx.session {
        let change = |body: &mut crate::session::written::SessionBody| {
            body.subscriptions.retain(|(own, _)| *own != uri);
        };
        session.change(cx.state, cx.caller, cx.now, change).await?;
        if let Some((source, _)) = upstream_subscriptions::own_uri(cx.server, &uri) {
            let subscription = cx
                .state
                .upstream_subscriptions
                .subscription(cx.state, &source);
            Box::pin(subscription.send(cx.state, session.id.key, &uri)).await;
        }
    }
    Ok(jsonrpc::response(
        &request.id,
        &cx.server.fixed(cx.revision).empty,
    ))
}
