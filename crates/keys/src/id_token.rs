//! ID tokens: an OpenID provider's statement about a signed-in person (OpenID Connect Core
//! §3.1.3.7; AUTH-F2).
//!
//! Each check is written out here. A library that is configured with the expected issuer and
//! audience still accepts a token without these claims, unless it is configured to require them as
//! well.

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use portolan_model::Timestamp;
use serde::Deserialize;

use crate::{
    assertion::{AssertionError, Audience, ClientKeys, CompactJws, Header, algorithm, object},
    digests_equal,
};

/// Longest token that is looked at: providers put group memberships in.
const MAX_BYTES: usize = 32 * 1024;
/// Oldest `iat`, in seconds (AUTH-F2).
const MAX_AGE: i64 = 600;
/// Clock difference that is forgiven, in seconds.
const LEEWAY: i64 = 60;
/// Longest `sub` (OpenID Connect Core §2).
const MAX_SUBJECT: usize = 255;

/// Why an ID token says nothing. The words are for our log: people read one sentence for all of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdTokenError {
    /// Not a JWT, or too long.
    #[error("it is not a JWT")]
    Malformed,
    /// Its `alg` is none that is expected of this provider, its `typ` is another, or a member
    /// changes what is verified.
    #[error("its header is not acceptable")]
    Header,
    /// A claim is absent or of the wrong form.
    #[error("a claim is missing or malformed")]
    Claims,
    /// Issued by another provider.
    #[error("it is of another issuer")]
    Issuer,
    /// Meant for another client.
    #[error("it is for another client")]
    Audience,
    /// Expired, too old, or from the future.
    #[error("it has expired, is too old or from the future")]
    Time,
    /// Of another sign-in.
    #[error("its nonce is not the one that was sent")]
    Nonce,
    /// Its access token is another.
    #[error("it belongs to another access token")]
    AccessToken,
    /// The provider has no such key.
    #[error("its key is unknown")]
    UnknownKey,
    /// Its signature fits no known key.
    #[error("its signature is wrong")]
    Signature,
}

/// The values that a token must hold.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Who issues it, byte for byte.
    pub issuer: &'a str,
    /// Who we are there.
    pub client_id: &'a str,
    /// The nonce of the authorization request.
    pub nonce: &'a str,
    /// The access token that came with it.
    pub access_token: &'a str,
    /// Which algorithms this provider signs with. What else the header names is refused, whatever
    /// its key would allow (alg swap).
    pub algorithms: &'a [String],
}

/// The claims of a valid token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdToken {
    /// Who, at this issuer.
    pub subject: String,
    /// Their address.
    pub email: Option<String>,
    /// Whether it is theirs, if the provider says anything of that.
    pub email_verified: Option<bool>,
    /// As they are called.
    pub name: Option<String>,
    /// As they call themselves there.
    pub preferred_username: Option<String>,
    /// When they last proved who they are, in seconds.
    pub auth_time: Option<i64>,
    /// Entra: the directory.
    pub tid: Option<String>,
    /// Entra: the person in that directory.
    pub oid: Option<String>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    exp: i64,
    iat: i64,
    nbf: Option<i64>,
    azp: Option<String>,
    nonce: Option<String>,
    at_hash: Option<String>,
    email: Option<String>,
    email_verified: Option<Flag>,
    name: Option<String>,
    preferred_username: Option<String>,
    auth_time: Option<i64>,
    tid: Option<String>,
    oid: Option<String>,
}

/// Some providers write booleans as texts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Flag {
    /// As it should be.
    Plain(bool),
    /// As it is.
    Text(String),
}

impl Flag {
    /// Whether it says yes.
    pub fn is_set(&self) -> bool {
        match self {
            Self::Plain(yes) => *yes,
            Self::Text(text) => text == "true",
        }
    }
}

/// Checks a token with the keys of its provider, and reads it. [`IdTokenError::UnknownKey`] may be
/// cured by newer keys, nothing else.
///
/// # Errors
/// [`IdTokenError`].
pub fn verify(
    text: &str,
    keys: &ClientKeys,
    expected: &Expected<'_>,
    now: Timestamp,
) -> Result<IdToken, IdTokenError> {
    let jws = CompactJws::read(text, MAX_BYTES).ok_or(IdTokenError::Malformed)?;
    let header: Header = object(&jws.header).ok_or(IdTokenError::Header)?;
    let is_id_token = header
        .typ
        .as_deref()
        .is_none_or(|typ| typ.eq_ignore_ascii_case("JWT"));
    if header.brings_something() || !is_id_token || !expected.algorithms.contains(&header.alg) {
        return Err(IdTokenError::Header);
    }
    let algorithm = algorithm(&header.alg).ok_or(IdTokenError::Header)?;
    let known = keys
        .find(header.kid.as_deref(), algorithm)
        .map_err(|error| match error {
            AssertionError::UnknownKey => IdTokenError::UnknownKey,
            _ => IdTokenError::Header,
        })?;
    let signed = jws.signed.as_bytes();
    if !jsonwebtoken::crypto::verify(jws.signature, signed, &known.key, algorithm).unwrap_or(false)
    {
        return Err(IdTokenError::Signature);
    }
    let claims: Claims = object(&jws.payload).ok_or(IdTokenError::Claims)?;
    check(&claims, expected, algorithm, now.unix_timestamp())?;
    Ok(IdToken {
        subject: claims.sub,
        email_verified: claims.email_verified.map(|flag| flag.is_set()),
        email: claims.email,
        name: claims.name,
        preferred_username: claims.preferred_username,
        auth_time: claims.auth_time,
        tid: claims.tid,
        oid: claims.oid,
    })
}

