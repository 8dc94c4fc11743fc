//! Public keys on the wire (RFC 7517; AUTH-J4).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::{KeysError, digest};

/// A P-256 public key. There is no member for `d`: a private key cannot be published by accident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicJwk {
    kty: EcKeyType,
    crv: P256,
    x: String,
    y: String,
    kid: String,
    alg: Es256,
    #[serde(rename = "use")]
    usage: Signature,
}

macro_rules! fixed_word {
    ($name:ident, $word:literal) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        enum $name {
            #[serde(rename = $word)]
            Only,
        }
    };
}
fixed_word!(EcKeyType, "EC");
fixed_word!(P256, "P-256");
fixed_word!(Es256, "ES256");
fixed_word!(Signature, "sig");

impl PublicJwk {
    /// From an uncompressed curve point (`04 | x | y`, 65 bytes). The key id is the RFC 7638
    /// thumbprint.
    pub fn from_point(point: &[u8]) -> Result<Self, KeysError> {
        let [4, coordinates @ ..] = point else {
            return Err(KeysError::Crypto);
        };
        if coordinates.len() != 64 {
            return Err(KeysError::Crypto);
        }
        let x = URL_SAFE_NO_PAD.encode(&coordinates[..32]);
        let y = URL_SAFE_NO_PAD.encode(&coordinates[32..]);
        let kid = thumbprint(&x, &y);
        Ok(Self {
            kty: EcKeyType::Only,
            crv: P256::Only,
            x,
            y,
            kid,
            alg: Es256::Only,
            usage: Signature::Only,
        })
    }

    /// The key id.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    pub(crate) fn decoding_key(&self) -> Result<jsonwebtoken::DecodingKey, KeysError> {
        // A document that names a key by another id than its own is not ours, or was changed.
        if self.kid != thumbprint(&self.x, &self.y) {
            return Err(KeysError::SigningKey {
                kid: self.kid.clone(),
            });
        }
        jsonwebtoken::DecodingKey::from_ec_components(&self.x, &self.y).map_err(|_| {
            KeysError::SigningKey {
                kid: self.kid.clone(),
            }
        })
    }
}

/// RFC 7638: SHA-256 over the required members in lexical order.
fn thumbprint(x: &str, y: &str) -> String {
    let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
    URL_SAFE_NO_PAD.encode(digest(canonical.as_bytes()).as_bytes())
}

/// A JWK set, as served at `/oauth/jwks.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Jwks {
    /// The keys that a verifier may meet now or within the next day.
    pub keys: Vec<PublicJwk>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j4_the_key_id_is_the_thumbprint_of_rfc_7638() {
        // The P-256 key of RFC 7517, appendix A.1.
        let mut point = vec![4];
        point.extend(
            URL_SAFE_NO_PAD
                .decode("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4")
                .unwrap(),
        );
        point.extend(
            URL_SAFE_NO_PAD
                .decode("4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM")
                .unwrap(),
        );
        let jwk = PublicJwk::from_point(&point).unwrap();
        assert_eq!(jwk.kid(), "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s");
        let json = serde_json::to_value(&jwk).unwrap();
        assert_eq!(json["alg"], "ES256");
        assert_eq!(json["use"], "sig");
        assert!(json.get("d").is_none());
    }

    #[test]
    fn a_key_under_a_foreign_id_is_refused() {
        let jwk: PublicJwk = serde_json::from_str(
            r#"{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","kid":"x","alg":"ES256","use":"sig"}"#,
        )
        .unwrap();
        assert!(jwk.decoding_key().is_err());
    }
}
