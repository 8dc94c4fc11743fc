//! One published server, ready to answer: compiled tools, opened credentials, cached list pages.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use portolan_cluster::node::LimitKey;
use portolan_http_tools::{
    CallTarget, CompiledTool, Credential, CredentialSlot, OutputCheck, RequestPlan,
};
use portolan_keys::{Keys, vault};
use portolan_model::{
    Timestamp,
    id::{ServerId, SourceId, TenantId},
    registry::SourceKind,
};
use portolan_protocol::{
    ask::Need,
    capability::{ClientCapabilities, ServerCapabilities},
    discover,
    header::{self, ParamHeader},
    initialize::{self, Icon, Implementation},
    jsonrpc::{Kind, Raw},
    result::{self, CacheHint, Identity},
    revision::{Era, Revision},
    tool::{KNOWN_MEMBERS, TaskSupport, Tool as Listed},
    translate,
};
use portolan_storage::registry::catalog::{PublishedServer, PublishedSource, PublishedTool};
use portolan_upstream::OfferedIn;

use crate::{
    capture::Capture,
    catalog::{
        accounts::{Accounts, Sharing},
        backend::{Access, Backend, HttpTool, KnownCredential},
        marks::Marks,
        offers::{Offers, mark},
        pages::{List, Pages},
        renames::{Renamed, Renames},
        upstream::{UpstreamSource, UpstreamTool},
    },
    limits::{TenantLimits, ledger::calls_of},
};

/// A tool, ready to be called.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The name that clients call. Counts and log entries share it.
    pub(crate) name: Arc<str>,
    /// Its entry in the list.
    pub(crate) listed: Listed,
    /// The backend of its calls.
    pub(crate) backend: Backend,
    /// Its calls become tasks after some time (MCP-X-54).
    pub(crate) becomes_task: bool,
    /// Client features that its server requires before it lists the tool (MCP-V-1, MCP-V-2).
    ///
    /// Clients without them do not see it in the session era; if they call it, the error names the
    /// feature.
    pub(crate) requires: Vec<Need>,
    /// Its server needs them in sessions alone: clients of 2026-07-28 are spoken to in their own
    /// era.
    pub(crate) requires_in_sessions: bool,
    /// Arguments that headers repeat (MCP-H-12).
    pub(crate) headers: Vec<ParamHeader>,
    /// The kind of its source, for metrics.
    pub(crate) kind: SourceKind,
    /// The bucket of its calls (MCP-TL-23).
    pub(crate) calls: LimitKey,
}

impl Tool {
    /// The first required feature that a client of this era lacks.
    pub(crate) fn lacks(&self, era: Era, declared: &ClientCapabilities) -> Option<Need> {
        if self.requires_in_sessions && era == Era::Modern {
            return None;
        }
        let mut requires = self.requires.iter();
        requires.find(|need| !need.is_met_by(declared)).copied()
    }
}

/// Answers that depend only on server and revision.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// `initialize`
    pub(crate) initialize: Vec<u8>,
    /// `server/discover`
    pub(crate) discover: Vec<u8>,
    /// `ping` and other empty results.
    pub(crate) empty: Vec<u8>,
}

/// A published server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The tenant that publishes it.
    pub(crate) tenant: TenantId,
    /// The id of the server.
    pub(crate) id: ServerId,
    /// Its slug in the URL, for the log of calls.
    pub(crate) slug: Arc<str>,
    /// Its name, title and version.
    pub(crate) identity: Identity,
    instructions: Option<String>,
    /// The tools by name, in byte order (MCP-TL-3).
    pub(crate) tools: Vec<Tool>,
    by_name: HashMap<String, usize>,
    /// Prompts and resources.
    pub(crate) offers: Offers,
    /// The URIs that clients know for renamed resources of upstream servers (MCP-RE-12).
    pub(crate) renames: Renames,
    /// Version numbers that differ when the lists differ.
    pub(crate) marks: Marks,
    /// The bucket of the tenant's calls.
    pub(crate) calls: LimitKey,
    /// The limits of the tenant.
    pub(crate) limits: TenantLimits,
    /// The calls whose content is kept; `None`: no call.
    pub(crate) capture: Option<Arc<Capture>>,
    pub(crate) page_size: usize,
    pages: [OnceLock<Pages>; Revision::ALL.len()],
    fixed: [OnceLock<Fixed>; Revision::ALL.len()],
}

