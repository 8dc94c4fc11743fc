//! Redirect URIs (AUTH-A3, AUTH-C14; AUTH-6.3): what may be registered leads where it says, and
//! what matches leads where the registration does, as a parser of browsers reads both.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_model::redirect::{self, Destination};
use url::{Host, Url};

/// Schemes that mean something to a browser: no app may claim one.
const BROWSERS: [&str; 9] = [
    "http",
    "https",
    "ws",
    "wss",
    "ftp",
    "file",
    "data",
    "blob",
    "javascript",
];

fn as_browsers_read(uri: &str) -> Url {
    // The port of a loopback address may be left open.
    Url::parse(&uri.replacen(":*", "", 1)).expect("a browser can read it")
}

fn leads_to(uri: &str, destination: &Destination) {
    let url = as_browsers_read(uri);
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    let host = url.host_str().unwrap_or_default();
    match destination {
        Destination::Web { host: shown } => {
            assert_eq!(url.scheme(), "https");
            assert!(matches!(url.host(), Some(Host::Domain(_))));
            let authority = url
                .port()
                .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            assert_eq!(authority, *shown);
            let written = uri["https://".len()..].split(['/', '?']).next();
            let name = written.and_then(|written| written.split(':').next());
            assert!(name.is_some_and(|name| name.eq_ignore_ascii_case(host)));
        }
        Destination::Loopback => {
            assert_eq!(url.scheme(), "http");
            assert!(["127.0.0.1", "[::1]", "localhost"].contains(&host));
        }
        Destination::App { scheme } => {
            assert_eq!(url.scheme(), scheme);
            assert!(!BROWSERS.contains(&url.scheme()));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (registered, asked) = text.split_once('\n').unwrap_or((text, text));
    for uri in [registered, asked] {
        let checked = redirect::check(uri);
        if let Ok(destination) = &checked {
            leads_to(uri, destination);
        }
        assert_eq!(
            redirect::matches(uri, uri),
            checked.is_ok() && !uri.contains('*')
        );
    }
    let Ok(destination) = redirect::check(registered) else {
        return;
    };
    // The port of a loopback address is free (RFC 8252 §7.3).
    let without = redirect::without_loopback_port(registered);
    assert_eq!(redirect::without_loopback_port(&without), without);
    if destination == Destination::Loopback && without.len() <= redirect::MAX_BYTES {
        assert!(redirect::matches(registered, &without));
    }
    if redirect::matches(registered, asked) {
        assert_eq!(redirect::check(asked).as_ref(), Ok(&destination));
        let (one, two) = (as_browsers_read(registered), as_browsers_read(asked));
        assert_eq!(
            (one.scheme(), one.host_str(), one.path(), one.query()),
            (two.scheme(), two.host_str(), two.path(), two.query())
        );
        assert_eq!(without, redirect::without_loopback_port(asked), "AUTH-C10");
        assert!(registered == asked || destination == Destination::Loopback);
    }
});
