//! The prompts and resources of a server, ready to be listed and read.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use portolan_http_tools::{CallTarget, CompiledTool, RequestPlan};
use portolan_keys::digest;
use portolan_model::{
    id::{PromptId, ResourceId, SourceId, TenantId},
    prompt::{Argument, Message},
    registry::{ResourceBody, ResourceShape},
    uri_template::UriTemplate,
};
use portolan_protocol::{
    initialize::Icon,
    jsonrpc::{Kind, Raw},
    prompt::{self, Prompt as ListedPrompt, PromptArgument},
    resource::{self, Location, Resource as ListedResource},
    result::Identity,
    revision::Revision,
};
use portolan_storage::registry::{prompts, resources};
use serde_json::json;

use crate::catalog::{
    backend::Access,
    marks::Marks,
    pages::{List, ListItem, Pages},
    renames::Renames,
    server::{Source, dress, others},
    upstream::{UpstreamPlace, UpstreamSource},
};

/// A prompt, ready to be read.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) id: PromptId,
    /// Its entry in the list.
    pub(crate) listed: ListedPrompt,
    /// Its arguments, with the values for completion.
    pub(crate) arguments: Vec<Argument>,
    /// Raised by every change.
    pub(crate) version: i64,
    /// The source of its messages.
    pub(crate) backend: PromptBackend,
}

/// The source of a prompt's messages.
#[derive(Debug)]
pub(crate) enum PromptBackend {
    /// A prompt of the registry; its messages, if they are small.
    Written(Option<Arc<[Message]>>),
    /// An upstream MCP server.
    Upstream(UpstreamPlace),
}

/// A resource or template, ready to be read.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    /// Its entry in the list.
    pub(crate) listed: ListedResource,
    template: Option<UriTemplate>,
    /// The template at its upstream server, if that is another one.
    own_template: Option<UriTemplate>,
    /// Its variables, with the values for completion.
    pub(crate) variables: Vec<Argument>,
    /// Raised by every change.
    pub(crate) version: i64,
    /// The source of its contents.
    pub(crate) backend: ResourceBackend,
}

/// The source of a resource's contents.
#[derive(Debug)]
pub(crate) enum ResourceBackend {
    /// The registry.
    Stored {
        /// UTF-8, with placeholders if it is a template; else a file.
        is_text: bool,
        /// The bytes, if they are few.
        content: Option<Arc<[u8]>>,
    },
    /// An HTTP source, called at each read.
    Http(Box<HttpRead>),
    /// An upstream MCP server.
    Upstream(UpstreamPlace),
}

/// The HTTP request that reads a resource.
#[derive(Debug)]
pub(crate) struct HttpRead {
    pub(crate) compiled: CompiledTool,
    pub(crate) target: Arc<CallTarget>,
    pub(crate) access: Access,
}

impl ListItem for Prompt {
    fn key(&self) -> &str {
        &self.listed.name
    }
    fn json(&self, revision: Revision) -> Vec<u8> {
        self.listed.to_json(revision)
    }
}

impl Resource {
    /// The URI or template.
    pub(crate) fn uri(&self) -> &str {
        match &self.listed.location {
            Location::Uri(uri) | Location::Template(uri) => uri,
        }
    }

    /// The URI at the upstream server of the resource that clients know as `uri`.
    ///
    /// The result is `None` if the resource has no upstream server.
    pub(crate) fn own_uri(&self, uri: &str) -> Option<String> {
        let ResourceBackend::Upstream(place) = &self.backend else {
            return None;
        };
        match (&self.template, &self.own_template) {
            (None, _) => place.own.string(),
            (Some(_), None) => Some(uri.to_owned()),
            (Some(published), Some(own)) => published.carry(uri, own),
        }
    }

    /// True for a template.
    pub(crate) fn is_template(&self) -> bool {
        self.template.is_some()
    }
}

impl ListItem for Resource {
    fn key(&self) -> &str {
        self.uri()
    }
    fn json(&self, revision: Revision) -> Vec<u8> {
        self.listed.to_json(revision)
    }
}

