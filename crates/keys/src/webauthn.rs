//! Passkeys: what browsers and authenticators say, checked as a relying party does (Web
//! Authentication level 3, §7.1 and §7.2; AUTH-L13).
//!
//! Attestation is neither asked for nor believed: which maker an authenticator has decides nothing
//! here. The challenge, who it was given to and whether it is used up are the caller's to know; so
//! is the counter, which only the database can compare for all nodes.

mod cbor;

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;

use self::cbor::Value;
use crate::token::digest;

/// COSE numbers of the signatures that are accepted, in the order of preference: ES256, EdDSA,
/// RS256 (of older Windows Hello).
pub const ALGORITHMS: [i64; 3] = [-7, -8, -257];

/// Longest id of a credential (level 3, §4).
const LONGEST_ID: usize = 1023;

/// Longest public key: RSA of 8,192 bits takes a little less.
const LONGEST_KEY: usize = 1200;

/// Flags of the authenticator's data.
const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
const BACKUP_ELIGIBLE: u8 = 0x08;
const BACKED_UP: u8 = 0x10;
const ATTESTED: u8 = 0x40;
const EXTENSIONS: u8 = 0x80;

/// Who we are to an authenticator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelyingParty {
    id: String,
    origins: Vec<String>,
}

impl RelyingParty {
    /// `id` is a host name, `origins` are the only ones whose pages may ask, each
    /// `scheme://host[:port]`, byte for byte.
    pub fn new(id: impl Into<String>, origins: Vec<String>) -> Self {
        Self {
            id: id.into(),
            origins,
        }
    }

    /// The host name that credentials are bound to.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Why it is no proof. For logs and tests: to the outside they are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebAuthnError {
    /// The browser's client data cannot be parsed.
    #[error("the client's data cannot be read")]
    ClientData,
    /// Made for the other ceremony.
    #[error("made for another ceremony")]
    Ceremony,
    /// Not the challenge that was given out.
    #[error("another challenge")]
    Challenge,
    /// A page of another origin asked, or one inside of a foreign frame.
    #[error("another origin")]
    Origin,
    /// The authenticator data cannot be parsed.
    #[error("the authenticator's data cannot be read")]
    AuthenticatorData,
    /// Made for another relying party.
    #[error("another relying party")]
    RelyingParty,
    /// The authenticator saw no user presence.
    #[error("nobody was present")]
    NotPresent,
    /// User verification was required and is missing.
    #[error("the person was not verified")]
    NotVerified,
    /// A key of a kind that was not offered.
    #[error("a key of a kind that is not accepted")]
    Key,
    /// The signature is not by this key.
    #[error("the signature is not by this key")]
    Signature,
}

/// The authenticator's flags about itself and the person, in both ceremonies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// It knows who the person is, by finger, face or PIN.
    pub is_verified: bool,
    /// The key can be copied to other devices of the person.
    pub is_backup_eligible: bool,
    /// It has been.
    pub is_backed_up: bool,
    /// How often it has signed; 0 where it does not count.
    pub sign_count: u32,
}

/// A new credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Registration {
    /// Its name at the authenticator.
    pub credential_id: Vec<u8>,
    /// Its public key, in COSE form, as it is stored.
    pub public_key: Vec<u8>,
    /// Model of the authenticator; zeros if it does not tell.
    pub aaguid: [u8; 16],
    /// The rest.
    pub said: Said,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("said", &self.said)
            .finish_non_exhaustive()
    }
}

/// The response of an authenticator to a signature request.
#[derive(Clone, Copy)]
pub struct Assertion<'a> {
    /// Written by the browser.
    pub client_data: &'a [u8],
    /// Written by the authenticator.
    pub authenticator_data: &'a [u8],
    /// Over both.
    pub signature: &'a [u8],
}

impl fmt::Debug for Assertion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assertion").finish_non_exhaustive()
    }
}

/// Whether the authenticator must have verified the person (level 3, §5.8.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserVerification {
    /// It must: the credential is the only factor.
    Required,
    /// It need not.
    Preferred,
}

