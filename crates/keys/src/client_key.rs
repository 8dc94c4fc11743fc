//! Assertions by which we authenticate as a client to an external authorization server (RFC 7523;
//! MCP-AX-2).

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use crate::{KeysError, Secret, random};

/// How long an assertion is good: it is used at once.
const LIFE: Duration = Duration::seconds(120);

/// Reads a private key in PEM: P-256, which signs with ES256, or RSA, which signs with RS256.
fn key(pem: &str) -> Result<(Algorithm, EncodingKey), KeysError> {
    if let Ok(key) = EncodingKey::from_ec_pem(pem.as_bytes()) {
        return Ok((Algorithm::ES256, key));
    }
    let key = EncodingKey::from_rsa_pem(pem.as_bytes()).map_err(|_| KeysError::ClientKey)?;
    Ok((Algorithm::RS256, key))
}

/// True if [`sign`] can use it.
pub fn is_usable(pem: &str) -> bool {
    let now = OffsetDateTime::UNIX_EPOCH;
    sign(pem, "client", "https://issuer.example", now).is_ok()
}

/// An assertion of `client_id` for one issuer: `iss` and `sub` are the client, `aud` the issuer,
/// two minutes, a `jti` of its own.
///
/// # Errors
/// [`KeysError::ClientKey`] if the key is none that signs.
pub fn sign(
    pem: &str,
    client_id: &str,
    issuer: &str,
    now: OffsetDateTime,
) -> Result<Secret<String>, KeysError> {
    use std::fmt::Write as _;
    let (algorithm, key) = key(pem)?;
    let mut jti = String::with_capacity(32);
    for byte in random::bytes::<16>()? {
        // Writing to a String cannot fail.
        let _ = write!(jti, "{byte:02x}");
    }
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": issuer, "jti": jti,
        "iat": now.unix_timestamp(), "exp": (now + LIFE).unix_timestamp(),
    });
    jsonwebtoken::encode(&Header::new(algorithm), &claims, &key)
        .map(Secret::new)
        .map_err(|_| KeysError::ClientKey)
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{DecodingKey, Validation};

    use super::*;

    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2
OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r
1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G
-----END PRIVATE KEY-----";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9
q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==
-----END PUBLIC KEY-----";

    #[test]
    fn ax_2_an_assertion_names_client_and_issuer_and_is_short_lived_and_single() {
        let now = OffsetDateTime::now_utc();
        let mut rules = Validation::new(Algorithm::ES256);
        rules.set_audience(&["https://as.example"]);
        rules.set_issuer(&["me"]);
        let read = |text: &str| {
            let key = DecodingKey::from_ec_pem(PUBLIC.as_bytes()).unwrap();
            jsonwebtoken::decode::<serde_json::Value>(text, &key, &rules)
                .unwrap()
                .claims
        };
        let one = read(
            sign(PRIVATE, "me", "https://as.example", now)
                .unwrap()
                .expose(),
        );
        let other = read(
            sign(PRIVATE, "me", "https://as.example", now)
                .unwrap()
                .expose(),
        );
        assert_eq!(one["sub"], "me");
        assert!(one["exp"].as_i64().unwrap() - one["iat"].as_i64().unwrap() <= 300);
        assert_ne!(one["jti"], other["jti"]);
        assert!(!is_usable(
            "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----"
        ));
        assert!(is_usable(PRIVATE));
    }
}
