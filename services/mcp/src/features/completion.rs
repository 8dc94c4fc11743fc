//! `completion/complete` (`docs/revisions.md`, section 12): completes from the declared values.

use std::sync::Arc;

use portolan_model::prompt::Argument;
use portolan_protocol::{
    completion::{self, CompleteParams, Reference},
    jsonrpc::{Misfit, Raw},
};

use crate::{
    backends::upstream::{forward::forward, request::Forward},
    call::Call,
    catalog::{
        offers::{Offers, PromptBackend, ResourceBackend},
        upstream::{UpstreamPlace, UpstreamSource},
    },
    error::McpError,
    streams::services::StreamServices,
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
pub(crate) async fn complete(state: &StreamServices, call: Box<Call>) -> Result<Vec<u8>, McpError> {
    let params: CompleteParams = call.read()?;
    let server = Arc::clone(&call.server);
    let offers = &server.offers;
    if let Some((place, kind, member)) = of_upstream(offers, &params.reference) {
        let reference = format!(r#"{{"type":"{kind}","{member}":{}}}"#, place.own.as_str());
        let reference = Raw::parse(reference).unwrap_or_else(|_| Raw::empty_object());
        return complete_upstream(state, call, &place.source, &reference).await;
    }
    let declared: Option<&[Argument]> = match &params.reference {
        Reference::Prompt { name } => offers.prompt(name).map(|prompt| &*prompt.arguments),
        Reference::Resource { uri } => match offers.template(uri) {
            Some(template) => Some(&template.variables),
            None => offers.resource(uri).map(|(found, _)| &*found.variables),
        },
    };
    let declared = declared.ok_or_else(|| call.misfit(CompleteParams::unknown_ref()))?;
    let argument = declared
        .iter()
        .find(|argument| argument.name == params.argument.name)
        .ok_or_else(|| call.misfit(Misfit::new("params.argument.name", "unknown argument")))?;
    let context = params
        .context
        .filter(|_| call.revision.facts().completion_context)
        .unwrap_or_default();
    let found = argument.suggestions(&params.argument.value, &context.arguments);
    let total = u64::try_from(found.len()).ok();
    let values: Vec<String> = found
        .into_iter()
        .take(completion::MAX_VALUES + 1)
        .map(str::to_owned)
        .collect();
    let result = completion::result(call.revision, &server.identity, &values, total);
    Ok(call.result(&result))
}

/// `completion/complete` through an upstream server; `reference` is the server's own. It cannot
/// ask.
async fn complete_upstream(
    state: &StreamServices,
    call: Box<Call>,
    source: &Arc<UpstreamSource>,
    reference: &Raw,
) -> Result<Vec<u8>, McpError> {
    call.limit_call(None).await?;
    let _permit = call.enter().await?;
    let _running = state.call_log.begin();
    let call = Arc::from(call);
    let ask = Forward::new(&call, ("ref", reference), None);
    forward(state, source, &ask).await.into_body()
}