impl Server {
    /// Builds a server from its rows. An invalid tool is left out and logged; the others still
    /// serve.
    pub(crate) fn build(
        tenant: TenantId,
        row: PublishedServer,
        limits: TenantLimits,
        keys: &Keys,
        now: Timestamp,
        page_size: usize,
    ) -> Self {
        let mut card = Implementation::new(&row.slug, env!("CARGO_PKG_VERSION"));
        card.title = Some(row.name);
        card.description = row.description.filter(|text| !text.is_empty());
        let sources: BTreeMap<SourceId, Source> = row
            .sources
            .iter()
            .filter_map(|(id, source)| Some((*id, Source::build(tenant, *id, source, keys, now)?)))
            .collect();
        let renames = Renames::read(&row.resources);
        let tools = row.tools.into_iter().filter_map(|tool| {
            let (id, source_id) = (tool.id, tool.source);
            let renamed = renames.of(source_id);
            let built = sources
                .get(&source_id)
                .and_then(|source| build_tool(tenant, tool, source, renamed));
            if built.is_none() {
                tracing::error!(tenant.id = %tenant, tool.id = %id, "a published tool cannot be built and is left out");
            }
            built
        });
        let mut tools: Vec<Tool> = tools.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let by_name = tools
            .iter()
            .enumerate()
            .map(|(index, tool)| (tool.name.to_string(), index))
            .collect();
        let mut all = Vec::new();
        for tool in &tools {
            tool.listed.write(Revision::V2026_07_28, &mut all);
        }
        let of_others = (&sources, &renames);
        let capture = row.capture.as_ref();
        let capture = capture.and_then(|row| Capture::read(tenant, row, keys, now));
        let offers = Offers::build(tenant, row.prompts, row.resources, of_others, page_size);
        Self {
            tenant,
            id: row.id,
            slug: row.slug.into(),
            identity: Identity::new(&card),
            instructions: row.instructions.filter(|text| !text.is_empty()),
            calls: calls_of(tenant),
            tools,
            by_name,
            marks: offers.marks(mark(&all)),
            offers,
            renames,
            limits,
            capture,
            page_size,
            pages: Default::default(),
            fixed: Default::default(),
        }
    }

    /// The upstream servers behind it, each once.
    pub(crate) fn upstreams(&self) -> Vec<Arc<UpstreamSource>> {
        let of_tools = self.tools.iter().filter_map(|tool| match &tool.backend {
            Backend::Upstream(tool) => Some(&tool.source),
            Backend::Http(_) => None,
        });
        let mut found: Vec<Arc<UpstreamSource>> = Vec::new();
        for source in of_tools.chain(self.offers.upstreams()) {
            if !found.iter().any(|known| known.id == source.id) {
                found.push(Arc::clone(source));
            }
        }
        found
    }

    /// The index of a tool in [`Server::tools`].
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The pages of `tools/list`, written once per revision.
    pub(crate) fn pages(&self, revision: Revision) -> &Pages {
        let slot = &self.pages[usize::from(revision.ordinal()) - 1];
        slot.get_or_init(|| {
            Pages::write(
                List::Tools,
                &self.tools,
                revision,
                &self.identity,
                self.page_size,
            )
        })
    }

    /// The tools that a client of the session era sees; `None` for all.
    ///
    /// A tool is hidden if its server would not list it to a client without a feature (MCP-X-30).
    /// Lists of 2026-07-28 are the same for all clients (MCP-L-21).
    pub(crate) fn tools_for(
        &self,
        revision: Revision,
        declared: &ClientCapabilities,
    ) -> Option<Vec<&Tool>> {
        let is_offered = |tool: &&Tool| tool.lacks(revision.era(), declared).is_none();
        if revision.era() == Era::Modern || self.tools.iter().all(|tool| is_offered(&tool)) {
            return None;
        }
        Some(self.tools.iter().filter(is_offered).collect())
    }

    /// The answers that never vary.
    pub(crate) fn fixed(&self, revision: Revision) -> &Fixed {
        let slot = &self.fixed[usize::from(revision.ordinal()) - 1];
        slot.get_or_init(|| {
            let (identity, capabilities) = (&self.identity, ServerCapabilities::full());
            let instructions = self.instructions.as_deref();
            Fixed {
                initialize: initialize::result(revision, identity, &capabilities, instructions),
                discover: discover::result(
                    revision,
                    identity,
                    &capabilities,
                    instructions,
                    CacheHint::DISCOVER,
                ),
                empty: result::empty(revision, identity),
            }
        })
    }
}

/// A source in the form that its tools and resources need.
pub(crate) struct Source {
    pub(crate) target: Arc<CallTarget>,
    pub(crate) access: Access,
    kind: SourceKind,
    /// Its calls may become tasks of Portolan (MCP-X-54).
    tasks: bool,
    /// The upstream server, if the source is one.
    pub(crate) upstream: Option<Arc<UpstreamSource>>,
}

