//! Subject tokens: JWTs by which a job of a CI system proves what it is (RFC 8693 §2.1; API-18).
//!
//! The issuer is read before anything is proved, because it decides which keys verify the rest. The
//! header chooses nothing: the algorithm is a property of the key and of the issuer's metadata.

use jsonwebtoken::Algorithm;
use portolan_model::{Digest, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    assertion::{AssertionError, Audience, ClientKeys, CompactJws, Header, algorithm, object},
    digest,
};

/// Longest accepted token, in bytes.
pub const MAX_SUBJECT_TOKEN_BYTES: usize = 16 * 1024;
/// Longest time between `iat` and now, and between now and `exp`, in seconds: a day, the longest
/// job of the usual CI systems. It bounds for how long a used token is remembered.
const MAX_LIFE: i64 = 24 * 3600;
/// Clock difference that is forgiven, in seconds.
const LEEWAY: i64 = 60;

/// Why a subject token proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubjectTokenError {
    /// Not a JWT, or too long.
    #[error("it is not a JWT")]
    Malformed,
    /// Its `alg` is none that the issuer signs with, its `typ` is another, or a member changes what
    /// is verified.
    #[error("its header is not acceptable")]
    Header,
    /// `iss`, `sub`, `aud`, `exp` or `iat` is absent or of the wrong form.
    #[error("a claim is missing or malformed")]
    Claims,
    /// Expired, from the future, or valid for over a day.
    #[error("it has expired, is from the future, or is valid for too long")]
    Time,
    /// The issuer publishes no such key.
    #[error("its key is unknown")]
    UnknownKey,
    /// Its signature is not by that key.
    #[error("its signature is wrong")]
    Signature,
}

#[derive(Deserialize)]
struct RegisteredClaims {
    iss: String,
    sub: String,
    aud: Audience,
    exp: i64,
    iat: i64,
    nbf: Option<i64>,
}

/// A token that was taken apart. Nothing in it is proved before [`SubjectToken::verify`].
pub struct SubjectToken<'a> {
    jws: CompactJws<'a>,
    alg: String,
    algorithm: Algorithm,
    kid: Option<String>,
    claims: RegisteredClaims,
}

impl std::fmt::Debug for SubjectToken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SubjectToken(…)")
    }
}

/// The claims of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobClaims {
    /// The job.
    pub subject: String,
    /// The only audience; `None` if there is none or are several.
    pub audience: Option<String>,
    /// From here on the token is not valid, whatever is remembered of it.
    pub expires_at: Timestamp,
    /// SHA-256 of header and claims as they are signed. Another signature over the same text has
    /// the same digest.
    pub digest: Digest,
    all: Map<String, Value>,
}

impl JobClaims {
    /// A claim as text: a string, a number or a boolean. `None` for every other value.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.all.get(name)? {
            Value::String(text) => Some(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
            _ => None,
        }
    }
}

impl<'a> SubjectToken<'a> {
    /// Takes a token apart: the form of header and claims.
    ///
    /// # Errors
    /// [`SubjectTokenError`].
    pub fn read(text: &'a str) -> Result<Self, SubjectTokenError> {
        let jws =
            CompactJws::read(text, MAX_SUBJECT_TOKEN_BYTES).ok_or(SubjectTokenError::Malformed)?;
        let header: Header = object(&jws.header).ok_or(SubjectTokenError::Header)?;
        let is_jwt = header
            .typ
            .as_deref()
            .is_none_or(|typ| typ.eq_ignore_ascii_case("JWT"));
        let algorithm = algorithm(&header.alg).ok_or(SubjectTokenError::Header)?;
        if header.brings_something() || !is_jwt {
            return Err(SubjectTokenError::Header);
        }
        let claims: RegisteredClaims = object(&jws.payload).ok_or(SubjectTokenError::Claims)?;
        if claims.sub.is_empty() {
            return Err(SubjectTokenError::Claims);
        }
        Ok(Self {
            jws,
            alg: header.alg,
            algorithm,
            kid: header.kid,
            claims,
        })
    }

    /// The issuer, unproved.
    pub fn issuer(&self) -> &str {
        &self.claims.iss
    }

