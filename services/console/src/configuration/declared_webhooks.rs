//! Endpoints of webhooks in a file, before its transaction: checked as the console checks them, with
//! the challenge that a new one must answer (CONF-14, HOOK-3).

use std::collections::{BTreeMap, HashSet};

use portolan_bundle::{
    Bundle, SecretReference,
    format::{DeclaredWebhook, HeaderSecret, WebhookStatus},
    secret::SecretStore,
};
use portolan_keys::WebhookSecret;
use portolan_model::{api_scope::ApiScope, id::WebhookId, member::Action};
use portolan_site::console_error::ConsoleError;
use portolan_storage::webhooks::endpoints::{WebhookForm, WebhookState};
use portolan_webhooks::secrets::EndpointSecrets;

use crate::{
    change::Editor,
    configuration::current::{self, CurrentWebhook},
    input::plain_text,
    webhooks::{
        checked_events,
        target::{Challenge, WebhookHeader, checked_headers, checked_url, read_url},
    },
};

/// Longest note of an endpoint.
const LONGEST_NOTE: usize = 200;

/// The purpose of reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is sent.
    Plan,
    /// New endpoints must answer their challenge.
    Apply,
}

/// An endpoint of a file that is ready for its transaction.
pub(super) struct PreparedWebhook {
    pub(super) id: WebhookId,
    /// The workspace has no endpoint with this URL.
    pub(super) is_new: bool,
    pub(super) description: String,
    pub(super) events: Vec<String>,
    pub(super) state: WebhookState,
    /// URL, headers and signing secrets; `None` if they stay.
    pub(super) secrets: Option<EndpointSecrets>,
}

/// Writes the URLs of a file as the workspace keeps them: they are keys. The error has the index of
/// the first endpoint whose URL does not read, or stands twice.
pub(super) fn normalise(bundle: &mut Bundle) -> Result<(), (usize, ConsoleError)> {
    let mut seen = HashSet::new();
    for (index, webhook) in bundle.webhooks.iter_mut().enumerate() {
        let url = read_url(&webhook.url).map_err(|error| (index, error))?;
        webhook.url = url.into();
        if !seen.insert(webhook.url.clone()) {
            let message = "Two of the webhooks have this URL.";
            let error = ConsoleError::invalid("configuration_invalid", message).field("url");
            return Err((index, error));
        }
    }
    Ok(())
}

/// Checks what needs no workspace.
pub(super) fn check(webhook: &DeclaredWebhook) -> Result<(), ConsoleError> {
    checked_events(&webhook.events)?;
    note(webhook)?;
    let any = |header: &HeaderSecret| WebhookHeader::new(header.name.clone(), "any".to_owned());
    let headers: Vec<_> = webhook.headers.iter().map(any).collect();
    checked_headers(&headers).map(drop)
}

fn note(webhook: &DeclaredWebhook) -> Result<&str, ConsoleError> {
    let text = webhook.description.as_deref().unwrap_or_default();
    let note = plain_text("description", text, LONGEST_NOTE)?;
    Ok(note.unwrap_or_default())
}

/// Checks an endpoint of a file. `have` is the one with this URL. A new one, and one with other
/// headers, must answer a signed challenge before it is applied.
pub(super) async fn prepare(
    editor: &Editor,
    secrets: &BTreeMap<String, String>,
    (wanted, have): (&DeclaredWebhook, Option<&CurrentWebhook>),
    stage: Stage,
) -> Result<PreparedWebhook, ConsoleError> {
    let (state, workspace) = (&editor.state, &editor.workspace);
    workspace.require(Action::Administer)?;
    if !current::sees_webhooks(workspace) {
        return Err(ConsoleError::insufficient_scope(ApiScope::WebhooksWrite));
    }
    let url = checked_url(state, &wanted.url)?;
    let headers = headers(wanted, have, secrets)?;
    let id = have.map_or_else(WebhookId::generate, |have| have.row.id);
    let changed = match have {
        None => Some(EndpointSecrets {
            url: url.to_string(),
            headers,
            secrets: vec![WebhookSecret::generate()?.text().expose().clone()],
        }),
        Some(have) if current::sorted(&headers) != current::sorted(&have.secrets.headers) => {
            Some(EndpointSecrets {
                headers,
                ..have.secrets.clone()
            })
        }
        Some(_) => None,
    };
    let prepared = PreparedWebhook {
        id,
        is_new: have.is_none(),
        description: note(wanted)?.to_owned(),
        events: checked_events(&wanted.events)?,
        state: match wanted.status {
            Some(WebhookStatus::Paused) => WebhookState::Paused,
            Some(WebhookStatus::Active) | None => WebhookState::Active,
        },
        secrets: changed,
    };
    if let Some(secrets) = &prepared.secrets {
        workspace.require_recent_for_webhooks(editor.now)?;
        if stage == Stage::Apply {
            let challenge = Challenge {
                endpoint: id,
                form: WebhookForm::Standard,
                secrets,
            };
            challenge.pass(state, workspace, editor.now).await?;
        }
    }
    Ok(prepared)
}

/// The headers of an endpoint with their values: names and values.
fn headers(
    wanted: &DeclaredWebhook,
    have: Option<&CurrentWebhook>,
    secrets: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, ConsoleError> {
    let mut filled = Vec::with_capacity(wanted.headers.len());
    for header in &wanted.headers {
        let value = value_of(header, wanted, have, secrets);
        let value = value.map_err(|error| error.field("headers"))?;
        filled.push(WebhookHeader::new(header.name.clone(), value));
    }
    checked_headers(&filled)
}

fn value_of(
    header: &HeaderSecret,
    wanted: &DeclaredWebhook,
    have: Option<&CurrentWebhook>,
    secrets: &BTreeMap<String, String>,
) -> Result<String, ConsoleError> {
    let reference = &header.secret;
    let (store, name) = reference.parts();
    let is_kept = store == SecretStore::Vault;
    if is_kept && name != wanted.url {
        let own = SecretReference::vault(&wanted.url);
        let message = format!("{reference} is not of this endpoint: write {own}.");
        return Err(ConsoleError::invalid("secret_unknown", message));
    }
    if let Some(value) = secrets.get(reference.as_str()) {
        return Ok(value.clone());
    }
    let named = |own: &&(String, String)| own.0.eq_ignore_ascii_case(header.name.trim());
    let kept = have.filter(|_| is_kept);
    let kept = kept.and_then(|have| have.secrets.headers.iter().find(named));
    kept.map(|(_, value)| value.clone()).ok_or_else(|| {
        let message = format!("{reference} has no value. Send it in `secrets`.");
        ConsoleError::invalid("secret_missing", message)
    })
}