/// The version of each resource of a server, for subscribers.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    exact: HashMap<Box<str>, i64>,
    templates: Vec<(UriTemplate, i64)>,
}

impl Versions {
    /// The version of the resource with this URI; `None` if there is none.
    pub(crate) fn of(&self, uri: &str) -> Option<i64> {
        self.exact.get(uri).copied().or_else(|| {
            let fits = |(template, _): &&(UriTemplate, i64)| template.read(uri).is_some();
            self.templates
                .iter()
                .find(fits)
                .map(|(_, version)| *version)
        })
    }
}

/// The prompts and resources of a server.
#[derive(Debug)]
pub(crate) struct Offers {
    /// By name, in byte order.
    pub(crate) prompts: Vec<Prompt>,
    /// By URI, in byte order.
    pub(crate) resources: Vec<Resource>,
    /// By template, in byte order.
    pub(crate) templates: Vec<Resource>,
    pub(crate) versions: Arc<Versions>,
    page_size: usize,
    pages: [OnceLock<Box<[Pages; 3]>>; Revision::ALL.len()],
}

impl Offers {
    /// Builds all prompts and resources that are valid; the others are left out and logged.
    pub(crate) fn build(
        tenant: TenantId,
        prompts: Vec<prompts::Published>,
        resources: Vec<resources::Published>,
        (sources, renames): (&BTreeMap<SourceId, Source>, &Renames),
        page_size: usize,
    ) -> Self {
        let mut prompts: Vec<Prompt> = prompts
            .into_iter()
            .filter_map(|row| {
                let id = row.id;
                let built = prompt(row, sources, renames);
                if built.is_none() {
                    tracing::error!(tenant.id = %tenant, prompt.id = %id, "a published prompt cannot be built and is left out");
                }
                built
            })
            .collect();
        prompts.sort_by(|a, b| a.key().cmp(b.key()));
        let built = resources.into_iter().filter_map(|row| {
            let id = row.id;
            let built = resource(row, sources, renames);
            if built.is_none() {
                tracing::error!(tenant.id = %tenant, resource.id = %id, "a published resource cannot be built and is left out");
            }
            built
        });
        let (mut templates, mut resources): (Vec<Resource>, Vec<Resource>) =
            built.partition(Resource::is_template);
        resources.sort_by(|a, b| a.key().cmp(b.key()));
        templates.sort_by(|a, b| a.key().cmp(b.key()));
        let versions = Versions {
            exact: resources
                .iter()
                .map(|one| (one.uri().into(), one.version))
                .collect(),
            templates: templates
                .iter()
                .filter_map(|one| Some((one.template.clone()?, one.version)))
                .collect(),
        };
        Self {
            prompts,
            resources,
            templates,
            versions: Arc::new(versions),
            page_size,
            pages: Default::default(),
        }
    }

    /// The marks of these lists; the caller gives that of the tools.
    pub(crate) fn marks(&self, tools: u64) -> Marks {
        let mut lists = Vec::new();
        for prompt in &self.prompts {
            lists.extend(prompt.json(Revision::V2026_07_28));
        }
        let prompts = mark(&lists);
        lists.clear();
        let mut versions = Vec::new();
        for resource in self.resources.iter().chain(&self.templates) {
            lists.extend(resource.json(Revision::V2026_07_28));
            versions.extend_from_slice(resource.uri().as_bytes());
            versions.extend_from_slice(&resource.version.to_be_bytes());
        }
        Marks {
            tools,
            prompts,
            resources: mark(&lists),
            updates: mark(&versions),
        }
    }