/// The challenge that a browser wrote into its data, before anything about it is believed: by its
/// digest the caller finds what was given out.
pub fn challenge_of(client_data: &[u8]) -> Result<Vec<u8>, WebAuthnError> {
    URL_SAFE_NO_PAD
        .decode(ClientData::read(client_data)?.challenge)
        .map_err(|_| WebAuthnError::ClientData)
}

/// Checks a new credential (level 3, §7.1). The person must have been verified: such a credential
/// can be the only factor later.
pub fn register(
    party: &RelyingParty,
    challenge: &[u8],
    client_data: &[u8],
    attestation: &[u8],
) -> Result<Registration, WebAuthnError> {
    ClientData::read(client_data)?.check("webauthn.create", party, challenge)?;
    let malformed = |_| WebAuthnError::AuthenticatorData;
    let attestation = cbor::whole(attestation).map_err(malformed)?;
    // Its `fmt` and `attStmt` are the attestation, which decides nothing.
    let data = attestation
        .named("authData")
        .and_then(Value::bytes)
        .ok_or(WebAuthnError::AuthenticatorData)?;
    let data = AuthenticatorData::read(data)?;
    let said = data.check(party, UserVerification::Required)?;
    let attested = data.attested.ok_or(WebAuthnError::AuthenticatorData)?;
    Key::read(attested.key)?;
    Ok(Registration {
        credential_id: attested.credential_id.to_vec(),
        public_key: attested.key.to_vec(),
        aaguid: attested.aaguid,
        said,
    })
}

/// Checks a signature by a known credential (level 3, §7.2).
pub fn verify(
    party: &RelyingParty,
    challenge: &[u8],
    public_key: &[u8],
    assertion: Assertion<'_>,
    verification: UserVerification,
) -> Result<Said, WebAuthnError> {
    ClientData::read(assertion.client_data)?.check("webauthn.get", party, challenge)?;
    let said = AuthenticatorData::read(assertion.authenticator_data)?.check(party, verification)?;
    let mut message = assertion.authenticator_data.to_vec();
    message.extend_from_slice(digest(assertion.client_data).as_bytes());
    Key::read(public_key)?.verify(&message, assertion.signature)?;
    Ok(said)
}

/// `CollectedClientData`, as far as it is looked at.
#[derive(Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    ceremony: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    is_cross_origin: bool,
    #[serde(rename = "topOrigin", default)]
    top_origin: Option<String>,
}

impl ClientData {
    fn read(bytes: &[u8]) -> Result<Self, WebAuthnError> {
        serde_json::from_slice(bytes).map_err(|_| WebAuthnError::ClientData)
    }

    fn check(
        &self,
        ceremony: &str,
        party: &RelyingParty,
        challenge: &[u8],
    ) -> Result<(), WebAuthnError> {
        if self.ceremony != ceremony {
            return Err(WebAuthnError::Ceremony);
        }
        if self.challenge != URL_SAFE_NO_PAD.encode(challenge) {
            return Err(WebAuthnError::Challenge);
        }
        // Our pages are never framed (AUTH-N6), so no legitimate request comes from within a frame.
        if !party.origins.contains(&self.origin)
            || self.is_cross_origin
            || self.top_origin.is_some()
        {
            return Err(WebAuthnError::Origin);
        }
        Ok(())
    }
}

/// Level 3, §6.1.
struct AuthenticatorData<'a> {
    party_digest: &'a [u8],
    flags: u8,
    sign_count: u32,
    attested: Option<Attested<'a>>,
}

struct Attested<'a> {
    aaguid: [u8; 16],
    credential_id: &'a [u8],
    key: &'a [u8],
}

