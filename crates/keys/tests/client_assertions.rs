//! Client assertions: what proves a client, and everything else (AUTH-C13; CASE-67 to CASE-71,
//! CASE-73).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use aws_lc_rs::{
    encoding::AsDer,
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        self, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair,
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_keys::{
    Assertion, AssertionError, ClientKeys, InvalidKeys, SubjectToken, SubjectTokenError,
    assertion::{ALGORITHMS, Proof},
};
use portolan_model::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use time::Duration;

const ISSUER: &str = "https://mcp.example.com";
const AUDIENCES: [&str; 3] = [
    ISSUER,
    "https://mcp.example.com/",
    "https://mcp.example.com/oauth/token",
];
const CLIENT: &str = "https://app.example/client.json";

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::days(20_000)
}

fn claims() -> Value {
    let at = now().unix_timestamp();
    json!({"iss": CLIENT, "sub": CLIENT, "aud": ISSUER, "iat": at, "exp": at + 60, "jti": "one"})
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A key pair of any of the four algorithms, which signs whatever it is given.
enum Pair {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl Pair {
    fn ec() -> Self {
        Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..]), "kid": "k"})
            }
            Self::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref()), "kid": "k"})
            }
            Self::Rsa(pair) => {
                let public = pair.public_key();
                json!({"kty": "RSA", "n": text(public.modulus().big_endian_without_leading_zero()),
                    "e": text(public.exponent().big_endian_without_leading_zero()), "kid": "k"})
            }
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let random = SystemRandom::new();
        let signature = match self {
            Self::Ec(pair) => pair
                .sign(&random, message.as_bytes())
                .unwrap()
                .as_ref()
                .to_vec(),
            Self::Ed(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            Self::Rsa(pair) => {
                let padding: &dyn signature::RsaEncoding = if header["alg"] == "PS256" {
                    &signature::RSA_PSS_SHA256
                } else {
                    &signature::RSA_PKCS1_SHA256
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &random, message.as_bytes(), &mut signature)
                    .unwrap();
                signature
            }
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn keys(jwk: &Value) -> ClientKeys {
    ClientKeys::read(&json!({"keys": [jwk]})).unwrap()
}

fn check(jwt: &str, keys: &ClientKeys) -> Result<Proof, AssertionError> {
    Assertion::read(jwt)?.verify(keys, &AUDIENCES, now())
}

/// A pair for each algorithm that is served.
fn pairs() -> [(&'static str, Pair); 4] {
    let rsa = || Pair::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));
    [
        ("ES256", Pair::ec()),
        ("EdDSA", Pair::Ed(Ed25519KeyPair::generate().unwrap())),
        ("RS256", rsa()),
        ("PS256", rsa()),
    ]
}

/// Rule: API-18.
#[test]
fn a_job_is_proved_by_each_algorithm_and_its_own_key() {
    let at = now().unix_timestamp();
    let claims = json!({"iss": ISSUER, "sub": "job", "aud": "us", "iat": at, "exp": at + 60});
    let all = ALGORITHMS.map(str::to_owned);
    let pairs = pairs();
    for (alg, pair) in &pairs {
        let text = pair.sign(&json!({"alg": alg, "typ": "JWT", "kid": "k"}), &claims);
        let token = SubjectToken::read(&text).unwrap();
        for (other, signer) in &pairs {
            let proved = token.verify(&keys(&signer.jwk()), &all, now());
            let expected = match (*alg, *other) {
                (alg, other) if alg == other => Ok("job".to_owned()),
                ("RS256", "PS256") | ("PS256", "RS256") => Err(SubjectTokenError::Signature),
                _ => Err(SubjectTokenError::UnknownKey),
            };
            assert_eq!(proved.map(|job| job.subject), expected, "{alg} {other}");
        }
    }
}

#[test]
fn c13_each_algorithm_proves_with_its_own_key() {
    let pairs = pairs();
    for (at, (alg, pair)) in pairs.iter().enumerate() {
        for header in [
            json!({"alg": alg}),
            json!({"alg": alg, "kid": "k", "typ": "JWT"}),
            json!({"alg": alg, "typ": "client-authentication+jwt"}),
        ] {
            let jwt = pair.sign(&header, &claims());
            assert_eq!(Assertion::read(&jwt).unwrap().client_id(), CLIENT);
            assert_eq!(check(&jwt, &keys(&pair.jwk())).unwrap().jti, "one");
            let (_, other) = &pairs[(at + 1) % pairs.len()];
            assert!(
                check(&jwt, &keys(&other.jwk())).is_err(),
                "{alg} by another key"
            );
        }
    }
}

#[test]
fn case_67_an_assertion_for_somebody_else_too_is_refused_and_case_68_our_names_are_taken() {
    let pair = Pair::ec();
    let keys = keys(&pair.jwk());
    let with = |aud: Value| {
        let mut claims = claims();
        claims["aud"] = aud;
        check(&pair.sign(&json!({"alg": "ES256"}), &claims), &keys)
    };
    for good in [
        json!(ISSUER),
        json!("https://mcp.example.com/"),
        json!("https://mcp.example.com/oauth/token"),
        json!([ISSUER]),
        json!([ISSUER, "https://mcp.example.com/oauth/token"]),
    ] {
        assert!(with(good.clone()).is_ok(), "CASE-68: {good}");
    }
    for bad in [
        json!("https://other.example"),
        json!([ISSUER, "https://other.example"]),
        json!([]),
        json!("https://mcp.example.com/oauth/token/x"),
        json!("https://MCP.example.com"),
    ] {
        assert_eq!(with(bad.clone()), Err(AssertionError::Audience), "{bad}");
    }
    for malformed in [json!(null), json!(1), json!({})] {
        assert_eq!(with(malformed), Err(AssertionError::Claims));
    }
}

#[test]
fn case_69_it_must_end_within_five_minutes() {
    let pair = Pair::ec();
    let keys = keys(&pair.jwk());
    let at = now().unix_timestamp();
    let with = |member: &str, value: Option<i64>| {
        let mut claims = claims();
        match value {
            Some(value) => claims[member] = json!(value),
            None => {
                claims.as_object_mut().unwrap().remove(member);
            }
        }
        check(&pair.sign(&json!({"alg": "ES256"}), &claims), &keys)
    };
    assert_eq!(with("exp", None), Err(AssertionError::Claims), "absent");
    for exp in [at + 3600, at + 331, at - 30, at - 3600, i64::MIN, i64::MAX] {
        assert_eq!(with("exp", Some(exp)), Err(AssertionError::Time), "{exp}");
    }
    for exp in [at - 29, at + 1, at + 330] {
        assert!(with("exp", Some(exp)).is_ok(), "{exp}");
    }
    assert_eq!(with("iat", Some(at + 31)), Err(AssertionError::Time));
    assert_eq!(with("nbf", Some(at + 31)), Err(AssertionError::Time));
    assert!(with("iat", None).is_ok());
    assert_eq!(
        with("jti", None),
        Err(AssertionError::Claims),
        "it could be used again"
    );
}

#[test]
fn case_70_the_key_says_the_algorithm_and_not_the_header() {
    let pair = Pair::ec();
    let jwk = pair.jwk();
    let message = |alg: &str| format!("{}.{}", encoded(&json!({"alg": alg})), encoded(&claims()));
    let unsigned = format!("{}.", message("none"));
    assert_eq!(
        check(&unsigned, &keys(&jwk)),
        Err(AssertionError::Malformed)
    );
    let none = format!("{}.AA", message("none"));
    assert_eq!(check(&none, &keys(&jwk)), Err(AssertionError::Header));

    let Pair::Ec(ec) = &pair else { unreachable!() };
    for secret in [
        ec.public_key().as_ref().to_vec(),
        ec.public_key().as_der().unwrap().as_ref().to_vec(),
    ] {
        let message = message("HS256");
        let tag = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, &secret),
            message.as_bytes(),
        );
        let jwt = format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag));
        assert_eq!(
            check(&jwt, &keys(&jwk)),
            Err(AssertionError::Header),
            "HS256 with the public key"
        );
    }

    let rsa = Pair::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));
    let mut named = rsa.jwk();
    named["alg"] = json!("RS256");
    let pss = rsa.sign(&json!({"alg": "PS256"}), &claims());
    assert_eq!(
        check(&pss, &keys(&named)),
        Err(AssertionError::UnknownKey),
        "an RS256 key under the name PS256"
    );
    assert!(
        check(&pss, &keys(&rsa.jwk())).is_ok(),
        "a key that names no algorithm"
    );
    let pkcs = rsa.sign(&json!({"alg": "RS256"}), &claims());
    let relabelled = {
        let (_, rest) = pkcs.split_once('.').unwrap();
        format!("{}.{rest}", encoded(&json!({"alg": "PS256"})))
    };
    assert_eq!(
        check(&relabelled, &keys(&rsa.jwk())),
        Err(AssertionError::Signature)
    );
}

