//! `prompts/get` (`docs/revisions.md`, section 12): checks arguments, fills placeholders, writes
//! messages for the revision.

use std::{collections::BTreeMap, sync::Arc};

use portolan_model::{
    prompt::{Argument, Block, Escape, LONGEST_VALUE, Message, Speaker, TooLong, fill},
    uri_template::is_uri,
};
use portolan_protocol::{
    content::{
        BinaryContent, ContentBlock, EmbeddedResource, ResourceContents, ResourceLink, Role,
    },
    error::ErrorKind,
    jsonrpc::Misfit,
    prompt::{GetParams, PromptMessage, get_result},
};

use crate::{
    call::Call,
    catalog::offers::PromptBackend,
    error::McpError,
    features::{upstream_read::UpstreamRead, work::Work},
    streams::services::StreamServices,
};

/// Answers `prompts/get`.
pub(crate) async fn get(state: &StreamServices, call: Box<Call>) -> Result<Work, McpError> {
    let params: GetParams = call.read()?;
    let server = Arc::clone(&call.server);
    let Some(prompt) = server.offers.prompt(&params.name) else {
        return Err(call.fail(&ErrorKind::UnknownPrompt(params.name)));
    };
    if let PromptBackend::Upstream(place) = &prompt.backend {
        let own = ("name", &place.own);
        return UpstreamRead::prepare(call, &place.source, own)
            .await
            .map(Work::Run);
    }
    let misfit = |misfit| call.misfit(misfit);
    let values = checked(&prompt.arguments, params.arguments).map_err(misfit)?;
    let messages = state.bodies.messages(server.tenant, prompt).await?;
    let Some(messages) = messages else {
        return Err(call.fail(&ErrorKind::UnknownPrompt(params.name)));
    };
    let rendered: Result<Vec<PromptMessage>, Misfit> = messages
        .iter()
        .map(|message| rendered(message, &values))
        .collect();
    let rendered = rendered.map_err(misfit)?;
    let description = prompt.listed.description.as_deref();
    let result = get_result(call.revision, &server.identity, description, &rendered);
    Ok(Work::Done(call.result(&result)))
}

/// The declared arguments among the given ones (MCP-PR-4).
///
/// A required one must be present, and each has a longest length. Undeclared ones are ignored.
fn checked(
    declared: &[Argument],
    mut given: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Misfit> {
    let mut values = BTreeMap::new();
    for argument in declared {
        let at = || format!("params.arguments.{}", argument.name);
        match given.remove(&argument.name) {
            None if argument.required => return Err(Misfit::new(at(), "required")),
            None => {}
            Some(value) if value.len() > LONGEST_VALUE => {
                return Err(Misfit::new(at(), "at most 32768 bytes"));
            }
            Some(value) => {
                values.insert(argument.name.clone(), value);
            }
        }
    }
    Ok(values)
}

fn too_long(_: TooLong) -> Misfit {
    Misfit::new("params.arguments", "the prompt would be too long with them")
}

/// Fills the placeholders of a URI. If the result is not a URI, the arguments are refused
/// (MCP-PR-7).
fn filled_uri(uri: &str, values: &BTreeMap<String, String>) -> Result<String, Misfit> {
    let uri = fill(uri, values, Escape::Nothing).map_err(too_long)?;
    if is_uri(&uri) {
        Ok(uri)
    } else {
        Err(Misfit::new("params.arguments", "one of them makes no URI"))
    }
}

fn rendered(message: &Message, values: &BTreeMap<String, String>) -> Result<PromptMessage, Misfit> {
    let role = match message.role {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
    };
    let content = match &message.content {
        Block::Text { text } => {
            ContentBlock::text(fill(text, values, Escape::Nothing).map_err(too_long)?)
        }
        Block::Image { data, mime_type } => ContentBlock::image(data, mime_type),
        Block::Audio { data, mime_type } => ContentBlock::Audio(BinaryContent {
            data: data.clone(),
            mime_type: mime_type.clone(),
            ..BinaryContent::default()
        }),
        Block::Resource {
            uri,
            mime_type,
            text,
            blob,
        } => {
            let (uri, mime_type) = (filled_uri(uri, values)?, mime_type.clone());
            let resource = match (text, blob) {
                (None, Some(blob)) => ResourceContents::Blob {
                    uri,
                    mime_type,
                    blob: blob.clone(),
                    meta: None,
                },
                (text, _) => {
                    let escape = Escape::of(mime_type.as_deref());
                    let text = text.as_deref().unwrap_or_default();
                    ResourceContents::Text {
                        uri,
                        mime_type,
                        text: fill(text, values, escape).map_err(too_long)?,
                        meta: None,
                    }
                }
            };
            ContentBlock::Resource(Box::new(EmbeddedResource {
                resource,
                annotations: None,
                meta: None,
            }))
        }
        Block::ResourceLink {
            uri,
            name,
            title,
            description,
            mime_type,
        } => ContentBlock::ResourceLink(Box::new(ResourceLink {
            uri: filled_uri(uri, values)?,
            name: name.clone(),
            title: title.clone(),
            description: description.clone(),
            mime_type: mime_type.clone(),
            ..ResourceLink::default()
        })),
    };
    Ok(PromptMessage { role, content })
}
