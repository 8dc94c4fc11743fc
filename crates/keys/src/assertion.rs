//! Client assertions: JWTs by which OAuth clients prove themselves with a key that only they have
//! (RFC 7523; AUTH-C13, MCP-AX-2).
//!
//! Everything in an assertion comes from a stranger until its signature is checked, and the key it
//! is checked with is the stranger's own. So the header chooses nothing: which algorithm fits is a
//! property of the key, and members that bring a key along are refused.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use portolan_model::Timestamp;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Map, Value};

/// Longest assertion that is looked at.
pub const MAX_ASSERTION_BYTES: usize = 8192;
/// Furthest that `exp` may be ahead, in seconds.
const MAX_LIFE: i64 = 300;
/// Clock difference that is forgiven, in seconds.
const LEEWAY: i64 = 30;
/// Longest `jti`.
const MAX_JTI_BYTES: usize = 256;
/// Keys of one set.
const MAX_KEYS: usize = 20;
/// RSA keys, in bytes of the modulus: 2048 to 8192 bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// Names of the algorithms that are served, for metadata documents.
pub const ALGORITHMS: [&str; 4] = ["ES256", "EdDSA", "PS256", "RS256"];

/// Why an assertion proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssertionError {
    /// Not a JWT, or over 8 KB.
    Malformed,
    /// Its `alg` is not served, its `typ` is another, or a member changes what is verified.
    Header,
    /// A claim is absent or of the wrong form.
    Claims,
    /// `iss` and `sub` are not the same client.
    Issuer,
    /// Its audience is or includes another party.
    Audience,
    /// Past `exp`, or `exp` too far ahead, or from the future.
    Time,
    /// The client has no such key.
    UnknownKey,
    /// Several of its keys fit: trying them all would be work that a stranger orders.
    Ambiguous,
    /// The signature is not by that key.
    Signature,
}

impl AssertionError {
    /// For the developer of the client: ASCII, without quote and backslash (AUTH-E11).
    pub const fn description(self) -> &'static str {
        match self {
            Self::Malformed => "the client assertion is not a JWT",
            Self::Header => "the header of the client assertion is not acceptable",
            Self::Claims => {
                "a claim of the client assertion is missing or malformed: it needs iss, sub, aud, exp and jti"
            }
            Self::Issuer => "iss and sub of the client assertion must both be the client_id",
            Self::Audience => "aud of the client assertion must be this issuer and nothing else",
            Self::Time => "the client assertion has expired, or lives longer than 5 minutes",
            Self::UnknownKey => {
                "the client assertion is signed by a key that the client did not register"
            }
            Self::Ambiguous => {
                "the header of the client assertion must name one key by kid: several keys of this client fit"
            }
            Self::Signature => "the signature of the client assertion is wrong",
        }
    }
}

impl std::fmt::Display for AssertionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.description())
    }
}

impl std::error::Error for AssertionError {}

/// Why a set of keys cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeys {
    /// Not a JWK set.
    #[error("it is not a JWK set with 1 to 20 keys")]
    Form,
    /// A private or symmetric key: it is not secret any more.
    #[error("it contains a key that is not public")]
    Secret,
    /// None of the keys fits an algorithm that is served.
    #[error("it has no key for ES256, EdDSA, PS256 or RS256")]
    NoneUsable,
}

/// One public key, with the algorithms that it may be used with.
#[derive(Clone)]
pub(crate) struct ClientKey {
    kid: Option<String>,
    algorithms: &'static [Algorithm],
    pub(crate) key: DecodingKey,
}

/// The public keys of a client.
#[derive(Clone)]
pub struct ClientKeys(Vec<ClientKey>);

impl std::fmt::Debug for ClientKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClientKeys({})", self.0.len())
    }
}

/// Members that only private keys have; `k` is a symmetric one.
const PRIVATE_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

