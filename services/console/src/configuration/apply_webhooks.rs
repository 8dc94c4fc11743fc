//! Endpoints of webhooks of a file, put into a workspace (CONF-14).

use portolan_bundle::{changes::ObjectKind, format::DeclaredWebhook};
use portolan_model::{api_scope::ApiScope, id::WebhookId};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    TenantTx, events,
    webhooks::{
        alerts,
        endpoints::{
            self, EndpointChange, MOST, NewSecrets, NewWebhookEndpoint, SealedEndpoint,
            WebhookForm, WebhookState,
        },
    },
};
use portolan_upstream_sync::credentials::data_key;
use portolan_webhooks::secrets::{EndpointPlace, EndpointSecrets};
use serde_json::json;

use crate::{
    configuration::{
        apply_sources::Run, current::CurrentWebhook, declared_webhooks::PreparedWebhook,
        prepared::refused,
    },
    webhooks::{fault, too_many},
};

/// Makes the endpoints of a workspace those of the file.
pub(super) async fn put_webhooks(run: Run<'_>, tx: &mut TenantTx) -> Result<(), ConsoleError> {
    for webhook in &run.prepared.wanted.webhooks {
        let key = (ObjectKind::Webhook, webhook.url.as_str());
        let put = put(run, tx, webhook).await;
        put.map_err(|error| refused(run.prepared, key, error))?;
    }
    Ok(())
}

fn changed_meanwhile() -> ConsoleError {
    let message = "This endpoint was changed meanwhile. Plan again.";
    ConsoleError::conflict("changed_meanwhile", message)
}

async fn put(
    run: Run<'_>,
    tx: &mut TenantTx,
    wanted: &DeclaredWebhook,
) -> Result<(), ConsoleError> {
    let prepared = run.prepared.webhooks.get(&wanted.url);
    let have = run.before.webhooks.get(&wanted.url);
    match (prepared, have) {
        (Some(prepared), None) if prepared.is_new => create(run, tx, prepared, wanted).await,
        (Some(prepared), Some(have)) if prepared.id == have.row.id => {
            change(run, tx, prepared, have).await
        }
        _ => Err(changed_meanwhile()),
    }
}

/// Seals the secrets of an endpoint as this version.
async fn seal(
    run: Run<'_>,
    tx: &mut TenantTx,
    (id, version): (WebhookId, i32),
    secrets: &EndpointSecrets,
) -> Result<SealedEndpoint, ConsoleError> {
    let (state, now) = (&run.editor.state, run.editor.now);
    let tenant = run.editor.workspace.id;
    let key = data_key::<ConsoleError>(state, tx, tenant, now).await?;
    let place = EndpointPlace {
        tenant,
        endpoint: id,
    };
    place
        .seal(&state.keys, key, version, secrets, now)
        .map_err(fault)
}

async fn create(
    run: Run<'_>,
    tx: &mut TenantTx,
    prepared: &PreparedWebhook,
    wanted: &DeclaredWebhook,
) -> Result<(), ConsoleError> {
    let Some(secrets) = &prepared.secrets else {
        return Err(changed_meanwhile());
    };
    let id = prepared.id;
    let sealed = seal(run, tx, (id, 1), secrets).await?;
    let header_names = secrets.header_names();
    let new = NewWebhookEndpoint {
        id,
        form: WebhookForm::Standard,
        url: &wanted.url,
        description: &prepared.description,
        event_types: &prepared.events,
        header_names: &header_names,
        secrets: &sealed,
        created_by: run.editor.workspace.caller.user(),
    };
    endpoints::insert(tx, &new, run.editor.now).await?;
    if prepared.state == WebhookState::Paused {
        endpoints::set_state(tx, id, prepared.state, run.editor.now).await?;
    }
    Ok(())
}

async fn change(
    run: Run<'_>,
    tx: &mut TenantTx,
    prepared: &PreparedWebhook,
    have: &CurrentWebhook,
) -> Result<(), ConsoleError> {
    let (row, now) = (&have.row, run.editor.now);
    if let Some(secrets) = &prepared.secrets {
        let version = row.secrets.version + 1;
        let sealed = seal(run, tx, (row.id, version), secrets).await?;
        let new = NewSecrets {
            url: &row.url,
            header_names: &secrets.header_names(),
            secrets: &sealed,
            previous_secret_until: row.previous_secret_until,
        };
        if !endpoints::replace_secrets(tx, row.id, &new, now).await? {
            return Err(changed_meanwhile());
        }
    }
    let has_other_texts =
        prepared.events != row.event_types || prepared.description != row.description;
    if has_other_texts {
        require_scope(run)?;
        let changed = EndpointChange {
            description: Some(&prepared.description),
            event_types: Some(&prepared.events),
        };
        endpoints::change(tx, row.id, &changed, now).await?;
    }
    let is_paused = row.state == WebhookState::Paused;
    if is_paused != (prepared.state == WebhookState::Paused) {
        require_scope(run)?;
        let before = endpoints::set_state(tx, row.id, prepared.state, now).await?;
        if before == Some(WebhookState::Disabled) {
            // As in the console: it ends the alert.
            let workspace = &run.editor.workspace;
            let event = workspace.event("webhook.enabled", "webhook", row.id, json!({}));
            events::write_of_entry(tx, &event, now).await?;
        }
    }
    Ok(())
}

fn require_scope(run: Run<'_>) -> Result<(), ConsoleError> {
    let scope = ApiScope::WebhooksWrite;
    run.editor.workspace.require_scope(scope)
}

/// Deletes an endpoint that the file does not have, with its deliveries.
pub(super) async fn remove(
    run: Run<'_>,
    tx: &mut TenantTx,
    webhook: &CurrentWebhook,
) -> Result<(), ConsoleError> {
    let id = webhook.row.id;
    require_scope(run)?;
    endpoints::delete(tx, id).await?;
    alerts::end_of(tx, &id.to_string(), run.editor.now).await?;
    Ok(())
}

/// Refuses more endpoints than a workspace may have (HOOK-4). It is asked after the deletions.
pub(super) async fn check_count(run: Run<'_>, tx: &mut TenantTx) -> Result<(), ConsoleError> {
    let makes_some = run.prepared.webhooks.values().any(|one| one.is_new);
    if makes_some && endpoints::count_alone(tx).await? > MOST {
        return Err(too_many().field("webhooks"));
    }
    Ok(())
}
