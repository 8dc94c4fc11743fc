//! Access tokens: what a node accepts, and everything else it refuses (AUTH-4.5,
//! CASE-109 to CASE-117).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_keys::{
    AccessClaims, Epochs, Jwks, Keys, MasterSecret, PublicJwk, SigningKeys, Verifier, VerifyError,
    ring::{NewKeyPair, SigningKey, plan},
};
use portolan_model::{
    Timestamp,
    id::{GrantId, TenantId, TokenId, UserId},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use time::Duration;

const ISSUER: &str = "https://mcp.example.com";

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::days(20_000)
}

fn claims() -> AccessClaims {
    let iat = now().unix_timestamp();
    AccessClaims {
        iss: ISSUER.to_owned(),
        aud: format!("{ISSUER}/t/acme/mcp"),
        sub: UserId::generate().into(),
        client_id: "cli_x".to_owned(),
        tid: TenantId::generate(),
        gid: GrantId::generate(),
        ep: Epochs {
            user: 1,
            tenant: 2,
            member: 3,
        },
        scope: "mcp".to_owned(),
        jti: TokenId::generate(),
        iat,
        exp: iat + 3600,
        auth_time: None,
    }
}

fn signing_keys() -> SigningKeys {
    let keys = Keys::new(&MasterSecret::from_bytes([1; 32]), &[]).unwrap();
    let ring = SigningKeys::default();
    let rows = plan(&[], now())
        .into_iter()
        .map(|times| {
            let pair = NewKeyPair::generate().unwrap();
            let sealed = pair.sealed_private(&keys).unwrap();
            SigningKey::open(&keys, pair.public, &sealed, times, now()).unwrap()
        })
        .collect();
    ring.replace(rows);
    ring
}

fn verifier(ring: &SigningKeys) -> Verifier {
    let verifier = Verifier::new(ISSUER);
    verifier.set_keys(&ring.jwks(now())).unwrap();
    verifier
}

/// Signs anything with a key of the test's own, which the verifier knows.
struct Forge {
    pair: EcdsaKeyPair,
    kid: String,
    verifier: Verifier,
}

impl Forge {
    fn new() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let jwk = PublicJwk::from_point(pair.public_key().as_ref()).unwrap();
        let kid = jwk.kid().to_owned();
        let verifier = Verifier::new(ISSUER);
        verifier.set_keys(&Jwks { keys: vec![jwk] }).unwrap();
        Self {
            pair,
            kid,
            verifier,
        }
    }

    fn header(&self) -> Value {
        json!({"typ": "at+jwt", "alg": "ES256", "kid": self.kid})
    }

    fn token(&self, header: &Value, payload: &Value) -> String {
        self.signed(header.to_string(), payload.to_string())
    }

    fn signed(&self, header: impl AsRef<[u8]>, payload: impl AsRef<[u8]>) -> String {
        let message = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(payload)
        );
        let signature = self
            .pair
            .sign(&SystemRandom::new(), message.as_bytes())
            .unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn verdict(&self, header: &Value, payload: &Value) -> Result<AccessClaims, VerifyError> {
        self.verifier.verify(&self.token(header, payload), now())
    }
}

#[test]
fn k1_a_signed_token_verifies_and_is_below_a_kilobyte() {
    let ring = signing_keys();
    let claims = claims();
    let token = ring.sign(&claims, now()).unwrap();
    assert!(token.expose().len() < 1024, "{}", token.expose().len());
    assert_eq!(verifier(&ring).verify(token.expose(), now()), Ok(claims));
    let header = URL_SAFE_NO_PAD
        .decode(token.expose().split('.').next().unwrap())
        .unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(header["alg"], "ES256");
    assert_eq!(header.as_object().unwrap().len(), 3);
}

#[test]
fn case_109_foreign_algorithms_and_keys_are_refused() {
    let forge = Forge::new();
    let payload = serde_json::to_value(claims()).unwrap();
    assert!(
        forge.verdict(&forge.header(), &payload).is_ok(),
        "the forge itself works"
    );
    for alg in ["none", "HS256", "RS256", "ES384", "es256"] {
        let header = json!({"typ": "at+jwt", "alg": alg, "kid": forge.kid});
        assert_eq!(
            forge.verdict(&header, &payload),
            Err(VerifyError::Header),
            "{alg}"
        );
    }
    let mut header = forge.header();
    header["kid"] = json!("unknown");
    assert_eq!(
        forge.verdict(&header, &payload),
        Err(VerifyError::UnknownKey {
            kid: "unknown".to_owned()
        })
    );
    let stranger = Forge::new();
    let token = stranger.token(&forge.header(), &payload);
    assert_eq!(
        forge.verifier.verify(&token, now()),
        Err(VerifyError::Signature)
    );
}