    /// The upstream servers behind them, some more than once.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Arc<UpstreamSource>> {
        let prompts = self.prompts.iter().filter_map(|one| match &one.backend {
            PromptBackend::Upstream(place) => Some(&place.source),
            PromptBackend::Written(_) => None,
        });
        let resources = self.resources.iter().chain(&self.templates);
        prompts.chain(resources.filter_map(|one| match &one.backend {
            ResourceBackend::Upstream(place) => Some(&place.source),
            _ => None,
        }))
    }

    /// The prompt with that name.
    pub(crate) fn prompt(&self, name: &str) -> Option<&Prompt> {
        let at = self
            .prompts
            .binary_search_by(|prompt| prompt.key().cmp(name));
        at.ok().map(|at| &self.prompts[at])
    }

    /// The resource with this URI, with the variables of the template that it fits.
    pub(crate) fn resource(&self, uri: &str) -> Option<(&Resource, BTreeMap<String, String>)> {
        let at = self.resources.binary_search_by(|one| one.uri().cmp(uri));
        if let Ok(at) = at {
            return Some((&self.resources[at], BTreeMap::new()));
        }
        self.templates.iter().find_map(|one| {
            let values = one.template.as_ref()?.read(uri)?;
            Some((one, values))
        })
    }

    /// The template with exactly this text.
    pub(crate) fn template(&self, text: &str) -> Option<&Resource> {
        let at = self.templates.binary_search_by(|one| one.uri().cmp(text));
        at.ok().map(|at| &self.templates[at])
    }

    /// The pages of one of the three lists, written once per revision.
    pub(crate) fn pages(&self, list: List, revision: Revision, identity: &Identity) -> &Pages {
        let slot = &self.pages[usize::from(revision.ordinal()) - 1];
        let pages = slot.get_or_init(|| {
            let size = self.page_size;
            Box::new([
                Pages::write(List::Prompts, &self.prompts, revision, identity, size),
                Pages::write(List::Resources, &self.resources, revision, identity, size),
                Pages::write(List::Templates, &self.templates, revision, identity, size),
            ])
        });
        match list {
            List::Prompts => &pages[0],
            List::Resources => &pages[1],
            List::Templates | List::Tools => &pages[2],
        }
    }
}

/// A number that differs when the bytes differ.
pub(crate) fn mark(bytes: &[u8]) -> u64 {
    let mut mark = [0; 8];
    mark.copy_from_slice(&digest(bytes).as_bytes()[..8]);
    u64::from_be_bytes(mark)
}

fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The definition of an MCP server, as it wrote it (MCP-J-10).
fn definition(own: Option<String>) -> Option<Raw> {
    let own = own.and_then(|own| Raw::parse(own).ok());
    own.filter(|own| own.kind() == Kind::Object)
}

/// MCP-X-6I: the icons and metadata from the upstream server's definition.
fn dressed(
    source: Option<SourceId>,
    own: Option<&Raw>,
    renames: &Renames,
) -> (Vec<Icon>, Option<Raw>) {
    let renamed = source.and_then(|source| renames.of(source));
    own.map_or_else(Default::default, |own| dress(own, renamed))
}

fn upstream(
    source: Option<SourceId>,
    own: Option<&str>,
    sources: &BTreeMap<SourceId, Source>,
) -> Option<UpstreamPlace> {
    Some(UpstreamPlace {
        source: Arc::clone(sources.get(&source?)?.upstream.as_ref()?),
        own: Raw::of(own?).ok()?,
    })
}

fn prompt(
    row: prompts::Published,
    sources: &BTreeMap<SourceId, Source>,
    renames: &Renames,
) -> Option<Prompt> {
    let own = definition(row.upstream);
    let (icons, meta) = dressed(row.source, own.as_ref(), renames);
    let backend = if row.source.is_some() {
        PromptBackend::Upstream(upstream(row.source, row.upstream_name.as_deref(), sources)?)
    } else {
        PromptBackend::Written(match row.messages {
            Some(messages) => Some(
                serde_json::from_value::<Vec<Message>>(messages)
                    .ok()?
                    .into(),
            ),
            None => None,
        })
    };
    Some(Prompt {
        id: row.id,
        listed: ListedPrompt {
            name: row.name,
            title: filled(row.title),
            description: filled(row.description),
            arguments: row
                .arguments
                .iter()
                .map(|argument| listed_argument(argument, own.as_ref()))
                .collect(),
            icons,
            meta,
            others: others_of(own.as_ref(), &prompt::KNOWN_MEMBERS),
        },
        arguments: row.arguments,
        version: row.version,
        backend,
    })
}