impl ClientKeys {
    /// Reads a JWK set. Keys of other kinds and for encryption are passed over; one private or
    /// symmetric key spoils the whole set, whatever else is wrong with it.
    pub fn read(jwks: &Value) -> Result<Self, InvalidKeys> {
        let keys = jwks.get("keys").and_then(Value::as_array);
        let is_secret = |key: &Map<String, Value>| {
            key.get("kty").and_then(Value::as_str) == Some("oct")
                || PRIVATE_MEMBERS
                    .iter()
                    .any(|member| key.contains_key(*member))
        };
        // A key where a set should be is looked at too.
        if keys
            .into_iter()
            .flatten()
            .chain([jwks])
            .filter_map(Value::as_object)
            .any(is_secret)
        {
            return Err(InvalidKeys::Secret);
        }
        let keys = keys
            .filter(|keys| (1..=MAX_KEYS).contains(&keys.len()))
            .ok_or(InvalidKeys::Form)?;
        let mut usable = Vec::new();
        for key in keys {
            usable.extend(public_key(key.as_object().ok_or(InvalidKeys::Form)?));
        }
        if usable.is_empty() {
            return Err(InvalidKeys::NoneUsable);
        }
        Ok(Self(usable))
    }

    /// The one key that fits: of that name, or without a name the only one of its kind (AUTH-C13).
    pub(crate) fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<&ClientKey, AssertionError> {
        let mut fitting = self.0.iter().filter(|key| {
            key.algorithms.contains(&algorithm)
                && kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
        });
        let key = fitting.next().ok_or(AssertionError::UnknownKey)?;
        match fitting.next() {
            None => Ok(key),
            Some(_) => Err(AssertionError::Ambiguous),
        }
    }
}

fn public_key(jwk: &Map<String, Value>) -> Option<ClientKey> {
    let word = |member: &str| jwk.get(member).and_then(Value::as_str);
    if word("use").is_some_and(|usage| usage != "sig") {
        return None;
    }
    let (fits, key): (&'static [Algorithm], _) = match (word("kty")?, word("crv")) {
        ("EC", Some("P-256")) => (
            &[Algorithm::ES256],
            DecodingKey::from_ec_components(word("x")?, word("y")?).ok()?,
        ),
        ("OKP", Some("Ed25519")) => (
            &[Algorithm::EdDSA],
            DecodingKey::from_ed_components(word("x")?).ok()?,
        ),
        ("RSA", _) => {
            let modulus = URL_SAFE_NO_PAD.decode(word("n")?).ok()?;
            if !RSA_BYTES.contains(&modulus.len()) {
                return None;
            }
            (
                &[Algorithm::RS256, Algorithm::PS256],
                DecodingKey::from_rsa_components(word("n")?, word("e")?).ok()?,
            )
        }
        _ => return None,
    };
    // A key that says its algorithm is good for no other (CASE-70).
    let algorithms = match word("alg") {
        None => fits,
        Some(name) => match algorithm(name)? {
            Algorithm::ES256 => &[Algorithm::ES256],
            Algorithm::EdDSA => &[Algorithm::EdDSA],
            Algorithm::PS256 => &[Algorithm::PS256],
            _ => &[Algorithm::RS256],
        },
    };
    algorithms
        .iter()
        .all(|one| fits.contains(one))
        .then(|| ClientKey {
            kid: word("kid").map(str::to_owned),
            algorithms,
            key,
        })
}

pub(crate) fn algorithm(name: &str) -> Option<Algorithm> {
    match name {
        "ES256" => Some(Algorithm::ES256),
        "EdDSA" => Some(Algorithm::EdDSA),
        "PS256" => Some(Algorithm::PS256),
        "RS256" => Some(Algorithm::RS256),
        _ => None,
    }
}

