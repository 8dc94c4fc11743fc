//! A POST's body and what follows from it: never a panic, and what is read is written back the same.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use portolan_protocol::{
    Refusal, RpcError,
    header::Headers,
    jsonrpc::{
        BatchContent, Body, Kind, MAX_BATCH, Message, Params, Raw, RequestId, Response,
        batch_response, error_response, notification, response,
    },
    negotiate,
    revision::Revision,
};

/// Members that are looked at one by one: each takes a walk over all.
const FEW: usize = 32;

fn single(text: Vec<u8>) -> Message {
    match Body::parse(text.into()) {
        Ok(Body::Single(message)) => message,
        other => panic!("what we write is one message: {other:?}"),
    }
}

fn answer(text: Vec<u8>) -> Response {
    match single(text) {
        Message::Response(response) => response,
        other => panic!("what we answer is a response: {other:?}"),
    }
}

/// An error object, if its code is one of ours.
fn error_of(error: &Raw) -> Option<RpcError> {
    Some(RpcError {
        code: error.get("code")?.as_str().parse().ok()?,
        message: error.get("message")?.string()?,
        data: error.get("data"),
    })
}

/// A value, as another reader of JSON sees it.
fn same_value(raw: &Raw) {
    assert_eq!(Raw::of(raw).expect("JSON"), *raw);
    assert_eq!(raw.is_null(), raw.read::<()>("").is_ok());
    assert_eq!(raw.boolean(), raw.read("").ok());
    assert_eq!(raw.string(), raw.read("").ok());
    assert_eq!(RequestId::from_raw(raw), raw.read("").ok());
    let is_array = raw.kind() == Kind::Array;
    let elements: Vec<Raw> = raw.elements().collect();
    assert_eq!(raw.read("").ok(), is_array.then_some(elements));
    let is_object = raw.kind() == Kind::Object;
    let members: BTreeMap<String, Raw> = raw.members().collect();
    assert_eq!(raw.read("").ok(), is_object.then_some(members));
    assert_eq!(Params::from(raw.clone()).raw(), is_object.then_some(raw));
    assert!(format!("{raw:?}").len() < 40, "a log has only its size");
}

fn same_id(id: &RequestId) {
    let text = id.to_json();
    assert!(!text.is_empty() && text != "null", "MCP-J-2");
    assert_eq!(id.to_string(), text);
    let raw = Raw::of(id).expect("JSON");
    assert_eq!(raw.as_str(), text);
    assert_eq!(RequestId::from_raw(&raw).as_ref(), Some(id));
    if let Some(words) = id.as_text() {
        assert_eq!(RequestId::from(words), *id);
        assert_eq!(RequestId::from(words.to_owned()), *id);
    } else if let Ok(number) = text.parse::<i64>()
        && number.to_string() == text
    {
        assert_eq!(RequestId::from(number), *id);
    }
}

fn same_params(params: &Params) {
    let all: BTreeMap<String, Raw> = params.read().expect("an object");
    for (name, value) in all.iter().take(FEW) {
        assert_eq!(params.get(name).as_ref(), Some(value));
        assert_eq!(params.text(name), value.text());
        assert_eq!(value.string().as_deref(), value.text().as_deref());
    }
    assert_eq!(params.meta(), all.get("_meta"));
    if let Some(object) = params.raw() {
        let (meta, name) = (all.get("_meta").cloned(), all.get("name").cloned());
        assert_eq!(object.pick(["_meta", "name"]), [meta, name]);
    }
    if let Err(misfit) = params.read::<BTreeMap<String, bool>>() {
        assert!(misfit.path.starts_with("params"), "{misfit}");
        assert!(!misfit.expected.contains(" at line "), "{misfit}");
    }
}

/// As we would write it. `None` for an error with a code that we have none of.
fn text_of(said: &Response) -> Option<Vec<u8>> {
    match (&said.id, &said.outcome) {
        (Some(id), Ok(result)) => Some(response(id, result.as_bytes())),
        (id, Err(error)) => Some(error_response(id.as_ref(), &error_of(error)?)),
        (None, Ok(_)) => panic!("a result without an id"),
    }
}

fn same_response(one: &Response, two: &Response) {
    assert_eq!(one.id, two.id);
    match (&one.outcome, &two.outcome) {
        (Err(one), Err(two)) => assert_eq!(error_of(one), error_of(two)),
        (one, two) => assert_eq!(one, two),
    }
}

/// A written message, or an answer to it, reads back the same.
fn same_message(message: &Message) {
    if let Some(params) = message.params() {
        same_params(params);
    }
    match message {
        Message::Request(request) => {
            same_id(&request.id);
            let result = request.params.raw().cloned();
            let result = result.unwrap_or(Raw::empty_object());
            let answered = answer(response(&request.id, result.as_bytes()));
            assert_eq!(answered.id.as_ref(), Some(&request.id), "MCP-J-5");
            assert_eq!(answered.outcome, Ok(result));
        }
        Message::Notification(said) => {
            let params = said.params.raw();
            let again = single(notification(&said.method, params.map(Raw::as_bytes)));
            assert_eq!(again.method(), Some(&*said.method));
            assert_eq!(again.params().and_then(Params::raw), params);
            assert!(again.request_id().is_none(), "MCP-J-8");
        }
        Message::Response(said) => {
            assert!(message.method().is_none() && message.params().is_none());
            if let Some(text) = text_of(said) {
                same_response(&answer(text), said);
            }
        }
    }
}

/// A refusal is an error that the client can read.
fn refused(refusal: &Refusal) {
    assert!((400..500).contains(&refusal.status));
    let read = answer(refusal.body());
    assert_eq!(read.id, refusal.id, "MCP-J-7");
    let error = read.outcome.expect_err("an error");
    assert_eq!(error_of(&error).as_ref(), Some(&*refusal.error));
    assert_eq!(refusal.code(), refusal.error.code);
}

fn same_batch(content: &BatchContent) {
    match content {
        BatchContent::Calls(calls) => {
            assert!(!calls.is_empty() && calls.len() <= MAX_BATCH, "MCP-J-15");
            calls.iter().for_each(same_message);
        }
        BatchContent::Responses(said) => {
            let Some(texts) = said.iter().map(text_of).collect::<Option<Vec<_>>>() else {
                return;
            };
            let Ok(Body::Batch(batch)) = Body::parse(batch_response(&texts).into()) else {
                panic!("what we write is a batch");
            };
            let Ok(BatchContent::Responses(again)) = batch.open() else {
                panic!("of responses");
            };
            assert_eq!(again.len(), said.len());
            for (one, two) in again.iter().zip(said) {
                same_response(one, two);
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(raw) = Raw::parse(data.to_vec()) {
        same_value(&raw);
    }
    let body = match Body::parse(data.to_vec().into()) {
        Ok(body) => body,
        Err(refusal) => return refused(&refusal),
    };
    match &body {
        Body::Single(message) => same_message(message),
        Body::Batch(batch) => {
            match negotiate::open_batch(batch, Revision::V2025_03_26) {
                Ok(content) => same_batch(&content),
                Err(refusal) => refused(&refusal),
            }
            let later = negotiate::open_batch(batch, Revision::V2025_06_18);
            refused(&later.expect_err("J-16"));
        }
    }
    let headers = Headers::collect([
        ("mcp-session-id", &b"x"[..]),
        ("mcp-protocol-version", b"2025-11-25"),
    ]);
    if let Err(refusal) = negotiate::admit(body, &headers) {
        refused(&refusal);
    }
});
