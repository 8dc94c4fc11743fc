//! Selections of objects of a file: `kind/key`, where `*` stands for any characters (CONF-16).

use crate::{
    changes::{ObjectKey, ObjectKind, objects},
    format::Bundle,
    read::nearest,
};

/// Most selectors of a selection.
const MOST: usize = 100;

/// A selector that selects nothing, or that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SelectorFault {
    /// Its index.
    pub index: usize,
    /// A sentence without a full stop.
    pub message: String,
}

/// One selector.
#[derive(Debug, Clone)]
struct Selector {
    kind: ObjectKind,
    pattern: String,
}

impl Selector {
    fn read(text: &str) -> Result<Self, String> {
        let Some((section, pattern)) = text.split_once('/') else {
            return Err(format!(
                "{text:?} is no selector: write kind/key, such as servers/sales"
            ));
        };
        let known = ObjectKind::ALL.into_iter();
        let Some(kind) = known.clone().find(|kind| kind.section() == section) else {
            let near = nearest(section, known.map(ObjectKind::section));
            let near = near.map(|near| format!(", did you mean \"{near}/{pattern}\""));
            let near = near.unwrap_or_default();
            return Err(format!("{text:?} has no known kind{near}"));
        };
        Ok(Self {
            kind,
            pattern: pattern.to_owned(),
        })
    }

    fn selects(&self, key: &ObjectKey) -> bool {
        self.kind == key.0 && fits(&self.pattern, &key.1)
    }
}

/// Whether a text has the form of a pattern, in which `*` stands for any characters.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The objects of a file that are meant: all, if there is no selector.
#[derive(Debug, Clone, Default)]
pub struct Selection(Vec<Selector>);

impl Selection {
    /// Reads selectors.
    ///
    /// # Errors
    /// A text is no selector, or there are more than 100.
    pub fn read(texts: &[String]) -> Result<Self, SelectorFault> {
        if texts.len() > MOST {
            return Err(SelectorFault {
                index: MOST,
                message: format!("there are more than {MOST} selectors"),
            });
        }
        let read = texts.iter().enumerate().map(|(index, text)| {
            Selector::read(text).map_err(|message| SelectorFault { index, message })
        });
        read.collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if the object is meant.
    pub fn has(&self, key: &ObjectKey) -> bool {
        self.0.is_empty() || self.0.iter().any(|selector| selector.selects(key))
    }

    /// Refuses a selector that selects none of the objects with these keys, with the nearest one.
    ///
    /// # Errors
    /// The first such selector.
    pub fn check<'k>(
        &self,
        keys: impl Iterator<Item = &'k ObjectKey> + Clone,
    ) -> Result<(), SelectorFault> {
        for (index, selector) in self.0.iter().enumerate() {
            if keys.clone().any(|key| selector.selects(key)) {
                continue;
            }
            let section = selector.kind.section();
            let same_kind = keys.clone().filter(|(kind, _)| *kind == selector.kind);
            let near = nearest(&selector.pattern, same_kind.map(|(_, key)| key.as_str()));
            let near = near.map(|near| format!(", did you mean \"{section}/{near}\""));
            let message = format!(
                "\"{section}/{}\" is neither in the file nor in the workspace{}",
                selector.pattern,
                near.unwrap_or_default()
            );
            return Err(SelectorFault { index, message });
        }
        Ok(())
    }

    /// The objects of a bundle that are meant, under its name.
    #[must_use]
    pub fn of(&self, bundle: &Bundle) -> Bundle {
        let mut selected = bundle.clone();
        let has = |kind, key: &str| self.has(&(kind, key.to_owned()));
        let Bundle {
            sources,
            prompts,
            resources,
            servers,
            webhooks,
            ..
        } = &mut selected;
        sources.retain(|one| has(ObjectKind::Source, &one.name));
        prompts.retain(|one| has(ObjectKind::Prompt, &one.name));
        resources.retain(|one| has(ObjectKind::Resource, &one.uri));
        servers.retain(|one| has(ObjectKind::Server, &one.slug));
        webhooks.retain(|one| has(ObjectKind::Webhook, &one.url));
        selected
    }
}

/// The keys of the objects of bundles.
pub fn keys<'b>(bundles: impl IntoIterator<Item = &'b Bundle>) -> Vec<ObjectKey> {
    let all = bundles.into_iter();
    all.flat_map(|bundle| objects(bundle).into_keys()).collect()
}