#[test]
fn case_110_other_kinds_of_jwt_are_refused() {
    let forge = Forge::new();
    let payload = serde_json::to_value(claims()).unwrap();
    for typ in [
        json!("JWT"),
        json!("client-authentication+jwt"),
        json!(null),
        json!(1),
    ] {
        let header = json!({"typ": typ, "alg": "ES256", "kid": forge.kid});
        assert_eq!(forge.verdict(&header, &payload), Err(VerifyError::Header));
    }
    let header = json!({"typ": "application/at+jwt", "alg": "ES256", "kid": forge.kid});
    assert!(forge.verdict(&header, &payload).is_ok());
}

#[test]
fn case_111_every_claim_is_needed() {
    let forge = Forge::new();
    let payload = serde_json::to_value(claims()).unwrap();
    for claim in [
        "iss",
        "aud",
        "exp",
        "iat",
        "sub",
        "tid",
        "gid",
        "ep",
        "jti",
        "client_id",
        "scope",
    ] {
        let mut less = payload.clone();
        less.as_object_mut().unwrap().remove(claim);
        assert_eq!(
            forge.verdict(&forge.header(), &less),
            Err(VerifyError::Claims),
            "{claim}"
        );
    }
    for (claim, wrong) in [
        ("iss", json!("https://mcp.example.com/")),
        ("aud", json!(["https://mcp.example.com/t/acme/mcp", "x"])),
        ("aud", json!("")),
        ("sub", json!("ten_0190f2c85d7e7f8090a0b0c0d0e0f000")),
        ("ep", json!([1, 2])),
        ("exp", json!("tomorrow")),
    ] {
        let mut changed = payload.clone();
        changed[claim] = wrong;
        assert_eq!(
            forge.verdict(&forge.header(), &changed),
            Err(VerifyError::Claims),
            "{claim}"
        );
    }
}

#[test]
fn case_112_headers_that_change_the_meaning_are_refused() {
    let forge = Forge::new();
    let payload = serde_json::to_value(claims()).unwrap();
    for (member, value) in [
        ("crit", json!(["exp"])),
        ("b64", json!(false)),
        ("zip", json!("DEF")),
        ("enc", json!("A128GCM")),
        ("jku", json!("https://evil.example/jwks")),
        ("jwk", json!({})),
        ("x5u", json!("https://evil.example")),
        ("x5c", json!([])),
    ] {
        let mut header = forge.header();
        header[member] = value;
        assert_eq!(
            forge.verdict(&header, &payload),
            Err(VerifyError::Header),
            "{member}"
        );
    }
}

#[test]
fn case_115_a_token_is_good_until_thirty_seconds_after_its_end() {
    let ring = signing_keys();
    let verifier = verifier(&ring);
    let token = ring.sign(&claims(), now()).unwrap();
    let at = |seconds| {
        verifier
            .verify(token.expose(), now() + Duration::seconds(seconds))
            .map(|_| ())
    };
    assert_eq!(at(3600 + 29), Ok(()));
    assert_eq!(at(3600 + 31), Err(VerifyError::Expired));
    assert_eq!(at(-61), Err(VerifyError::Claims), "from the future");
    let long = AccessClaims {
        exp: claims().iat + 8 * 3600 + 1,
        ..claims()
    };
    let long = ring.sign(&long, now()).unwrap();
    assert_eq!(
        verifier.verify(long.expose(), now()),
        Err(VerifyError::Claims),
        "longer than any token"
    );
}

#[test]
fn j2_a_rotation_is_seen_by_nobody() {
    let ring = signing_keys();
    let verifier = verifier(&ring);
    assert_eq!(ring.jwks(now()).keys.len(), 2, "the standby is published");
    let later = now() + Duration::days(91);
    let mut claims = claims();
    claims.iat = later.unix_timestamp();
    claims.exp = claims.iat + 3600;
    let token = ring.sign(&claims, later).unwrap();
    assert_eq!(
        verifier.verify(token.expose(), later),
        Ok(claims),
        "keys of the first day verify the standby's tokens"
    );
    assert_eq!(ring.jwks(later).keys.len(), 1, "the first key is gone");
}

#[test]
fn a_stolen_row_opens_under_no_other_key_id() {
    let keys = Keys::new(&MasterSecret::from_bytes([1; 32]), &[]).unwrap();
    let times = plan(&[], now())[0];
    let (one, two) = (
        NewKeyPair::generate().unwrap(),
        NewKeyPair::generate().unwrap(),
    );
    let sealed = one.sealed_private(&keys).unwrap();
    assert!(SigningKey::open(&keys, two.public, &sealed, times, now()).is_err());
}

