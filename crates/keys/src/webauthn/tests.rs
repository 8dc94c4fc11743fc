//! An authenticator of software, and what becomes of what it writes.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
        RsaKeyPair,
    },
};
use proptest::prelude::*;

use super::{
    UserVerification::{Preferred, Required},
    *,
};

const HOST: &str = "portolan.test";
const ORIGIN: &str = "https://portolan.test";
const CHALLENGE: &[u8] = b"thirty-two bytes of pure chance!";

fn party() -> RelyingParty {
    RelyingParty::new(HOST, vec![ORIGIN.to_owned()])
}

fn client_data(ceremony: &str, challenge: &[u8], origin: &str) -> Vec<u8> {
    let challenge = URL_SAFE_NO_PAD.encode(challenge);
    serde_json::json!({"type": ceremony, "challenge": challenge, "origin": origin, "crossOrigin": false, "new": 1})
        .to_string()
        .into_bytes()
}

fn data(host: &str, flags: u8, count: u32, attested: &[u8]) -> Vec<u8> {
    let mut data = digest(host.as_bytes()).as_bytes().to_vec();
    data.push(flags);
    data.extend(count.to_be_bytes());
    data.extend(attested);
    data
}

fn bytes(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x59];
    out.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
    out.extend(content);
    out
}

fn attested(key: &[u8]) -> Vec<u8> {
    let mut out = vec![7; 16];
    out.extend([0, 3, 1, 2, 3]);
    out.extend(key);
    out
}

fn attestation(data: &[u8]) -> Vec<u8> {
    let mut out = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData".to_vec();
    out.extend(bytes(data));
    out
}

enum Signer {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    fn cose(&self) -> Vec<u8> {
        match self {
            Self::P256(pair) => {
                let point = pair.public_key().as_ref();
                let mut out = vec![0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21];
                out.extend(bytes(&point[1..33]));
                out.push(0x22);
                out.extend(bytes(&point[33..]));
                out
            }
            Self::Ed25519(pair) => {
                let mut out = vec![0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21];
                out.extend(bytes(pair.public_key().as_ref()));
                out
            }
            Self::Rsa(pair) => {
                let key = pair.public_key();
                let mut out = vec![0xa4, 0x01, 0x03, 0x03, 0x39, 0x01, 0x00, 0x20];
                out.extend(bytes(key.modulus().big_endian_without_leading_zero()));
                out.push(0x21);
                out.extend(bytes(key.exponent().big_endian_without_leading_zero()));
                out
            }
        }
    }

    fn sign(&self, data: &[u8], client_data: &[u8]) -> Vec<u8> {
        let mut message = data.to_vec();
        message.extend(digest(client_data).as_bytes());
        let random = SystemRandom::new();
        match self {
            Self::P256(pair) => pair.sign(&random, &message).unwrap().as_ref().to_vec(),
            Self::Ed25519(pair) => pair.sign(&message).as_ref().to_vec(),
            Self::Rsa(pair) => {
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, &message, &mut out)
                    .unwrap();
                out
            }
        }
    }
}

fn p256() -> Signer {
    Signer::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap())
}

fn signers() -> [Signer; 3] {
    [
        p256(),
        Signer::Ed25519(Ed25519KeyPair::generate().unwrap()),
        Signer::Rsa(RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap()),
    ]
}

#[test]
fn l13_a_credential_of_each_kind_registers_and_signs() {
    for signer in signers() {
        let flags = USER_PRESENT | USER_VERIFIED | BACKUP_ELIGIBLE | ATTESTED;
        let made = attestation(&data(HOST, flags, 0, &attested(&signer.cose())));
        let created = client_data("webauthn.create", CHALLENGE, ORIGIN);
        assert_eq!(challenge_of(&created).unwrap(), CHALLENGE);
        let known = register(&party(), CHALLENGE, &created, &made).unwrap();
        assert_eq!(known.credential_id, [1, 2, 3]);
        assert_eq!(known.aaguid, [7; 16]);
        assert!(known.said.is_backup_eligible && !known.said.is_backed_up);

        let got = client_data("webauthn.get", CHALLENGE, ORIGIN);
        let written = data(HOST, USER_PRESENT | USER_VERIFIED, 9, &[]);
        let signature = signer.sign(&written, &got);
        let assertion = Assertion {
            client_data: &got,
            authenticator_data: &written,
            signature: &signature,
        };
        let said = verify(&party(), CHALLENGE, &known.public_key, assertion, Required).unwrap();
        assert!(said.is_verified && said.sign_count == 9);
        // Another key of the same kind did not sign this.
        for other in signers() {
            assert_eq!(
                verify(&party(), CHALLENGE, &other.cose(), assertion, Required),
                Err(WebAuthnError::Signature)
            );
        }
    }
}