/// A JSON object of the form `T`. For a list the reader of structures would do as well, and a
/// header or claims are none (RFC 7515 §4, RFC 7519 §4). All of it is UTF-8 (RFC 7519 §7.2): of
/// members that it does not know the reader would not look at the bytes.
pub(crate) fn object<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.trim_ascii_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// A JWS in compact form (RFC 7515 §7.1), taken apart. Nothing in it is proved.
pub(crate) struct CompactJws<'a> {
    /// Header and payload as they are signed.
    pub(crate) signed: &'a str,
    pub(crate) signature: &'a str,
    pub(crate) header: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl<'a> CompactJws<'a> {
    /// `None` for another form, or over `longest` bytes.
    pub(crate) fn read(text: &'a str, longest: usize) -> Option<Self> {
        if text.len() > longest {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        if payload.contains('.') || signature.is_empty() {
            return None;
        }
        Some(Self {
            signed,
            signature,
            header: URL_SAFE_NO_PAD.decode(header).ok()?,
            payload: URL_SAFE_NO_PAD.decode(payload).ok()?,
        })
    }
}

/// The header. A name that stands twice is an error; so are members that would change which bytes
/// or which key are verified.
#[derive(Deserialize)]
pub(crate) struct Header {
    pub(crate) alg: String,
    pub(crate) kid: Option<String>,
    pub(crate) typ: Option<String>,
    crit: Option<IgnoredAny>,
    jku: Option<IgnoredAny>,
    jwk: Option<IgnoredAny>,
    x5u: Option<IgnoredAny>,
    x5c: Option<IgnoredAny>,
    b64: Option<IgnoredAny>,
    zip: Option<IgnoredAny>,
    enc: Option<IgnoredAny>,
}

impl Header {
    pub(crate) fn brings_something(&self) -> bool {
        [
            &self.crit, &self.jku, &self.jwk, &self.x5u, &self.x5c, &self.b64, &self.zip, &self.enc,
        ]
        .into_iter()
        .any(Option::is_some)
    }

    fn typ_fits(&self) -> bool {
        self.typ.as_deref().is_none_or(|typ| {
            typ.eq_ignore_ascii_case("JWT") || typ.eq_ignore_ascii_case("client-authentication+jwt")
        })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Audience {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    exp: i64,
    jti: String,
    iat: Option<i64>,
    nbf: Option<i64>,
}

/// An assertion that was taken apart. Nothing in it is proved before [`Assertion::verify`].
pub struct Assertion<'a> {
    signed: &'a str,
    signature: &'a str,
    algorithm: Algorithm,
    kid: Option<String>,
    claims: Claims,
}

impl std::fmt::Debug for Assertion<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Assertion(…)")
    }
}

/// The identity of a valid assertion, which may be used once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Its name, for the replay guard.
    pub jti: String,
    /// Until when it would be good.
    pub expires_at: Timestamp,
}

impl<'a> Assertion<'a> {
    /// Takes it apart: the form of header and claims, and that it speaks for one client.
    pub fn read(text: &'a str) -> Result<Self, AssertionError> {
        let jws = CompactJws::read(text, MAX_ASSERTION_BYTES).ok_or(AssertionError::Malformed)?;
        let header: Header = object(&jws.header).ok_or(AssertionError::Header)?;
        let algorithm = algorithm(&header.alg).ok_or(AssertionError::Header)?;
        if header.brings_something() || !header.typ_fits() {
            return Err(AssertionError::Header);
        }
        let claims: Claims = object(&jws.payload).ok_or(AssertionError::Claims)?;
        if claims.jti.is_empty() || claims.jti.len() > MAX_JTI_BYTES {
            return Err(AssertionError::Claims);
        }
        if claims.iss != claims.sub {
            return Err(AssertionError::Issuer);
        }
        Ok(Self {
            signed: jws.signed,
            signature: jws.signature,
            algorithm,
            kid: header.kid,
            claims,
        })
    }

    /// The client for which it speaks, unproved.
    pub fn client_id(&self) -> &str {
        &self.claims.sub
    }

    /// Checks audience, times and signature. Every audience must be one of `audiences`: an
    /// assertion that is good elsewhere too could have been taken from there.
    /// [`AssertionError::UnknownKey`] may be cured by newer keys, nothing else.
    pub fn verify(
        &self,
        keys: &ClientKeys,
        audiences: &[&str],
        now: Timestamp,
    ) -> Result<Proof, AssertionError> {
        let claims = &self.claims;
        let ours = |aud: &String| audiences.contains(&aud.as_str());
        let is_ours = match &claims.aud {
            Audience::One(one) => ours(one),
            Audience::Many(many) => !many.is_empty() && many.iter().all(ours),
        };
        if !is_ours {
            return Err(AssertionError::Audience);
        }
        let now = now.unix_timestamp();
        let from_the_future = |at: Option<i64>| at.is_some_and(|at| at > now + LEEWAY);
        if claims.exp <= now - LEEWAY
            || claims.exp > now + MAX_LIFE + LEEWAY
            || from_the_future(claims.iat)
            || from_the_future(claims.nbf)
        {
            return Err(AssertionError::Time);
        }
        let known = keys.find(self.kid.as_deref(), self.algorithm)?;
        let is_signed = jsonwebtoken::crypto::verify(
            self.signature,
            self.signed.as_bytes(),
            &known.key,
            self.algorithm,
        )
        .unwrap_or(false);
        if !is_signed {
            return Err(AssertionError::Signature);
        }
        Ok(Proof {
            jti: claims.jti.clone(),
            expires_at: Timestamp::from_unix_timestamp(claims.exp + LEEWAY)
                .map_err(|_| AssertionError::Time)?,
        })
    }
}
