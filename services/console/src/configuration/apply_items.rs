//! Prompts, resources and servers of a file, put into a workspace by the code of the console's
//! edits; owners, and what the file does not have any more.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portolan_bundle::{
    canonical::canonical,
    changes::{ObjectKey, ObjectKind, objects},
    format::{self, Bundle, Holds, Status},
};
use portolan_model::{
    id::{PromptId, ResourceId, ServerId},
    registry::{ServerStatus, ToolState},
};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    TenantTx, events,
    registry::{
        configuration,
        prompts::{self, Prompt},
        resources::{self, RegistryResource},
        servers::{self, Changes},
        sources,
        tools::{self, Filter, Tool},
        trash,
    },
    webhooks::endpoints,
};
use serde_json::json;

use crate::{
    choices::{self, ChosenTool, PROMPTS, RESOURCES, TOOLS},
    configuration::{
        apply_sources::Run,
        apply_webhooks,
        current::{self, Current},
        forms,
        prepared::{Prune, index_of, refused},
    },
    imports, offers,
    prompts::Checked as CheckedPrompt,
    resources::form::Checked as CheckedResource,
    servers::{ServerTexts, add, found_server, switch},
    sources as source_edits, written_items,
};

/// Makes the written prompts and resources of a workspace those of the file.
pub(super) async fn put_items(run: Run<'_>, tx: &mut TenantTx) -> Result<(), ConsoleError> {
    let bundle = canonical(run.prepared.wanted.clone());
    let present = objects(&run.before.bundle);
    let wanted = objects(&bundle);
    for prompt in &bundle.prompts {
        let key = (ObjectKind::Prompt, prompt.name.clone());
        if present.get(&key) == wanted.get(&key) {
            continue;
        }
        put_prompt(run, tx, prompt)
            .await
            .map_err(|error| refused(run.prepared, (key.0, key.1.as_str()), error))?;
    }
    for resource in &bundle.resources {
        let key = (ObjectKind::Resource, resource.uri.clone());
        if is_same_resource(run, resource) {
            continue;
        }
        put_resource(run, tx, resource)
            .await
            .map_err(|error| refused(run.prepared, (key.0, key.1.as_str()), error))?;
    }
    Ok(())
}

async fn put_prompt(
    run: Run<'_>,
    tx: &mut TenantTx,
    prompt: &format::DeclaredPrompt,
) -> Result<(), ConsoleError> {
    let now = run.editor.now;
    let checked = CheckedPrompt::of(forms::prompt_form(prompt)?)?;
    match run.before.prompts.get(&prompt.name) {
        Some(have) => written_items::overwrite(tx, have.id, have, &checked, now).await,
        None => written_items::add::<Prompt>(tx, &checked, now)
            .await
            .map(drop),
    }
}

/// Whether the workspace has this resource already, with this content.
fn is_same_resource(run: Run<'_>, wanted: &format::DeclaredResource) -> bool {
    let Some(have) = run.before.resources.get(&wanted.uri) else {
        return false;
    };
    let mut all = run.before.bundle.resources.iter();
    let Some(present) = all.find(|one| one.uri == wanted.uri) else {
        return false;
    };
    let same_content = match (&wanted.holds, &present.holds) {
        (Holds::Text(text), Holds::Text(_)) => is_digest_of(run, have.id, text.as_bytes()),
        (Holds::File(data), Holds::File(_)) => STANDARD
            .decode(data)
            .is_ok_and(|bytes| is_digest_of(run, have.id, &bytes)),
        (wanted, present) => wanted == present,
    };
    let rest = format::DeclaredResource {
        holds: present.holds.clone(),
        ..wanted.clone()
    };
    same_content && rest == *present
}

fn is_digest_of(run: Run<'_>, id: ResourceId, bytes: &[u8]) -> bool {
    let present = run.before.digests.get(&id);
    present.is_some_and(|present| *present == imports::hex(&portolan_keys::digest(bytes)))
}

async fn put_resource(
    run: Run<'_>,
    tx: &mut TenantTx,
    resource: &format::DeclaredResource,
) -> Result<(), ConsoleError> {
    let now = run.editor.now;
    let source = match &resource.holds {
        Holds::Http(read) => {
            let all = sources::list(tx).await?;
            let found = all.into_iter().find(|source| source.name == read.source);
            let found = found.ok_or_else(|| {
                let key = (ObjectKind::Source, read.source.as_str());
                unknown(run, ("source", &read.source), key, "holds.http.source")
            })?;
            Some(found.id)
        }
        Holds::Text(_) | Holds::File(_) => None,
    };
    let checked = CheckedResource::of(forms::resource_form(resource, source)?)?;
    match run.before.resources.get(&resource.uri) {
        Some(have) => written_items::overwrite(tx, have.id, have, &checked, now).await,
        None => written_items::add::<RegistryResource>(tx, &checked, now)
            .await
            .map(drop),
    }
}

