//! Writes JSON into a buffer.

use serde::Serialize;

/// Appends `text` as a JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// An object under construction in a buffer.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// The buffer, to append the value of the [`key`](Self::key) just written.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    pub(crate) fn key(&mut self, key: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write_string(key, self.out);
        self.out.push(b':');
    }

    pub(crate) fn raw(&mut self, key: &str, json: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(json);
    }

    pub(crate) fn value<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.key(key);
        let start = self.out.len();
        if serde_json::to_writer(&mut *self.out, value).is_err() {
            // A map with keys that are no strings: none of our types has one, but half a value must
            // not stay.
            self.out.truncate(start);
            self.out.extend_from_slice(b"null");
        }
    }

    pub(crate) fn optional<T: Serialize>(&mut self, key: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.value(key, value);
        }
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}
