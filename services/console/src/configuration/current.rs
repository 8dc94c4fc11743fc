//! A workspace as a bundle, with the rows behind it.

use std::collections::{BTreeMap, HashMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portolan_bundle::{
    Bundle, SecretReference,
    canonical::canonical,
    changes::{ObjectKey, ObjectKind},
    format::{
        self, DeclaredKind, DeclaredWebhook, Format, HeaderSecret, Holds, HttpRead, ServerPrompt,
        ServerResource, ServerTool, Status, Switch, WebhookStatus,
    },
};
use portolan_http_tools::{Credential, CredentialSlot};
use portolan_keys::Purpose;
use portolan_model::{
    api_scope::ApiScope,
    id::{PromptId, ResourceId, SourceId, ToolId},
    member::Action,
    registry::{ResourceBody, ServerStatus, SourceKind, ToolState},
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    TenantTx,
    registry::{
        configuration::{self, Content},
        prompts::{self, Prompt},
        resources::{self, RegistryResource},
        servers::{self, Server},
        sources::{self, Source},
        tools::{self, Filter, Tool},
        trash::DeletedKind,
        upstreams::{self, Upstream},
    },
    webhooks::endpoints::{self, WebhookEndpoint, WebhookForm, WebhookState},
};
use portolan_upstream_sync::credentials;
use portolan_webhooks::secrets::{EndpointPlace, EndpointSecrets};
use serde::Serialize;
use uuid::Uuid;

use crate::{configuration::forms, imports, webhooks, workspace::Workspace};

/// Most bytes of a text that stands in a comparison; a longer one is its digest.
const MOST_COMPARED: i32 = 4_096;

/// How documents and contents stand in the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    /// As they are, for an export.
    Whole,
    /// As digests, for comparisons.
    Digests,
}

/// A source with all that belongs to it.
pub(super) struct CurrentSource {
    pub(super) row: Source,
    /// In any state.
    pub(super) tools: Vec<Tool>,
    pub(super) upstream: Option<Upstream>,
    pub(super) credential: Option<Credential>,
    /// The keyed digest of the credential.
    pub(super) mark: Option<[u8; 32]>,
}

/// An endpoint of webhooks with its secrets.
pub(super) struct CurrentWebhook {
    pub(super) row: WebhookEndpoint,
    pub(super) secrets: EndpointSecrets,
    /// The keyed digest of its headers, if it has some.
    pub(super) mark: Option<[u8; 32]>,
}

/// A workspace.
pub(super) struct Current {
    /// In canonical form, without a name.
    pub(super) bundle: Bundle,
    pub(super) sources: BTreeMap<String, CurrentSource>,
    /// Written here.
    pub(super) prompts: BTreeMap<String, Prompt>,
    /// Written here.
    pub(super) resources: BTreeMap<String, RegistryResource>,
    pub(super) servers: BTreeMap<String, Server>,
    /// By URL, those that sign their messages; empty if the caller does not see endpoints.
    pub(super) webhooks: BTreeMap<String, CurrentWebhook>,
    /// SHA-256 of texts and files, hexadecimal.
    pub(super) digests: HashMap<ResourceId, String>,
    owners: HashMap<(DeletedKind, Uuid), String>,
}

impl Current {
    /// The file that owns an object.
    pub(super) fn owner(&self, key: &ObjectKey) -> Option<&str> {
        let (kind, key) = key;
        let id = match kind {
            ObjectKind::Source => {
                let found = self.sources.get(key)?;
                (DeletedKind::Source, found.row.id.uuid())
            }
            ObjectKind::Prompt => (DeletedKind::Prompt, self.prompts.get(key)?.id.uuid()),
            ObjectKind::Resource => (DeletedKind::Resource, self.resources.get(key)?.id.uuid()),
            ObjectKind::Server => (DeletedKind::Server, self.servers.get(key)?.id.uuid()),
            ObjectKind::Webhook => return self.webhooks.get(key)?.row.managed_by.as_deref(),
        };
        self.owners.get(&id).map(String::as_str)
    }