/// Looks at each kind of token, and the longest time that one may take on the average of its best
/// round.
const LOOKS: u32 = 50;
const EACH: std::time::Duration = std::time::Duration::from_millis(1);

/// TEST-S2.
#[test]
fn s2_no_token_of_any_wrong_kind_takes_a_millisecond_to_refuse() {
    let (forge, stranger) = (Forge::new(), Forge::new());
    let payload = serde_json::to_value(claims()).unwrap();
    let good = forge.token(&forge.header(), &payload);
    let with = |claim: &str, value: Value| {
        let mut changed = payload.clone();
        changed[claim] = value;
        forge.token(&forge.header(), &changed)
    };
    let headed = |member: &str, value: &str| {
        let mut header = forge.header();
        header[member] = json!(value);
        forge.token(&header, &payload)
    };
    let at = now().unix_timestamp();
    let (message, _) = good.rsplit_once('.').unwrap();
    let wrong = [
        ("nothing", String::new()),
        ("dots", "..".to_owned()),
        ("alg none", headed("alg", "none")),
        ("no signature", format!("{message}.")),
        ("another key", stranger.token(&forge.header(), &payload)),
        ("aud", with("aud", json!(["a", "b"]))),
        ("iss", with("iss", json!("https://evil.example"))),
        ("expired", with("exp", json!(at - 3600))),
        ("from the future", with("iat", json!(at + 3600))),
        ("a kid that is a path", headed("kid", "../../etc/passwd")),
        ("a kid that is a URL", headed("kid", "http://127.0.0.1/key")),
        ("a megabyte", "A".repeat(1024 * 1024)),
        (
            "a megabyte of claims",
            with("scope", json!("x".repeat(1024 * 1024))),
        ),
        ("a megabyte of kid", headed("kid", &"x".repeat(1024 * 1024))),
        ("a million dots", ".".repeat(1024 * 1024)),
    ];
    assert!(forge.verifier.verify(&good, now()).is_ok());
    for (what, token) in &wrong {
        let round = || {
            let begun = std::time::Instant::now();
            for _ in 0..LOOKS {
                assert!(forge.verifier.verify(token, now()).is_err(), "{what}");
            }
            begun.elapsed() / LOOKS
        };
        // On a busy machine a round may stand still for a while.
        let each = (0..3).map(|_| round()).min().unwrap();
        println!("{what}: {each:?}");
        assert!(each < EACH, "{what}: {each:?}");
    }
}

/// The claims of a token.
const CLAIMS: [&str; 12] = [
    "iss",
    "aud",
    "sub",
    "client_id",
    "tid",
    "gid",
    "ep",
    "scope",
    "jti",
    "iat",
    "exp",
    "auth_time",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-40_i64..40_000).prop_map(|seconds| Value::from(now().unix_timestamp() + seconds)),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Value::from)
    })
}

proptest! {
    // AUTH-6.3, last paragraph.

    #[test]
    fn the_verifier_never_panics(bytes in ".{0,300}") {
        let forge = Forge::new();
        prop_assert!(forge.verifier.verify(&bytes, now()).is_err());
    }

    #[test]
    fn the_verifier_never_panics_on_bytes_that_are_signed(
        header in prop::option::of(prop::collection::vec(any::<u8>(), 0..60)),
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let forge = Forge::new();
        let header = header.unwrap_or_else(|| forge.header().to_string().into_bytes());
        let token = forge.signed(header, payload);
        prop_assert!(forge.verifier.verify(&token, now()).is_err());
    }

    #[test]
    fn whatever_a_signed_claim_says_it_is_read_as_it_stands_and_within_the_rules_or_refused(
        claim in prop::sample::select(CLAIMS.to_vec()), value in any_value(),
    ) {
        let forge = Forge::new();
        let mut payload = serde_json::to_value(claims()).unwrap();
        payload[claim] = value.clone();
        if let Ok(read) = forge.verdict(&forge.header(), &payload) {
            let at = now().unix_timestamp();
            prop_assert!(read.iss == ISSUER && !read.aud.is_empty());
            prop_assert!(read.iat <= at + 60 && at <= read.exp + 30 && read.exp - read.iat <= 8 * 3600);
            prop_assert_eq!(&serde_json::to_value(&read).unwrap()[claim], &value);
        }
    }
}

#[test]
fn case_117_a_flipped_bit_in_the_signature_is_seen() {
    let ring = signing_keys();
    let verifier = verifier(&ring);
    let token = ring.sign(&claims(), now()).unwrap();
    let (message, signature) = token.expose().rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    for at in 0..signature.len() {
        let mut changed = signature.clone();
        changed[at] ^= 1;
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(changed));
        assert!(verifier.verify(&token, now()).is_err(), "byte {at}");
    }
}