impl Source {
    fn build(
        tenant: TenantId,
        id: SourceId,
        row: &PublishedSource,
        keys: &Keys,
        now: Timestamp,
    ) -> Option<Self> {
        let Ok(base_url) = row.base_url.parse::<url::Url>() else {
            tracing::error!(tenant.id = %tenant, source.id = %id, "the base URL of a source is not a URL");
            return None;
        };
        let access = match row.sharing.as_deref().map(Sharing::from_word) {
            Some(sharing) => {
                let accounts = Accounts::new(tenant, id, sharing, &row.base_url);
                Access::Account(Arc::new(accounts))
            }
            None => open(tenant, id, row, keys, now),
        };
        let upstream = match row.kind {
            SourceKind::Mcp => {
                let (url, access) = (base_url.clone(), access.clone());
                let source = UpstreamSource::new(tenant, id, url, access, &row.settings);
                Some(Arc::new(source))
            }
            SourceKind::Openapi | SourceKind::Http => None,
        };
        let target = CallTarget::new(base_url, &row.settings);
        Some(Self {
            target: Arc::new(target),
            access,
            kind: row.kind,
            tasks: row.settings.tasks,
            upstream,
        })
    }
}

/// The key of one of the tenant's buckets.
fn bucket(tenant: TenantId, name: &str) -> LimitKey {
    LimitKey {
        shard: tenant.uuid().simple().to_string(),
        bucket: name.to_owned(),
    }
}

/// Opens the sealed credential of a source.
fn open(
    tenant: TenantId,
    id: SourceId,
    row: &PublishedSource,
    keys: &Keys,
    now: Timestamp,
) -> Access {
    let Some(sealed) = &row.credential else {
        return Access::Open;
    };
    let (tenant_bytes, source_bytes) = (tenant.uuid().into_bytes(), id.uuid().into_bytes());
    let owner = vault::data_key_owner(tenant_bytes, sealed.key.id.into_bytes());
    let place = vault::credential_place(tenant_bytes, source_bytes, sealed.version);
    let opened = keys
        .open_data_key(&owner, &sealed.key.wrapped, now)
        .and_then(|key| key.open(&place, &sealed.sealed, now));
    let credential = match opened {
        Ok(text) => serde_json::from_slice::<Credential>(text.expose()).ok(),
        Err(error) => {
            tracing::error!(tenant.id = %tenant, source.id = %id, reason = %error, "a credential does not open");
            None
        }
    };
    match credential {
        Some(credential) => {
            let key = token_slot(id, sealed.version, &sealed.sealed);
            let slot = CredentialSlot::new(key, credential);
            Access::With(Arc::new(KnownCredential::new(
                (tenant, id),
                sealed.version,
                slot,
            )))
        }
        None => Access::Broken,
    }
}

/// Names the tokens that were fetched with one credential: those of an older one are not used again. A
/// version alone comes back after a credential was removed and set anew, a sealed text does not.
fn token_slot(source: SourceId, version: i32, sealed: &[u8]) -> String {
    let tag = &sealed[sealed.len().saturating_sub(16)..];
    format!("{source}:{version}:{}", crate::hex::hex(tag))
}

/// The era in which alone a tool is offered.
const fn only_era(offered_in: OfferedIn) -> Option<Era> {
    match offered_in {
        OfferedIn::Sessions => Some(Era::Legacy),
        OfferedIn::Stateless => Some(Era::Modern),
        OfferedIn::GatedSessions => None,
    }
}

