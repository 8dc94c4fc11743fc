//! One order and one form for equal content: lists of objects by key, no member that only repeats
//! a default (CONF-4).

use std::collections::BTreeMap;

use serde_json::json;

use crate::format::{
    Bundle, ClientAuth, Credential, DeclaredArgument, DeclaredPrompt, DeclaredResource,
    DeclaredServer, DeclaredTool, DeclaredWebhook, Definition, ParameterPlace, Redirects, Settings,
    Source, Status, Switch, Unlisted, WebhookStatus,
};

/// The same content in canonical form.
#[must_use]
pub fn canonical(mut bundle: Bundle) -> Bundle {
    bundle.sources.iter_mut().for_each(source);
    bundle.sources.sort_by(|a, b| a.name.cmp(&b.name));
    bundle.prompts.iter_mut().for_each(prompt);
    bundle.prompts.sort_by(|a, b| a.name.cmp(&b.name));
    bundle.resources.iter_mut().for_each(resource);
    bundle.resources.sort_by(|a, b| a.uri.cmp(&b.uri));
    bundle.servers.iter_mut().for_each(server);
    bundle.servers.sort_by(|a, b| a.slug.cmp(&b.slug));
    bundle.webhooks.iter_mut().for_each(webhook);
    bundle.webhooks.sort_by(|a, b| a.url.cmp(&b.url));
    bundle
}

/// A trimmed text; none if it is empty.
fn text(text: &mut Option<String>) {
    *text = text
        .take()
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty());
}

fn forget<T: PartialEq>(member: &mut Option<T>, default: &T) {
    if member.as_ref() == Some(default) {
        *member = None;
    }
}

fn source(source: &mut Source) {
    text(&mut source.prefix);
    forget(&mut source.hold_changes, &true);
    forget(&mut source.unlisted, &Unlisted::Enabled);
    if let Some(settings) = &mut source.settings {
        forget(&mut settings.timeout_ms, &30_000);
        forget(&mut settings.max_response_bytes, &(2 * 1024 * 1024));
        forget(&mut settings.follow_redirects, &Redirects::SameOrigin);
        forget(&mut settings.tasks, &false);
    }
    forget(&mut source.settings, &Settings::default());
    if let Some(Credential::OauthClientCredentials(client)) = &mut source.credential {
        text(&mut client.scope);
        forget(&mut client.auth, &ClientAuth::Basic);
    }
    let disabled = source.unlisted == Some(Unlisted::Disabled);
    for tool in source.tools.values_mut() {
        text(&mut tool.name);
        text(&mut tool.title);
        text(&mut tool.description);
        // Beside `unlisted: disabled` a named tool states its switch.
        if !disabled {
            forget(&mut tool.enabled, &true);
        }
        if let Some(define) = &mut tool.define {
            definition(define);
        }
    }
    if !disabled {
        source
            .tools
            .retain(|_, tool| *tool != DeclaredTool::default());
    }
    let switched = |items: &mut BTreeMap<String, Switch>| {
        items.retain(|_, switch| !switch.enabled);
    };
    switched(&mut source.prompts);
    switched(&mut source.resources);
}

fn definition(define: &mut Definition) {
    text(&mut define.title);
    let anything = json!({});
    for parameter in &mut define.parameters {
        text(&mut parameter.description);
        forget(&mut parameter.schema, &anything);
        // A parameter of the path is always given.
        parameter.required &= parameter.place != ParameterPlace::Path;
    }
    if let Some(body) = &mut define.body {
        forget(&mut body.schema, &anything);
        forget(&mut body.content_type, &"application/json".to_owned());
    }
}

fn argument(argument: &mut DeclaredArgument) {
    text(&mut argument.title);
    text(&mut argument.description);
}

fn prompt(prompt: &mut DeclaredPrompt) {
    text(&mut prompt.title);
    text(&mut prompt.description);
    forget(&mut prompt.enabled, &true);
    prompt.arguments.iter_mut().for_each(argument);
}

fn resource(resource: &mut DeclaredResource) {
    text(&mut resource.title);
    text(&mut resource.description);
    text(&mut resource.mime_type);
    forget(&mut resource.enabled, &true);
    for variable in &mut resource.variables {
        argument(variable);
        // Each variable of a template is required.
        variable.required = false;
    }
    let says = |variable: &DeclaredArgument| {
        variable.title.is_some() || variable.description.is_some() || !variable.values.is_empty()
    };
    resource.variables.retain(says);
    resource.variables.sort_by(|a, b| a.name.cmp(&b.name));
}

fn server(server: &mut DeclaredServer) {
    text(&mut server.name);
    text(&mut server.description);
    text(&mut server.instructions);
    if server.name.as_ref() == Some(&server.slug) {
        server.name = None;
    }
    // It is the one default that a reader of a change has to see.
    server.status.get_or_insert(Status::Published);
    server.from.sort();
    server.tools.sort();
    server.prompts.sort();
    server.resources.sort();
}

fn webhook(webhook: &mut DeclaredWebhook) {
    text(&mut webhook.description);
    forget(&mut webhook.status, &WebhookStatus::Active);
    webhook.events.sort();
    webhook.events.dedup();
    for header in &mut webhook.headers {
        header.name = header.name.trim().to_ascii_lowercase();
    }
    webhook.headers.sort_by(|a, b| a.name.cmp(&b.name));
}