    /// The file that owns most objects.
    pub(super) fn main_owner(&self) -> Option<&str> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let of_webhooks = self.webhooks.values();
        let of_webhooks = of_webhooks.filter_map(|one| one.row.managed_by.as_ref());
        for owner in self.owners.values().chain(of_webhooks) {
            *counts.entry(owner).or_default() += 1;
        }
        counts
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .map(|(owner, _)| owner)
    }

    /// Returns true if the workspace has the object.
    pub(super) fn has(&self, (kind, key): &ObjectKey) -> bool {
        match kind {
            ObjectKind::Source => self.sources.contains_key(key),
            ObjectKind::Prompt => self.prompts.contains_key(key),
            ObjectKind::Resource => self.resources.contains_key(key),
            ObjectKind::Server => self.servers.contains_key(key),
            ObjectKind::Webhook => self.webhooks.contains_key(key),
        }
    }
}

/// Returns true if endpoints of webhooks are a part of the file for this caller (CONF-14).
pub(super) fn sees_webhooks(workspace: &Workspace) -> bool {
    let caller = &workspace.caller;
    workspace.role.may(Action::Administer)
        && (caller.has(ApiScope::WorkspaceRead) || caller.has(ApiScope::WebhooksWrite))
}

/// The keyed digest of a credential, or of headers, for comparisons (CONF-7).
pub(super) fn mark(state: &AuthState, secret: &impl Serialize) -> Result<[u8; 32], ConsoleError> {
    let text =
        serde_json::to_vec(secret).map_err(|error| ConsoleError::internal("credential", error))?;
    Ok(state.keys.mac(Purpose::ConfigurationPlan, &text))
}

/// Reads the workspace of a transaction, as its caller sees it.
pub(super) async fn read(
    state: &AuthState,
    tx: &mut TenantTx,
    (workspace, contents): (&Workspace, Contents),
) -> Result<Current, ConsoleError> {
    let owned = configuration::owned(tx).await?.into_iter();
    let owners = owned.map(|own| ((own.kind, own.id), own.owner)).collect();
    let all_prompts = prompts::list_whole(tx).await?;
    let all_resources = resources::list(tx).await?;
    let (sources, in_bundle) =
        read_sources(state, tx, contents, (&all_prompts, &all_resources)).await?;
    let names: HashMap<SourceId, String> = sources
        .values()
        .map(|source| (source.row.id, source.row.name.clone()))
        .collect();
    let most = match contents {
        Contents::Whole => i32::MAX,
        Contents::Digests => MOST_COMPARED,
    };
    let held = configuration::contents(tx, most).await?.into_iter();
    let held: HashMap<ResourceId, Content> = held.map(|one| (one.id, one)).collect();
    let (servers, of_servers) =
        read_servers(tx, &sources, &names, (&all_prompts, &all_resources)).await?;
    let webhooks = if sees_webhooks(workspace) {
        read_webhooks(state, tx).await?
    } else {
        BTreeMap::new()
    };
    let is_own_prompt = |prompt: &&Prompt| prompt.source_id.is_none();
    let is_own_resource = |resource: &&RegistryResource| resource.source_id.is_none();
    let bundle = Bundle {
        format: Format::V1,
        name: String::new(),
        sources: in_bundle,
        prompts: all_prompts
            .iter()
            .filter(is_own_prompt)
            .map(prompt)
            .collect(),
        resources: all_resources
            .iter()
            .filter(is_own_resource)
            .map(|own| resource(own, held.get(&own.id), &names))
            .collect(),
        servers: of_servers,
        webhooks: webhooks.values().map(webhook).collect(),
    };
    Ok(Current {
        bundle: canonical(bundle),
        sources,
        prompts: all_prompts
            .into_iter()
            .filter(|prompt| prompt.source_id.is_none())
            .map(|prompt| (prompt.name.clone(), prompt))
            .collect(),
        resources: all_resources
            .into_iter()
            .filter(|resource| resource.source_id.is_none())
            .map(|resource| (resource.uri.clone(), resource))
            .collect(),
        servers,
        webhooks,
        digests: held.into_iter().map(|(id, one)| (id, one.digest)).collect(),
        owners,
    })
}

