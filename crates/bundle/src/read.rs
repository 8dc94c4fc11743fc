//! The tree to the types of the format. Each fault has its place; an unknown key is refused with
//! the nearest known one (CONF-2).

use std::fmt::Display;

use serde::{
    Deserialize,
    de::{
        self, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess,
        Unexpected, VariantAccess, Visitor,
        value::{BorrowedStrDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::{
    check,
    format::Bundle,
    node::{Fault, Node, NodeKey, NodeValue, tree},
    parsed::Parsed,
};

/// Longest word that a fault repeats.
const LONGEST_SHOWN: usize = 60;

/// Most bytes of a text.
pub const MOST_BYTES: usize = 5 * 1024 * 1024;

/// Reads a bundle in YAML or JSON.
///
/// # Errors
/// The text is larger than [`MOST_BYTES`], is no YAML, or has another form than the format.
pub fn parse(text: &str) -> Result<Parsed, Fault> {
    if text.len() > MOST_BYTES {
        return Err(Fault::new("the text is larger than 5 MiB"));
    }
    let root = tree(text)?;
    let bundle = Bundle::deserialize(&root)?;
    let parsed = Parsed::new(bundle, root);
    check::check(&parsed)?;
    Ok(parsed)
}

impl de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Unit => "nothing".to_owned(),
            // The text may be a secret that was pasted.
            Unexpected::Str(_) => "a text".to_owned(),
            found => found.to_string(),
        };
        Self::new(format!("expected {expected}, found {found}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(unknown("key", field, expected))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(unknown("value", variant, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key {field:?} is missing"))
    }
}

/// `unknown key "disclosur", did you mean "disclosure"`.
fn unknown(what: &str, given: &str, expected: &'static [&'static str]) -> String {
    let shown: String = given.chars().take(LONGEST_SHOWN).collect();
    if let Some(near) = nearest(given, expected.iter().copied()) {
        return format!("unknown {what} {shown:?}, did you mean {near:?}");
    }
    let known = expected.join(", ");
    format!("unknown {what} {shown:?}, expected one of {known}")
}

/// The known word that a person probably meant.
pub(crate) fn nearest<'w>(given: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    if given.len() > LONGEST_SHOWN {
        return None;
    }
    let most = (given.chars().count() / 3).max(2);
    known
        .map(|word| (strsim::damerau_levenshtein(given, word), word))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let value = match &self.value {
            NodeValue::Null => visitor.visit_unit(),
            NodeValue::Bool(flag) => visitor.visit_bool(*flag),
            NodeValue::Integer(number) => visitor.visit_i64(*number),
            NodeValue::Unsigned(number) => visitor.visit_u64(*number),
            NodeValue::Float(number) => visitor.visit_f64(*number),
            NodeValue::Text(text) => visitor.visit_borrowed_str(text),
            NodeValue::List(items) => visitor.visit_seq(ItemReader { items, next: 0 }),
            NodeValue::Object(members) => visitor.visit_map(MemberReader { members, next: 0 }),
        };
        value.map_err(|fault: Fault| fault.at(self.place))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            NodeValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let value = visitor.visit_newtype_struct(self);
        value.map_err(|fault: Fault| fault.at(self.place))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let value = match &self.value {
            NodeValue::Text(text) => {
                visitor.visit_enum(BorrowedStrDeserializer::<Fault>::new(text))
            }
            NodeValue::Object(members) if members.len() == 1 => {
                let (key, content) = &members[0];
                visitor.visit_enum(VariantReader { key, content })
            }
            _ => Err(Fault::new(format!(
                "expected an object with one of the keys {}",
                variants.join(", ")
            ))),
        };
        value.map_err(|fault: Fault| fault.at(self.place))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct ItemReader<'de> {
    items: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for ItemReader<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.get(self.next) else {
            return Ok(None);
        };
        let at = self.next;
        self.next += 1;
        seed.deserialize(item)
            .map(Some)
            .map_err(|fault| fault.at(item.place).below(&format!("[{at}]")))
    }
}

struct MemberReader<'de> {
    members: &'de [(NodeKey, Node)],
    next: usize,
}

impl<'de> MapAccess<'de> for MemberReader<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((key, _)) = self.members.get(self.next) else {
            return Ok(None);
        };
        seed.deserialize(StrDeserializer::<Fault>::new(&key.text))
            .map(Some)
            .map_err(|fault| fault.at(key.place))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, value)) = self.members.get(self.next) else {
            return Err(Fault::new("a value is missing"));
        };
        self.next += 1;
        seed.deserialize(value)
            .map_err(|fault| fault.at(value.place).below(&key.text))
    }
}

struct VariantReader<'de> {
    key: &'de NodeKey,
    content: &'de Node,
}

impl<'de> EnumAccess<'de> for VariantReader<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        seed.deserialize(StrDeserializer::<Fault>::new(&self.key.text))
            .map_err(|fault| fault.at(self.key.place))
            .map(|variant| (variant, self))
    }
}

impl<'de> VariantAccess<'de> for VariantReader<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Err(Fault::new("expected a word, not an object").at(self.key.place))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.content)
            .map_err(|fault| fault.at(self.content.place).below(&self.key.text))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.content.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.content.deserialize_any(visitor)
    }
}