/// The refusal of a reference to what is not there. `of` is the object that would bring it.
fn unknown(
    run: Run<'_>,
    (what, name): (&str, &str),
    of: (ObjectKind, &str),
    field: &str,
) -> ConsoleError {
    let (kind, key) = of;
    let is_left_out = index_of(&run.prepared.parsed, kind, key).is_some()
        && !run.prepared.selection.has(&(kind, key.to_owned()));
    let message = if is_left_out {
        let section = kind.section();
        format!(
            "The workspace does not have the {what} `{name}`, and `{section}/{key}` of the file is not selected. Select it too."
        )
    } else {
        format!("Neither the file nor the workspace has the {what} `{name}`.")
    };
    ConsoleError::invalid("reference_unknown", message).field(field)
}

/// The items that servers can publish, after sources and items are in place.
struct Publishable {
    /// By source and key.
    tools: BTreeMap<(String, String), Tool>,
    /// By source, if there is one, and name.
    prompts: HashMap<(Option<String>, String), PromptId>,
    resources: HashMap<(Option<String>, String), ResourceId>,
}

impl Publishable {
    async fn read(tx: &mut TenantTx) -> Result<Self, ConsoleError> {
        let tools = tools::list(tx, &Filter::default(), i64::from(i32::MAX)).await?;
        let tools = tools
            .into_iter()
            .filter(|tool| tool.state == ToolState::Active)
            .map(|tool| {
                let key = current::tool_key(&tool).to_owned();
                ((tool.source_name.clone(), key), tool)
            });
        let prompts = prompts::list(tx).await?.into_iter().map(|one| {
            let source = one.source_id.and(one.source_name);
            ((source, one.name), one.id)
        });
        let resources = resources::list(tx).await?.into_iter().map(|one| {
            let source = one.source_id.and(one.source_name);
            ((source, one.uri), one.id)
        });
        Ok(Self {
            tools: tools.collect(),
            prompts: prompts.collect(),
            resources: resources.collect(),
        })
    }

    /// A tool by its key, its imported name, or its present name.
    fn tool(&self, source: &str, name: &str) -> Option<&Tool> {
        let exact = self.tools.get(&(source.to_owned(), name.to_owned()));
        let of_source = || {
            let all = self.tools.iter().filter(|((own, _), _)| own == source);
            all.map(|(_, tool)| tool)
        };
        exact
            .or_else(|| of_source().find(|tool| tool.original.name == name))
            .or_else(|| of_source().find(|tool| tool.name() == name))
    }

    /// The server with all its tools by their keys.
    fn resolved(
        &self,
        run: Run<'_>,
        server: &format::DeclaredServer,
    ) -> Result<format::DeclaredServer, ConsoleError> {
        let mut resolved = server.clone();
        let mut tools = BTreeMap::new();
        for source in &server.from {
            let all = self.tools.iter();
            let of_source: Vec<_> = all.filter(|((own, _), _)| own == source).collect();
            if of_source.is_empty() {
                let of = (ObjectKind::Source, source.as_str());
                return Err(unknown(run, ("source", source), of, "from"));
            }
            let enabled = of_source.into_iter().filter(|(_, tool)| tool.enabled);
            tools.extend(enabled.map(|(key, _)| (key.clone(), None)));
        }
        for wanted in &server.tools {
            let found = self.tool(&wanted.source, &wanted.tool);
            let found = found.ok_or_else(|| {
                let name = format!("{} of {}", wanted.tool, wanted.source);
                let of = (ObjectKind::Source, wanted.source.as_str());
                unknown(run, ("tool", &name), of, "tools")
            })?;
            let key = (wanted.source.clone(), current::tool_key(found).to_owned());
            let name = wanted.published_name.clone();
            tools.insert(key, name.filter(|name| name != found.name()));
        }
        let tools = tools
            .into_iter()
            .map(|((source, tool), published_name)| format::ServerTool {
                source,
                tool,
                published_name,
            });
        resolved.tools = tools.collect();
        resolved.from.clear();
        Ok(resolved)
    }
}