fn build_tool(
    tenant: TenantId,
    row: PublishedTool,
    source: &Source,
    renamed: Option<&Arc<Renamed>>,
) -> Option<Tool> {
    let own = row.plan.get("upstream").cloned();
    let written = row.written.and_then(|text| Raw::parse(text).ok());
    // Raw bytes of the upstream server: its numbers and order of members are kept (MCP-J-10).
    let as_written = |member: &str, value: &serde_json::Value| {
        let written = written.as_ref().and_then(|written| written.get(member));
        let written = written.filter(|raw| raw.kind() == Kind::Object);
        written.or_else(|| Raw::of(value).ok())
    };
    let input_schema = as_written("inputSchema", &row.input_schema)?;
    let mut listed = Listed::new(&row.name, input_schema);
    listed.title = Some(row.title).filter(|title| !title.is_empty());
    listed.description = Some(row.description).filter(|text| !text.is_empty());
    listed.output_schema = row
        .output_schema
        .as_ref()
        .and_then(|schema| as_written("outputSchema", schema));
    let has_hints = row
        .annotations
        .as_object()
        .is_some_and(|hints| !hints.is_empty());
    listed.annotations = serde_json::from_value(row.annotations).ok();
    let (headers, _faults) = header::annotations(&row.input_schema);
    let requires = own.as_ref().map(required).unwrap_or_default();
    let support = own.as_ref().and_then(task_support);
    let offered_in = own.as_ref().and_then(OfferedIn::of);
    // MCP-TL-21, MCP-X-50, MCP-X-54: a tool that cannot be called as a task has no such member.
    listed.task_support = match support {
        None if source.tasks => Some(TaskSupport::Optional),
        known => known,
    };
    let backend = match (&source.upstream, own) {
        (Some(upstream), Some(own)) => {
            if let Some(written) = &written {
                let hints = written.get("annotations");
                listed.written_annotations =
                    hints.filter(|_| has_hints && listed.annotations.is_some());
                listed.others = others(written, &KNOWN_MEMBERS);
            }
            let dressed = written.or_else(|| Raw::of(&own).ok())?;
            (listed.icons, listed.meta) = dress(&dressed, renamed);
            Backend::Upstream(Box::new(UpstreamTool {
                source: Arc::clone(upstream),
                name: Raw::of(own.get("name")?.as_str()?).ok()?,
                tasks: support,
                era: offered_in.and_then(only_era),
                output: row.output_schema.map(OutputCheck::new),
            }))
        }
        (None, None) => {
            let plan: RequestPlan = serde_json::from_value(row.plan).ok()?;
            Backend::Http(HttpTool {
                compiled: CompiledTool::new(row.input_schema, row.output_schema, plan),
                target: Arc::clone(&source.target),
                access: source.access.clone(),
            })
        }
        // The plan belongs to another kind of source.
        _ => return None,
    };
    Some(Tool {
        calls: bucket(tenant, &format!("c{}", row.id.uuid().simple())),
        name: row.name.into(),
        listed,
        backend,
        becomes_task: source.tasks,
        requires,
        requires_in_sessions: offered_in == Some(OfferedIn::GatedSessions),
        headers,
        kind: source.kind,
    })
}

/// The client features that a server requires before it lists a tool.
fn required(own: &serde_json::Value) -> Vec<Need> {
    let words = own.get("requires").and_then(serde_json::Value::as_array);
    let words = words.into_iter().flatten().filter_map(|word| word.as_str());
    words
        .filter_map(|word| Need::ALL.into_iter().find(|need| need.feature() == word))
        .collect()
}

/// Whether an upstream server takes calls of a tool as tasks.
fn task_support(own: &serde_json::Value) -> Option<TaskSupport> {
    let support = own.get("execution")?.get("taskSupport")?.clone();
    let support: TaskSupport = serde_json::from_value(support).ok()?;
    (support != TaskSupport::Forbidden).then_some(support)
}

/// Members of a definition that no revision knows (MCP-J-10).
pub(crate) fn others(definition: &Raw, known: &[&str]) -> Vec<(String, Raw)> {
    let members = definition.members();
    members
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .collect()
}

/// The icons and metadata of an upstream definition, beside the columns of the registry.
///
/// URIs in the metadata are those that clients know.
pub(crate) fn dress(own: &Raw, renamed: Option<&Arc<Renamed>>) -> (Vec<Icon>, Option<Raw>) {
    let icons = own.get("icons");
    let icons: Vec<Icon> = icons
        .and_then(|icons| serde_json::from_slice(icons.as_bytes()).ok())
        .unwrap_or_default();
    // MCP-IC-2: icons with other schemes are removed.
    let is_safe = |icon: &Icon| icon.src.starts_with("https:") || icon.src.starts_with("data:");
    let meta = own.get("_meta").filter(|meta| meta.kind() == Kind::Object);
    let meta = match (meta, renamed) {
        (Some(meta), Some(renamed)) => {
            let published = |own: &str| renamed.published(own);
            Some(translate::uris_of_meta(&meta, &published))
        }
        (meta, _) => meta,
    };
    (icons.into_iter().filter(is_safe).collect(), meta)
}

#[cfg(test)]
mod tests {
    use portolan_keys::MasterSecret;

    use super::*;

    #[test]
    fn a_credential_that_was_set_anew_uses_no_token_of_the_removed_one() {
        let keys = Keys::new(&MasterSecret::generate().unwrap(), &[]).unwrap();
        let (key, _) = keys.new_data_key(b"owner").unwrap();
        let source = SourceId::generate();
        let [removed, anew] = [(); 2].map(|()| {
            let sealed = key.seal(b"place", b"the same credential").unwrap();
            token_slot(source, 1, &sealed)
        });
        assert_ne!(removed, anew);
    }
}
