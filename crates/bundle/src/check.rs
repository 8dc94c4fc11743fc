//! Rules of the format that no type holds (CONF-3).

use std::collections::HashSet;

use crate::{
    format::{DeclaredKind, Source},
    node::Fault,
    parsed::Parsed,
};

/// Most objects of one bundle.
const MOST_OBJECTS: usize = 2_000;

/// Most tools that the sources of one bundle name.
const MOST_TOOLS: usize = 20_000;

/// Longest owner mark.
const LONGEST_NAME: usize = 64;

/// Refuses the first fault.
pub(crate) fn check(parsed: &Parsed) -> Result<(), Fault> {
    let bundle = &parsed.bundle;
    let is_name = (1..=LONGEST_NAME).contains(&bundle.name.len())
        && bundle
            .name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if !is_name {
        return Err(Fault::new(format!(
            "the name of a file has 1 to {LONGEST_NAME} letters, digits, `_`, `-` or `.`"
        ))
        .below("name"));
    }
    let objects = bundle.sources.len()
        + bundle.prompts.len()
        + bundle.resources.len()
        + bundle.servers.len()
        + bundle.webhooks.len();
    if objects > MOST_OBJECTS {
        let message = format!("a file has up to {MOST_OBJECTS} objects, this one has {objects}");
        return Err(Fault::new(message));
    }
    let tools: usize = bundle.sources.iter().map(|source| source.tools.len()).sum();
    if tools > MOST_TOOLS {
        let message = format!("a file names up to {MOST_TOOLS} tools, this one names {tools}");
        return Err(Fault::new(message));
    }
    let names =
        |section: &'static str, member, keys: Vec<&str>| unique(parsed, section, member, &keys);
    let sources = bundle.sources.iter().map(|one| one.name.as_str());
    names("sources", "name", sources.collect())?;
    let prompts = bundle.prompts.iter().map(|one| one.name.as_str());
    names("prompts", "name", prompts.collect())?;
    let resources = bundle.resources.iter().map(|one| one.uri.as_str());
    names("resources", "uri", resources.collect())?;
    let servers = bundle.servers.iter().map(|one| one.slug.as_str());
    names("servers", "slug", servers.collect())?;
    let webhooks = bundle.webhooks.iter().map(|one| one.url.as_str());
    names("webhooks", "url", webhooks.collect())?;
    for (index, source) in bundle.sources.iter().enumerate() {
        if let Err((field, message)) = of_kind(source) {
            return Err(fault(parsed, ("sources", index), field, message));
        }
    }
    Ok(())
}

fn fault(
    parsed: &Parsed,
    (section, index): (&str, usize),
    field: &str,
    message: impl Into<String>,
) -> Fault {
    let fault = Fault::new(message)
        .below(field)
        .below(&format!("[{index}]"))
        .below(section);
    match parsed.place(section, index, Some(field)) {
        Some(place) => fault.at(place),
        None => fault,
    }
}

/// Each object of a section has a key of its own.
fn unique(
    parsed: &Parsed,
    section: &'static str,
    member: &'static str,
    keys: &[&str],
) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for (index, key) in keys.iter().enumerate() {
        let is_sound = !key.is_empty() && key.trim() == *key;
        if !is_sound {
            let message = format!("the {member} is empty or has spaces around it");
            return Err(fault(parsed, (section, index), member, message));
        }
        if !seen.insert(*key) {
            let message = format!("two of the {section} have the {member} {key:?}");
            return Err(fault(parsed, (section, index), member, message));
        }
    }
    Ok(())
}

type Wrong = (&'static str, String);

/// The members that the kind of a source needs, and those that it does not have.
fn of_kind(source: &Source) -> Result<(), Wrong> {
    let kind = match source.kind {
        DeclaredKind::Openapi => "openapi",
        DeclaredKind::Http => "http",
        DeclaredKind::Mcp => "mcp",
    };
    let is_mcp = source.kind == DeclaredKind::Mcp;
    let given = [
        (
            "location",
            source.location.is_some(),
            source.kind != DeclaredKind::Http,
        ),
        (
            "document",
            source.document.is_some(),
            source.kind == DeclaredKind::Openapi,
        ),
        ("base_url", source.base_url.is_some(), !is_mcp),
        ("prefix", source.prefix.is_some(), is_mcp),
        ("hold_changes", source.hold_changes.is_some(), is_mcp),
        (
            "unlisted",
            source.unlisted.is_some(),
            source.kind != DeclaredKind::Http,
        ),
        ("prompts", !source.prompts.is_empty(), is_mcp),
        ("resources", !source.resources.is_empty(), is_mcp),
    ];
    if let Some((field, ..)) = given
        .into_iter()
        .find(|(_, is_given, fits)| *is_given && !fits)
    {
        return Err((field, format!("a source of kind {kind} has no {field:?}")));
    }
    match source.kind {
        DeclaredKind::Openapi if source.location.is_some() == source.document.is_some() => {
            let message = "a source of kind openapi has either a \"location\" or a \"document\"";
            return Err(("kind", message.to_owned()));
        }
        DeclaredKind::Openapi => {
            let known = |location: &str| {
                let schemes = ["file:", "https://", "http://"];
                schemes
                    .into_iter()
                    .any(|scheme| location.starts_with(scheme))
            };
            if source
                .location
                .as_deref()
                .is_some_and(|location| !known(location))
            {
                let message = "a location is file:PATH or an address that begins with https://";
                return Err(("location", message.to_owned()));
            }
        }
        DeclaredKind::Http if source.base_url.is_none() => {
            let message = "a source of kind http needs a \"base_url\"";
            return Err(("kind", message.to_owned()));
        }
        DeclaredKind::Mcp if source.location.is_none() => {
            let message = "a source of kind mcp needs a \"location\"";
            return Err(("kind", message.to_owned()));
        }
        DeclaredKind::Http | DeclaredKind::Mcp => {}
    }
    for (key, tool) in &source.tools {
        if tool.define.is_some() != (source.kind == DeclaredKind::Http) {
            let message = if source.kind == DeclaredKind::Http {
                format!("the tool {key:?} needs a \"define\": its source is of kind http")
            } else {
                format!("the tool {key:?} has a \"define\", but its source is of kind {kind}")
            };
            return Err(("tools", message));
        }
    }
    Ok(())
}