fn others_of(own: Option<&Raw>, known: &[&str]) -> Vec<(String, Raw)> {
    own.map_or_else(Vec::new, |own| others(own, known))
}

fn listed_argument(argument: &Argument, own: Option<&Raw>) -> PromptArgument {
    let own = own.and_then(|own| own.get("arguments"));
    let own = own.and_then(|own| {
        own.elements().find(|one| {
            let name = one.get("name").and_then(|name| name.string());
            name.as_deref() == Some(argument.name.as_str())
        })
    });
    PromptArgument {
        others: others_of(own.as_ref(), &prompt::KNOWN_OF_ARGUMENT),
        name: argument.name.clone(),
        title: argument.title.clone(),
        description: argument.description.clone(),
        required: argument.required,
    }
}

fn resource(
    row: resources::Published,
    sources: &BTreeMap<SourceId, Source>,
    renames: &Renames,
) -> Option<Resource> {
    let own = definition(row.upstream);
    let (icons, meta) = dressed(row.source, own.as_ref(), renames);
    let own_template = row
        .upstream_uri
        .as_deref()
        .filter(|own| *own != row.uri && row.shape == ResourceShape::Template)
        .and_then(|own| UriTemplate::parse(own).ok());
    let backend = match row.body {
        ResourceBody::Text | ResourceBody::File => ResourceBackend::Stored {
            is_text: row.body == ResourceBody::Text,
            content: row.content.map(Into::into),
        },
        ResourceBody::Http => {
            let source = sources.get(&row.source?)?;
            let plan: RequestPlan = serde_json::from_value(row.plan?).ok()?;
            ResourceBackend::Http(Box::new(HttpRead {
                compiled: CompiledTool::new(json!({"type": "object"}), None, plan),
                target: Arc::clone(&source.target),
                access: source.access.clone(),
            }))
        }
        ResourceBody::Upstream => {
            ResourceBackend::Upstream(upstream(row.source, row.upstream_uri.as_deref(), sources)?)
        }
    };
    let (location, template) = match row.shape {
        ResourceShape::Resource => (Location::Uri(row.uri), None),
        ResourceShape::Template => {
            let template = UriTemplate::parse(&row.uri).ok()?;
            (Location::Template(row.uri), Some(template))
        }
    };
    let annotations = row
        .annotations
        .as_object()
        .is_some_and(|object| !object.is_empty());
    Some(Resource {
        id: row.id,
        listed: ListedResource {
            location,
            name: row.name,
            title: filled(row.title),
            description: filled(row.description),
            mime_type: row.mime_type,
            size: match &own {
                Some(own) => own.get("size").and_then(|size| size.as_str().parse().ok()),
                None => row.size.and_then(|size| u64::try_from(size).ok()),
            },
            annotations: annotations
                .then(|| serde_json::from_value(row.annotations).ok())
                .flatten(),
            icons,
            meta,
            written_annotations: own
                .as_ref()
                .and_then(|own| own.get("annotations"))
                .filter(|hints| hints.kind() == Kind::Object),
            others: others_of(own.as_ref(), &resource::KNOWN_MEMBERS),
        },
        template,
        own_template,
        variables: row.variables,
        version: row.version,
        backend,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_read_back_and_those_of_a_release_before_too() {
        let marks = Marks {
            tools: u64::MAX,
            prompts: 2,
            resources: 3,
            updates: 4,
        };
        assert_eq!(Marks::read(&marks.to_bytes()), Some(marks));
        assert_eq!(
            Marks::read(&7_u64.to_be_bytes()),
            Some(Marks {
                tools: 7,
                ..Marks::default()
            })
        );
        assert_eq!(Marks::read(b"other"), None);
    }

    #[test]
    fn re_7_a_version_is_found_by_uri_and_by_template() {
        let versions = Versions {
            exact: [("x://a".into(), 1)].into(),
            templates: vec![(UriTemplate::parse("x://b/{id}").unwrap(), 2)],
        };
        assert_eq!(versions.of("x://a"), Some(1));
        assert_eq!(versions.of("x://b/7"), Some(2));
        assert_eq!(versions.of("x://c"), None);
    }
}
