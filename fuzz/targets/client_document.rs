//! A client metadata document (AUTH-C1, AUTH-C3, AUTH-C7, AUTH-C14; CASE-77, CASE-81 to CASE-83,
//! CASE-87 and CASE-88): its URL and its text. An accepted document keeps the rules, and a URL is
//! fetched as it is written.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_keys::ClientKeys;
use portolan_model::{client::AuthMethod, redirect};
use serde_json::Value;
use url::Host;

#[path = "../../services/oauth/src/clients/described.rs"]
mod described;
#[path = "../../services/oauth/src/clients/members.rs"]
mod members;
#[path = "../../crates/site/src/names.rs"]
#[allow(dead_code, reason = "look-alikes are of no interest here")]
mod names;
#[path = "../../services/oauth/src/clients/strict_json.rs"]
mod strict_json;

use described::{Described, check_url};

/// Members that only private keys have; `k` is a symmetric one.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

fn check_address(text: &str) {
    let Ok(url) = check_url(text) else {
        return;
    };
    assert!(text.len() <= 512 && url.scheme() == "https" && url.port().is_none());
    assert!(url.username().is_empty() && url.password().is_none());
    assert!(url.query().is_none() && url.fragment().is_none());
    assert!(matches!(url.host(), Some(Host::Domain(_))));
    let (authority, path) = text["https://".len()..].split_once('/').expect("a path");
    let host = authority.strip_suffix(":443").unwrap_or(authority);
    assert!(host.eq_ignore_ascii_case(url.host_str().unwrap_or_default()));
    assert_eq!(url.path().strip_prefix('/'), Some(path), "as it is written");
    assert_eq!(check_url(url.as_str()).as_ref(), Ok(&url));
}

fuzz_target!(|data: &[u8]| {
    if let Some(object) = strict_json::object(data) {
        // Stricter than others, and of the same opinion on what it takes.
        let lenient: Value = serde_json::from_slice(data).expect("JSON");
        assert_eq!(lenient, Value::Object(object));
    }
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let Some(Ok(client_id)) = parts.next().map(std::str::from_utf8) else {
        return;
    };
    let body = parts.next().unwrap_or_default();
    check_address(client_id);
    let Ok(read) = Described::read(client_id, body) else {
        return;
    };

    let document = strict_json::object(body).expect("read already");
    assert_eq!(document["client_id"], client_id);
    assert!(!document.contains_key("client_secret"));
    assert!((1..=redirect::MAX_PER_CLIENT).contains(&read.redirect_uris.len()));
    for (at, uri) in read.redirect_uris.iter().enumerate() {
        assert!(redirect::check(uri).is_ok() && !read.redirect_uris[..at].contains(uri));
    }
    let is_web = read
        .redirect_uris
        .iter()
        .all(|uri| uri.starts_with("https://"));
    assert_eq!(read.application_type, if is_web { "web" } else { "native" });
    let served = ["authorization_code", "refresh_token"];
    assert!(read.grant_types.iter().any(|word| word == served[0]));
    assert!(
        read.grant_types
            .iter()
            .all(|word| served.contains(&word.as_str()))
    );
    assert!(read.name.chars().count() <= 64 && !read.name.chars().any(char::is_control));
    assert_eq!(names::clean(&read.name).as_ref(), Some(&read.name));
    let (jwks, uri) = (read.metadata.get("jwks"), read.metadata.get("jwks_uri"));
    match read.auth_method {
        AuthMethod::PrivateKeyJwt => assert!(jwks.is_some() != uri.is_some()),
        AuthMethod::None => assert!(jwks.is_none() && uri.is_none()),
        other => panic!("{other:?} for a public document"),
    }
    if let Some(jwks) = jwks {
        assert!(ClientKeys::read(jwks).is_ok());
        let keys = jwks["keys"].as_array().expect("a list");
        assert!(
            keys.iter()
                .all(|key| PRIVATE.iter().all(|member| key.get(member).is_none()))
        );
    }
    if let Some(uri) = uri {
        assert!(uri.as_str().is_some_and(|uri| check_url(uri).is_ok()));
    }
});
