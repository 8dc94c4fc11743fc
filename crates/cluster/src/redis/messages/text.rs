//! Text form of messages, and of epochs, states and classes, which scripts use too. Depends on
//! bytes only, because the fuzz target `message` calls it.

use crate::{
    redis::keys::{self, unhex},
    store::{Class, Epoch, Event, NodeId, NodeMessage, Nonce, SessionKey, StreamKey, StreamState},
};

/// Parses `<letter>` and fields `<length>:<bytes>`.
pub(crate) fn parse(message: &[u8]) -> Option<NodeMessage> {
    let (letter, rest) = message.split_first()?;
    let mut fields = Fields(rest);
    let message = match letter {
        b'E' => {
            let stream = fields.stream()?;
            let generation = fields.number()?;
            let epoch = parse_attempt(fields.next()?)?;
            let tail = fields.number()?;
            let state = parse_state(fields.next()?)?;
            let event = if fields.0.is_empty() {
                None
            } else {
                Some(Event {
                    seq: tail,
                    class: parse_class(fields.next()?)?,
                    payload: fields.next()?.to_vec().into(),
                })
            };
            NodeMessage::Appended {
                stream,
                generation,
                epoch,
                tail,
                state,
                event,
            }
        }
        b'D' => NodeMessage::Superseded {
            stream: fields.stream()?,
            generation: fields.number()?,
        },
        b'O' => NodeMessage::Owner {
            stream: fields.stream()?,
            owner: parse_owner(fields.next()?)?,
        },
        b'A' => NodeMessage::Answered {
            stream: fields.stream()?,
            question: String::from_utf8(fields.next()?.to_vec()).ok()?,
            payload: if fields.0.is_empty() {
                None
            } else {
                Some(fields.next()?.to_vec().into())
            },
        },
        b'C' => NodeMessage::Cancel {
            session: fields.session()?,
            rpc: String::from_utf8(fields.next()?.to_vec()).ok()?,
        },
        b'X' => NodeMessage::Ended {
            session: fields.session()?,
        },
        b'M' => NodeMessage::Session {
            session: fields.session()?,
            body: fields.next()?.to_vec().into(),
        },
        _ => return None,
    };
    fields.0.is_empty().then_some(message)
}

/// Builds the message that [`parse`] reads as `Session`. Scripts build all other messages.
pub(crate) fn session_message(session: SessionKey, body: &[u8]) -> Vec<u8> {
    let session = keys::hex(&session.0);
    let mut message = format!("M{}:{session}{}:", session.len(), body.len()).into_bytes();
    message.extend_from_slice(body);
    message
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let colon = self.0.iter().take(12).position(|byte| *byte == b':')?;
        let length: usize = std::str::from_utf8(&self.0[..colon]).ok()?.parse().ok()?;
        let (field, rest) = self.0[colon + 1..].split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    fn number(&mut self) -> Option<u64> {
        std::str::from_utf8(self.next()?).ok()?.parse().ok()
    }

    fn session(&mut self) -> Option<SessionKey> {
        Some(SessionKey(unhex(self.next()?)?))
    }

    fn stream(&mut self) -> Option<StreamKey> {
        Some(StreamKey {
            session: self.session()?,
            nonce: Nonce(unhex(self.next()?)?),
        })
    }
}

/// Writes an epoch as `<term>.<nonce>`.
pub(crate) fn attempt_text(epoch: Epoch) -> String {
    format!("{}.{:04x}", epoch.term, epoch.nonce)
}

/// Parses the text of [`attempt_text`].
pub(crate) fn parse_attempt(text: &[u8]) -> Option<Epoch> {
    let (term, nonce) = std::str::from_utf8(text).ok()?.split_once('.')?;
    Some(Epoch {
        term: term.parse().ok()?,
        nonce: u16::from_str_radix(nonce, 16).ok()?,
    })
}

pub(crate) fn parse_state(text: &[u8]) -> Option<StreamState> {
    match text {
        b"O" => Some(StreamState::Open),
        b"C" => Some(StreamState::Closed),
        b"X" => Some(StreamState::Cancelled),
        _ => None,
    }
}

pub(crate) fn parse_class(text: &[u8]) -> Option<Class> {
    match text {
        b"N" => Some(Class::Notification),
        b"R" => Some(Class::Question),
        b"A" => Some(Class::Answer),
        b"F" => Some(Class::Final),
        _ => None,
    }
}

/// Parses a node, or `-` for no node. `None` if the text is neither.
#[expect(clippy::option_option, reason = "a node, none, or nonsense")]
pub(crate) fn parse_owner(text: &[u8]) -> Option<Option<NodeId>> {
    if text == keys::owner(None) {
        return Some(None);
    }
    text.try_into().ok().map(|node| Some(NodeId(node)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doorbells_are_read_or_refused_and_never_crash() {
        let session = "ab".repeat(16);
        let nonce = "cd".repeat(8);
        let ended = format!("X32:{session}");
        assert_eq!(
            parse(ended.as_bytes()),
            Some(NodeMessage::Ended {
                session: SessionKey([0xab; 16])
            })
        );
        let mut appended = format!("E32:{session}16:{nonce}1:36:2.00ff1:91:O1:N3:").into_bytes();
        appended.extend_from_slice(b"|\0:");
        let Some(NodeMessage::Appended { event, epoch, .. }) = parse(&appended) else {
            panic!("not read")
        };
        assert_eq!(
            epoch,
            Epoch {
                term: 2,
                nonce: 0xff
            }
        );
        assert_eq!(
            event.map(|event| event.payload.to_vec()),
            Some(b"|\0:".to_vec())
        );
        for end in 0..appended.len() {
            // A message without its whole event is valid: the node reads the event. All other
            // truncated messages are refused.
            let cut = parse(&appended[..end]);
            assert!(
                matches!(cut, None | Some(NodeMessage::Appended { event: None, .. })),
                "cut at {end}"
            );
        }
        for wrong in [
            "",
            "Z",
            "X",
            "X99:a",
            "X32",
            "Xx:a",
            "X18446744073709551616:a",
            "X-1:",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(
            parse(format!("{ended}1:x").as_bytes()),
            None,
            "trailing bytes"
        );
    }
}