impl<'a> AuthenticatorData<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, WebAuthnError> {
        Self::parse(bytes).ok_or(WebAuthnError::AuthenticatorData)
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (party_digest, rest) = bytes.split_at_checked(32)?;
        let (flags, rest) = rest.split_first()?;
        let (sign_count, mut rest) = rest.split_first_chunk::<4>()?;
        let mut attested = None;
        if flags & ATTESTED != 0 {
            let (aaguid, behind) = rest.split_first_chunk::<16>()?;
            let (length, behind) = behind.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_be_bytes(*length));
            if length == 0 || length > LONGEST_ID {
                return None;
            }
            let (credential_id, behind) = behind.split_at_checked(length)?;
            let (_, after_key) = cbor::first(behind).ok()?;
            attested = Some(Attested {
                aaguid: *aaguid,
                credential_id,
                key: &behind[..behind.len() - after_key.len()],
            });
            rest = after_key;
        }
        if flags & EXTENSIONS != 0 {
            let (extensions, behind) = cbor::first(rest).ok()?;
            if !matches!(extensions, Value::Map(_)) {
                return None;
            }
            rest = behind;
        }
        rest.is_empty().then_some(Self {
            party_digest,
            flags: *flags,
            sign_count: u32::from_be_bytes(*sign_count),
            attested,
        })
    }

    fn check(
        &self,
        party: &RelyingParty,
        verification: UserVerification,
    ) -> Result<Said, WebAuthnError> {
        let is = |flag| self.flags & flag != 0;
        if self.party_digest != digest(party.id.as_bytes()).as_bytes() {
            return Err(WebAuthnError::RelyingParty);
        }
        if !is(USER_PRESENT) {
            return Err(WebAuthnError::NotPresent);
        }
        if verification == UserVerification::Required && !is(USER_VERIFIED) {
            return Err(WebAuthnError::NotVerified);
        }
        if is(BACKED_UP) && !is(BACKUP_ELIGIBLE) {
            return Err(WebAuthnError::AuthenticatorData);
        }
        Ok(Said {
            is_verified: is(USER_VERIFIED),
            is_backup_eligible: is(BACKUP_ELIGIBLE),
            is_backed_up: is(BACKED_UP),
            sign_count: self.sign_count,
        })
    }
}

/// A public key in COSE form (RFC 9053), of one of [`ALGORITHMS`].
enum Key<'a> {
    /// ES256 on P-256: an uncompressed point.
    P256([u8; 65]),
    /// EdDSA on Ed25519.
    Ed25519(&'a [u8]),
    /// RS256: modulus and exponent.
    Rsa(&'a [u8], &'a [u8]),
}

impl<'a> Key<'a> {
    fn read(cose: &'a [u8]) -> Result<Self, WebAuthnError> {
        if cose.len() > LONGEST_KEY {
            return Err(WebAuthnError::Key);
        }
        let map = cbor::whole(cose).map_err(|_| WebAuthnError::Key)?;
        let int = |at| map.at(at).and_then(Value::int);
        let bytes = |at, length: usize| {
            map.at(at)
                .and_then(Value::bytes)
                .filter(|found| found.len() == length)
        };
        let key = match (int(1), int(3), int(-1)) {
            (Some(2), Some(-7), Some(1)) => bytes(-2, 32).zip(bytes(-3, 32)).map(|(x, y)| {
                let mut point = [4; 65];
                point[1..33].copy_from_slice(x);
                point[33..].copy_from_slice(y);
                Self::P256(point)
            }),
            (Some(1), Some(-8), Some(6)) => bytes(-2, 32).map(Self::Ed25519),
            (Some(3), Some(-257), _) => map
                .at(-1)
                .and_then(Value::bytes)
                .filter(|modulus| (256..=1024).contains(&modulus.len()))
                .zip(
                    map.at(-2)
                        .and_then(Value::bytes)
                        .filter(|exponent| exponent.len() <= 4),
                )
                .map(|(modulus, exponent)| Self::Rsa(modulus, exponent)),
            _ => None,
        };
        key.ok_or(WebAuthnError::Key)
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), WebAuthnError> {
        let by = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature)
        };
        match self {
            Self::P256(point) => by(&ECDSA_P256_SHA256_ASN1, point),
            Self::Ed25519(key) => by(&ED25519, key),
            Self::Rsa(modulus, exponent) => RsaPublicKeyComponents {
                n: *modulus,
                e: *exponent,
            }
            .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
        }
        .map_err(|_| WebAuthnError::Signature)
    }
}

#[cfg(test)]
mod tests;
