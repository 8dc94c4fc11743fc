//! The targets of `fuzz/` without a fuzzer. They name it by its crate: here that is this one, and its macro makes a function of a target.

extern crate self as libfuzzer_sys;

#[path = "../../../fuzz/targets/access_token.rs"]
mod access_token;
#[path = "../../../fuzz/targets/bundle.rs"]
mod bundle;
#[path = "../../../fuzz/targets/client_assertion.rs"]
mod client_assertion;
#[path = "../../../fuzz/targets/client_document.rs"]
mod client_document;
#[path = "../../../fuzz/targets/envelope.rs"]
mod envelope;
#[path = "../../../fuzz/targets/event_writer.rs"]
mod event_writer;
#[path = "../../../fuzz/targets/events.rs"]
mod events;
#[path = "../../../fuzz/targets/header.rs"]
mod header;
#[path = "../../../fuzz/targets/import.rs"]
mod import;
#[path = "../../../fuzz/targets/input_required.rs"]
mod input_required;
#[path = "../../../fuzz/targets/passkey.rs"]
mod passkey;
#[path = "../../../fuzz/targets/redirect.rs"]
mod redirect;
#[path = "../../../fuzz/targets/request_state.rs"]
mod request_state;
#[path = "../../../fuzz/targets/schema.rs"]
mod schema;
#[path = "../../../fuzz/targets/session.rs"]
mod session;
#[path = "../../../fuzz/targets/stored.rs"]
mod stored;
#[path = "../../../fuzz/targets/uri_template.rs"]
mod uri_template;

// Below the modules, so that they have it by its path, as from the fuzzer.
/// A target as libFuzzer has it, as a function of one input.
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:block) => {
        pub(crate) fn run($data: &[u8]) $body
    };
}

// The modules that the files read by path expect beside them in their own crates.
use portolan_cluster::store;
mod catalog {
    pub(crate) use crate::session::marks;
}
mod redis {
    pub(crate) use crate::stored::keys;
}

/// A function that takes an input, and panics if a property does not hold.
pub type Target = fn(&[u8]);

/// All of them, by the names of their files.
pub const TARGETS: &[(&str, Target)] = &[
    ("access_token", access_token::run),
    ("bundle", bundle::run),
    ("client_assertion", client_assertion::run),
    ("client_document", client_document::run),
    ("envelope", envelope::run),
    ("event_writer", event_writer::run),
    ("events", events::run),
    ("header", header::run),
    ("import", import::run),
    ("input_required", input_required::run),
    ("passkey", passkey::run),
    ("redirect", redirect::run),
    ("request_state", request_state::run),
    ("schema", schema::run),
    ("session", session::run),
    ("stored", stored::run),
    ("uri_template", uri_template::run),
];