type Items<'a> = (&'a [Prompt], &'a [RegistryResource]);

async fn read_sources(
    state: &AuthState,
    tx: &mut TenantTx,
    contents: Contents,
    items: Items<'_>,
) -> Result<(BTreeMap<String, CurrentSource>, Vec<format::Source>), ConsoleError> {
    let mut tools_of: HashMap<SourceId, Vec<Tool>> = HashMap::new();
    for tool in tools::list(tx, &Filter::default(), i64::from(i32::MAX)).await? {
        tools_of.entry(tool.source_id).or_default().push(tool);
    }
    let (mut found, mut in_bundle) = (BTreeMap::new(), Vec::new());
    for row in sources::list(tx).await? {
        let tenant = tx.tenant();
        let credential = match &row.credential {
            Some(_) => credentials::open(state, tx, tenant, row.id).await?,
            None => None,
        };
        let credential = credential.map(CredentialSlot::into_credential);
        let upstream = match row.kind {
            SourceKind::Mcp => upstreams::find(tx, row.id).await?,
            _ => None,
        };
        let is_inline = row.kind == SourceKind::Openapi && row.document_url.is_none();
        let document = match contents {
            Contents::Digests => {
                let digest = row.document_digest.as_ref();
                digest.map(|digest| format!("sha256:{}", imports::hex(digest)))
            }
            Contents::Whole if is_inline => sources::document(tx, row.id)
                .await?
                .map(|text| String::from_utf8_lossy(&text).into_owned()),
            Contents::Whole => None,
        };
        let source = CurrentSource {
            tools: tools_of.remove(&row.id).unwrap_or_default(),
            mark: credential
                .as_ref()
                .map(|credential| mark(state, credential))
                .transpose()?,
            upstream,
            credential,
            row,
        };
        in_bundle.push(source_of(&source, document, items)?);
        let name = source.row.name.clone();
        if found.insert(name.clone(), source).is_some() {
            return Err(ConsoleError::conflict(
                "names_not_unique",
                format!(
                    "Two sources are called `{name}`. A file knows sources by their names: rename one of them."
                ),
            ));
        }
    }
    Ok((found, in_bundle))
}

fn source_of(
    source: &CurrentSource,
    document: Option<String>,
    (prompts, resources): Items<'_>,
) -> Result<format::Source, ConsoleError> {
    let row = &source.row;
    let is_mcp = row.kind == SourceKind::Mcp;
    let mut in_bundle = BTreeMap::new();
    for tool in source
        .tools
        .iter()
        .filter(|tool| tool.state == ToolState::Active)
    {
        let define = tool
            .definition
            .clone()
            .map(serde_json::from_value)
            .transpose();
        let define = define.map_err(|error| ConsoleError::internal("stored definition", error))?;
        let key = match row.kind {
            SourceKind::Http => tool.original.name.clone(),
            _ => tool.operation_key.clone(),
        };
        let tool = format::DeclaredTool {
            name: tool.overrides.name.clone(),
            title: tool.overrides.title.clone(),
            description: tool.overrides.description.clone(),
            enabled: Some(tool.enabled),
            define: define.map(forms::definition),
        };
        if in_bundle.insert(key.clone(), tool).is_some() {
            return Err(ConsoleError::conflict(
                "names_not_unique",
                format!(
                    "Two tools of the source `{}` are defined as `{key}`. A file knows them by these names: delete one of them and define it anew.",
                    row.name
                ),
            ));
        }
    }
    let switch = |enabled| Switch { enabled };
    let prompts = prompts
        .iter()
        .filter(|prompt| prompt.source_id == Some(row.id) && prompt.state == ToolState::Active)
        .map(|prompt| (prompt.name.clone(), switch(prompt.enabled)));
    let resources = resources
        .iter()
        .filter(|one| one.source_id == Some(row.id) && one.state == ToolState::Active)
        .map(|one| (one.uri.clone(), switch(one.enabled)));
    Ok(format::Source {
        name: row.name.clone(),
        kind: match row.kind {
            SourceKind::Openapi => DeclaredKind::Openapi,
            SourceKind::Http => DeclaredKind::Http,
            SourceKind::Mcp => DeclaredKind::Mcp,
        },
        location: if is_mcp {
            Some(row.base_url.clone())
        } else {
            row.document_url.clone()
        },
        document,
        base_url: (!is_mcp).then(|| row.base_url.clone()),
        prefix: source.upstream.as_ref().map(|own| own.prefix.clone()),
        hold_changes: source.upstream.as_ref().map(|own| own.hold_changes),
        settings: Some(forms::stored_settings(&row.settings)),
        credential: source
            .credential
            .as_ref()
            .map(|credential| forms::referring(credential, &row.name)),
        unlisted: None,
        tools: in_bundle,
        prompts: prompts.collect(),
        resources: resources.collect(),
    })
}

