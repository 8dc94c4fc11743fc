//! Templates of resources, and URIs against them (RFC 6570; MCP-RE-3, MCP-RE-10, MCP-RE-12): what
//! is read can be written again by any template with the same variables, and leads back.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_model::uri_template::{UriTemplate, is_uri};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.splitn(3, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (template, uri, other) = (next(), next(), next());
    let _ = is_uri(uri);
    let Ok(template) = UriTemplate::parse(template) else {
        return;
    };
    let Some(values) = template.read(uri) else {
        return;
    };
    assert!(
        template
            .variables()
            .all(|name| values.get(name).is_some_and(|value| !value.is_empty()))
    );
    assert_eq!(template.variables().count(), values.len());
    assert!(
        values
            .values()
            .all(|value| !value.chars().any(char::is_control))
    );
    assert_eq!(template.carry(uri, &template).as_deref(), Some(uri));
    if let Ok(other) = UriTemplate::parse(other)
        && let Some(made) = template.carry(uri, &other)
    {
        assert_eq!(other.read(&made).as_ref(), Some(&values));
        assert_eq!(other.carry(&made, &template).as_deref(), Some(uri));
    }
});
