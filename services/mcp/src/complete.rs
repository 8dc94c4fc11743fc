//! `completion/complete` (spec §12): from the values that were declared.

use portolan_model::prompt::Argument;
use portolan_protocol::{
    completion::{self, CompleteParams, Reference},
    jsonrpc::{self, Misfit, Request},
};

use crate::{dispatch::Context, error::McpError};

/// Answers `completion/complete`.
pub(crate) fn complete(cx: &Context<'_>, request: &Request) -> Result<Vec<u8>, McpError> {
    let fail = |misfit: Misfit| cx.fail(&misfit.into(), &request.id);
    let params: CompleteParams = request.params.read().map_err(fail)?;
    let offers = &cx.server.offers;
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