fn prompt(prompt: &Prompt) -> format::DeclaredPrompt {
    let prompt = prompt.clone();
    format::DeclaredPrompt {
        name: prompt.name,
        title: Some(prompt.title),
        description: Some(prompt.description),
        enabled: Some(prompt.enabled),
        arguments: prompt.arguments.into_iter().map(forms::argument).collect(),
        messages: prompt.messages.into_iter().map(forms::message).collect(),
    }
}

fn resource(
    resource: &RegistryResource,
    content: Option<&Content>,
    names: &HashMap<SourceId, String>,
) -> format::DeclaredResource {
    let bytes = content.and_then(|content| content.bytes.as_ref());
    let digest = || {
        content
            .map(|content| format!("sha256:{}", content.digest))
            .unwrap_or_default()
    };
    let source = resource.http_source_id.and_then(|id| names.get(&id));
    let holds = match resource.body {
        ResourceBody::Http | ResourceBody::Upstream => Holds::Http(HttpRead {
            source: source.cloned().unwrap_or_default(),
            path: resource.http_path.clone().unwrap_or_default(),
        }),
        ResourceBody::File => {
            Holds::File(bytes.map_or_else(digest, |bytes| STANDARD.encode(bytes)))
        }
        ResourceBody::Text => Holds::Text(
            bytes.map_or_else(digest, |bytes| String::from_utf8_lossy(bytes).into_owned()),
        ),
    };
    format::DeclaredResource {
        uri: resource.uri.clone(),
        name: resource.name.clone(),
        title: forms::optional(&resource.title),
        description: forms::optional(&resource.description),
        mime_type: resource.mime_type.clone(),
        enabled: Some(resource.enabled),
        variables: resource
            .variables
            .iter()
            .cloned()
            .map(forms::argument)
            .collect(),
        holds,
    }
}

async fn read_servers(
    tx: &mut TenantTx,
    sources: &BTreeMap<String, CurrentSource>,
    names: &HashMap<SourceId, String>,
    (all_prompts, all_resources): Items<'_>,
) -> Result<(BTreeMap<String, Server>, Vec<format::DeclaredServer>), ConsoleError> {
    let tools: HashMap<ToolId, (&str, &Tool)> = sources
        .values()
        .flat_map(|source| {
            let name = source.row.name.as_str();
            source.tools.iter().map(move |tool| (tool.id, (name, tool)))
        })
        .collect();
    let prompts: HashMap<PromptId, &Prompt> = all_prompts.iter().map(|one| (one.id, one)).collect();
    let resources: HashMap<ResourceId, &RegistryResource> =
        all_resources.iter().map(|one| (one.id, one)).collect();
    let name_of = |source: Option<SourceId>| source.and_then(|id| names.get(&id).cloned());
    let (mut found, mut in_bundle) = (BTreeMap::new(), Vec::new());
    for server in servers::list(tx).await? {
        let offered_tools = servers::tools(tx, server.id).await?.into_iter();
        let offered_tools = offered_tools.filter_map(|offered| {
            let (source, tool) = tools.get(&offered.tool_id)?;
            (tool.state == ToolState::Active).then(|| ServerTool {
                source: (*source).to_owned(),
                tool: tool_key(tool).to_owned(),
                published_name: other(offered.published_name, tool.name()),
            })
        });
        let offered_prompts = prompts::of_server(tx, server.id).await?.into_iter();
        let offered_prompts = offered_prompts.filter_map(|offered| {
            let prompt = prompts.get(&offered.id)?;
            (prompt.state == ToolState::Active).then(|| ServerPrompt {
                source: name_of(prompt.source_id),
                prompt: prompt.name.clone(),
                published_name: other(offered.published_name, &prompt.name),
            })
        });
        let offered_resources = resources::of_server(tx, server.id).await?.into_iter();
        let offered_resources = offered_resources.filter_map(|offered| {
            let resource = resources.get(&offered.id)?;
            (resource.state == ToolState::Active).then(|| ServerResource {
                source: name_of(resource.source_id),
                uri: resource.uri.clone(),
                published_uri: other(offered.published_uri, &resource.uri),
            })
        });
        in_bundle.push(format::DeclaredServer {
            slug: server.slug.clone(),
            name: Some(server.name.clone()),
            description: server.description.clone(),
            instructions: server.instructions.clone(),
            status: Some(status(server.status)),
            from: Vec::new(),
            tools: offered_tools.collect(),
            prompts: offered_prompts.collect(),
            resources: offered_resources.collect(),
        });
        found.insert(server.slug.clone(), server);
    }
    Ok((found, in_bundle))
}

