//! `requestState` (MCP-MR-6…MCP-MR-8): sealed for one caller, one server and one request.
//!
//! It is valid for a quarter of an hour. Its holder can neither read nor change it.
//!
//! ```text
//! plaintext (`plain`) = version 1 | kind | method | round
//!                      | digest of the parameters (32) | rest
//! suspended : session (16) | stream (8) | sequence (8) | epoch (4 + 2)
//! handed on : 0, or 1 and the upstream's own state
//! associated data = tenant | server | principal (person and client)
//! ```

pub(crate) mod plain;

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_cluster::{
    SessionKey,
    store::{Cursor, Epoch, Nonce, StreamKey},
};
use portolan_keys::{OpenError, Purpose, digest, digests_equal};
use portolan_model::Digest;
use portolan_protocol::{
    error::ErrorKind,
    input_required::{InputRequired, LONGEST_STATE},
    jsonrpc::{self, Params, Raw},
    method::Method,
};
use serde_json::Value;

use crate::{
    call::{
        Call,
        request_state::plain::{About, Plain},
    },
    error::McpError,
};

/// MCP-MR-6: not ours, changed, or of another caller. The error does not reveal the reason.
const INVALID: &str = "Invalid requestState";

const EXPIRED: &str = "requestState expired";

const OTHER_REQUEST: &str = "requestState belongs to another request";

/// MCP-X-27: the state was used before.
pub(crate) const USED: &str = "requestState already used";

/// A question of a suspended call, as its `requestState` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SuspendedAt {
    pub(crate) stream: StreamKey,
    /// The event of the question.
    pub(crate) cursor: Cursor,
    pub(crate) round: u8,
}

/// The contents of a valid state.
#[derive(Debug)]
pub(crate) enum OpenedState {
    /// A suspended call waits for this request (MCP-X-22).
    Suspended(SuspendedAt),
    /// Call the upstream again (MCP-X-29).
    HandedOn(Continued),
}

/// A modern request may ask its client: its state goes out with the question, and comes back.
impl Call {
    fn scope_bytes(&self) -> Vec<u8> {
        [
            &self.server.tenant.uuid().as_bytes()[..],
            &self.server.id.uuid().as_bytes()[..],
            &self.caller.principal.as_bytes()[..],
        ]
        .concat()
    }

    fn seal(&self, round: u8, about: About) -> Option<String> {
        let plain = Plain {
            method: method_code(self.method),
            round,
            digest: *digest_of(&self.params).as_bytes(),
            about,
        };
        let life = Duration::from_secs(self.state.config.park_secs);
        let until = self.state.clock.now() + life;
        let (keys, text) = (&self.state.keys, plain.to_bytes());
        let sealed = keys.seal_until(Purpose::RequestState, &text, &self.scope_bytes(), until);
        let state = URL_SAFE_NO_PAD.encode(sealed.ok()?);
        (state.len() <= LONGEST_STATE).then_some(state)
    }

    pub(crate) fn seal_suspended(&self, at: &SuspendedAt) -> Option<String> {
        let epoch = at.cursor.epoch;
        let about = About::Suspended {
            session: at.stream.session.0,
            nonce: at.stream.nonce.0,
            seq: at.cursor.seq,
            epoch: epoch.map(|epoch| (epoch.term, epoch.nonce)),
        };
        self.seal(at.round, about)
    }

    /// The answer that forwards an upstream's questions, with its state inside ours (MCP-X-29).
    ///
    /// `None` if the state is too long.
    pub(crate) fn hand_on(&self, asked: InputRequired, round: u8) -> Option<Vec<u8>> {
        let state = self.seal(round, About::HandedOn(asked.state.clone()))?;
        Some(self.input_required(InputRequired {
            state: Some(state),
            ..asked
        }))
    }

    pub(crate) fn input_required(&self, asked: InputRequired) -> Vec<u8> {
        jsonrpc::response_with(&self.id, 512, |out| asked.write(&self.server.identity, out))
    }

    /// Opens a client's state, and checks caller, server and request.
    pub(crate) fn open(&self, text: &str) -> Result<OpenedState, McpError> {
        self.read_state(text).map_err(|why| self.refuse(why))
    }

    pub(crate) fn refuse(&self, why: &'static str) -> McpError {
        metrics::counter!("mcp_request_state_refused_total").increment(1);
        self.fail(&ErrorKind::RequestState(why))
    }

    fn read_state(&self, text: &str) -> Result<OpenedState, &'static str> {
        if text.len() > LONGEST_STATE {
            return Err(INVALID);
        }
        let sealed = URL_SAFE_NO_PAD.decode(text).map_err(|_| INVALID)?;
        let (keys, now) = (&self.state.keys, self.state.clock.now());
        let opened = keys.open(Purpose::RequestState, &sealed, &self.scope_bytes(), now);
        let opened = opened.map_err(|why| match why {
            OpenError::Expired => EXPIRED,
            _ => INVALID,
        })?;
        let plain = Plain::read(opened.expose()).ok_or(INVALID)?;
        if plain.method != method_code(self.method)
            || !digests_equal(&Digest::from_bytes(plain.digest), &digest_of(&self.params))
        {
            return Err(OTHER_REQUEST);
        }
        let round = plain.round;
        Ok(match plain.about {
            About::Suspended {
                session,
                nonce,
                seq,
                epoch,
            } => OpenedState::Suspended(SuspendedAt {
                stream: StreamKey {
                    session: SessionKey(session),
                    nonce: Nonce(nonce),
                },
                cursor: Cursor {
                    seq,
                    epoch: epoch.map(|(term, nonce)| Epoch { term, nonce }),
                },
                round,
            }),
            About::HandedOn(state) => OpenedState::HandedOn(Continued {
                responses: None,
                state,
                round,
            }),
        })
    }
}

/// MCP-MR-1: codes of the methods that may ask.
const fn method_code(method: Method) -> u8 {
    match method {
        Method::ToolsCall => 1,
        Method::PromptsGet => 2,
        Method::ResourcesRead => 3,
        _ => 0,
    }
}

/// A digest over the parameters that a retry repeats: all but answers, state and metadata.
///
/// The order of members does not matter, because clients write them anew.
fn digest_of(params: &Params) -> Digest {
    let members: Vec<(String, Value)> = params.raw().map_or_else(Vec::new, |raw| {
        raw.members()
            .filter(|(name, _)| {
                !matches!(name.as_str(), "_meta" | "inputResponses" | "requestState")
            })
            .filter_map(|(name, value)| Some((name, value.read("params").ok()?)))
            .collect()
    });
    let mut tree = Value::Object(members.into_iter().collect());
    tree.sort_all_objects();
    digest(tree.to_string().as_bytes())
}

/// The state from an earlier round of a repeated call (MCP-MR-5, MCP-X-29).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Continued {
    /// The client's answers by key, an object; absent if it sent none.
    pub(crate) responses: Option<Raw>,
    /// The upstream's own state, unchanged.
    pub(crate) state: Option<String>,
    /// Rounds so far.
    pub(crate) round: u8,
}
