//! Prompts: written in the console, offered by servers.

use axum::{Json, extract::State};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::StatusCode;
use portolan_http_tools::naming;
use portolan_model::{
    Timestamp,
    id::{PromptId, PromptKind, SourceId},
    member::Action,
    prompt::{Block, Escape, Message, fill, placeholders},
    registry::ToolState,
    uri_template::is_uri,
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    StorageError, TenantTx,
    registry::{
        prompts::{self, Definition, Prompt},
        published_items::PublishedItem as _,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    arguments::{self, ArgumentForm},
    change::{Deleted, Editor},
    input::{JsonBody, PathId, plain_text},
    listing::Listing,
    workspace::Workspace,
    written_items::{self, EnabledChange, ItemWords, WrittenItem},
};

/// Most messages of one prompt.
const MOST_MESSAGES: usize = 50;

/// Most bytes of all messages of one prompt.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// A prompt in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct PromptSummary {
    #[schema(value_type = String, example = "prm_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: PromptId,
    /// Its name for AI clients, unless a server publishes it under another.
    name: String,
    title: String,
    description: String,
    arguments: Vec<ArgumentForm>,
    /// The upstream server that has it; absent if it was written here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    source_name: Option<String>,
    enabled: bool,
    #[schema(value_type = crate::tools::ToolStateName)]
    state: ToolState,
    /// Slugs of the servers that offer it.
    used_by_servers: Vec<String>,
    /// Name of the file that owns it, by configuration as code: the next application of that file
    /// overwrites other changes. Absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    managed_by: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

/// A prompt with its messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Prompt)]
pub struct PromptView {
    #[serde(flatten)]
    summary: PromptSummary,
    #[schema(value_type = Vec<MessageForm>)]
    messages: Vec<Message>,
}

/// A message of a prompt.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = PromptMessage)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::prompt::Message"
)]
pub(crate) struct MessageForm {
    role: SpeakerName,
    content: BlockForm,
}

/// The role of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = PromptRole)]
pub(crate) enum SpeakerName {
    User,
    Assistant,
}

/// The content of a message. Texts and URIs may have placeholders: `{{name}}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = PromptBlock)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::prompt::Block"
)]
pub(crate) enum BlockForm {
    Text {
        text: String,
    },
    Image {
        /// Base64.
        data: String,
        mime_type: String,
    },
    Audio {
        /// Base64.
        data: String,
        mime_type: String,
    },
    Resource {
        uri: String,
        #[schema(nullable = false)]
        mime_type: Option<String>,
        /// Either this or `blob`.
        #[schema(nullable = false)]
        text: Option<String>,
        /// Base64.
        #[schema(nullable = false)]
        blob: Option<String>,
    },
    ResourceLink {
        uri: String,
        name: String,
        #[schema(nullable = false)]
        title: Option<String>,
        #[schema(nullable = false)]
        description: Option<String>,
        #[schema(nullable = false)]
        mime_type: Option<String>,
    },
}

/// A new prompt, or the new content of one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PromptDefinition)]
pub struct PromptForm {
    /// 1 to 64 letters, digits, `_` or `-`.
    name: String,
    /// Display name.
    #[schema(nullable = false)]
    title: Option<String>,
    /// Its purpose.
    #[schema(nullable = false)]
    description: Option<String>,
    #[serde(default)]
    arguments: Vec<ArgumentForm>,
    #[schema(value_type = Vec<MessageForm>)]
    messages: Vec<Message>,
    /// Enabled if absent.
    #[schema(nullable = false)]
    enabled: Option<bool>,
}

fn summary(prompt: Prompt) -> (PromptSummary, Vec<Message>) {
    let summary = PromptSummary {
        id: prompt.id,
        name: prompt.name,
        title: prompt.title,
        description: prompt.description,
        arguments: prompt.arguments.into_iter().map(Into::into).collect(),
        source_name: prompt.source_name,
        enabled: prompt.enabled,
        state: prompt.state,
        used_by_servers: prompt.used_by,
        managed_by: prompt.managed_by,
        updated_at: prompt.updated_at,
    };
    (summary, prompt.messages)
}

fn view(prompt: Prompt) -> PromptView {
    let (summary, messages) = summary(prompt);
    PromptView { summary, messages }
}