    /// Checks signature and times, with the keys and the algorithms of [`SubjectToken::issuer`].
    /// [`SubjectTokenError::UnknownKey`] may be cured by newer keys, nothing else.
    ///
    /// # Errors
    /// [`SubjectTokenError`].
    pub fn verify(
        &self,
        keys: &ClientKeys,
        algorithms: &[String],
        now: Timestamp,
    ) -> Result<JobClaims, SubjectTokenError> {
        if !algorithms.contains(&self.alg) {
            return Err(SubjectTokenError::Header);
        }
        let known =
            keys.find(self.kid.as_deref(), self.algorithm)
                .map_err(|error| match error {
                    AssertionError::UnknownKey => SubjectTokenError::UnknownKey,
                    _ => SubjectTokenError::Header,
                })?;
        let signed = self.jws.signed.as_bytes();
        let is_signed =
            jsonwebtoken::crypto::verify(self.jws.signature, signed, &known.key, self.algorithm)
                .unwrap_or(false);
        if !is_signed {
            return Err(SubjectTokenError::Signature);
        }
        let claims = &self.claims;
        let now = now.unix_timestamp();
        let is_current = claims.exp > now - LEEWAY
            && claims.exp <= now + MAX_LIFE + LEEWAY
            && claims.iat <= now + LEEWAY
            && claims.iat > now - MAX_LIFE - LEEWAY
            && claims.nbf.is_none_or(|nbf| nbf <= now + LEEWAY);
        if !is_current {
            return Err(SubjectTokenError::Time);
        }
        let audience = match &claims.aud {
            Audience::One(one) => Some(one.clone()),
            Audience::Many(many) => match many.as_slice() {
                [one] => Some(one.clone()),
                _ => None,
            },
        };
        Ok(JobClaims {
            subject: claims.sub.clone(),
            audience,
            expires_at: Timestamp::from_unix_timestamp(claims.exp + LEEWAY)
                .map_err(|_| SubjectTokenError::Time)?,
            digest: digest(signed),
            all: object(&self.jws.payload).ok_or(SubjectTokenError::Claims)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use jsonwebtoken::EncodingKey;
    use serde_json::json;

    use super::*;
    use crate::ring::NewKeyPair;

    const NOW: i64 = 1_700_000_000;

    fn now() -> Timestamp {
        Timestamp::from_unix_timestamp(NOW).unwrap()
    }

    fn claims(change: &Value) -> Value {
        let mut claims = json!({"iss": "https://ci.example", "sub": "repo:acme/web:ref:refs/heads/main",
            "aud": "https://portolan.example", "exp": NOW + 300, "iat": NOW, "nbf": NOW,
            "repository": "acme/web", "run_attempt": 2, "ref_protected": true, "groups": ["a"]});
        for (name, value) in change.as_object().unwrap() {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims
    }

    fn proved(
        key: &NewKeyPair,
        text: &str,
        algorithms: &[&str],
    ) -> Result<JobClaims, SubjectTokenError> {
        let keys = ClientKeys::read(&json!({"keys": [key.public]})).unwrap();
        let algorithms: Vec<String> = algorithms.iter().map(|&name| name.to_owned()).collect();
        SubjectToken::read(text)?.verify(&keys, &algorithms, now())
    }

    /// Rule: API-18.
    #[test]
    fn a_job_is_believed_when_every_claim_fits() {
        let key = NewKeyPair::generate().unwrap();
        let says = |change: &Value| {
            let token = key.sign_assertion(&claims(change)).unwrap();
            proved(&key, token.expose(), &["ES256"])
        };
        let job = says(&json!({})).unwrap();
        assert_eq!(job.subject, "repo:acme/web:ref:refs/heads/main");
        assert_eq!(job.audience.as_deref(), Some("https://portolan.example"));
        assert_eq!(job.expires_at.unix_timestamp(), NOW + 360);
        assert_eq!(job.text("repository").as_deref(), Some("acme/web"));
        assert_eq!(job.text("run_attempt").as_deref(), Some("2"));
        assert_eq!(job.text("ref_protected").as_deref(), Some("true"));
        assert_eq!((job.text("groups"), job.text("absent")), (None, None));
        for (aud, read) in [
            (json!(["us"]), Some("us")),
            (json!(["us", "others"]), None),
            (json!([]), None),
        ] {
            let job = says(&json!({ "aud": aud })).unwrap();
            assert_eq!(job.audience.as_deref(), read, "{aud}");
        }
        let day = 24 * 3600;
        for fine in [
            json!({"exp": NOW - 59}),
            json!({"exp": NOW + day + 60}),
            json!({"iat": NOW - day - 59}),
            json!({"iat": NOW + 60}),
            json!({"nbf": NOW + 60}),
            json!({"nbf": null}),
        ] {
            assert!(says(&fine).is_ok(), "{fine}");
        }
        for (change, why) in [
            (json!({"exp": NOW - 60}), SubjectTokenError::Time),
            (json!({"exp": NOW + day + 61}), SubjectTokenError::Time),
            (json!({"iat": NOW - day - 60}), SubjectTokenError::Time),
            (json!({"iat": NOW + 61}), SubjectTokenError::Time),
            (json!({"nbf": NOW + 61}), SubjectTokenError::Time),
            (json!({"exp": null}), SubjectTokenError::Claims),
            (json!({"iat": null}), SubjectTokenError::Claims),
            (json!({"iss": null}), SubjectTokenError::Claims),
            (json!({"aud": null}), SubjectTokenError::Claims),
            (json!({"sub": null}), SubjectTokenError::Claims),
            (json!({"sub": ""}), SubjectTokenError::Claims),
            (json!({"exp": "soon"}), SubjectTokenError::Claims),
        ] {
            assert_eq!(says(&change), Err(why), "{change}");
        }
    }

    /// Rule: API-18.
    #[test]
    fn the_header_of_a_job_chooses_nothing() {
        let key = NewKeyPair::generate().unwrap();
        let token = key.sign_assertion(&claims(&json!({}))).unwrap();
        let token = token.expose().clone();
        assert_eq!(
            proved(&key, &token, &["RS256"]),
            Err(SubjectTokenError::Header),
            "this issuer signs otherwise"
        );
        let other = NewKeyPair::generate().unwrap();
        let foreign = other.sign_assertion(&claims(&json!({}))).unwrap();
        assert_eq!(
            proved(&key, foreign.expose(), &["ES256"]),
            Err(SubjectTokenError::UnknownKey)
        );
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (_, payload) = signed.split_once('.').unwrap();
        let all = ["ES256", "RS256", "HS256", "none"];
        let kid = key.public.kid();
        for header in [
            json!({"alg": "none", "kid": kid}),
            json!({"alg": "HS256", "kid": kid}),
            json!({"alg": "ES256", "kid": kid, "typ": "at+jwt"}),
            json!({"alg": "ES256", "kid": kid, "crit": ["exp"]}),
            json!({"alg": "ES256", "kid": kid, "jwk": key.public}),
            json!({"alg": "ES256", "kid": kid, "jku": "https://evil.example/jwks"}),
        ] {
            let head = URL_SAFE_NO_PAD.encode(header.to_string());
            let text = format!("{head}.{payload}.{signature}");
            assert_eq!(
                proved(&key, &text, &all),
                Err(SubjectTokenError::Header),
                "{header}"
            );
        }
        // The public key as if it were a shared secret.
        let mut header = jsonwebtoken::Header::new(Algorithm::HS256);
        header.kid = Some(kid.to_owned());
        let public = EncodingKey::from_secret(&serde_json::to_vec(&key.public).unwrap());
        let swapped = jsonwebtoken::encode(&header, &claims(&json!({})), &public).unwrap();
        assert_eq!(proved(&key, &swapped, &all), Err(SubjectTokenError::Header));
        assert_eq!(
            proved(&key, &format!("{token}A"), &all),
            Err(SubjectTokenError::Signature)
        );
        let long = "x".repeat(MAX_SUBJECT_TOKEN_BYTES + 1);
        for broken in ["", "a.b", "a.b.c.d", &format!("{signed}."), &long] {
            assert_eq!(
                proved(&key, broken, &all),
                Err(SubjectTokenError::Malformed),
                "{broken}"
            );
        }
    }
}
