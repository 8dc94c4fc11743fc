//! What a browser and an authenticator bring (Web Authentication level 3, §7.1 and §7.2; L13; case 156): a new credential keeps the rules,
//! and nobody but the authenticator signs.
#![cfg_attr(fuzzing, no_main)]

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use libfuzzer_sys::fuzz_target;
use portolan_keys::webauthn::{Assertion, RelyingParty, challenge_of, register, verify};
use serde_json::json;

const CHALLENGE: &[u8] = b"thirty-two bytes of pure chance!";
const ORIGIN: &str = "https://portolan.test";

/// A key of somebody who is not here: Ed25519, in COSE form.
fn registered() -> Vec<u8> {
    let mut key = b"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20".to_vec();
    key.extend_from_slice(&[
        0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07,
        0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07,
        0x51, 0x1a,
    ]);
    key
}

fn client_data(ceremony: &str) -> Vec<u8> {
    let challenge = URL_SAFE_NO_PAD.encode(CHALLENGE);
    json!({"type": ceremony, "challenge": challenge, "origin": ORIGIN})
        .to_string()
        .into_bytes()
}

fuzz_target!(|data: &[u8]| {
    let party = RelyingParty::new("portolan.test", vec![ORIGIN.to_owned()]);
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let own = parts.next().filter(|own| !own.is_empty());
    let rest = parts.next().unwrap_or_default();
    let _ = challenge_of(data);
    let written = |ceremony| own.map_or_else(|| client_data(ceremony), <[u8]>::to_vec);

    if let Ok(new) = register(&party, CHALLENGE, &written("webauthn.create"), rest) {
        assert!(new.said.is_verified && (1..=1023).contains(&new.credential_id.len()));
        assert!(new.said.is_backup_eligible || !new.said.is_backed_up);
        assert!(rest.len() > new.public_key.len() + new.credential_id.len());
    }

    let client_data = written("webauthn.get");
    let (authenticator_data, signature) = rest.split_at(rest.len().saturating_sub(64));
    let assertion = Assertion {
        client_data: &client_data,
        authenticator_data,
        signature,
    };
    let said = verify(&party, CHALLENGE, &registered(), assertion, true);
    assert!(said.is_err(), "nobody else signs");
    let _ = verify(&party, CHALLENGE, data, assertion, false);
});
