//! An access token at a node (AUTH-4.5; AUTH-K1; CASE-109 to CASE-117): arbitrary bytes, and
//! arbitrary header and claims under a valid signature. An accepted token keeps the rules, which
//! are written out once more here. And the keys that are published.
#![cfg_attr(fuzzing, no_main)]

use std::sync::OnceLock;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use libfuzzer_sys::fuzz_target;
use portolan_keys::{Jwks, PublicJwk, Verifier, VerifyError};
use portolan_model::Timestamp;
use serde_json::{Value, json};

const ISSUER: &str = "https://mcp.example.com";
/// Now, in seconds.
const NOW: i64 = 1_728_000_000;
/// The key of RFC 6979 §A.2.5, which is public on purpose.
const PRIVATE: [u8; 32] = [
    0xc9, 0xaf, 0xa9, 0xd8, 0x45, 0xba, 0x75, 0x16, 0x6b, 0x5c, 0x21, 0x57, 0x67, 0xb1, 0xd6, 0x93,
    0x4e, 0x50, 0xc3, 0xdb, 0x36, 0xe8, 0x9b, 0x12, 0x7b, 0x8a, 0x62, 0x2b, 0x12, 0x0f, 0x67, 0x21,
];
const POINT: [u8; 65] = [
    0x04, 0x60, 0xfe, 0xd4, 0xba, 0x25, 0x5a, 0x9d, 0x31, 0xc9, 0x61, 0xeb, 0x74, 0xc6, 0x35, 0x6d,
    0x68, 0xc0, 0x49, 0xb8, 0x92, 0x3b, 0x61, 0xfa, 0x6c, 0xe6, 0x69, 0x62, 0x2e, 0x60, 0xf2, 0x9f,
    0xb6, 0x79, 0x03, 0xfe, 0x10, 0x08, 0xb8, 0xbc, 0x99, 0xa4, 0x1a, 0xe9, 0xe9, 0x56, 0x28, 0xbc,
    0x64, 0xf2, 0xf1, 0xb2, 0x0c, 0x2d, 0x7e, 0x9f, 0x51, 0x77, 0xa3, 0xc2, 0x94, 0xd4, 0x46, 0x22,
    0x99,
];
/// Members that would change which bytes or which key are verified (CASE-112).
const REFUSED: [&str; 8] = ["crit", "jku", "jwk", "x5u", "x5c", "b64", "zip", "enc"];

struct Issuer {
    pair: EcdsaKeyPair,
    /// For claims without a header of their own.
    header: Vec<u8>,
    kid: String,
    verifier: Verifier,
}

fn issuer() -> &'static Issuer {
    static OURS: OnceLock<Issuer> = OnceLock::new();
    OURS.get_or_init(|| {
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &PRIVATE,
            &POINT,
        )
        .expect("a key");
        let jwk = PublicJwk::from_point(pair.public_key().as_ref()).expect("its public half");
        let kid = jwk.kid().to_owned();
        let verifier = Verifier::new(ISSUER);
        verifier.set_keys(&Jwks { keys: vec![jwk] }).expect("keys");
        Issuer {
            pair,
            header: json!({"typ": "at+jwt", "alg": "ES256", "kid": kid})
                .to_string()
                .into_bytes(),
            kid,
            verifier,
        }
    })
}

fn now() -> Timestamp {
    Timestamp::from_unix_timestamp(NOW).expect("a time")
}

/// A set of keys: written as it was read, and taken as a whole or not at all (AUTH-J4).
fn published(data: &[u8]) {
    if let Ok(jwk) = PublicJwk::from_point(data) {
        assert!(data.len() == 65 && data[0] == 4);
        assert_eq!(jwk.kid().len(), 43);
    }
    let Ok(jwks) = serde_json::from_slice::<Jwks>(data) else {
        return;
    };
    let written = serde_json::to_vec(&jwks).expect("JSON");
    let again = serde_json::from_slice::<Jwks>(&written).expect("keys");
    assert_eq!(again, jwks);
    let verifier = Verifier::new(ISSUER);
    let is_taken = verifier.set_keys(&jwks).is_ok();
    assert_eq!(verifier.has_keys(), is_taken && !jwks.keys.is_empty());
}

fuzz_target!(|data: &[u8]| {
    let issuer = issuer();
    published(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let said = issuer.verifier.verify(text, now());
        let refused = said.expect_err("nobody else signs");
        assert!(!refused.description().contains(['"', '\\']), "AUTH-E11");
    }

    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let header = parts.next().filter(|header| !header.is_empty());
    let (header, payload) = (
        header.unwrap_or(&issuer.header),
        parts.next().unwrap_or_default(),
    );
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(payload)
    );
    let signature = issuer
        .pair
        .sign(&SystemRandom::new(), signed.as_bytes())
        .expect("a signature")
        .as_ref()
        .to_vec();
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(&signature));
    let claims = match issuer.verifier.verify(&token, now()) {
        Ok(claims) => claims,
        Err(refused) => {
            let has_expired = refused == VerifyError::Expired;
            assert_eq!(refused.description().ends_with("expired"), has_expired);
            return;
        }
    };

    let header: Value = serde_json::from_slice(header).expect("JSON");
    assert!(token.len() <= 4096);
    assert_eq!(
        (&header["alg"], &header["kid"]),
        (&json!("ES256"), &json!(issuer.kid))
    );
    let typ = header["typ"]
        .as_str()
        .unwrap_or_default()
        .to_ascii_lowercase();
    assert!(["at+jwt", "application/at+jwt"].contains(&typ.as_str()));
    assert!(REFUSED.iter().all(|member| header.get(member).is_none()));
    assert!(claims.iss == ISSUER && !claims.aud.is_empty());
    assert!(
        claims.iat <= NOW + 60 && NOW <= claims.exp + 30 && claims.exp - claims.iat <= 8 * 3600
    );
    // The read members are equal to the signed ones. An ignored member may have a value that this
    // reader cannot hold: half a surrogate pair, a number beyond all bounds.
    let Ok(payload) = serde_json::from_slice::<Value>(payload) else {
        return;
    };
    let read = serde_json::to_value(&claims).expect("JSON");
    for (member, value) in read.as_object().expect("an object") {
        assert_eq!(payload.get(member), Some(value), "{member}");
    }

    let mut other = signature;
    let at = data.len() % other.len();
    other[at] ^= 1;
    let forged = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(other));
    assert!(issuer.verifier.verify(&forged, now()).is_err(), "CASE-117");
});
