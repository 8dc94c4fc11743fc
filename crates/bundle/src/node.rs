//! YAML or JSON as a tree whose values have their places.
//!
//! Plain scalars are resolved by the YAML 1.2 core schema. Bounds: `MOST_LEVELS`, `MOST_NODES`
//! and `MOST_ALIASES`, so that a small text makes no large tree (CONF-2).

use std::{collections::HashMap, fmt};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput};

/// Most levels of lists and objects.
const MOST_LEVELS: usize = 64;

/// Most values of one text, with those that aliases repeat.
const MOST_NODES: usize = 400_000;

/// Most aliases of one text.
const MOST_ALIASES: usize = 100;

/// A place in a text. Both are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl From<Marker> for Place {
    fn from(marker: Marker) -> Self {
        Self {
            line: marker.line(),
            column: marker.col() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A fault of a text: the place, the path of the value, and a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands, if it stands in one place.
    pub place: Option<Place>,
    /// Path of the value, as `servers[0].tools`; empty at the top.
    pub path: String,
    /// The fault as a sentence.
    pub message: String,
}

impl Fault {
    /// A fault without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            place: None,
            path: String::new(),
            message: message.into(),
        }
    }

    /// The same fault, at `place` unless it has a place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place.get_or_insert(place);
        self
    }

    /// The same fault, seen from the list or object that has `segment`.
    #[must_use]
    pub(crate) fn below(mut self, segment: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{segment}{joint}{}", self.path);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place} ")?;
        }
        f.write_str(&self.message)?;
        if !self.path.is_empty() {
            write!(f, " (in {})", self.path)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// A value with its place.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// The value.
    pub value: NodeValue,
}

/// A value.
#[derive(Debug, Clone)]
pub enum NodeValue {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// An integer beyond `i64`.
    Unsigned(u64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object, in the order of the text. Keys are unique.
    Object(Vec<(NodeKey, Node)>),
}

/// A key of an object.
#[derive(Debug, Clone)]
pub struct NodeKey {
    /// Where it stands.
    pub place: Place,
    /// Its text.
    pub text: String,
}

impl Node {
    /// The member of an object, with its key.
    pub fn member(&self, name: &str) -> Option<(&NodeKey, &Self)> {
        let NodeValue::Object(members) = &self.value else {
            return None;
        };
        let found = members.iter().find(|(key, _)| key.text == name);
        found.map(|(key, node)| (key, node))
    }

    /// The item of a list.
    pub fn item(&self, index: usize) -> Option<&Self> {
        match &self.value {
            NodeValue::List(items) => items.get(index),
            _ => None,
        }
    }
}

/// Reads a text with one YAML document.
pub(crate) fn tree(text: &str) -> Result<Node, Fault> {
    refuse_control_characters(text)?;
    let mut reader = TreeReader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        place: Place { line: 1, column: 1 },
        nodes: 0,
        aliases: 0,
    };
    reader.document()
}

/// The parser takes NUL for the end of the text; YAML 1.2 section 5.1 allows no control character.
fn refuse_control_characters(text: &str) -> Result<(), Fault> {
    let mut place = Place { line: 1, column: 1 };
    for c in text.chars() {
        if c.is_control() && !matches!(c, '\t' | '\n' | '\r') {
            return Err(Fault::new("control characters are not allowed").at(place));
        }
        if c == '\n' {
            place = Place {
                line: place.line + 1,
                column: 1,
            };
        } else {
            place.column += 1;
        }
    }
    Ok(())
}

struct TreeReader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Node>,
    /// Where the last event stands.
    place: Place,
    nodes: usize,
    aliases: usize,
}

