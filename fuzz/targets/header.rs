//! Mirrored header values: what is written is read back (MCP-H-7, MCP-H-10), what comes is read or
//! refused. And the headers of a call, whose tool has annotations, against its body
//! (MCP-H-1 to MCP-H-17): what we send passes.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use portolan_protocol::{
    Body, ErrorKind, Message, Method, Params, Raw,
    header::{
        Dialect, Headers, Mirroring, ParamHeader, ParamType, annotations, check_method_and_name,
        check_params, decode, encode, mirrored_params,
    },
    negotiate,
};

/// As far as integers are exact as doubles (MCP-H-16).
const SAFE: u64 = (1 << 53) - 1;

fn one_value(data: &[u8]) {
    for dialect in [Dialect::Modern, Dialect::Draft] {
        if let Ok(text) = decode(data, dialect) {
            let written = encode(&text);
            assert!(
                written
                    .bytes()
                    .all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t')
            );
            assert_eq!(
                decode(written.as_bytes(), Dialect::Modern).as_deref(),
                Ok(&*text)
            );
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let written = encode(text);
        assert_eq!(
            decode(written.as_bytes(), Dialect::Modern).as_deref(),
            Ok(text)
        );
    }
    let headers = Headers::collect([
        ("Last-Event-ID", data),
        ("mcp-param-x", data),
        ("mcp-name", data),
    ]);
    assert_eq!(headers.repeated(), None);
    assert_eq!(
        headers.event_id().is_some(),
        std::str::from_utf8(data).is_ok()
    );
    let param = headers.param("X").and_then(|field| field.one());
    assert_eq!(param, headers.name.one());
}

/// `name: value`
fn header(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    Some((name, &line[colon + 1..]))
}

/// What passes where more is asked passes where less is.
fn by_rank(passes: impl Fn(Mirroring, Dialect) -> Result<(), ErrorKind>) {
    let strictest = passes(Mirroring::Required, Dialect::Modern);
    for mirroring in [Mirroring::Required, Mirroring::Draft, Mirroring::Optional] {
        for dialect in [Dialect::Modern, Dialect::Draft] {
            let here = passes(mirroring, dialect);
            assert!(strictest.is_err() || here.is_ok(), "{here:?}");
            assert!(matches!(here, Ok(()) | Err(ErrorKind::HeaderMismatch(_))));
        }
    }
}

/// Our own `Mcp-Method` and `Mcp-Name` for a message pass.
fn ours_name_it(message: &Message) {
    let method = message.method().and_then(Method::from_name);
    let (Some(method), Some(params)) = (method, message.params()) else {
        return;
    };
    let name = method.mirrored_param().and_then(|name| params.text(name));
    let name = name.map(|name| encode(&name).into_owned());
    let name = name.iter().map(|name| ("Mcp-Name", name.as_bytes()));
    let headers = Headers::collect(
        [("Mcp-Method", method.name().as_bytes())]
            .into_iter()
            .chain(name),
    );
    let passed = check_method_and_name(message, &headers, Mirroring::Required, Dialect::Modern);
    assert_eq!(passed, Ok(()));
}

/// Our own `Mcp-Param-*` pass, if every annotated argument has one.
fn ours_mirror_it(annotations: &[ParamHeader], arguments: &Raw) {
    let mirrored = mirrored_params(annotations, arguments);
    let is_exact = |kind, text: &str| match kind {
        ParamType::Integer => text.parse::<i64>().is_ok_and(|n| n.unsigned_abs() <= SAFE),
        ParamType::String | ParamType::Boolean => true,
    };
    let all = annotations.iter().zip(&mirrored);
    if mirrored.len() != annotations.len()
        || !all.clone().all(|(one, (_, text))| is_exact(one.kind, text))
    {
        return;
    }
    assert!(all.clone().all(|(one, (name, _))| one.name == *name));
    let named = mirrored
        .iter()
        .map(|(name, text)| (format!("Mcp-Param-{name}"), text));
    let named: Vec<_> = named.collect();
    let headers = Headers::collect(
        named
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_bytes())),
    );
    for dialect in [Dialect::Modern, Dialect::Draft] {
        assert_eq!(
            check_params(annotations, Some(arguments), &headers, dialect),
            Ok(())
        );
    }
}

/// Headers as they are sent, an empty line, a line with the schema of a tool, and a body.
fn a_call(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let sent = lines.by_ref().take_while(|line| !line.is_empty());
    let headers = Headers::collect(sent.filter_map(header));
    let schema = lines.next().unwrap_or_default().to_vec();
    let body = lines.collect::<Vec<_>>().join(&b'\n');
    let Ok(body) = Body::parse(body.into()) else {
        return;
    };
    let message = match &body {
        Body::Single(message) => Some(message.clone()),
        Body::Batch(_) => None,
    };
    match negotiate::admit(body, &headers) {
        Ok(_) => assert_eq!(headers.repeated(), None, "MCP-T-13"),
        Err(refusal) => assert!((400..500).contains(&refusal.status)),
    }
    let Some(message) = message else {
        return;
    };
    by_rank(|mirroring, dialect| check_method_and_name(&message, &headers, mirroring, dialect));
    ours_name_it(&message);

    let Ok(Ok(schema)) = Raw::parse(schema).map(|schema| schema.read("schema")) else {
        return;
    };
    let (annotations, faults) = annotations(&schema);
    let names = annotations.iter().map(|one| one.name.to_ascii_lowercase());
    assert_eq!(names.collect::<BTreeSet<_>>().len(), annotations.len());
    for fault in &faults {
        let at = schema.pointer(fault.pointer()).expect("it stands there");
        assert!(at.get("x-mcp-header").is_some(), "{fault}");
    }
    let arguments = message
        .params()
        .and_then(|params: &Params| params.get("arguments"));
    by_rank(|_, dialect| check_params(&annotations, arguments.as_ref(), &headers, dialect));
    if let Some(arguments) = &arguments {
        ours_mirror_it(&annotations, arguments);
    }
}

fuzz_target!(|data: &[u8]| {
    one_value(data);
    a_call(data);
});