/// Makes the servers of a workspace those of the file.
pub(super) async fn put_servers(run: Run<'_>, tx: &mut TenantTx) -> Result<(), ConsoleError> {
    let bundle = canonical(run.prepared.wanted.clone());
    if bundle.servers.is_empty() {
        return Ok(());
    }
    let publishable = Publishable::read(tx).await?;
    let present: HashMap<&str, &format::DeclaredServer> = run
        .before
        .bundle
        .servers
        .iter()
        .map(|server| (server.slug.as_str(), server))
        .collect();
    for server in &bundle.servers {
        let at = |error| {
            refused(
                run.prepared,
                (ObjectKind::Server, server.slug.as_str()),
                error,
            )
        };
        let resolved = publishable.resolved(run, server).map_err(at)?;
        let resolved = canonical(Bundle {
            servers: vec![resolved],
            ..Bundle::default()
        });
        let resolved = &resolved.servers[0];
        let have = present.get(server.slug.as_str()).copied();
        put_server(run, tx, (resolved, have), &publishable)
            .await
            .map_err(at)?;
    }
    Ok(())
}

async fn put_server(
    run: Run<'_>,
    tx: &mut TenantTx,
    (wanted, have): (&format::DeclaredServer, Option<&format::DeclaredServer>),
    publishable: &Publishable,
) -> Result<(), ConsoleError> {
    let now = run.editor.now;
    let texts = ServerTexts::checked(
        wanted.name.as_deref().unwrap_or(&wanted.slug),
        wanted.description.as_deref(),
        wanted.instructions.as_deref(),
    )?;
    let id = match run.before.servers.get(&wanted.slug) {
        Some(server) => server.id,
        None => match configuration::deleted_server(tx, &wanted.slug, now).await? {
            // Its address is still its own.
            Some(deleted) => {
                trash::restore(tx, deleted, now).await?;
                deleted
            }
            None => {
                let id = ServerId::generate();
                add(tx, id, &wanted.slug, &texts, now).await?;
                id
            }
        },
    };
    let texts_of = |server: &format::DeclaredServer| {
        (
            server.name.clone(),
            server.description.clone(),
            server.instructions.clone(),
        )
    };
    if have.is_none_or(|have| texts_of(have) != texts_of(wanted)) {
        let changes = Changes {
            name: Some(texts.name),
            slug: None,
            description: Some(texts.description),
            instructions: Some(texts.instructions),
        };
        servers::update(tx, id, &changes, now).await?;
    }
    choose(run, tx, id, (wanted, have), publishable).await?;
    set_status(run, tx, id, wanted.status).await
}

async fn choose(
    run: Run<'_>,
    tx: &mut TenantTx,
    id: ServerId,
    (wanted, have): (&format::DeclaredServer, Option<&format::DeclaredServer>),
    publishable: &Publishable,
) -> Result<(), ConsoleError> {
    let now = run.editor.now;
    if have.is_none_or(|have| have.tools != wanted.tools) {
        let chosen = wanted.tools.iter().filter_map(|one| {
            let found = publishable.tool(&one.source, &one.tool)?;
            Some(ChosenTool {
                tool_id: found.id,
                published_name: one.published_name.clone(),
            })
        });
        let rows = choices::tool_rows(tx, chosen.collect()).await?;
        choices::put(tx, id, &rows, &TOOLS, now).await?;
    }
    if have.is_none_or(|have| have.prompts != wanted.prompts) {
        let mut chosen = Vec::with_capacity(wanted.prompts.len());
        for one in &wanted.prompts {
            let key = (one.source.clone(), one.prompt.clone());
            let found = publishable.prompts.get(&key);
            let found = found.ok_or_else(|| {
                let of = origin(ObjectKind::Prompt, one.source.as_deref(), &one.prompt);
                unknown(run, ("prompt", &one.prompt), of, "prompts")
            })?;
            chosen.push((*found, one.published_name.clone()));
        }
        let rows = offers::prompt_rows(tx, chosen).await?;
        choices::put(tx, id, &rows, &PROMPTS, now).await?;
    }
    if have.is_none_or(|have| have.resources != wanted.resources) {
        let mut chosen = Vec::with_capacity(wanted.resources.len());
        for one in &wanted.resources {
            let key = (one.source.clone(), one.uri.clone());
            let found = publishable.resources.get(&key);
            let found = found.ok_or_else(|| {
                let of = origin(ObjectKind::Resource, one.source.as_deref(), &one.uri);
                unknown(run, ("resource", &one.uri), of, "resources")
            })?;
            chosen.push((*found, one.published_uri.clone()));
        }
        let rows = offers::resource_rows(tx, chosen).await?;
        choices::put(tx, id, &rows, &RESOURCES, now).await?;
    }
    Ok(())
}

/// The object that brings an item: its source, or itself if it is written here.
fn origin<'k>(kind: ObjectKind, source: Option<&'k str>, own: &'k str) -> (ObjectKind, &'k str) {
    source.map_or((kind, own), |source| (ObjectKind::Source, source))
}

