//! Access tokens: JWTs of RFC 9068, ES256 (AUTH-K1, AUTH-4.4, AUTH-4.5).

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use portolan_model::{
    Timestamp,
    id::{GrantId, TenantId, TokenId},
    subject::Subject,
};
use serde::{Deserialize, Serialize};

use crate::{Jwks, KeysError};

/// Longest token that is parsed (AUTH-4.5.1).
pub const MAX_TOKEN_BYTES: usize = 4096;
/// Seconds of clock difference between nodes that are forgiven.
const LEEWAY: i64 = 30;
/// No token may be from further ahead than this.
const MAX_AHEAD: i64 = 60;
/// No token lives longer.
const MAX_LIFE: i64 = 8 * 3600;

/// Epochs of user, tenant and membership as they were when the token was issued: a node that knows
/// a later one refuses it (AUTH-4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[i32; 3]", into = "[i32; 3]")]
pub struct Epochs {
    /// `users.epoch`.
    pub user: i32,
    /// `tenants.epoch`.
    pub tenant: i32,
    /// `memberships.epoch`.
    pub member: i32,
}

impl From<[i32; 3]> for Epochs {
    fn from([user, tenant, member]: [i32; 3]) -> Self {
        Self {
            user,
            tenant,
            member,
        }
    }
}
impl From<Epochs> for [i32; 3] {
    fn from(epochs: Epochs) -> Self {
        [epochs.user, epochs.tenant, epochs.member]
    }
}

/// The claims of an access token. No role, no name, no address (AUTH-K1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessClaims {
    /// The issuer, byte for byte as configured.
    pub iss: String,
    /// The canonical resource the token is for: one string, never a list (AUTH-K3).
    pub aud: String,
    /// Who: a person or a service account.
    pub sub: Subject,
    /// The client, as it calls itself on the wire.
    pub client_id: String,
    /// The one tenant of the token (AUTH-M4).
    pub tid: TenantId,
    /// The grant: what is revoked.
    pub gid: GrantId,
    /// Epochs at issue.
    pub ep: Epochs,
    /// Space-separated.
    pub scope: String,
    /// This token.
    pub jti: TokenId,
    /// Seconds since the epoch.
    pub iat: i64,
    /// Seconds since the epoch.
    pub exp: i64,
    /// When the person last proved who they are, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_time: Option<i64>,
}

/// Why a token was refused. All of them are 401 `invalid_token`; [`VerifyError::description`] is
/// what the client may read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// Not a JWT, or over 4 KB.
    #[error("not an access token")]
    Malformed,
    /// Wrong `typ` or `alg`, or a header member that changes what is verified.
    #[error("header of the token is not acceptable")]
    Header,
    /// No published key has this id.
    #[error("signed by an unknown key")]
    UnknownKey {
        /// As the token says; not verified.
        kid: String,
    },
    /// The signature is not by that key.
    #[error("signature is wrong")]
    Signature,
    /// A claim is absent or of the wrong form, or the token is of another issuer.
    #[error("claims of the token are not acceptable")]
    Claims,
    /// Past `exp`, with 30 s leeway.
    #[error("token has expired")]
    Expired,
}

impl VerifyError {
    /// One fixed text per class of cause, without a quote or a backslash: clients parse the
    /// challenge by regular expression.
    pub const fn description(&self) -> &'static str {
        match self {
            Self::Malformed
            | Self::Header
            | Self::UnknownKey { .. }
            | Self::Signature
            | Self::Claims => "the access token is not valid here",
            Self::Expired => "the access token has expired",
        }
    }
}

/// Verifies access tokens offline. Cheap to clone; clones share their keys.
#[derive(Debug, Clone)]
pub struct Verifier {
    issuer: Arc<str>,
    keys: Arc<ArcSwap<HashMap<String, DecodingKey>>>,
}

impl Verifier {
    /// A verifier that knows no key yet: everything is [`VerifyError::UnknownKey`] until
    /// [`Verifier::set_keys`].
    pub fn new(issuer: impl Into<Arc<str>>) -> Self {
        Self {
            issuer: issuer.into(),
            keys: Arc::default(),
        }
    }

    /// Replaces the published keys.
    pub fn set_keys(&self, jwks: &Jwks) -> Result<(), KeysError> {
        let keys = jwks
            .keys
            .iter()
            .map(|jwk| Ok((jwk.kid().to_owned(), jwk.decoding_key()?)))
            .collect::<Result<_, KeysError>>()?;
        self.keys.store(Arc::new(keys));
        Ok(())
    }

    /// True once there is a key: part of readiness.
    pub fn has_keys(&self) -> bool {
        !self.keys.load().is_empty()
    }

    /// Steps 3–6 of AUTH-4.5: header, key, signature, issuer, times, and that every claim is there.
    ///
    /// The caller goes on with step 8: `tid` and `aud` must fit the target of the request. That is
    /// not done here because the outcome of this function is cached by the token's digest, whatever
    /// it is presented to.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<AccessClaims, VerifyError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(VerifyError::Malformed);
        }
        let kid = checked_header(token)?;
        let keys = self.keys.load();
        let key = keys.get(&kid).ok_or(VerifyError::UnknownKey { kid })?;

        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_issuer(&[&*self.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // The library reads the machine's clock; ours is handed in, so expiry is checked below.
        validation.validate_exp = false;
        // Step 8 is the caller's.
        validation.validate_aud = false;
        let claims = jsonwebtoken::decode::<AccessClaims>(token, key, &validation)
            .map_err(|error| match error.kind() {
                jsonwebtoken::errors::ErrorKind::InvalidSignature => VerifyError::Signature,
                _ => VerifyError::Claims,
            })?
            .claims;

        let now = now.unix_timestamp();
        if claims.iat > now + MAX_AHEAD
            || claims.exp.saturating_sub(claims.iat) > MAX_LIFE
            || claims.aud.is_empty()
        {
            return Err(VerifyError::Claims);
        }
        if now > claims.exp + LEEWAY {
            return Err(VerifyError::Expired);
        }
        Ok(claims)
    }
}

/// Members that would change which bytes or which key are verified. No legitimate client needs them
/// (CASE-112).
const REFUSED_MEMBERS: [&str; 8] = ["crit", "jku", "jwk", "x5u", "x5c", "b64", "zip", "enc"];

fn checked_header(token: &str) -> Result<String, VerifyError> {
    let mut parts = token.split('.');
    let (Some(header), Some(_), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(VerifyError::Malformed);
    };
    let bytes = URL_SAFE_NO_PAD
        .decode(header)
        .map_err(|_| VerifyError::Malformed)?;
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&bytes).map_err(|_| VerifyError::Malformed)?;
    if REFUSED_MEMBERS
        .iter()
        .any(|member| members.contains_key(*member))
    {
        return Err(VerifyError::Header);
    }
    let word = |member: &str| members.get(member).and_then(serde_json::Value::as_str);
    let typ_fits = word("typ").is_some_and(|typ| {
        typ.eq_ignore_ascii_case("at+jwt") || typ.eq_ignore_ascii_case("application/at+jwt")
    });
    if !typ_fits || word("alg") != Some("ES256") {
        return Err(VerifyError::Header);
    }
    word("kid").map(str::to_owned).ok_or(VerifyError::Header)
}
