//! Data of a browser and an authenticator (Web Authentication level 3, §7.1 and §7.2; AUTH-L13;
//! CASE-156): a new credential keeps the rules, and only the authenticator signs. An authenticator
//! here signs any data, so that its content is reached.
#![cfg_attr(fuzzing, no_main)]

use aws_lc_rs::{
    digest,
    signature::{Ed25519KeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use libfuzzer_sys::fuzz_target;
use portolan_keys::webauthn::{
    Assertion, RelyingParty, UserVerification, WebAuthnError, challenge_of, register, verify,
};
use serde_json::json;

const CHALLENGE: &[u8] = b"thirty-two bytes of pure chance!";
const ORIGIN: &str = "https://portolan.test";

/// The public key of another authenticator.
const STRANGER: [u8; 32] = [
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
    0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
];

/// A key of Ed25519, in COSE form.
fn registered(key: &[u8]) -> Vec<u8> {
    [b"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20", key].concat()
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}

/// Data of an authenticator of ours, signed by it.
fn signed_here(party: &RelyingParty, client_data: &[u8], authenticator_data: &[u8]) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
    let key = registered(pair.public_key().as_ref());
    let signed = [authenticator_data, &sha256(client_data)].concat();
    let mut signature = pair.sign(&signed).as_ref().to_vec();
    let by = |signature: &[u8], verification| {
        let assertion = Assertion {
            client_data,
            authenticator_data,
            signature,
        };
        assert!(!format!("{assertion:?}").contains('['), "no bytes in a log");
        verify(party, CHALLENGE, &key, assertion, verification)
    };
    let Ok(said) = by(&signature, UserVerification::Preferred) else {
        return;
    };
    assert_eq!(authenticator_data[..32], sha256(party.id().as_bytes()));
    let flags = authenticator_data[32];
    assert_eq!(flags & 0x01, 0x01, "present");
    assert_eq!(said.is_verified, flags & 0x04 != 0);
    assert!(said.is_backup_eligible || !said.is_backed_up);
    assert_eq!(said.sign_count.to_be_bytes(), authenticator_data[33..37]);
    assert_eq!(
        by(&signature, UserVerification::Required).ok(),
        said.is_verified.then_some(said)
    );
    signature[authenticator_data.len() % 64] ^= 1;
    assert!(
        by(&signature, UserVerification::Preferred).is_err(),
        "by nobody else"
    );
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
    if let Some(own) = own
        && let Ok(challenge) = challenge_of(own)
    {
        // It is written in one way; JSON may write its letters in another.
        let written = URL_SAFE_NO_PAD.encode(challenge);
        assert!(String::from_utf8_lossy(own).contains(&written) || own.contains(&b'\\'));
    }
    let written = |ceremony| own.map_or_else(|| client_data(ceremony), <[u8]>::to_vec);

    if let Ok(new) = register(&party, CHALLENGE, &written("webauthn.create"), rest) {
        assert!(new.said.is_verified && (1..=1023).contains(&new.credential_id.len()));
        assert!(new.said.is_backup_eligible || !new.said.is_backed_up);
        assert!(rest.len() > new.public_key.len() + new.credential_id.len());
        assert!(!format!("{new:?}").contains('['), "no bytes in a log");
        // Whatever kind of key it is, it signed nothing here.
        let client_data = client_data("webauthn.get");
        let authenticator_data = [&sha256(party.id().as_bytes())[..], b"\x05\0\0\0\0"].concat();
        let assertion = Assertion {
            client_data: &client_data,
            authenticator_data: &authenticator_data,
            signature: rest,
        };
        let said = verify(
            &party,
            CHALLENGE,
            &new.public_key,
            assertion,
            UserVerification::Required,
        );
        assert_eq!(said, Err(WebAuthnError::Signature));
    }

    let client_data = written("webauthn.get");
    let (authenticator_data, signature) = rest.split_at(rest.len().saturating_sub(64));
    let assertion = Assertion {
        client_data: &client_data,
        authenticator_data,
        signature,
    };
    let said = verify(
        &party,
        CHALLENGE,
        &registered(&STRANGER),
        assertion,
        UserVerification::Required,
    );
    assert!(said.is_err(), "nobody else signs");
    signed_here(&party, &client_data, authenticator_data);
    signed_here(&party, &client_data, rest);
    let _ = verify(
        &party,
        CHALLENGE,
        data,
        assertion,
        UserVerification::Preferred,
    );
});