/// Publishes or pauses a server. Subscribers are notified as after a change in the console.
async fn set_status(
    run: Run<'_>,
    tx: &mut TenantTx,
    id: ServerId,
    wanted: Option<Status>,
) -> Result<(), ConsoleError> {
    let editor = run.editor;
    let server = found_server(tx, id).await?;
    let wanted = wanted.unwrap_or(Status::Published);
    if current::status(server.status) == wanted {
        return Ok(());
    }
    let (status, action) = match wanted {
        Status::Published => (ServerStatus::Published, "server.published"),
        Status::Paused => (ServerStatus::Paused, "server.paused"),
        Status::Draft => {
            let message = "A server that was published is no draft any more. Pause it.";
            return Err(ConsoleError::invalid("status_invalid", message).field("status"));
        }
    };
    let by = (&editor.workspace, &editor.context);
    switch(tx, by, id, status, editor.now).await?;
    let detail = json!({ "slug": server.slug });
    let event = editor.workspace.event(action, "server", id, detail);
    events::write_of_entry(tx, &event, editor.now).await?;
    Ok(())
}

/// Makes the file the owner of its objects. `after` is the workspace that has them.
pub(super) async fn own(
    run: Run<'_>,
    tx: &mut TenantTx,
    after: &Current,
) -> Result<(), ConsoleError> {
    let bundle = &run.prepared.wanted;
    for key in objects(bundle).into_keys() {
        if after.owner(&key) == Some(bundle.name.as_str()) {
            continue;
        }
        let (kind, name) = (key.0, key.1.as_str());
        match kind {
            ObjectKind::Source => {
                let id = after.sources.get(name).map(|source| source.row.id);
                set_owner(tx, id, &bundle.name).await?;
            }
            ObjectKind::Prompt => {
                let id = after.prompts.get(name).map(|prompt| prompt.id);
                set_owner(tx, id, &bundle.name).await?;
            }
            ObjectKind::Resource => {
                let id = after.resources.get(name).map(|resource| resource.id);
                set_owner(tx, id, &bundle.name).await?;
            }
            ObjectKind::Server => {
                let id = after.servers.get(name).map(|server| server.id);
                set_owner(tx, id, &bundle.name).await?;
            }
            ObjectKind::Webhook => {
                if let Some(webhook) = after.webhooks.get(name) {
                    endpoints::set_owner(tx, webhook.row.id, &bundle.name).await?;
                }
            }
        }
    }
    Ok(())
}

async fn set_owner<K: trash::Restorable>(
    tx: &mut TenantTx,
    id: Option<portolan_model::id::Id<K>>,
    owner: &str,
) -> Result<(), ConsoleError> {
    if let Some(id) = id {
        configuration::set_owner(tx, id, owner).await?;
    }
    Ok(())
}

/// Deletes objects that the file does not have, as far as it may (CONF-6).
pub(super) async fn prune(run: Run<'_>, tx: &mut TenantTx) -> Result<(), ConsoleError> {
    let bundle = &run.prepared.wanted;
    let kept: BTreeSet<ObjectKey> = objects(bundle).into_keys().collect();
    let present = objects(&run.before.bundle).into_keys();
    let gone = present.filter(|key| {
        let is_its_own = match run.prepared.sent.prune {
            Prune::None => false,
            Prune::Owned => run.before.owner(key) == Some(bundle.name.as_str()),
            Prune::All => true,
        };
        is_its_own && !kept.contains(key) && run.prepared.selection.has(key)
    });
    for key in gone {
        remove(run, tx, &key).await?;
    }
    Ok(())
}

async fn remove(run: Run<'_>, tx: &mut TenantTx, key: &ObjectKey) -> Result<(), ConsoleError> {
    let (before, now): (&Current, _) = (run.before, run.editor.now);
    let name = key.1.as_str();
    match key.0 {
        ObjectKind::Source => {
            if let Some(source) = before.sources.get(name) {
                source_edits::remove(tx, source.row.id, now).await?;
            }
        }
        ObjectKind::Prompt => {
            if let Some(prompt) = before.prompts.get(name) {
                trash::delete(tx, prompt.id, now).await?;
            }
        }
        ObjectKind::Resource => {
            if let Some(resource) = before.resources.get(name) {
                trash::delete(tx, resource.id, now).await?;
            }
        }
        ObjectKind::Server => {
            if let Some(server) = before.servers.get(name) {
                trash::delete(tx, server.id, now).await?;
            }
        }
        ObjectKind::Webhook => {
            if let Some(webhook) = before.webhooks.get(name) {
                let removed = apply_webhooks::remove(run, tx, webhook).await;
                removed.map_err(|error| refused(run.prepared, (key.0, name), error))?;
            }
        }
    }
    Ok(())
}
