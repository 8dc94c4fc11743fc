//! Sources of a file, put into a workspace by the code of the console's edits.

use std::collections::{BTreeMap, HashSet};

use portolan_bundle::{
    changes::ObjectKind,
    format::{self, DeclaredKind, Switch, Unlisted},
};
use portolan_http_tools::HandMade;
use portolan_model::{
    api_scope::ApiScope,
    id::{Id, SourceId},
    registry::{SourceKind, SourceSettings, ToolState},
};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    TenantTx,
    registry::{
        prompts,
        published_items::{self, PublishedItem},
        resources,
        sources::NewSource,
        tools::{Overrides, Tool},
        upstreams,
    },
};
use portolan_upstream_sync::sync;
use serde_json::json;

use crate::{
    change::Editor,
    configuration::{
        current::{self, Current, CurrentSource},
        forms,
        prepared::{Prepared, refused},
    },
    credentials, hand_made_tools,
    imports::{Loaded, stored_hints},
    reimports,
    source_rows::{base_url, found, imported, new_document, source_name, stored_url},
    sources::{self, Alteration},
    tools,
    upstreams::{checked_prefix, configure, endpoint_url, fits},
};

/// A request inside its transaction.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) editor: &'a Editor,
    pub(super) prepared: &'a Prepared,
    /// The workspace before.
    pub(super) before: &'a Current,
}

/// Makes the sources of a workspace those of the file. Returns those whose accounts were removed.
pub(super) async fn put_sources(
    run: Run<'_>,
    tx: &mut TenantTx,
) -> Result<Vec<SourceId>, ConsoleError> {
    let mut disconnected = Vec::new();
    for source in &run.prepared.wanted.sources {
        let key = (ObjectKind::Source, source.name.as_str());
        let put = put(run, tx, source).await;
        disconnected.extend(put.map_err(|error| refused(run.prepared, key, error))?);
    }
    Ok(disconnected)
}

async fn put(
    run: Run<'_>,
    tx: &mut TenantTx,
    source: &format::Source,
) -> Result<Option<SourceId>, ConsoleError> {
    let (id, disconnected) = match run.before.sources.get(&source.name) {
        Some(have) => {
            let accounts_removed = change(run, tx, source, have).await?;
            (have.row.id, accounts_removed.then_some(have.row.id))
        }
        None => (create(run, tx, source).await?, None),
    };
    match source.kind {
        DeclaredKind::Http => put_definitions(run, tx, id, source).await?,
        DeclaredKind::Openapi | DeclaredKind::Mcp => {}
    }
    customise(run, tx, id, source).await?;
    if source.kind == DeclaredKind::Mcp {
        switch_items(run, tx, id, source).await?;
    }
    Ok(disconnected)
}

fn base_url_required() -> ConsoleError {
    ConsoleError::invalid(
        "base_url_required",
        "The document names no server. Give the base URL of the API.",
    )
    .field("base_url")
}

async fn create(
    run: Run<'_>,
    tx: &mut TenantTx,
    source: &format::Source,
) -> Result<SourceId, ConsoleError> {
    let (state, now) = (&run.editor.state, run.editor.now);
    let (id, name) = (SourceId::generate(), source_name(&source.name)?);
    let loaded = run.prepared.documents.get(&source.name);
    let (kind, address) = match source.kind {
        DeclaredKind::Mcp => {
            let location = source.location.as_deref().unwrap_or_default();
            (SourceKind::Mcp, endpoint_url(state, location)?.to_string())
        }
        DeclaredKind::Http | DeclaredKind::Openapi => {
            let own = loaded.and_then(|loaded| loaded.import.base_url.as_ref());
            let text = source.base_url.as_ref().or(own);
            let url = base_url(state, text.ok_or_else(base_url_required)?)?;
            let kind = match source.kind {
                DeclaredKind::Http => SourceKind::Http,
                DeclaredKind::Openapi | DeclaredKind::Mcp => SourceKind::Openapi,
            };
            (kind, stored_url(&url))
        }
    };
    let hints = match loaded {
        Some(loaded) => stored_hints(&loaded.import.security)?,
        None => json!([]),
    };
    let new = NewSource {
        id,
        kind,
        name,
        base_url: &address,
        document: loaded.map(new_document),
        security: &hints,
    };
    let imported = loaded.map(all_tools).transpose()?.unwrap_or_default();
    sources::add(tx, &new, &imported, now).await?;
    put_credential(run, tx, id, source, None).await?;
    if let Some(offer) = run.prepared.offers.get(&source.name) {
        let prefix = checked_prefix(source.prefix.as_deref().unwrap_or_default())?;
        fits(prefix, offer)?;
        let hold = source.hold_changes.unwrap_or(true);
        upstreams::insert(tx, id, prefix, hold, now).await?;
        sync::take_first(tx, id, offer, prefix, None, now).await?;
    }
    let settings = forms::settings(source.settings.as_ref());
    if settings != SourceSettings::default() {
        let alteration = Alteration {
            settings: Some(settings),
            ..Alteration::default()
        };
        let made = found(tx, id).await?;
        sources::alter(run.editor, tx, &made, &alteration).await?;
    }
    Ok(id)
}