fn check(
    claims: &Claims,
    expected: &Expected<'_>,
    algorithm: Algorithm,
    now: i64,
) -> Result<(), IdTokenError> {
    if claims.iss != expected.issuer {
        return Err(IdTokenError::Issuer);
    }
    let (is_for_us, is_for_others) = match &claims.aud {
        Audience::One(one) => (one == expected.client_id, false),
        Audience::Many(many) => (
            many.iter().any(|one| one == expected.client_id),
            many.iter().any(|one| one != expected.client_id),
        ),
    };
    let is_from_us = match &claims.azp {
        Some(azp) => azp == expected.client_id,
        None => !is_for_others,
    };
    if !is_for_us || !is_from_us {
        return Err(IdTokenError::Audience);
    }
    if claims.exp <= now - LEEWAY
        || claims.iat > now + LEEWAY
        || claims.iat < now - MAX_AGE - LEEWAY
        || claims.nbf.is_some_and(|nbf| nbf > now + LEEWAY)
    {
        return Err(IdTokenError::Time);
    }
    let same = |one: &str, other: &str| {
        digests_equal(
            &crate::digest(one.as_bytes()),
            &crate::digest(other.as_bytes()),
        )
    };
    if !claims
        .nonce
        .as_deref()
        .is_some_and(|nonce| same(nonce, expected.nonce))
    {
        return Err(IdTokenError::Nonce);
    }
    if let Some(at_hash) = &claims.at_hash
        && *at_hash != half_hash(algorithm, expected.access_token)
    {
        return Err(IdTokenError::AccessToken);
    }
    if claims.sub.is_empty() || claims.sub.len() > MAX_SUBJECT {
        return Err(IdTokenError::Claims);
    }
    Ok(())
}

