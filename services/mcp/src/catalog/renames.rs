//! Renamed resources of upstream servers (MCP-RE-12).
//!
//! A workspace renames a resource where two servers have the same URI. Everything that a server
//! sends about its resources reaches clients with the URIs that clients know.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use portolan_model::{id::SourceId, registry::ResourceShape, uri_template::UriTemplate};
use portolan_storage::registry::resources;

/// The renamed resources of a server, by source.
#[derive(Debug, Default)]
pub(crate) struct Renames(BTreeMap<SourceId, Arc<Renamed>>);

/// The renamed resources of one source.
#[derive(Debug, Default)]
pub(crate) struct Renamed {
    /// The URI at the upstream server, and the one that clients know.
    exact: HashMap<String, String>,
    templates: Vec<(UriTemplate, UriTemplate)>,
}

impl Renames {
    pub(crate) fn read(rows: &[resources::Published]) -> Self {
        let mut found: BTreeMap<SourceId, Renamed> = BTreeMap::new();
        for row in rows {
            let (Some(source), Some(own)) = (row.source, &row.upstream_uri) else {
                continue;
            };
            if *own == row.uri {
                continue;
            }
            let renamed = found.entry(source).or_default();
            match row.shape {
                ResourceShape::Resource => {
                    renamed.exact.insert(own.clone(), row.uri.clone());
                }
                ResourceShape::Template => {
                    let templates = (UriTemplate::parse(own), UriTemplate::parse(&row.uri));
                    if let (Ok(own), Ok(published)) = templates {
                        renamed.templates.push((own, published));
                    }
                }
            }
        }
        let found = found.into_iter();
        Self(found.map(|(id, renamed)| (id, Arc::new(renamed))).collect())
    }

    /// The renames of a source, if it has any.
    pub(crate) fn of(&self, source: SourceId) -> Option<&Arc<Renamed>> {
        self.0.get(&source)
    }
}

impl Renamed {
    /// The URI that clients know for `own`, the URI at the upstream server, if they differ.
    pub(crate) fn published(&self, own: &str) -> Option<String> {
        let exact = self.exact.get(own).cloned();
        exact.or_else(|| {
            let mut templates = self.templates.iter();
            templates.find_map(|(ours, published)| ours.carry(own, published))
        })
    }
}