type ImportedTools = Vec<(portolan_storage::registry::tools::Imported, bool)>;

fn all_tools(loaded: &Loaded) -> Result<ImportedTools, ConsoleError> {
    let tools = loaded.import.tools();
    tools
        .map(|tool| Ok((imported(tool, None)?, true)))
        .collect()
}

/// Changes a source as the file says. True if this removed its connected accounts.
async fn change(
    run: Run<'_>,
    tx: &mut TenantTx,
    source: &format::Source,
    have: &CurrentSource,
) -> Result<bool, ConsoleError> {
    let (state, row) = (&run.editor.state, &have.row);
    let is_same_kind = matches!(
        (source.kind, row.kind),
        (DeclaredKind::Openapi, SourceKind::Openapi)
            | (DeclaredKind::Http, SourceKind::Http)
            | (DeclaredKind::Mcp, SourceKind::Mcp)
    );
    if !is_same_kind {
        return Err(ConsoleError::conflict(
            "kind_differs",
            format!(
                "The workspace has this source with the kind {}.",
                row.kind.as_str()
            ),
        )
        .field("kind"));
    }
    let loaded = run.prepared.documents.get(&source.name);
    if let Some(loaded) = loaded {
        let replaced = reimports::replace_document(tx, row, loaded, run.editor.now).await?;
        replaced.ok_or_else(|| {
            ConsoleError::conflict("document_changed", "Its document changed meanwhile.")
        })?;
    }
    let own = loaded.and_then(|loaded| loaded.import.base_url.as_ref());
    let wanted = match source.kind {
        DeclaredKind::Mcp => source.location.as_ref(),
        DeclaredKind::Openapi | DeclaredKind::Http => source.base_url.as_ref().or(own),
    };
    let wanted = wanted.filter(|text| **text != row.base_url);
    let settings = forms::settings(source.settings.as_ref());
    let alteration = Alteration {
        name: None,
        base_url: wanted.map(String::as_str),
        settings: (settings != row.settings).then_some(settings),
    };
    let mut accounts_removed = false;
    if alteration.base_url.is_some() || alteration.settings.is_some() {
        let altered = sources::alter(run.editor, tx, row, &alteration).await?;
        accounts_removed = altered.accounts_removed;
    }
    if let Some(upstream) = &have.upstream {
        let prefix = checked_prefix(source.prefix.as_deref().unwrap_or_default())?;
        let prefix = (prefix != upstream.prefix).then_some(prefix);
        let hold = source.hold_changes.unwrap_or(true);
        let hold = (hold != upstream.hold_changes).then_some(hold);
        if prefix.is_some() || hold.is_some() {
            configure(tx, row.id, &upstream.prefix, (prefix, hold)).await?;
        }
    }
    // A credential that a change of the address removed fills no reference to the vault: the secret
    // would go to another host.
    let is_kept = found(tx, row.id).await?.credential.is_some();
    let have_credential = have.credential.as_ref().filter(|_| is_kept);
    let wanted = run
        .prepared
        .credential(run.editor, source, have_credential)?;
    let differs = match &wanted {
        Some(wanted) => !is_kept || have.mark != Some(current::mark(state, wanted)?),
        None => false,
    };
    if differs {
        put_credential(run, tx, row.id, source, have_credential).await?;
    }
    Ok(accounts_removed)
}

/// Sets the credential of a source, if the file has one. A token needs the scope for it.
async fn put_credential(
    run: Run<'_>,
    tx: &mut TenantTx,
    id: SourceId,
    source: &format::Source,
    have: Option<&portolan_http_tools::Credential>,
) -> Result<(), ConsoleError> {
    let Editor {
        state, workspace, ..
    } = run.editor;
    let Some(credential) = run.prepared.credential(run.editor, source, have)? else {
        return Ok(());
    };
    let scope = ApiScope::CredentialsWrite;
    if !workspace.caller.has(scope) {
        return Err(ConsoleError::insufficient_scope(scope));
    }
    let row = found(tx, id).await?;
    credentials::put(state, tx, workspace, &row, &credential, run.editor.now)
        .await
        .map(drop)
}

/// Makes the defined tools of a source those of the file.
async fn put_definitions(
    run: Run<'_>,
    tx: &mut TenantTx,
    id: SourceId,
    source: &format::Source,
) -> Result<(), ConsoleError> {
    let now = run.editor.now;
    let present: BTreeMap<String, Tool> = reimports::tools_of(tx, id)
        .await?
        .into_iter()
        .map(|tool| (tool.original.name.clone(), tool))
        .collect();
    for (name, tool) in &present {
        if !source.tools.contains_key(name) {
            portolan_storage::registry::tools::delete_hand_made(tx, tool.id).await?;
        }
    }
    for (name, wanted) in &source.tools {
        let Some(define) = &wanted.define else {
            continue;
        };
        let definition = forms::hand_made(name, define);
        let at = |error: ConsoleError| error.field(format!("tools.{name}"));
        match present.get(name) {
            Some(tool) if is_defined_as(tool, &definition) => {}
            Some(tool) => hand_made_tools::redefine(tx, tool, &definition, now)
                .await
                .map_err(at)?,
            None => {
                let made = hand_made_tools::add(tx, id, (&definition, true), now).await;
                made.map_err(at)?;
            }
        }
    }
    Ok(())
}

