//! Resources of MCP servers that their clients know by other URIs (RE-12): a workspace gives one another URI where two servers have the same. What a server says of its
//! resources is told with the URIs that clients know, in every place.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use portolan_model::{id::SourceId, registry::ResourceShape, uri_template::UriTemplate};
use portolan_storage::resources;

/// Those of a server, by source.
#[derive(Debug, Default)]
pub(crate) struct Renames(BTreeMap<SourceId, Arc<Renamed>>);

/// Those of one source.
#[derive(Debug, Default)]
pub(crate) struct Renamed {
    /// Its own URI, and the one that clients know.
    exact: HashMap<String, String>,
    templates: Vec<(UriTemplate, UriTemplate)>,
}

impl Renames {
    pub(super) fn read(rows: &[resources::Published]) -> Self {
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

    /// Those of a source, if it has any.
    pub(crate) fn of(&self, source: SourceId) -> Option<&Arc<Renamed>> {
        self.0.get(&source)
    }
}

impl Renamed {
    /// What clients call a resource that its server calls so, if that is another URI.
    pub(crate) fn published(&self, own: &str) -> Option<String> {
        let exact = self.exact.get(own).cloned();
        exact.or_else(|| {
            let mut templates = self.templates.iter();
            templates.find_map(|(ours, published)| ours.carry(own, published))
        })
    }
}