/// The left half of the hash that goes with the algorithm (OpenID Connect Core §3.1.3.6).
fn half_hash(algorithm: Algorithm, token: &str) -> String {
    let hash = match algorithm {
        Algorithm::EdDSA => digest(&SHA512, token.as_bytes()),
        _ => digest(&SHA256, token.as_bytes()),
    };
    let bytes = hash.as_ref();
    URL_SAFE_NO_PAD.encode(&bytes[..bytes.len() / 2])
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::EncodingKey;
    use serde_json::{Value, json};

    use super::*;
    use crate::ring::NewKeyPair;

    const NOW: i64 = 1_700_000_000;
    const ISSUER: &str = "https://id.example";

    fn now() -> Timestamp {
        Timestamp::from_unix_timestamp(NOW).unwrap()
    }

    fn claims(change: &Value) -> Value {
        let mut claims = json!({"iss": ISSUER, "sub": "248289761001", "aud": "us", "nonce": "n-0S6", "exp": NOW + 300, "iat": NOW,
            "email": "ann@acme.example", "email_verified": true});
        for (name, value) in change.as_object().unwrap() {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims
    }

    fn read(key: &NewKeyPair, token: &str, algorithms: &[&str]) -> Result<IdToken, IdTokenError> {
        let keys = ClientKeys::read(&json!({"keys": [key.public]})).unwrap();
        let algorithms: Vec<String> = algorithms.iter().map(|&name| name.to_owned()).collect();
        let expected = Expected {
            issuer: ISSUER,
            client_id: "us",
            nonce: "n-0S6",
            access_token: "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y",
            algorithms: &algorithms,
        };
        verify(token, &keys, &expected, now())
    }

    #[test]
    fn f2_a_token_is_believed_when_every_claim_fits_and_case_158_not_when_one_does_not() {
        let key = NewKeyPair::generate().unwrap();
        let says = |change: &Value| {
            let token = key.sign_assertion(&claims(change)).unwrap();
            read(&key, token.expose(), &["ES256"])
        };
        let good = says(&json!({})).unwrap();
        assert_eq!(
            (good.subject.as_str(), good.email_verified),
            ("248289761001", Some(true))
        );
        // From OpenID Connect Core, A.3: this access token has this hash.
        for fine in [
            json!({"at_hash": "77QmUPtjPfzWtF2AnpK9RQ"}),
            json!({"aud": ["us"]}),
            json!({"aud": ["us", "others"], "azp": "us"}),
            json!({"exp": NOW - 59}),
            json!({"iat": NOW - 659}),
            json!({"email_verified": "true"}),
        ] {
            assert_eq!(says(&fine).unwrap().email_verified, Some(true), "{fine}");
        }
        for (said, read) in [(json!("false"), Some(false)), (json!(null), None)] {
            let token = says(&json!({ "email_verified": said })).unwrap();
            assert_eq!(token.email_verified, read);
        }
        for (change, why) in [
            (json!({"iss": "https://id.example/"}), IdTokenError::Issuer),
            (json!({"iss": "https://evil.example"}), IdTokenError::Issuer),
            (json!({"iss": null}), IdTokenError::Claims),
            (json!({"aud": "others"}), IdTokenError::Audience),
            (json!({"aud": []}), IdTokenError::Audience),
            (json!({"aud": ["us", "others"]}), IdTokenError::Audience),
            (json!({"azp": "others"}), IdTokenError::Audience),
            (json!({"aud": null}), IdTokenError::Claims),
            (json!({"nonce": "another"}), IdTokenError::Nonce),
            (json!({"nonce": null}), IdTokenError::Nonce),
            (json!({"exp": NOW - 61}), IdTokenError::Time),
            (json!({"exp": null}), IdTokenError::Claims),
            (json!({"iat": NOW - 661}), IdTokenError::Time),
            (json!({"iat": NOW + 61}), IdTokenError::Time),
            (json!({"iat": null}), IdTokenError::Claims),
            (json!({"nbf": NOW + 61}), IdTokenError::Time),
            (json!({"sub": ""}), IdTokenError::Claims),
            (json!({"sub": "x".repeat(256)}), IdTokenError::Claims),
            (json!({"sub": null}), IdTokenError::Claims),
            (
                json!({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
                IdTokenError::AccessToken,
            ),
        ] {
            assert_eq!(says(&change), Err(why), "{change}");
        }
    }

    #[test]
    fn case_158_the_header_does_not_choose_how_it_is_verified() {
        let (key, other) = (
            NewKeyPair::generate().unwrap(),
            NewKeyPair::generate().unwrap(),
        );
        let token = key
            .sign_assertion(&claims(&json!({})))
            .unwrap()
            .expose()
            .clone();
        assert!(read(&key, &token, &["ES256"]).is_ok());
        assert_eq!(
            read(&key, &token, &["RS256"]),
            Err(IdTokenError::Header),
            "this provider signs otherwise"
        );
        let foreign = other.sign_assertion(&claims(&json!({}))).unwrap();
        assert_eq!(
            read(&key, foreign.expose(), &["ES256"]),
            Err(IdTokenError::UnknownKey)
        );
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (_, payload) = signed.split_once('.').unwrap();
        let all = ["ES256", "RS256", "HS256", "none"];
        let headed = |header: Value| {
            let header = URL_SAFE_NO_PAD.encode(header.to_string());
            read(&key, &format!("{header}.{payload}.{signature}"), &all)
        };
        let kid = key.public.kid();
        for header in [
            json!({"alg": "none", "kid": kid}),
            json!({"alg": "ES256", "kid": kid, "typ": "at+jwt"}),
            json!({"alg": "ES256", "kid": kid, "crit": ["exp"]}),
            json!({"alg": "ES256", "kid": kid, "jwk": key.public}),
            json!({"alg": "ES256", "kid": kid, "jku": "https://evil.example/jwks"}),
        ] {
            assert_eq!(
                headed(header.clone()),
                Err(IdTokenError::Header),
                "{header}"
            );
        }
        // The public key as if it were a shared secret.
        let mut header = jsonwebtoken::Header::new(Algorithm::HS256);
        header.kid = Some(kid.to_owned());
        let public = serde_json::to_vec(&key.public).unwrap();
        let swapped = jsonwebtoken::encode(
            &header,
            &claims(&json!({})),
            &EncodingKey::from_secret(&public),
        )
        .unwrap();
        assert_eq!(read(&key, &swapped, &all), Err(IdTokenError::Header));
        assert_eq!(
            read(&key, &format!("{token}A"), &all),
            Err(IdTokenError::Signature)
        );
        for broken in ["", "a.b", "a.b.c.d", &format!("{signed}.")] {
            assert_eq!(
                read(&key, broken, &all),
                Err(IdTokenError::Malformed),
                "{broken}"
            );
        }
    }
}