/// Returns true for a media type: `type/subtype`, perhaps with parameters, short and printable.
pub(crate) fn is_mime_type(text: &str) -> bool {
    let (kind, rest) = text.split_once('/').unwrap_or_default();
    !kind.is_empty()
        && !rest.is_empty()
        && text.len() <= 200
        && text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

fn message_fault(index: usize, text: impl Into<String>) -> ConsoleError {
    ConsoleError::invalid("message_invalid", text.into()).field(format!("messages[{index}]"))
}

/// Returns true for a URI with placeholders, or one placeholder alone.
fn may_be_uri(uri: &str, names: &[String]) -> bool {
    ["1", "x:1"].iter().any(|value| {
        let values = names
            .iter()
            .map(|name| (name.clone(), (*value).to_owned()))
            .collect();
        fill(uri, &values, Escape::Nothing).is_ok_and(|uri| is_uri(&uri))
    })
}

fn check_messages(messages: &[Message], names: &[String]) -> Result<(), ConsoleError> {
    if messages.is_empty() || messages.len() > MOST_MESSAGES {
        return Err(ConsoleError::invalid(
            "messages_invalid",
            format!("A prompt has 1 to {MOST_MESSAGES} messages."),
        )
        .field("messages"));
    }
    for (index, message) in messages.iter().enumerate() {
        check_message(&message.content, names).map_err(|text| message_fault(index, text))?;
    }
    if json!(messages).to_string().len() > MOST_BYTES {
        return Err(ConsoleError::invalid(
            "messages_invalid",
            "All messages together may have 2 MiB. Use smaller files.",
        )
        .field("messages"));
    }
    Ok(())
}

/// Refuses texts with a NUL character, or with a placeholder that is no argument.
fn check_placeholders(block: &Block, names: &[String]) -> Result<(), String> {
    for text in block.texts() {
        if text.contains('\0') {
            return Err("The text has a NUL character. Remove it.".to_owned());
        }
        if let Some(unknown) = placeholders(text)
            .into_iter()
            .find(|name| !names.iter().any(|own| own == name))
        {
            return Err(format!(
                "`{{{{{unknown}}}}}` is not an argument of this prompt. Declare it, or write `\\{{{{` to keep the braces."
            ));
        }
    }
    Ok(())
}

fn check_message(block: &Block, names: &[String]) -> Result<(), String> {
    check_placeholders(block, names)?;
    let check_file = |data: &str| {
        if STANDARD.decode(data).is_ok_and(|bytes| !bytes.is_empty()) {
            Ok(())
        } else {
            Err("Choose a file.".to_owned())
        }
    };
    let check_uri = |uri: &str| {
        if may_be_uri(uri, names) {
            Ok(())
        } else {
            Err(format!(
                "`{uri}` is not a URI: it begins with a scheme, such as `notes://`."
            ))
        }
    };
    let check_type = |mime: Option<&str>| {
        if mime.is_none_or(is_mime_type) {
            Ok(())
        } else {
            Err("Give a media type such as text/plain.".to_owned())
        }
    };
    match block {
        Block::Text { text } if text.trim().is_empty() => Err("Write a text.".to_owned()),
        Block::Text { .. } => Ok(()),
        Block::Image { data, mime_type } | Block::Audio { data, mime_type } => {
            let kind = if matches!(block, Block::Image { .. }) {
                "image/"
            } else {
                "audio/"
            };
            if !mime_type.starts_with(kind) || !is_mime_type(mime_type) {
                return Err(format!(
                    "The file is not of a type that begins with `{kind}`."
                ));
            }
            check_file(data)
        }
        Block::Resource {
            uri,
            mime_type,
            text,
            blob,
        } => {
            check_uri(uri)?;
            check_type(mime_type.as_deref())?;
            match (text, blob) {
                (Some(_), None) => Ok(()),
                (None, Some(blob)) => check_file(blob),
                _ => Err("Give the resource either a text or a file.".to_owned()),
            }
        }
        Block::ResourceLink {
            uri,
            name,
            mime_type,
            ..
        } => {
            check_type(mime_type.as_deref())?;
            if name.trim().is_empty() || name.contains('\0') {
                return Err("Give the link a name.".to_owned());
            }
            check_uri(uri)
        }
    }
}

pub(crate) struct Checked {
    name: String,
    title: String,
    description: String,
    arguments: Vec<portolan_model::prompt::Argument>,
    messages: Vec<Message>,
    enabled: Option<bool>,
}

impl Checked {
    pub(crate) fn of(form: PromptForm) -> Result<Self, ConsoleError> {
        let name = form.name.trim().to_owned();
        if !naming::is_valid(&name) {
            return Err(ConsoleError::invalid(
                "name_invalid",
                "A prompt's name has 1 to 64 letters, digits, `_` or `-`.",
            )
            .field("name"));
        }
        let text = |field, text: Option<&str>, most| {
            let text = plain_text(field, text.unwrap_or_default(), most)?;
            Ok::<_, ConsoleError>(text.unwrap_or_default().to_owned())
        };
        let title = text("title", form.title.as_deref(), 120)?;
        let description = text("description", form.description.as_deref(), 4_000)?;
        let arguments = arguments::checked(form.arguments)?;
        let names: Vec<String> = arguments.iter().map(|one| one.name.clone()).collect();
        check_messages(&form.messages, &names)?;
        Ok(Self {
            name,
            title,
            description,
            arguments,
            messages: form.messages,
            enabled: form.enabled,
        })
    }

    fn definition(&self, enabled: bool) -> Definition<'_> {
        Definition {
            name: &self.name,
            title: &self.title,
            description: &self.description,
            arguments: &self.arguments,
            messages: &self.messages,
            enabled,
        }
    }
}