#[test]
fn case_156_other_origin_other_host_other_challenge_and_missing_flags_are_refused() {
    let signer = p256();
    let present = USER_PRESENT | USER_VERIFIED;
    let sign = |client_data: Vec<u8>, host: &str, flags: u8, verification| {
        let written = data(host, flags, 1, &[]);
        let signature = signer.sign(&written, &client_data);
        let assertion = Assertion {
            client_data: &client_data,
            authenticator_data: &written,
            signature: &signature,
        };
        verify(&party(), CHALLENGE, &signer.cose(), assertion, verification)
    };
    let get = |challenge: &[u8], origin: &str| client_data("webauthn.get", challenge, origin);
    let good = || get(CHALLENGE, ORIGIN);
    assert!(sign(good(), HOST, present, Required).is_ok());
    for origin in [
        "https://evil.example",
        "http://portolan.test",
        "https://portolan.test:444",
        "https://portolan.test/",
        "https://a.portolan.test",
        "HTTPS://portolan.test",
        "null",
        "",
    ] {
        assert_eq!(
            sign(get(CHALLENGE, origin), HOST, present, Required),
            Err(WebAuthnError::Origin),
            "{origin}"
        );
    }
    let framed = |more: serde_json::Value| {
        let mut text: serde_json::Value = serde_json::from_slice(&good()).unwrap();
        for (name, value) in more.as_object().unwrap() {
            text[name] = value.clone();
        }
        sign(text.to_string().into_bytes(), HOST, present, Required)
    };
    assert_eq!(
        framed(serde_json::json!({"crossOrigin": true})),
        Err(WebAuthnError::Origin)
    );
    assert_eq!(
        framed(serde_json::json!({"topOrigin": ORIGIN})),
        Err(WebAuthnError::Origin)
    );
    assert_eq!(
        sign(get(b"another", ORIGIN), HOST, present, Required),
        Err(WebAuthnError::Challenge)
    );
    let create = client_data("webauthn.create", CHALLENGE, ORIGIN);
    assert_eq!(
        sign(create, HOST, present, Required),
        Err(WebAuthnError::Ceremony)
    );
    for host in ["evil.example", "a.portolan.test", ""] {
        assert_eq!(
            sign(good(), host, present, Required),
            Err(WebAuthnError::RelyingParty)
        );
    }
    assert_eq!(
        sign(good(), HOST, USER_VERIFIED, Preferred),
        Err(WebAuthnError::NotPresent)
    );
    assert_eq!(
        sign(good(), HOST, USER_PRESENT, Required),
        Err(WebAuthnError::NotVerified)
    );
    assert!(sign(good(), HOST, USER_PRESENT, Preferred).is_ok());
    assert_eq!(
        sign(good(), HOST, present | BACKED_UP, Required),
        Err(WebAuthnError::AuthenticatorData),
        "backed up, and cannot be"
    );
}

#[test]
fn l13_a_credential_without_verification_or_with_another_kind_of_key_is_not_taken() {
    let create = client_data("webauthn.create", CHALLENGE, ORIGIN);
    let take = |flags, key: &[u8]| {
        let made = attestation(&data(HOST, flags, 0, &attested(key)));
        register(&party(), CHALLENGE, &create, &made)
    };
    let good = p256().cose();
    let flags = USER_PRESENT | USER_VERIFIED | ATTESTED;
    assert!(take(flags, &good).is_ok());
    assert_eq!(
        take(USER_PRESENT | ATTESTED, &good),
        Err(WebAuthnError::NotVerified)
    );
    assert_eq!(
        take(USER_PRESENT | USER_VERIFIED, &good),
        Err(WebAuthnError::AuthenticatorData),
        "something stands behind the data"
    );
    let mut other = good.clone();
    // ES384 on the same curve.
    other.splice(3..5, [0x03, 0x38, 0x22]);
    assert_eq!(take(flags, &other), Err(WebAuthnError::Key));
    // A coordinate that is too short.
    let mut short = vec![
        0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x41, 0x01, 0x22,
    ];
    short.extend(bytes(&[0; 32]));
    assert_eq!(take(flags, &short), Err(WebAuthnError::Key));
    // An assertion is no registration.
    let get = client_data("webauthn.get", CHALLENGE, ORIGIN);
    let made = attestation(&data(HOST, flags, 0, &attested(&good)));
    assert_eq!(
        register(&party(), CHALLENGE, &get, &made),
        Err(WebAuthnError::Ceremony)
    );
}

#[test]
fn l13_every_changed_bit_is_noticed() {
    let signer = p256();
    let got = client_data("webauthn.get", CHALLENGE, ORIGIN);
    let written = data(HOST, USER_PRESENT | USER_VERIFIED, 1, &[]);
    let signature = signer.sign(&written, &got);
    let key = signer.cose();
    for at in 0..written.len() * 8 {
        let mut changed = written.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let assertion = Assertion {
            client_data: &got,
            authenticator_data: &changed,
            signature: &signature,
        };
        assert!(
            verify(&party(), CHALLENGE, &key, assertion, Required).is_err(),
            "bit {at}"
        );
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        first in proptest::collection::vec(any::<u8>(), 0..300),
        second in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let create = client_data("webauthn.create", CHALLENGE, ORIGIN);
        let get = client_data("webauthn.get", CHALLENGE, ORIGIN);
        prop_assert!(register(&party(), CHALLENGE, &create, &first).is_err());
        prop_assert!(register(&party(), CHALLENGE, &create, &attestation(&first)).is_err());
        prop_assert!(challenge_of(&first).is_err());
        let assertion = Assertion { client_data: &get, authenticator_data: &first, signature: &second };
        prop_assert!(verify(&party(), CHALLENGE, &second, assertion, Preferred).is_err());
        let known = data(HOST, USER_PRESENT, 0, &[]);
        let assertion = Assertion { client_data: &get, authenticator_data: &known, signature: &second };
        prop_assert!(verify(&party(), CHALLENGE, &first, assertion, Preferred).is_err());
    }
}
