//! Headers that repeat the body, so that routers need not read it (MCP-H-1…MCP-H-16,
//! MCP-D-1…MCP-D-5).

mod annotation;
mod value;

pub use annotation::{AnnotationFault, ParamHeader, ParamType, annotations};
pub(crate) use value::trim;
pub use value::{Dialect, HeaderFault, decode, encode};

use crate::error::ErrorKind;
use crate::json::scan;
use crate::jsonrpc::{Kind, Message, Params, Raw};
use crate::method::Method;

/// The name of the prefix of mirrored arguments, in lower case.
const PARAM_PREFIX: &str = "mcp-param-";

/// A header that may stand once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Field<'a> {
    /// Not sent.
    #[default]
    Absent,
    /// Sent once.
    One(&'a [u8]),
    /// Sent more than once, which is refused (MCP-T-13).
    Repeated(Vec<&'a [u8]>),
}

impl<'a> Field<'a> {
    fn add(&mut self, value: &'a [u8]) {
        *self = match std::mem::take(self) {
            Self::Absent => Self::One(value),
            Self::One(first) => Self::Repeated(vec![first, value]),
            Self::Repeated(mut all) => {
                all.push(value);
                Self::Repeated(all)
            }
        };
    }

    /// The value without the optional white space around it, if it was sent exactly once.
    pub fn one(&self) -> Option<&'a [u8]> {
        match self {
            Self::One(value) => Some(trim(value)),
            _ => None,
        }
    }

    /// All values.
    pub fn all(&self) -> &[&'a [u8]] {
        match self {
            Self::Absent => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::Repeated(all) => all,
        }
    }

    /// True if sent more than once.
    pub fn is_repeated(&self) -> bool {
        matches!(self, Self::Repeated(_))
    }
}

/// The headers of a request that MCP reads, with their multiplicity.
#[derive(Clone, Debug, Default)]
pub struct Headers<'a> {
    /// `MCP-Protocol-Version`
    pub protocol_version: Field<'a>,
    /// `Mcp-Session-Id`
    pub session_id: Field<'a>,
    /// `Last-Event-ID`
    pub last_event_id: Field<'a>,
    /// `Mcp-Method`
    pub method: Field<'a>,
    /// `Mcp-Name`
    pub name: Field<'a>,
    params: Vec<(&'a str, Field<'a>)>,
}

impl<'a> Headers<'a> {
    /// Picks what MCP reads out of all headers of a request. Names compare without case (MCP-T-12).
    pub fn collect(all: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut this = Self::default();
        for (name, value) in all {
            let field = if name.eq_ignore_ascii_case("mcp-protocol-version") {
                &mut this.protocol_version
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                &mut this.session_id
            } else if name.eq_ignore_ascii_case("last-event-id") {
                &mut this.last_event_id
            } else if name.eq_ignore_ascii_case("mcp-method") {
                &mut this.method
            } else if name.eq_ignore_ascii_case("mcp-name") {
                &mut this.name
            } else if let Some((prefix, param)) = name.split_at_checked(PARAM_PREFIX.len())
                && prefix.eq_ignore_ascii_case(PARAM_PREFIX)
            {
                this.param_field(param)
            } else {
                continue;
            };
            field.add(value);
        }
        this
    }

    fn param_field(&mut self, name: &'a str) -> &mut Field<'a> {
        let known = self
            .params
            .iter()
            .position(|(known, _)| known.eq_ignore_ascii_case(name));
        let index = known.unwrap_or_else(|| {
            self.params.push((name, Field::Absent));
            self.params.len() - 1
        });
        &mut self.params[index].1
    }

    /// The header `Mcp-Param-<name>`.
    pub fn param(&self, name: &str) -> Option<&Field<'a>> {
        self.params
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, field)| field)
    }

    /// The name of a header that was sent more than once (MCP-T-13).
    pub fn repeated(&self) -> Option<&'static str> {
        [
            (&self.protocol_version, "MCP-Protocol-Version"),
            (&self.session_id, "Mcp-Session-Id"),
            (&self.last_event_id, "Last-Event-ID"),
            (&self.method, "Mcp-Method"),
            (&self.name, "Mcp-Name"),
        ]
        .into_iter()
        .find(|(field, _)| field.is_repeated())
        .map(|(_, name)| name)
        .or_else(|| {
            self.params
                .iter()
                .any(|(_, field)| field.is_repeated())
                .then_some("Mcp-Param-*")
        })
    }

    /// The `Last-Event-ID`, if it is text.
    pub fn event_id(&self) -> Option<&'a str> {
        self.last_event_id
            .one()
            .and_then(|value| std::str::from_utf8(value).ok())
    }
}

/// Which of the mirrored headers must be there. Those that are there must match in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mirroring {
    /// Modern requests: method and name (MCP-H-1…MCP-H-5).
    Required,
    /// Modern notifications, ordinary legacy sessions, lenient draft sessions: none (MCP-E-14,
    /// MCP-D-2, MCP-D-3).
    Optional,
    /// Sessions of the draft profile: `Mcp-Method` also on notifications (MCP-D-2).
    Draft,
}

fn mismatch(text: &'static str) -> ErrorKind {
    ErrorKind::HeaderMismatch(text.into())
}