#[test]
fn case_71_iss_and_sub_are_one_client() {
    let pair = Pair::ec();
    for member in ["iss", "sub"] {
        let mut claims = claims();
        claims[member] = json!("https://other.example/client.json");
        let jwt = pair.sign(&json!({"alg": "ES256"}), &claims);
        assert_eq!(
            check(&jwt, &keys(&pair.jwk())),
            Err(AssertionError::Issuer),
            "{member}"
        );
    }
}

#[test]
fn case_73_a_header_that_brings_its_key_along_is_refused() {
    let pair = Pair::ec();
    let keys = keys(&pair.jwk());
    for (member, value) in [
        ("jku", json!("https://evil.example/keys")),
        ("jwk", pair.jwk()),
        ("x5u", json!("https://evil.example/cert")),
        ("x5c", json!(["AA"])),
        ("crit", json!(["exp"])),
        ("b64", json!(false)),
        ("zip", json!("DEF")),
        ("enc", json!("A256GCM")),
    ] {
        let mut header = json!({"alg": "ES256"});
        header[member] = value;
        let jwt = pair.sign(&header, &claims());
        assert_eq!(check(&jwt, &keys), Err(AssertionError::Header), "{member}");
    }
    let typ = pair.sign(&json!({"alg": "ES256", "typ": "at+jwt"}), &claims());
    assert_eq!(
        check(&typ, &keys),
        Err(AssertionError::Header),
        "an access token is no assertion"
    );
    let unknown = pair.sign(&json!({"alg": "ES256", "kid": "other"}), &claims());
    assert_eq!(check(&unknown, &keys), Err(AssertionError::UnknownKey));
}

