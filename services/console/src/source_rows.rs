//! Sources in the registry: finding, naming and inserting them and their tools.

use portolan_http_tools::ToolDraft;
use portolan_model::{id::SourceId, text};
use portolan_site::{console_error::ConsoleError, state::AuthState, workspaces::display_name};
use portolan_storage::{
    TenantTx,
    registry::{
        sources::{self, NewDocument, Source},
        tools::{self, Imported, Wording},
    },
};
use time::OffsetDateTime;
use url::Url;

use crate::imports::Loaded;

/// Tools written by one statement: their schemas can be large.
pub(crate) const CHUNK: usize = 100;

/// Sources of one workspace.
pub(crate) const MOST_SOURCES: usize = 200;

/// The source, or 404.
pub(crate) async fn found(tx: &mut TenantTx, id: SourceId) -> Result<Source, ConsoleError> {
    sources::find(tx, id)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this source"))
}

pub(crate) fn source_name(text: &str) -> Result<&str, ConsoleError> {
    display_name(text).ok_or_else(|| {
        ConsoleError::invalid(
            "name_invalid",
            "Give the source a name of 1 to 80 characters.",
        )
        .field("name")
    })
}

/// A base URL that calls may go to. What its name resolves to is checked again at every call.
pub(crate) fn base_url(state: &AuthState, text: &str) -> Result<Url, ConsoleError> {
    let invalid =
        |message: String| ConsoleError::invalid("base_url_invalid", message).field("base_url");
    let mut url = Url::parse(text.trim()).map_err(|_| {
        invalid(
            "Give the complete base URL of the API, such as https://api.example.com/v1.".to_owned(),
        )
    })?;
    if url.fragment().is_some() {
        return Err(invalid("A base URL has no part after `#`.".to_owned()));
    }
    if text.contains(['{', '}']) {
        return Err(invalid(
            "The base URL still has a placeholder in braces. Fill it in.".to_owned(),
        ));
    }
    state
        .egress
        .check(&url)
        .map_err(|error| invalid(format!("Calls cannot go there: {error}.")))?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// The URL without the slash that the URL standard adds to an empty path.
pub(crate) fn stored_url(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

pub(crate) fn new_document(loaded: &Loaded) -> NewDocument<'_> {
    NewDocument {
        text: &loaded.text,
        digest: loaded.digest,
        url: loaded.url.as_ref().map(Url::as_str),
        title: &loaded.import.title,
        spec_version: &loaded.import.spec_version,
    }
}

/// A draft as it is stored.
pub(crate) fn imported(
    tool: &ToolDraft,
    definition: Option<serde_json::Value>,
) -> Result<Imported, ConsoleError> {
    let json = |error| ConsoleError::internal("tool draft", error);
    // REVIEW-S-6: of a document of strangers, models and people read what they see.
    let words = |text: &str| text::shown(text).into_owned();
    let clean = |value: &serde_json::Value| {
        let mut value = value.clone();
        text::clean(&mut value);
        value
    };
    Ok(Imported {
        operation_key: tool.key.clone(),
        wording: Wording {
            name: tool.name.clone(),
            title: words(&tool.title),
            description: words(&tool.description),
        },
        input_schema: clean(&tool.input_schema),
        output_schema: tool.output_schema.as_ref().map(clean),
        annotations: serde_json::to_value(tool.annotations).map_err(json)?,
        plan: serde_json::to_value(&tool.plan)
            .map(|plan| clean(&plan))
            .map_err(json)?,
        definition,
        written: None,
        warnings: tool.warnings.clone(),
    })
}

pub(crate) async fn insert_tools(
    tx: &mut TenantTx,
    source: SourceId,
    tools: &[(Imported, bool)],
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    for chunk in tools.chunks(CHUNK) {
        tools::insert_many(tx, source, chunk, now).await?;
    }
    Ok(())
}

/// Refuses one source too many.
pub(crate) async fn has_room(tx: &mut TenantTx) -> Result<(), ConsoleError> {
    if sources::list(tx).await?.len() < MOST_SOURCES {
        return Ok(());
    }
    Err(ConsoleError::conflict(
        "too_many_sources",
        format!("A workspace has up to {MOST_SOURCES} sources. Delete one first."),
    ))
}