impl WrittenItem for Prompt {
    type Kind = PromptKind;
    type Checked = Checked;
    type View = PromptView;
    const WORDS: ItemWords = ItemWords {
        noun: "prompt",
        address: "name",
        too_many: "too_many_prompts",
        unknown_address: "that",
        created: "prompt.created",
        changed: "prompt.changed",
        enabled: "prompt.enabled",
        disabled: "prompt.disabled",
        deleted: "prompt.deleted",
        restored: "prompt.restored",
    };

    fn address(&self) -> &str {
        &self.name
    }

    fn source(&self) -> Option<SourceId> {
        self.source_id
    }

    async fn view(self, _: &mut TenantTx) -> Result<PromptView, ConsoleError> {
        Ok(view(self))
    }

    async fn find(tx: &mut TenantTx, id: PromptId) -> Result<Option<Self>, StorageError> {
        prompts::find(tx, id).await
    }

    async fn count(tx: &mut TenantTx) -> Result<usize, StorageError> {
        Ok(prompts::list(tx).await?.len())
    }

    async fn write(
        tx: &mut TenantTx,
        id: PromptId,
        new: &Checked,
        before: Option<&Self>,
        now: Timestamp,
    ) -> Result<(), ConsoleError> {
        let enabled = before.is_none_or(|before| before.enabled);
        let definition = new.definition(new.enabled.unwrap_or(enabled));
        let written = match before {
            None => prompts::insert(tx, id, &definition, now).await,
            Some(_) => prompts::replace(tx, id, &definition, now).await.map(drop),
        };
        written.map_err(|error| Self::taken(error, &new.name))
    }

    fn new_address(new: &Checked) -> &str {
        &new.name
    }

    fn detail(new: &Checked) -> Value {
        json!({ "name": new.name, "arguments": new.arguments.len(), "messages": new.messages.len() })
    }

    fn taken(error: StorageError, name: &str) -> ConsoleError {
        if error.is_conflict_on(prompts::NAME_TAKEN) {
            ConsoleError::conflict(
                "name_taken",
                format!("This workspace has a prompt called `{name}` already."),
            )
            .field("name")
        } else if error.is_conflict_on(PromptKind::CLASH) {
            ConsoleError::conflict(
                "name_clash",
                format!("A server that offers this prompt has another one called `{name}`."),
            )
            .field("name")
        } else {
            error.into()
        }
    }
}

/// All prompts of a workspace, by name.
#[utoipa::path(get, path = "/workspaces/{ws}/prompts", tag = "prompts", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The prompts.", body = Listing<PromptSummary>)))]
pub(crate) async fn list_prompts(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<PromptSummary>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let prompts = prompts::list(&mut tx).await?.into_iter();
    Ok(Json(Listing::whole(
        prompts.map(|prompt| summary(prompt).0).collect(),
    )))
}

/// One prompt.
#[utoipa::path(get, path = "/workspaces/{ws}/prompts/{id}", tag = "prompts",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Prompt")),
    responses((status = 200, description = "The prompt.", body = PromptView)))]