#[test]
fn c13_of_several_keys_the_header_names_one() {
    let (one, two) = (Pair::ec(), Pair::ec());
    let named = |pair: &Pair, kid: &str| {
        let mut jwk = pair.jwk();
        jwk["kid"] = json!(kid);
        jwk
    };
    let set = |keys: Value| ClientKeys::read(&json!({ "keys": keys })).unwrap();
    let several = set(json!([named(&one, "a"), named(&two, "b")]));
    for (pair, kid) in [(&one, "a"), (&two, "b")] {
        let jwt = pair.sign(&json!({"alg": "ES256", "kid": kid}), &claims());
        assert!(check(&jwt, &several).is_ok(), "{kid}");
    }
    let crossed = one.sign(&json!({"alg": "ES256", "kid": "b"}), &claims());
    assert_eq!(check(&crossed, &several), Err(AssertionError::Signature));
    let unnamed = one.sign(&json!({"alg": "ES256"}), &claims());
    assert_eq!(check(&unnamed, &several), Err(AssertionError::Ambiguous));
    let twice = set(json!([named(&one, "a"), named(&two, "a")]));
    let named_twice = one.sign(&json!({"alg": "ES256", "kid": "a"}), &claims());
    assert_eq!(check(&named_twice, &twice), Err(AssertionError::Ambiguous));

    let ed = Pair::Ed(Ed25519KeyPair::generate().unwrap());
    let kinds = set(json!([named(&one, "a"), named(&ed, "b")]));
    assert!(check(&unnamed, &kinds).is_ok(), "the only one of its kind");
}

#[test]
fn case_73_a_header_that_says_something_twice_is_refused() {
    let pair = Pair::ec();
    let twice = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","alg":"ES256"}"#);
    let good = pair.sign(&json!({"alg": "ES256"}), &claims());
    let (_, rest) = good.split_once('.').unwrap();
    assert_eq!(
        check(&format!("{twice}.{rest}"), &keys(&pair.jwk())),
        Err(AssertionError::Header)
    );
}

