//! A client assertion (RFC 7523; AUTH-C13, MCP-AX-2; CASE-66 to CASE-73): arbitrary bytes, and
//! arbitrary header and claims under a valid signature, so that every claim is reached. An accepted
//! assertion keeps the rules, which are written out once more here.
#![cfg_attr(fuzzing, no_main)]

use std::sync::OnceLock;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use libfuzzer_sys::fuzz_target;
use portolan_keys::{Assertion, AssertionError, ClientKeys};
use portolan_model::Timestamp;
use serde_json::{Value, json};

const AUDIENCES: [&str; 4] = [
    "https://mcp.example.com",
    "https://mcp.example.com/",
    "https://mcp.example.com/oauth/token",
    "https://mcp.example.com/token",
];
/// Now, in seconds.
const NOW: i64 = 1_728_000_000;
/// For claims without a header of their own.
const HEADER: &[u8] = br#"{"alg":"EdDSA"}"#;
/// Members that would change which bytes or which key are verified (CASE-73).
const REFUSED: [&str; 8] = ["crit", "jku", "jwk", "x5u", "x5c", "b64", "zip", "enc"];

struct Client {
    pair: Ed25519KeyPair,
    keys: ClientKeys,
    /// The same key, beside another of its kind.
    two: ClientKeys,
}

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let key = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "k"});
        let other = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "other"});
        let read = |keys: Value| ClientKeys::read(&keys).expect("its public half");
        Client {
            keys: read(json!({"keys": [key]})),
            two: read(json!({"keys": [other, key]})),
            pair,
        }
    })
}

fn now() -> Timestamp {
    Timestamp::from_unix_timestamp(NOW).expect("a time")
}

/// A developer may read it: ASCII without quote and backslash (AUTH-E11).
fn can_be_told(refused: AssertionError) {
    let text = refused.to_string();
    assert!(text.is_ascii() && !text.is_empty() && !text.contains(['"', '\\']));
}

fuzz_target!(|data: &[u8]| {
    let client = client();
    if let Ok(text) = std::str::from_utf8(data) {
        match Assertion::read(text) {
            Ok(read) => {
                let proof = read.verify(&client.keys, &AUDIENCES, now());
                can_be_told(proof.expect_err("nobody else signs"));
            }
            Err(refused) => can_be_told(refused),
        }
    }

    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let header = parts.next().filter(|header| !header.is_empty());
    let (header, claims) = (header.unwrap_or(HEADER), parts.next().unwrap_or_default());
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let signature = client.pair.sign(signed.as_bytes()).as_ref().to_vec();
    let jwt = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(&signature));
    let read = match Assertion::read(&jwt) {
        Ok(read) => read,
        Err(refused) => return can_be_told(refused),
    };
    assert!(
        format!("{read:?} {:?}", client.keys).len() < 32,
        "no names in a log"
    );
    let proof = match read.verify(&client.keys, &AUDIENCES, now()) {
        Ok(proof) => proof,
        Err(refused) => return can_be_told(refused),
    };

    assert!(std::str::from_utf8(header).is_ok() && std::str::from_utf8(claims).is_ok());
    // An ignored member may have a value that this reader cannot hold: half a surrogate pair, a
    // number beyond all bounds.
    let (Ok(header), Ok(claims)) = (
        serde_json::from_slice::<Value>(header),
        serde_json::from_slice::<Value>(claims),
    ) else {
        return;
    };
    assert!(header.is_object() && claims.is_object() && jwt.len() <= 8192);
    assert_eq!(header["alg"], "EdDSA");
    assert!(header["kid"].is_null() || header["kid"] == "k");
    assert!(REFUSED.iter().all(|member| header[*member].is_null()));
    match read.verify(&client.two, &AUDIENCES, now()) {
        Ok(by_two) => assert!(header["kid"] == "k" && by_two == proof),
        Err(refused) => {
            assert!(header["kid"].is_null() && refused == AssertionError::Ambiguous);
            can_be_told(refused);
        }
    }
    assert_eq!(claims["iss"], read.client_id());
    assert_eq!(claims["sub"], read.client_id());
    let audiences = match &claims["aud"] {
        Value::Array(many) => many.as_slice(),
        one => std::slice::from_ref(one),
    };
    let is_ours = |audience: &Value| {
        audience
            .as_str()
            .is_some_and(|text| AUDIENCES.contains(&text))
    };
    assert!(!audiences.is_empty() && audiences.iter().all(is_ours));
    let exp = claims["exp"].as_i64().expect("seconds");
    assert!((NOW - 29..=NOW + 330).contains(&exp));
    for begin in ["iat", "nbf"] {
        assert!(claims[begin].as_i64().is_none_or(|at| at <= NOW + 30));
    }
    assert_eq!(claims["jti"], proof.jti.as_str());
    assert!((1..=256).contains(&proof.jti.len()));
    assert_eq!(proof.expires_at.unix_timestamp(), exp + 30);

    let mut other = signature;
    let at = data.len() % other.len();
    other[at] ^= 1;
    let forged = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(other));
    let read = Assertion::read(&forged).expect("its form is good");
    assert!(read.verify(&client.keys, &AUDIENCES, now()).is_err());
});