pub(crate) async fn show_prompt(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<PromptKind>,
) -> Result<Json<PromptView>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let found: Prompt = written_items::found(&mut tx, id).await?;
    found.view(&mut tx).await.map(Json)
}

/// Creates a prompt.
#[utoipa::path(post, path = "/workspaces/{ws}/prompts", tag = "prompts", params(("ws" = String, Path, description = "Slug")),
    request_body = PromptForm, responses((status = 201, description = "Made.", body = PromptView)))]
pub(crate) async fn create_prompt(
    editor: Editor,
    JsonBody(form): JsonBody<PromptForm>,
) -> Result<(StatusCode, Json<PromptView>), ConsoleError> {
    written_items::create::<Prompt>(&editor, Checked::of(form)?).await
}

/// Replaces a prompt. Servers that offer it under its old name follow.
#[utoipa::path(put, path = "/workspaces/{ws}/prompts/{id}", tag = "prompts",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Prompt")),
    request_body = PromptForm, responses((status = 200, description = "Changed.", body = PromptView)))]
pub(crate) async fn rewrite_prompt(
    editor: Editor,
    PathId(id): PathId<PromptKind>,
    JsonBody(form): JsonBody<PromptForm>,
) -> Result<Json<PromptView>, ConsoleError> {
    written_items::replace::<Prompt>(&editor, id, || Checked::of(form)).await
}

/// Enables or disables a prompt.
#[utoipa::path(patch, path = "/workspaces/{ws}/prompts/{id}", tag = "prompts",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Prompt")),
    request_body = EnabledChange, responses((status = 200, description = "Changed.", body = PromptView)))]
pub(crate) async fn switch_prompt(
    editor: Editor,
    PathId(id): PathId<PromptKind>,
    JsonBody(change): JsonBody<EnabledChange>,
) -> Result<Json<PromptView>, ConsoleError> {
    written_items::switch::<Prompt>(&editor, id, &change).await
}

/// Deletes a prompt. It can be restored for 30 days.
#[utoipa::path(delete, path = "/workspaces/{ws}/prompts/{id}", tag = "prompts",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Prompt")),
    responses((status = 200, description = "Deleted.", body = Deleted)))]
pub(crate) async fn delete_prompt(
    editor: Editor,
    PathId(id): PathId<PromptKind>,
) -> Result<Json<Deleted>, ConsoleError> {
    written_items::delete::<Prompt>(&editor, id).await
}

/// Restores a deleted prompt.
#[utoipa::path(post, path = "/workspaces/{ws}/prompts/{id}/restore", tag = "prompts",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Prompt")),
    responses((status = 200, description = "Restored.", body = PromptView)))]
pub(crate) async fn restore_prompt(
    editor: Editor,
    PathId(id): PathId<PromptKind>,
) -> Result<Json<PromptView>, ConsoleError> {
    written_items::restore::<Prompt>(&editor, id).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn fault(block: Value) -> Option<String> {
        let block: Block = serde_json::from_value(block).unwrap();
        check_message(&block, &names(&["uri", "id"])).err()
    }

    #[test]
    fn pr_3_a_block_that_no_client_could_read_is_refused_with_a_sentence() {
        for good in [
            json!({"type": "text", "text": "{{id}} and \\{{braces}}"}),
            json!({"type": "image", "data": "AA==", "mime_type": "image/png"}),
            json!({"type": "resource", "uri": "{{uri}}", "mime_type": "text/plain", "text": ""}),
            json!({"type": "resource", "uri": "x://{{id}}", "blob": "AA=="}),
            json!({"type": "resource_link", "uri": "x://a", "name": "a"}),
        ] {
            assert_eq!(fault(good.clone()), None, "{good}");
        }
        for bad in [
            json!({"type": "text", "text": " "}),
            json!({"type": "text", "text": "{{unknown}}"}),
            json!({"type": "image", "data": "A", "mime_type": "image/png"}),
            json!({"type": "image", "data": "AA==", "mime_type": "text/plain"}),
            json!({"type": "resource", "uri": "no uri", "text": ""}),
            json!({"type": "resource", "uri": "x://a"}),
            json!({"type": "resource", "uri": "x://a", "text": "", "blob": "AA=="}),
            json!({"type": "resource", "uri": "x://a", "text": "", "mime_type": "text"}),
            json!({"type": "resource_link", "uri": "x://a", "name": ""}),
        ] {
            assert!(fault(bad.clone()).is_some(), "{bad}");
        }
    }
}
