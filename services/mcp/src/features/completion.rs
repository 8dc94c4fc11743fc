//! `completion/complete` (`docs/revisions.md`, section 12): completes from the declared values.

use std::sync::Arc;

use portolan_model::prompt::Argument;
use portolan_protocol::{
    completion::{self, CompleteParams, Reference},
    jsonrpc::{self, Misfit, Raw, Request, Request as PeerRequest},
    method::Method,
};

use crate::{
    backends::upstream::{
        forward::{forward, renamed},
        request::Forward,
    },
    catalog::{
        offers::{Offers, PromptBackend, ResourceBackend},
        upstream::{UpstreamPlace, UpstreamSource},
    },
    error::McpError,
    features::context::Context,
};

/// The upstream server of a reference, with the reference's names there.
fn of_upstream<'o>(
    offers: &'o Offers,
    reference: &Reference,
) -> Option<(&'o UpstreamPlace, &'static str, &'static str)> {
    match reference {
        Reference::Prompt { name } => match &offers.prompt(name)?.backend {
            PromptBackend::Upstream(place) => Some((place, "ref/prompt", "name")),
            PromptBackend::Written(_) => None,
        },
        Reference::Resource { uri } => {
            let found = offers.template(uri);
            let found = found.or_else(|| offers.resource(uri).map(|(found, _)| found));
            match &found?.backend {
                ResourceBackend::Upstream(place) => Some((place, "ref/resource", "uri")),
                _ => None,
            }
        }
    }
}

/// Answers `completion/complete`.
pub(crate) async fn complete(cx: &Context<'_>, request: &Request) -> Result<Vec<u8>, McpError> {
    let fail = |misfit: Misfit| cx.fail(&misfit.into(), &request.id);
    let params: CompleteParams = request.params.read().map_err(fail)?;
    let offers = &cx.server.offers;
    if let Some((place, kind, member)) = of_upstream(offers, &params.reference) {
        let reference = format!(r#"{{"type":"{kind}","{member}":{}}}"#, place.own.as_str());
        let reference = Raw::parse(reference).unwrap_or_else(|_| Raw::empty_object());
        return complete_upstream(cx, request, &place.source, &reference).await;
    }
    let declared: Option<&[Argument]> = match &params.reference {
        Reference::Prompt { name } => offers.prompt(name).map(|prompt| &*prompt.arguments),
        Reference::Resource { uri } => match offers.template(uri) {
            Some(template) => Some(&template.variables),
            None => offers.resource(uri).map(|(found, _)| &*found.variables),
        },
    };
    let declared = declared.ok_or_else(|| fail(CompleteParams::unknown_ref()))?;
    let argument = declared
        .iter()
        .find(|argument| argument.name == params.argument.name)
        .ok_or_else(|| fail(Misfit::new("params.argument.name", "unknown argument")))?;
    let context = params
        .context
        .filter(|_| cx.revision.facts().completion_context)
        .unwrap_or_default();
    let found = argument.suggestions(&params.argument.value, &context.arguments);
    let total = u64::try_from(found.len()).ok();
    let values: Vec<String> = found
        .into_iter()
        .take(completion::MAX_VALUES + 1)
        .map(str::to_owned)
        .collect();
    let result = completion::result(cx.revision, &cx.server.identity, &values, total, false);
    Ok(jsonrpc::response(&request.id, &result))
}

/// `completion/complete` through an upstream server; `reference` is the server's own. It cannot
/// ask.
async fn complete_upstream(
    cx: &Context<'_>,
    request: &PeerRequest,
    source: &Arc<UpstreamSource>,
    reference: &Raw,
) -> Result<Vec<u8>, McpError> {
    cx.limit_read(&request.id).await?;
    let _room = cx.enter_call(&request.id).await?;
    let _running = cx.state.call_log.begin();
    let params = request.params.raw().cloned();
    let params = params.unwrap_or(Raw::empty_object());
    let ask = Forward {
        method: Method::Complete,
        params: renamed(&params, ("ref", reference)),
        id: &request.id,
        revision: cx.revision,
        who: &cx.who(),
        mirrored: &[],
        tool: None,
        progress: false,
        level: None,
        channel: None,
        traceparent: cx.trace.map(|trace| trace.context().traceparent()),
        identity: &cx.server.identity,
        renamed: None,
    };
    forward(cx.state, source, &ask).await.into_body()
}