/// Compares `Mcp-Method` and `Mcp-Name` with the body (MCP-H-1…MCP-H-11). Responses are never
/// checked.
pub fn check_method_and_name(
    message: &Message,
    headers: &Headers<'_>,
    mirroring: Mirroring,
    dialect: Dialect,
) -> Result<(), ErrorKind> {
    let (Some(method), Some(params)) = (message.method(), message.params()) else {
        return Ok(());
    };
    check(method, params, headers, mirroring, dialect)
}

pub(crate) fn check(
    method: &str,
    params: &Params,
    headers: &Headers<'_>,
    mirroring: Mirroring,
    dialect: Dialect,
) -> Result<(), ErrorKind> {
    let required = mirroring != Mirroring::Optional;
    match headers.method.one() {
        Some(value) if value == method.as_bytes() => {}
        Some(_) => return Err(mismatch("Mcp-Method differs from \"method\"")),
        None if required => return Err(mismatch("Mcp-Method is required")),
        None => {}
    }
    let Some(mirrored) = Method::from_name(method).and_then(Method::mirrored_param) else {
        return Ok(());
    };
    let body = params.text(mirrored);
    match (headers.name.one(), body) {
        (Some(value), body) => {
            let value =
                decode(value, dialect).map_err(|fault| mismatch(fault.explain("Mcp-Name")))?;
            if body.as_deref() == Some(value.as_ref()) {
                Ok(())
            } else {
                Err(mismatch("Mcp-Name differs from the body"))
            }
        }
        (None, Some(_)) if required => Err(mismatch("Mcp-Name is required")),
        // Without a name in the body there is nothing to repeat: the parameters are refused later
        // (MCP-E-7 step 10).
        (None, _) => Ok(()),
    }
}

/// Compares `Mcp-Param-*` with the arguments of a `tools/call`, for the annotations of the tool
/// called (MCP-H-12…MCP-H-15). Call it only when the tool has annotations; others are ignored
/// (MCP-H-15).
pub fn check_params(
    annotations: &[ParamHeader],
    arguments: Option<&Raw>,
    headers: &Headers<'_>,
    dialect: Dialect,
) -> Result<(), ErrorKind> {
    for annotation in annotations {
        let value = arguments.map_or(Ok(None), |arguments| at_path(arguments, &annotation.path))?;
        let value = value.filter(|value| !value.is_null());
        let header = headers.param(&annotation.name).and_then(Field::one);
        match (value, header) {
            (None, None) => {}
            (None, Some(_)) => {
                return Err(mismatch("an Mcp-Param header has no argument beside it"));
            }
            // The schema refuses arrays and objects here, with a better message (MCP-E-7 step 10).
            (Some(value), _) if matches!(value.kind(), Kind::Array | Kind::Object) => {}
            (Some(_), None) => return Err(mismatch("an Mcp-Param header is missing")),
            (Some(value), Some(header)) => {
                let text = decode(header, dialect)
                    .map_err(|fault| mismatch(fault.explain("Mcp-Param")))?;
                if !same(&value, &text, dialect) {
                    return Err(mismatch("an Mcp-Param header differs from its argument"));
                }
            }
        }
    }
    Ok(())
}

/// The headers `Mcp-Param-*` of a call: names without the prefix, with values as they go over the
/// wire (MCP-H-7, MCP-H-12, MCP-H-14). Arguments that are absent, null or of another type than
/// annotated have none.
pub fn mirrored_params(annotations: &[ParamHeader], arguments: &Raw) -> Vec<(String, String)> {
    let mirrored = annotations.iter().filter_map(|annotation| {
        let value = at_path(arguments, &annotation.path).ok().flatten()?;
        let text = match (annotation.kind, value.kind()) {
            (ParamType::String, Kind::String) => value.string()?,
            (ParamType::Integer, Kind::Number) | (ParamType::Boolean, Kind::Boolean) => {
                value.as_str().to_owned()
            }
            _ => return None,
        };
        Some((annotation.name.clone(), encode(&text).into_owned()))
    });
    mirrored.collect()
}

/// The value at a path of member names. A name that stands twice on the way is refused: it could
/// show one value to the check and another to the tool.
fn at_path(root: &Raw, path: &[String]) -> Result<Option<Raw>, ErrorKind> {
    let mut here = root.clone();
    for name in path {
        let mut found = None;
        for (key, range) in scan::members(here.as_bytes()) {
            if key.is(name) && found.replace(range).is_some() {
                return Err(mismatch("an argument that a header repeats appears twice"));
            }
        }
        let Some(range) = found else { return Ok(None) };
        here = Raw::trusted(here.bytes().slice(range));
    }
    Ok(Some(here))
}

fn same(value: &Raw, text: &str, dialect: Dialect) -> bool {
    match value.kind() {
        Kind::String => value.string().as_deref() == Some(text),
        Kind::Boolean => value.as_str() == text,
        Kind::Number => match (value::number(value.as_str()), value::number(text)) {
            // MCP-H-16: modern annotations are integers, exact as doubles up to 2^53 − 1.
            (Some(body), Some(header)) => {
                value::equal(body, header) && (dialect == Dialect::Draft || value::is_safe(body))
            }
            _ => false,
        },
        Kind::Null | Kind::Array | Kind::Object => false,
    }
}
