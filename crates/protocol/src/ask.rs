//! Questions of a server to its client: elicitation, sampling, roots (`docs/revisions.md`, section
//! 17, section 18; MCP-X-30…MCP-X-3I of the translation rules).
//!
//! [`question`] translates a question on its way to the client, [`answer`] translates the client's
//! answer on its way back. [`Need::of`] gives the capability that a question needs. In legacy
//! revisions a question is a JSON-RPC request. In 2026-07-28 it is an entry of
//! [`crate::input_required::InputRequired`]. Method and parameters are the same.

mod form;
mod sampling;

use crate::capability::ClientCapabilities;
use crate::json::Object;
use crate::jsonrpc::{Kind, Misfit, Raw};
use crate::method::Method;
use crate::revision::Revision;
use crate::shaped::{Loss, Losses, Shaped};

/// The three requests that a server may have for its client (MCP-MR-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AskMethod {
    /// `elicitation/create`: requests input from the person.
    Elicit,
    /// `sampling/createMessage`: requests a message from the client's model.
    CreateMessage,
    /// `roots/list`: requests the client's roots.
    ListRoots,
}

impl AskMethod {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Elicit, Self::CreateMessage, Self::ListRoots];

    /// The method of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        self.method().name()
    }

    /// The same among all methods.
    pub const fn method(self) -> Method {
        match self {
            Self::Elicit => Method::Elicit,
            Self::CreateMessage => Method::CreateMessage,
            Self::ListRoots => Method::RootsList,
        }
    }
}

/// Capability that a client must declare before a server may send it a question (MCP-EL-1,
/// MCP-SM-1, MCP-SM-3, MCP-RT-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Elicitation by form.
    Form,
    /// Elicitation by URL (R4+).
    Url,
    /// Sampling.
    Sampling,
    /// Sampling with tools (R4+).
    SamplingTools,
    /// Roots.
    Roots,
}

impl Need {
    /// Every need.
    pub const ALL: [Self; 5] = [
        Self::Form,
        Self::Url,
        Self::Sampling,
        Self::SamplingTools,
        Self::Roots,
    ];

    /// Returns the capability that this question needs.
    pub fn of(method: AskMethod, params: &Raw) -> Self {
        match method {
            AskMethod::Elicit => {
                if params.get("mode").and_then(|mode| mode.string()).as_deref() == Some("url") {
                    Self::Url
                } else {
                    Self::Form
                }
            }
            AskMethod::CreateMessage => {
                if sampling::uses_tools(params) {
                    Self::SamplingTools
                } else {
                    Self::Sampling
                }
            }
            AskMethod::ListRoots => Self::Roots,
        }
    }

    /// True if the client declared it.
    pub fn is_met_by(self, capabilities: &ClientCapabilities) -> bool {
        match self {
            Self::Form => capabilities.elicitation_form,
            Self::Url => capabilities.elicitation_url,
            Self::Sampling => capabilities.sampling,
            Self::SamplingTools => capabilities.sampling && capabilities.sampling_tools,
            Self::Roots => capabilities.roots,
        }
    }

    /// True if the revision has it at all.
    pub fn exists_in(self, revision: Revision) -> bool {
        let facts = revision.facts();
        match self {
            Self::Form => facts.elicitation,
            Self::Url | Self::SamplingTools => facts.later_questions,
            Self::Sampling | Self::Roots => true,
        }
    }

    /// A `ClientCapabilities` object with only this in it: `requiredCapabilities` of `-32021`
    /// (MCP-L-19).
    pub fn required(self) -> Raw {
        Raw::trusted(bytes::Bytes::from_static(match self {
            Self::Form => br#"{"elicitation":{"form":{}}}"#,
            Self::Url => br#"{"elicitation":{"url":{}}}"#,
            Self::Sampling => br#"{"sampling":{}}"#,
            Self::SamplingTools => br#"{"sampling":{"tools":{}}}"#,
            Self::Roots => br#"{"roots":{}}"#,
        }))
    }

    /// The feature in words, as MCP-V-1 names it.
    pub const fn feature(self) -> &'static str {
        match self {
            Self::Form => "elicitation",
            Self::Url => "elicitation.url",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::Roots => "roots",
        }
    }

    /// The first need that a `ClientCapabilities` object names (`data.requiredCapabilities` of an
    /// upstream's `-32021`, MCP-X-80).
    pub fn first_required(required: &Raw) -> Option<Self> {
        let has = |path: [&str; 2]| {
            required
                .get(path[0])
                .is_some_and(|inner| path[1].is_empty() || inner.get(path[1]).is_some())
        };
        if has(["elicitation", "url"]) {
            Some(Self::Url)
        } else if has(["elicitation", ""]) {
            Some(Self::Form)
        } else if has(["sampling", "tools"]) {
            Some(Self::SamplingTools)
        } else if has(["sampling", ""]) {
            Some(Self::Sampling)
        } else if has(["roots", ""]) {
            Some(Self::Roots)
        } else {
            None
        }
    }
}

