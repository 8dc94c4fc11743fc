//! Decoding of the scripts' replies.

use std::time::Duration;

use bytes::Bytes;
use redis::Value;

use super::messages::text::{parse_attempt, parse_class, parse_owner, parse_state};
use crate::store::{Epoch, Event, NodeId, Result, StoreError, StreamState, Version, View};

/// Elements of a reply, which are taken one after the other.
#[derive(Debug)]
pub(super) struct ScriptReply {
    script: &'static str,
    values: std::vec::IntoIter<Value>,
}

impl ScriptReply {
    /// Reads a reply that is a list.
    pub(super) fn list(script: &'static str, value: Value) -> Result<Self> {
        match value {
            Value::Array(values) | Value::Set(values) => Ok(Self {
                script,
                values: values.into_iter(),
            }),
            _ => Err(corrupt(script)),
        }
    }

    fn corrupt(&self) -> StoreError {
        corrupt(self.script)
    }

    /// Number of remaining elements.
    pub(super) fn left(&self) -> usize {
        self.values.len()
    }

    pub(super) fn value(&mut self) -> Result<Value> {
        self.values.next().ok_or_else(|| self.corrupt())
    }

    pub(super) fn int(&mut self) -> Result<i64> {
        match self.value()? {
            Value::Int(number) => Ok(number),
            _ => Err(self.corrupt()),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        u64::try_from(self.int()?).map_err(|_| self.corrupt())
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        Ok(self.int()? != 0)
    }

    pub(super) fn millis(&mut self) -> Result<Duration> {
        self.number().map(Duration::from_millis)
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes> {
        match self.value()? {
            Value::BulkString(bytes) => Ok(bytes.into()),
            _ => Err(self.corrupt()),
        }
    }

    /// Reads eight hexadecimal digits.
    pub(super) fn version(&mut self) -> Result<Version> {
        let text = self.bytes()?;
        std::str::from_utf8(&text)
            .ok()
            .and_then(|text| u32::from_str_radix(text, 16).ok())
            .map(Version)
            .ok_or_else(|| self.corrupt())
    }

    pub(super) fn owner(&mut self) -> Result<Option<NodeId>> {
        let text = self.bytes()?;
        parse_owner(&text).ok_or_else(|| self.corrupt())
    }

    pub(super) fn state(&mut self) -> Result<StreamState> {
        let text = self.bytes()?;
        parse_state(&text).ok_or_else(|| self.corrupt())
    }

    pub(super) fn epoch(&mut self) -> Result<Epoch> {
        let text = self.bytes()?;
        parse_attempt(&text).ok_or_else(|| self.corrupt())
    }

    /// Reads `<term>:<start>:<nonce>,` for each epoch.
    fn epochs(&mut self) -> Result<Vec<(u64, Epoch)>> {
        let text = self.bytes()?;
        let text = std::str::from_utf8(&text).map_err(|_| self.corrupt())?;
        text.split_terminator(',')
            .map(|entry| {
                let mut parts = entry.split(':');
                let term = parts.next()?.parse().ok()?;
                let start = parts.next()?.parse().ok()?;
                let nonce = u16::from_str_radix(parts.next()?, 16).ok()?;
                Some((start, Epoch { term, nonce }))
            })
            .collect::<Option<_>>()
            .ok_or_else(|| self.corrupt())
    }

    /// Reads `<seq>|<class>|<payload>` for each event.
    fn events(&mut self) -> Result<Vec<Event>> {
        let mut entries = Self::list(self.script, self.value()?)?;
        let mut events = Vec::with_capacity(entries.left());
        while entries.left() > 0 {
            let entry = entries.bytes()?;
            events.push(event(&entry).ok_or_else(|| self.corrupt())?);
        }
        Ok(events)
    }

    /// Reads the common part of the replies of `attach` and `read`.
    pub(super) fn view(&mut self) -> Result<View> {
        let owner = self.owner()?;
        let state = self.state()?;
        let tail = self.number()?;
        let dropped = self.number()?;
        let generation = self.number()?;
        let deadline_in = self.millis()?;
        let more = self.flag()?;
        let events = self.events()?;
        let epoch = self.epoch()?;
        let epochs = self.epochs()?;
        Ok(View {
            owner,
            state,
            tail,
            dropped,
            generation,
            epoch,
            epochs,
            deadline_in,
            events,
            more,
        })
    }
}

/// Reads a reply that is a number.
pub(super) fn int(script: &'static str, value: &Value) -> Result<i64> {
    match value {
        Value::Int(number) => Ok(*number),
        _ => Err(corrupt(script)),
    }
}

pub(super) fn corrupt(script: &str) -> StoreError {
    StoreError::Corrupt(format!("an answer of {script}"))
}

/// Reads an entry of a log.
fn event(entry: &Bytes) -> Option<Event> {
    let bar = entry.iter().take(20).position(|byte| *byte == b'|')?;
    let seq = std::str::from_utf8(&entry[..bar]).ok()?.parse().ok()?;
    let class = parse_class(entry.get(bar + 1..bar + 2)?)?;
    if entry.get(bar + 2) != Some(&b'|') {
        return None;
    }
    Some(Event {
        seq,
        class,
        payload: entry.slice(bar + 3..),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Class;

    #[test]
    fn entries_of_a_log_are_read_or_refused_and_never_crash() {
        let read = |entry: &'static [u8]| event(&Bytes::from_static(entry));
        assert_eq!(
            read(b"281474976710656|F|a|\0\xff"),
            Some(Event {
                seq: 1 << 48,
                class: Class::Final,
                payload: Bytes::from_static(b"a|\0\xff"),
            })
        );
        for wrong in [
            &b""[..],
            b"|",
            b"1",
            b"1|",
            b"1|N",
            b"1|Z|x",
            b"x|N|x",
            b"-1|N|x",
            b"1|NN|x",
            b"99999999999999999999999|N|x",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