impl<'t> TreeReader<'t> {
    fn next(&mut self) -> Result<Event<'t>, Fault> {
        match self.parser.next() {
            Some(Ok((event, span))) => {
                self.place = span.start.into();
                Ok(event)
            }
            Some(Err(error)) => {
                let place = Place::from(*error.marker());
                Err(Fault::new(error.info().to_owned()).at(place))
            }
            None => Err(self.fault("the text ends too early")),
        }
    }

    fn fault(&self, message: &str) -> Fault {
        Fault::new(message).at(self.place)
    }

    fn document(&mut self) -> Result<Node, Fault> {
        let mut found = None;
        loop {
            match self.next()? {
                Event::DocumentStart(_) if found.is_some() => {
                    return Err(self.fault("the text has more than one document"));
                }
                Event::DocumentStart(_) => {
                    let event = self.next()?;
                    found = Some(self.node(event, 0)?);
                }
                Event::StreamEnd => {
                    return found.ok_or_else(|| self.fault("the text has no content"));
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'t>, level: usize) -> Result<Node, Fault> {
        let place = self.place;
        self.count(1)?;
        if level > MOST_LEVELS {
            return Err(self.fault("the text has too many levels"));
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag
                    .as_deref()
                    .is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let value = if style == ScalarStyle::Plain && !is_text {
                    resolved(&text)
                } else {
                    None
                };
                let value = value.unwrap_or_else(|| NodeValue::Text(text.into_owned()));
                (anchor, value)
            }
            Event::SequenceStart(anchor, _) => (anchor, self.list(level)?),
            Event::MappingStart(anchor, _) => (anchor, self.object(level)?),
            Event::Alias(anchor) => return self.alias(anchor),
            _ => return Err(self.fault("a value is missing")),
        };
        let node = Node { place, value };
        // Zero is no anchor.
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, level: usize) -> Result<NodeValue, Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(NodeValue::List(items)),
                event => items.push(self.node(event, level + 1)?),
            }
        }
    }

    fn object(&mut self, level: usize) -> Result<NodeValue, Fault> {
        let mut members: Vec<(NodeKey, Node)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(NodeValue::Object(members)),
                Event::Scalar(text, ..) if !text.is_empty() => NodeKey {
                    place: self.place,
                    text: text.into_owned(),
                },
                _ => return Err(self.fault("a key is a text")),
            };
            if !seen.insert(key.text.clone()) {
                let message = format!("the key {:?} stands twice", key.text);
                return Err(Fault::new(message).at(key.place));
            }
            let event = self.next()?;
            members.push((key, self.node(event, level + 1)?));
        }
    }

    /// The value of an alias has the place of its anchor: a fault in it is mended there.
    fn alias(&mut self, anchor: usize) -> Result<Node, Fault> {
        self.aliases += 1;
        if self.aliases > MOST_ALIASES {
            return Err(self.fault("the text has too many aliases"));
        }
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(self.fault("an alias stands inside of its anchor"));
        };
        let node = node.clone();
        self.count(size(&node))?;
        Ok(node)
    }

    fn count(&mut self, nodes: usize) -> Result<(), Fault> {
        self.nodes += nodes;
        if self.nodes > MOST_NODES {
            return Err(self.fault("the text has too many values"));
        }
        Ok(())
    }
}

/// Values of a tree.
fn size(node: &Node) -> usize {
    match &node.value {
        NodeValue::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        NodeValue::Object(members) => 1 + members.iter().map(|(_, node)| size(node)).sum::<usize>(),
        _ => 1,
    }
}

/// Value of a plain scalar (YAML 1.2.2, section 10.3.2); `None` for a text.
fn resolved(text: &str) -> Option<NodeValue> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(NodeValue::Null),
        "true" | "True" | "TRUE" => return Some(NodeValue::Bool(true)),
        "false" | "False" | "FALSE" => return Some(NodeValue::Bool(false)),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return u64::from_str_radix(rest, radix)
                .ok()
                .map(NodeValue::Unsigned);
        }
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            // An identifier with leading zeros.
            return None;
        }
        let signed = text.parse().ok().map(NodeValue::Integer);
        return signed.or_else(|| text.parse().ok().map(NodeValue::Unsigned));
    }
    let is_number = digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'));
    let float = is_number.then(|| text.parse::<f64>().ok()).flatten()?;
    float.is_finite().then_some(NodeValue::Float(float))
}
