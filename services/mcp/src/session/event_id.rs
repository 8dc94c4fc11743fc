//! Ids of events on the streams of a session (STREAM-4).
//!
//! This module depends on keys and bytes only, because the fuzz target `session` reads it too.

use portolan_cluster::{
    SessionKey,
    store::{Cursor, Epoch, Nonce},
};
use portolan_keys::{Keys, Purpose};
use portolan_protocol::jsonrpc::{Raw, RequestId};

use crate::catalog::marks::Marks;

/// The id of an event on a stream: opaque, and only we can make one (MCP-T-34, MCP-T-36, STREAM-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EventId {
    /// On the GET stream, which has no log: its contents depend on the lists alone.
    News {
        /// The stream.
        stream: [u8; 8],
        /// Number of the event on it; 0 is the priming event.
        sequence: u32,
        /// The lists that the client knew when it got the event.
        marks: Marks,
    },
    /// On the stream that answers a request.
    Answer {
        /// The stream.
        nonce: Nonce,
        /// The event and the epoch in which it was written. Sequence 0 is the priming event.
        cursor: Cursor,
        /// The request, so that any node can answer when the log is gone. Left out if it is very
        /// long.
        request: Option<RequestId>,
        /// A random number for the first event of a resumed stream, which only states the position.
        ///
        /// Ids of a session's events are unique, so it differs each time. `None` for events of the
        /// log.
        again: Option<[u8; 4]>,
    },
}

/// Longest JSON text of a request id that an event id repeats.
const LONGEST_REQUEST_ID: usize = 48;

impl EventId {
    /// The id in its wire form: at most 144 characters that are safe in a header and in an event.
    pub(crate) fn to_wire(&self, keys: &Keys, session: SessionKey) -> String {
        let mut payload = Vec::with_capacity(96);
        match self {
            Self::News {
                stream,
                sequence,
                marks,
            } => {
                payload.push(b'N');
                payload.extend_from_slice(stream);
                payload.extend_from_slice(&sequence.to_be_bytes());
                payload.extend_from_slice(&marks.to_bytes());
            }
            Self::Answer {
                nonce,
                cursor,
                request,
                again,
            } => {
                payload.push(if again.is_some() { b'R' } else { b'A' });
                payload.extend_from_slice(again.as_ref().map_or(&[][..], |again| &again[..]));
                payload.extend_from_slice(&nonce.0);
                payload.extend_from_slice(&cursor.seq.to_be_bytes());
                let epoch = cursor.epoch.unwrap_or(Epoch { term: 0, nonce: 0 });
                payload.extend_from_slice(&epoch.term.to_be_bytes());
                payload.extend_from_slice(&epoch.nonce.to_be_bytes());
                let before = payload.len();
                if let Some(request) = request {
                    request.write(&mut payload);
                }
                if payload.len() - before > LONGEST_REQUEST_ID {
                    payload.truncate(before);
                }
            }
        }
        keys.stamp(Purpose::McpSession, &event_scope(session), &payload)
    }

    /// Reads a `Last-Event-ID`. `None` for an id that was not issued to this session.
    pub(crate) fn read(text: &str, keys: &Keys, session: SessionKey) -> Option<Self> {
        if text.len() > 192 {
            return None;
        }
        let payload = keys.read_stamp(Purpose::McpSession, &event_scope(session), text)?;
        let (kind, rest) = payload.split_first()?;
        let (again, rest) = match kind {
            b'R' => {
                let (again, rest) = rest.split_first_chunk::<4>()?;
                (Some(*again), rest)
            }
            _ => (None, rest),
        };
        let (stream, rest) = rest.split_first_chunk::<8>()?;
        match kind {
            b'N' => {
                let (sequence, marks) = rest.split_first_chunk::<4>()?;
                Some(Self::News {
                    stream: *stream,
                    sequence: u32::from_be_bytes(*sequence),
                    marks: Marks::read(marks)?,
                })
            }
            b'A' | b'R' => {
                let (seq, rest) = rest.split_first_chunk::<8>()?;
                let (number, rest) = rest.split_first_chunk::<4>()?;
                let (mark, request) = rest.split_first_chunk::<2>()?;
                let number = u32::from_be_bytes(*number);
                let mark = u16::from_be_bytes(*mark);
                let request = (!request.is_empty())
                    .then(|| Raw::parse(request.to_vec()).ok())
                    .flatten();
                Some(Self::Answer {
                    nonce: Nonce(*stream),
                    cursor: Cursor {
                        seq: u64::from_be_bytes(*seq),
                        epoch: (number > 0).then_some(Epoch {
                            term: number,
                            nonce: mark,
                        }),
                    },
                    request: request.as_ref().and_then(RequestId::from_raw),
                    again,
                })
            }
            _ => None,
        }
    }
}