fn is_defined_as(tool: &Tool, definition: &HandMade) -> bool {
    let stored = tool.definition.clone();
    let stored: Option<HandMade> = stored.and_then(|stored| serde_json::from_value(stored).ok());
    stored
        .as_ref()
        .map(|stored| forms::definition(stored.clone()))
        == Some(forms::definition(definition.clone()))
}

/// The replacements and the switch of a tool in the file.
fn replacements(tool: &Tool, wanted: &format::DeclaredTool) -> Result<Overrides, ConsoleError> {
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let name = filled(&wanted.name)
        .map(|name| tools::tool_name(&name))
        .transpose()?;
    let text = |field, text: &Option<String>, most| {
        filled(text)
            .map(|text| tools::wording(field, &text, most))
            .transpose()
    };
    Ok(Overrides {
        name: name.filter(|name| *name != tool.original.name),
        title: text("title", &wanted.title, 120)?,
        description: text("description", &wanted.description, 4_000)?,
    })
}

/// Gives the tools of a source the names, texts and switches of the file.
async fn customise(
    run: Run<'_>,
    tx: &mut TenantTx,
    id: SourceId,
    source: &format::Source,
) -> Result<(), ConsoleError> {
    let all = reimports::tools_of(tx, id).await?;
    let active = || all.iter().filter(|tool| tool.state == ToolState::Active);
    let default = format::DeclaredTool {
        enabled: Some(source.unlisted != Some(Unlisted::Disabled)),
        ..format::DeclaredTool::default()
    };
    let mut known: HashSet<&str> = HashSet::new();
    for tool in active() {
        let key = current::tool_key(tool);
        let named = source.tools.get_key_value(key);
        let named = named.or_else(|| source.tools.get_key_value(&tool.original.name));
        known.extend(named.map(|(key, _)| key.as_str()));
        let wanted = named.map_or(&default, |(_, wanted)| wanted);
        let at = |error: ConsoleError| error.field(format!("tools.{key}"));
        let overrides = replacements(tool, wanted).map_err(at)?;
        let enabled = wanted.enabled.unwrap_or(true);
        if overrides != tool.overrides || enabled != tool.enabled {
            let customised = tools::customise(tx, tool, &overrides, enabled, run.editor.now).await;
            customised.map_err(at)?;
        }
    }
    let mut keys = source.tools.keys();
    let Some(unknown) = keys.find(|key| !known.contains(key.as_str())) else {
        return Ok(());
    };
    let message = format!("The source has no operation `{unknown}`.");
    Err(ConsoleError::invalid("operation_unknown", message).field(format!("tools.{unknown}")))
}

/// Enables and disables the prompts and resources of an MCP server.
async fn switch_items(
    run: Run<'_>,
    tx: &mut TenantTx,
    id: SourceId,
    source: &format::Source,
) -> Result<(), ConsoleError> {
    let active = |from: Option<SourceId>, state| from == Some(id) && state == ToolState::Active;
    let prompts: Vec<_> = prompts::list(tx)
        .await?
        .into_iter()
        .filter(|one| active(one.source_id, one.state))
        .map(|one| (one.id, one.name))
        .collect();
    switch(run, tx, &prompts, ("prompts", &source.prompts)).await?;
    let resources: Vec<_> = resources::list(tx)
        .await?
        .into_iter()
        .filter(|one| active(one.source_id, one.state))
        .map(|one| (one.id, one.uri))
        .collect();
    switch(run, tx, &resources, ("resources", &source.resources)).await
}

async fn switch<K: PublishedItem>(
    run: Run<'_>,
    tx: &mut TenantTx,
    items: &[(Id<K>, String)],
    (field, switches): (&str, &BTreeMap<String, Switch>),
) -> Result<(), ConsoleError> {
    if let Some(unknown) = switches
        .keys()
        .find(|key| !items.iter().any(|(_, own)| own == *key))
    {
        let message = format!("The server has nothing called `{unknown}`.");
        return Err(
            ConsoleError::invalid("item_unknown", message).field(format!("{field}.{unknown}"))
        );
    }
    for is_on in [true, false] {
        let ids: Vec<Id<K>> = items
            .iter()
            .filter(|(_, key)| switches.get(key).is_none_or(|own| own.enabled) == is_on)
            .map(|(id, _)| *id)
            .collect();
        published_items::set_enabled(tx, &ids, is_on, run.editor.now).await?;
    }
    Ok(())
}