/// The endpoints that sign their messages. The URL of one for Slack is a secret, and no key.
async fn read_webhooks(
    state: &AuthState,
    tx: &mut TenantTx,
) -> Result<BTreeMap<String, CurrentWebhook>, ConsoleError> {
    let mut found = BTreeMap::new();
    for row in endpoints::list(tx, None).await? {
        if row.form == WebhookForm::Slack {
            continue;
        }
        let place = EndpointPlace {
            tenant: tx.tenant(),
            endpoint: row.id,
        };
        let secrets = place
            .open(&state.keys, &row.secrets, state.now())
            .map_err(webhooks::fault)?;
        let headers = sorted(&secrets.headers);
        let mark = (!headers.is_empty())
            .then(|| mark(state, &headers))
            .transpose()?;
        let url = row.url.clone();
        let one = CurrentWebhook { row, secrets, mark };
        if found.insert(url.clone(), one).is_some() {
            return Err(ConsoleError::conflict(
                "names_not_unique",
                format!(
                    "Two webhook endpoints have the URL `{url}`. A file knows endpoints by their URLs: move or delete one of them."
                ),
            ));
        }
    }
    Ok(found)
}

/// Headers in one order, for comparisons.
pub(super) fn sorted(headers: &[(String, String)]) -> Vec<&(String, String)> {
    let mut sorted: Vec<_> = headers.iter().collect();
    sorted.sort();
    sorted
}

fn webhook(webhook: &CurrentWebhook) -> DeclaredWebhook {
    let row = &webhook.row;
    let headers = row.header_names.iter().map(|name| HeaderSecret {
        name: name.clone(),
        secret: SecretReference::vault(&row.url),
    });
    DeclaredWebhook {
        url: row.url.clone(),
        events: row.event_types.clone(),
        description: Some(row.description.clone()),
        headers: headers.collect(),
        // The service disables an endpoint, and a person resumes it: a file has no word for it.
        status: Some(match row.state {
            WebhookState::Paused => WebhookStatus::Paused,
            WebhookState::Active | WebhookState::Disabled => WebhookStatus::Active,
        }),
    }
}

/// The name of a tool in a bundle, within its source: that of its definition, or its operation.
pub(super) fn tool_key(tool: &Tool) -> &str {
    if tool.definition.is_some() {
        &tool.original.name
    } else {
        &tool.operation_key
    }
}

fn other(published: String, own: &str) -> Option<String> {
    (published != own).then_some(published)
}

pub(super) const fn status(status: ServerStatus) -> Status {
    match status {
        ServerStatus::Draft => Status::Draft,
        ServerStatus::Published => Status::Published,
        ServerStatus::Paused => Status::Paused,
    }
}