fn event_scope(session: SessionKey) -> Vec<u8> {
    [&b"event"[..], &session.0[..]].concat()
}

#[cfg(test)]
mod tests {
    use portolan_keys::MasterSecret;

    use super::*;

    fn keys() -> Keys {
        Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap()
    }

    #[test]
    fn t_36_an_event_id_is_of_its_session_and_cannot_be_bumped() {
        let session = SessionKey([3; 16]);
        let news = EventId::News {
            stream: [1; 8],
            sequence: 5,
            marks: Marks {
                tools: 42,
                updates: u64::MAX,
                ..Marks::default()
            },
        };
        let answer = |seq, request: RequestId| EventId::Answer {
            nonce: Nonce([2; 8]),
            cursor: Cursor {
                seq,
                epoch: Some(Epoch {
                    term: 3,
                    nonce: 0xabcd,
                }),
            },
            request: Some(request),
            again: None,
        };
        let longest = answer(u64::MAX, RequestId::from("x".repeat(46)));
        let mut resumed = longest.clone();
        if let EventId::Answer { again, .. } = &mut resumed {
            *again = Some([9; 4]);
        }
        for id in [news, answer(7, RequestId::from(1)), longest, resumed] {
            let wire = id.to_wire(&keys(), session);
            assert!(
                wire.len() <= 144 && wire.bytes().all(|byte| (0x21..=0x7e).contains(&byte)),
                "MCP-T-34: {wire}"
            );
            assert_eq!(EventId::read(&wire, &keys(), session), Some(id));
            assert_eq!(EventId::read(&wire, &keys(), SessionKey([4; 16])), None);
        }
        assert_eq!(EventId::read("1-5", &keys(), session), None);
        let (one, two) = (
            answer(5, RequestId::from(1)).to_wire(&keys(), session),
            answer(6, RequestId::from(1)).to_wire(&keys(), session),
        );
        let spliced = format!("{}{}", &two[..28], &one[28..]);
        assert_eq!(EventId::read(&spliced, &keys(), session), None);
    }

    /// Number of forged ids, and the longest average time for one in an unoptimised build.
    const LOOKS: usize = 200_000;
    const EACH: std::time::Duration = std::time::Duration::from_micros(100);

    /// TEST-B8: the processor alone rejects forged ids, in microseconds.
    #[test]
    fn b8_forged_ids_of_every_kind_are_refused_in_microseconds() {
        let (keys, session) = (keys(), SessionKey([3; 16]));
        let others = Keys::new(&MasterSecret::from_bytes([8; 32]), &[]).unwrap();
        let event = |seq| EventId::Answer {
            nonce: Nonce([2; 8]),
            cursor: Cursor { seq, epoch: None },
            request: Some(RequestId::from(1)),
            again: None,
        };
        let good = event(7).to_wire(&keys, session);
        let next = event(8).to_wire(&keys, session);
        let mut forged = vec![
            String::new(),
            "A".repeat(8 * 1024),
            "A".repeat(good.len()),
            "1-5".to_owned(),
            "é".repeat(40),
            event(7).to_wire(&keys, SessionKey([4; 16])),
            event(7).to_wire(&others, session),
            // The number of the next event under the seal of this one, and the other way round.
            format!("{}{}", &next[..28], &good[28..]),
            format!("{}{}", &good[..28], &next[28..]),
            format!("{good}A"),
            format!("{good}="),
            format!("A{good}"),
        ];
        for at in 0..good.len() {
            let mut flipped = good.clone().into_bytes();
            flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
            forged.push(String::from_utf8(flipped).unwrap());
            forged.push(good[..at].to_owned());
        }
        assert!(EventId::read(&good, &keys, session).is_some());
        let begun = std::time::Instant::now();
        for text in forged.iter().cycle().take(LOOKS) {
            assert_eq!(EventId::read(text, &keys, session), None, "{text}");
        }
        let each = begun.elapsed() / u32::try_from(LOOKS).unwrap();
        println!("{} forged ids, {each:?} each", forged.len());
        assert!(each < EACH, "{each:?}");
    }

    #[test]
    fn an_event_id_leaves_out_a_request_id_that_is_too_long_for_it() {
        let session = SessionKey([3; 16]);
        let id = EventId::Answer {
            nonce: Nonce([2; 8]),
            cursor: Cursor {
                seq: 1,
                epoch: None,
            },
            request: Some(RequestId::from("x".repeat(300))),
            again: None,
        };
        let wire = id.to_wire(&keys(), session);
        let Some(EventId::Answer { request, .. }) = EventId::read(&wire, &keys(), session) else {
            panic!("of ours")
        };
        assert_eq!(request, None);
    }
}