#[test]
fn c13_a_list_is_neither_a_header_nor_claims() {
    let pair = Pair::ec();
    let keys = keys(&pair.jwk());
    let mut header = vec![json!("ES256")];
    header.resize(11, json!(null));
    let at = now().unix_timestamp();
    let list = json!([CLIENT, CLIENT, ISSUER, at + 60, "one", at, null]);
    let jwt = pair.sign(&json!(header), &claims());
    assert_eq!(check(&jwt, &keys), Err(AssertionError::Header));
    let jwt = pair.sign(&json!({"alg": "ES256"}), &list);
    assert_eq!(check(&jwt, &keys), Err(AssertionError::Claims));
}

/// RFC 7519 §7.2 applies also to a header member that is not used.
#[test]
fn c13_a_header_that_is_not_utf_8_is_none() {
    let pair = Pair::ec();
    let good = pair.sign(&json!({"alg": "ES256"}), &claims());
    let (_, rest) = good.split_once('.').unwrap();
    for (name, verdict) in [
        (&b"x"[..], AssertionError::Signature),
        (b"\xe9", AssertionError::Header),
    ] {
        let header = [&br#"{"alg":"ES256","name":""#[..], name, br#""}"#].concat();
        let jwt = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header));
        assert_eq!(check(&jwt, &keys(&pair.jwk())), Err(verdict), "{name:?}");
    }
}

#[test]
fn case_82_a_set_with_a_key_that_is_not_public_is_refused_whole() {
    let good = Pair::ec().jwk();
    let read = |keys: Value| ClientKeys::read(&json!({ "keys": keys })).map(|_| ());
    assert_eq!(read(json!([good])), Ok(()));
    let mut private = good.clone();
    private["d"] = json!("AA");
    assert_eq!(read(json!([good, private])), Err(InvalidKeys::Secret));
    assert_eq!(
        read(json!([good, {"kty": "oct", "k": "AA"}])),
        Err(InvalidKeys::Secret)
    );
    let many = [vec![good.clone(); 20], vec![private.clone()]].concat();
    assert_eq!(
        read(json!(many)),
        Err(InvalidKeys::Secret),
        "among too many"
    );
    assert_eq!(
        ClientKeys::read(&private).map(|_| ()),
        Err(InvalidKeys::Secret),
        "a key in the place of a set"
    );
    assert_eq!(read(json!([])), Err(InvalidKeys::Form));
    assert_eq!(read(json!(vec![good.clone(); 21])), Err(InvalidKeys::Form));
    assert_eq!(read(json!(["x"])), Err(InvalidKeys::Form));
    let mut encryption = good.clone();
    encryption["use"] = json!("enc");
    assert_eq!(read(json!([encryption])), Err(InvalidKeys::NoneUsable));
    let mut short = json!({"kty": "RSA", "e": "AQAB"});
    short["n"] = json!(URL_SAFE_NO_PAD.encode([0xff; 128]));
    assert_eq!(
        read(json!([short])),
        Err(InvalidKeys::NoneUsable),
        "RSA of 1024 bits"
    );
    let mut crossed = good;
    crossed["alg"] = json!("EdDSA");
    assert_eq!(read(json!([crossed])), Err(InvalidKeys::NoneUsable));
}

proptest! {
    #[test]
    fn nothing_makes_the_reader_panic(text in ".{0,400}", header in ".{0,200}", payload in ".{0,200}") {
        let key = json!({"kty": "EC", "crv": "P-256", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"});
        let keys = keys(&key);
        let _ = check(&text, &keys);
        let jwt = format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload), "AAAA");
        prop_assert!(check(&jwt, &keys).is_err());
    }

    #[test]
    fn a_changed_byte_is_a_broken_proof(at in 0usize..10_000) {
        let pair = Pair::ec();
        let keys = keys(&pair.jwk());
        let jwt = pair.sign(&json!({"alg": "ES256"}), &claims());
        prop_assert!(check(&jwt, &keys).is_ok());
        let at = at % jwt.len();
        let mut bytes = jwt.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        // The last character of a part has bits that decode to nothing.
        let parts = |text: &str| text.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).ok()).collect::<Vec<_>>();
        if parts(&changed) != parts(&jwt) {
            prop_assert!(check(&changed, &keys).is_err());
        }
    }
}
