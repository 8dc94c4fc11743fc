//! A bundle with the places of its values.

use crate::{
    format::Bundle,
    node::{Node, Place},
};

/// A bundle with the places of its values.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The bundle.
    pub bundle: Bundle,
    root: Node,
}

impl Parsed {
    /// A bundle and the tree that it was read from.
    pub(crate) fn new(bundle: Bundle, root: Node) -> Self {
        Self { bundle, root }
    }

    /// The place of an object: `section` is a member of the bundle. `field` is a dotted path below
    /// it, with indexes in brackets; its longest part that stands in the text counts.
    pub fn place(&self, section: &str, index: usize, field: Option<&str>) -> Option<Place> {
        let mut node = self.root.member(section)?.1.item(index)?;
        let mut place = node.place;
        for segment in field.into_iter().flat_map(|field| field.split('.')) {
            if let Some((key, member)) = node.member(segment) {
                (place, node) = (key.place, member);
                continue;
            }
            let Some((list, index)) = indexed(segment) else {
                break;
            };
            let Some((key, member)) = node.member(list) else {
                break;
            };
            (place, node) = (key.place, member);
            let Some(item) = node.item(index) else {
                break;
            };
            (place, node) = (item.place, item);
        }
        Some(place)
    }
}

/// The parts of `name[index]`.
fn indexed(segment: &str) -> Option<(&str, usize)> {
    let (list, index) = segment.strip_suffix(']')?.rsplit_once('[')?;
    Some((list, index.parse().ok()?))
}