/// Reason why a question cannot be sent to a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    /// It did not declare the capability, or its revision has none (MCP-X-30, MCP-X-33, MCP-X-3A,
    /// MCP-X-3B, MCP-X-3F).
    #[error("the client does not offer {}", .0.feature())]
    Needs(Need),
    /// A form with a multiple choice, which 2025-06-18 cannot show (MCP-X-34, MCP-V-11).
    #[error("the client cannot show a multiple choice")]
    MultipleChoice,
    /// A message that the client's revision has no form for: several blocks that are not all text,
    /// or sound (MCP-X-3C, MCP-X-3D).
    #[error("the client's revision cannot carry {0} in sampling")]
    Content(&'static str),
    /// The question itself is not what its revision allows.
    #[error("the question is malformed: {0}")]
    Malformed(#[from] Misfit),
}

/// Context for which a question is translated.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Revision of the server that sends the question.
    pub from: Revision,
    /// Revision of the client that receives it.
    pub to: Revision,
    /// Capabilities that the client declared.
    pub capabilities: &'a ClientCapabilities,
    /// An unguessable `elicitationId` for a question by URL that came without one (MCP-X-35).
    pub made_up_id: &'a str,
}

/// Translates the parameters of a question to the client's revision (MCP-X-30…MCP-X-3E), or returns
/// why it cannot be sent. `params` may be the empty object where the server sent none.
pub fn question(method: AskMethod, params: &Raw, asked: &Asked<'_>) -> Result<Shaped, Unaskable> {
    if params.kind() != Kind::Object {
        return Err(Misfit::new("params", "expected an object").into());
    }
    let need = Need::of(method, params);
    if !need.exists_in(asked.to) || !need.is_met_by(asked.capabilities) {
        return Err(Unaskable::Needs(need));
    }
    match method {
        AskMethod::Elicit => form::question(params, need, asked),
        AskMethod::CreateMessage => sampling::question(params, asked),
        AskMethod::ListRoots => Ok(roots(params)),
    }
}

/// MCP-RT-1: keeps only `_meta`.
fn roots(params: &Raw) -> Shaped {
    let (mut out, mut losses) = (Vec::with_capacity(32), Losses::NONE);
    let mut object = Object::begin(&mut out);
    for (name, value) in params.members() {
        if name == "_meta" {
            meta(&value, &mut object, &mut losses);
        }
    }
    object.end();
    Shaped { json: out, losses }
}

/// Writes `_meta` of a question without the server's progress token, which is valid only on the
/// server's own connection (MCP-X-19). It is the last member, and is written at most once.
fn meta(value: &Raw, object: &mut Object<'_>, losses: &mut Losses) {
    let kept: Vec<_> = value
        .members()
        .filter(|(name, _)| name != "progressToken")
        .collect();
    if kept.len() < value.members().count() {
        losses.add(Loss::QuestionProgress);
    }
    if kept.is_empty() {
        return;
    }
    object.key("_meta");
    let mut inner = Object::begin(object.out());
    for (name, value) in kept {
        inner.raw(&name, value.as_bytes());
    }
    inner.end();
}

/// Checks a client's answer against its question and translates it to the revision of the server
/// (MCP-X-39, MCP-X-3C). The misfit describes the fault: a failed elicitation (MCP-EL-8), or a
/// sampling result that cannot be used.
pub fn answer(
    method: AskMethod,
    params: &Raw,
    result: &Raw,
    to_asker: Revision,
) -> Result<Shaped, Misfit> {
    if result.kind() != Kind::Object {
        return Err(Misfit::new("result", "expected an object"));
    }
    match method {
        AskMethod::Elicit => form::answer(params, result),
        AskMethod::CreateMessage => sampling::answer(result, to_asker),
        AskMethod::ListRoots => roots_answer(result),
    }
}

fn roots_answer(result: &Raw) -> Result<Shaped, Misfit> {
    let roots = result
        .get("roots")
        .filter(|roots| roots.kind() == Kind::Array)
        .ok_or_else(|| Misfit::new("result.roots", "expected an array"))?;
    for (index, root) in roots.elements().enumerate() {
        if root.get("uri").is_none_or(|uri| uri.kind() != Kind::String) {
            return Err(Misfit::new(
                format!("result.roots[{index}].uri"),
                "expected a string",
            ));
        }
    }
    Ok(without_envelope(result))
}

/// A result of a client without what only answers of servers have.
fn without_envelope(result: &Raw) -> Shaped {
    let mut out = Vec::with_capacity(result.as_bytes().len());
    let mut object = Object::begin(&mut out);
    for (name, value) in result.members() {
        if name != "resultType" {
            object.raw(&name, value.as_bytes());
        }
    }
    object.end();
    Shaped {
        json: out,
        losses: Losses::NONE,
    }
}

/// Result that replaces a missing answer: `{"action":"cancel"}` for an elicitation (MCP-X-25,
/// MCP-X-2B), an empty list of roots (MCP-X-2C). `None` for sampling, which has no such result
/// (MCP-X-2A).
pub fn refusal(method: AskMethod) -> Option<Raw> {
    let text: &'static [u8] = match method {
        AskMethod::Elicit => br#"{"action":"cancel"}"#,
        AskMethod::ListRoots => br#"{"roots":[]}"#,
        AskMethod::CreateMessage => return None,
    };
    Some(Raw::trusted(bytes::Bytes::from_static(text)))
}
