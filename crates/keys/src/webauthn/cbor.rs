//! The little of CBOR (RFC 8949) that authenticators write: definite lengths, no tags, no floating
//! point (CTAP 2, §8).

/// Deepest nesting; CTAP allows four levels.
const DEEPEST: u8 = 6;

/// Most entries of a map. The largest that is read here has five.
const MOST_ENTRIES: u64 = 32;

/// Not what an authenticator may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Either sign.
    Int(i64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// A list. Nothing of what is read here needs its elements.
    Array,
    /// A map, in the order of its writer; no key stands in it twice.
    Map(Vec<(Value<'a>, Value<'a>)>),
    /// `false`, `true`, `null`.
    Simple,
}

impl<'a> Value<'a> {
    /// Returns the value of a map under an integer key.
    pub(super) fn at(&self, key: i64) -> Option<&Self> {
        self.under(&Value::Int(key))
    }

    /// Returns the value of a map under a text key.
    pub(super) fn named(&self, key: &str) -> Option<&Self> {
        self.under(&Value::Text(key))
    }

    fn under(&self, key: &Value<'_>) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// A number.
    pub(super) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Bytes.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The first value, and what stands behind it.
pub(super) fn first(bytes: &[u8]) -> Result<(Value<'_>, &[u8]), Malformed> {
    let mut reader = CborReader { rest: bytes };
    let value = reader.value(DEEPEST)?;
    Ok((value, reader.rest))
}

/// One value and nothing behind it.
pub(super) fn whole(bytes: &[u8]) -> Result<Value<'_>, Malformed> {
    match first(bytes)? {
        (value, []) => Ok(value),
        _ => Err(Malformed),
    }
}

struct CborReader<'a> {
    rest: &'a [u8],
}

impl<'a> CborReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Major type and argument. Indefinite lengths (31) and what is reserved are refused.
    fn head(&mut self) -> Result<(u8, u64), Malformed> {
        let [first] = self.take(1)? else {
            return Err(Malformed);
        };
        let width = match first & 0x1f {
            short @ 0..=23 => return Ok((first >> 5, u64::from(short))),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return Err(Malformed),
        };
        let argument = self
            .take(width)?
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        Ok((first >> 5, argument))
    }

    fn value(&mut self, depth: u8) -> Result<Value<'a>, Malformed> {
        let depth = depth.checked_sub(1).ok_or(Malformed)?;
        let (major, argument) = self.head()?;
        let length = || usize::try_from(argument).map_err(|_| Malformed);
        let number = || i64::try_from(argument).map_err(|_| Malformed);
        match major {
            0 => Ok(Value::Int(number()?)),
            1 => Ok(Value::Int(-1 - number()?)),
            2 => Ok(Value::Bytes(self.take(length()?)?)),
            3 => std::str::from_utf8(self.take(length()?)?)
                .map(Value::Text)
                .map_err(|_| Malformed),
            4 => {
                // Every element takes a byte at least, so a lie about the length ends soon.
                for _ in 0..length()? {
                    self.value(depth)?;
                }
                Ok(Value::Array)
            }
            5 if argument <= MOST_ENTRIES => {
                let mut entries: Vec<(Value<'a>, Value<'a>)> = Vec::new();
                for _ in 0..length()? {
                    let key = self.value(depth)?;
                    if entries.iter().any(|(known, _)| *known == key) {
                        return Err(Malformed);
                    }
                    entries.push((key, self.value(depth)?));
                }
                Ok(Value::Map(entries))
            }
            7 if matches!(argument, 20..=22) => Ok(Value::Simple),
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_read_and_what_stands_behind_is_given_back() {
        // {1: 2, -2: h'0102', "fmt": "none", "x": [true, null]} and one byte more.
        let bytes = [
            0xa4, 0x01, 0x02, 0x21, 0x42, 0x01, 0x02, 0x63, b'f', b'm', b't', 0x64, b'n', b'o',
            b'n', b'e', 0x61, b'x', 0x82, 0xf5, 0xf6, 0xff,
        ];
        let (map, rest) = first(&bytes).unwrap();
        assert_eq!(map.at(1).and_then(Value::int), Some(2));
        assert_eq!(map.at(-2).and_then(Value::bytes), Some([1, 2].as_slice()));
        assert_eq!(map.named("fmt"), Some(&Value::Text("none")));
        assert_eq!(map.at(7), None);
        assert_eq!(rest, [0xff]);
        assert_eq!(whole(&bytes), Err(Malformed));
    }

    #[test]
    fn what_no_authenticator_writes_is_refused() {
        for bytes in [
            [].as_slice(),
            // Indefinite lengths.
            &[0x5f, 0x41, 0x00, 0xff],
            &[0xbf, 0xff],
            // A key twice.
            &[0xa2, 0x01, 0x01, 0x01, 0x02],
            // A tag, a float, text that is no UTF-8.
            &[0xc0, 0x00],
            &[0xf9, 0x00, 0x00],
            &[0x61, 0xff],
            // More bytes, elements or entries than there are.
            &[0x5a, 0xff, 0xff, 0xff, 0xff, 0x00],
            &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            // Beyond i64.
            &[0x3b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            // 33 entries, all different: more than anything that is read here.
            &many_entries(33),
            // Too deep.
            &[0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0x00],
        ] {
            assert_eq!(first(bytes), Err(Malformed), "{bytes:x?}");
        }
    }

    /// A map of that many entries.
    fn many_entries(count: u8) -> Vec<u8> {
        let mut bytes = vec![0xb8, count];
        for key in 0..count {
            bytes.extend([0x18, key + 24, 0x00]);
        }
        bytes
    }

    #[test]
    fn a_map_has_no_more_entries_than_the_reader_compares() {
        assert!(first(&many_entries(32)).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = first(&bytes);
        }
    }
}
