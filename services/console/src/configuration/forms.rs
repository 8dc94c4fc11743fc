//! Objects of a bundle as the forms that the console's edits check, and stored objects as those of
//! a bundle.

use portolan_bundle::SecretReference;
use portolan_bundle::format::{
    self, ApiKey, Basic, Bearer, Body, ClientCredentials, Content, DeclaredArgument, DeclaredLink,
    DeclaredMessage, DeclaredRole, Definition, Embedded, HeaderSecret, Holds, Media, Parameter,
    Suggestion,
};
use portolan_http_tools::{
    Credential, HandMade,
    credential::{ClientAuth, CredentialHeader, KeyPlace},
    hand_made::{HandMadeBody, HandMadeParameter},
    plan::Location,
};
use portolan_model::{
    id::SourceId,
    prompt::{self, Block, Speaker},
    registry::{FollowRedirects, SourceSettings},
};
use portolan_site::console_error::ConsoleError;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A text that may be absent in a bundle: an empty one is.
pub(super) fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn read<T: DeserializeOwned>(form: Value) -> Result<T, ConsoleError> {
    serde_json::from_value(form)
        .map_err(|error| ConsoleError::invalid("configuration_invalid", format!("{error}.")))
}

/// The form of a prompt.
pub(super) fn prompt_form<T: DeserializeOwned>(
    prompt: &format::DeclaredPrompt,
) -> Result<T, ConsoleError> {
    let messages = prompt.messages.iter().map(|message| {
        let role = match message.role {
            DeclaredRole::User => Speaker::User,
            DeclaredRole::Assistant => Speaker::Assistant,
        };
        prompt::Message {
            role,
            content: block(&message.content),
        }
    });
    read(json!({
        "name": prompt.name, "title": prompt.title, "description": prompt.description,
        "arguments": prompt.arguments, "messages": messages.collect::<Vec<_>>(),
        "enabled": prompt.enabled.unwrap_or(true),
    }))
}

fn block(content: &Content) -> Block {
    match content.clone() {
        Content::Text(text) => Block::Text { text },
        Content::Image(Media { mime_type, data }) => Block::Image { data, mime_type },
        Content::Audio(Media { mime_type, data }) => Block::Audio { data, mime_type },
        Content::Resource(Embedded {
            uri,
            mime_type,
            text,
            blob,
        }) => Block::Resource {
            uri,
            mime_type,
            text,
            blob,
        },
        Content::ResourceLink(DeclaredLink {
            uri,
            name,
            title,
            description,
            mime_type,
        }) => Block::ResourceLink {
            uri,
            name,
            title,
            description,
            mime_type,
        },
    }
}

/// A stored message.
pub(super) fn message(message: prompt::Message) -> DeclaredMessage {
    let role = match message.role {
        Speaker::User => DeclaredRole::User,
        Speaker::Assistant => DeclaredRole::Assistant,
    };
    let content = match message.content {
        Block::Text { text } => Content::Text(text),
        Block::Image { data, mime_type } => Content::Image(Media { mime_type, data }),
        Block::Audio { data, mime_type } => Content::Audio(Media { mime_type, data }),
        Block::Resource {
            uri,
            mime_type,
            text,
            blob,
        } => Content::Resource(Embedded {
            uri,
            mime_type,
            text,
            blob,
        }),
        Block::ResourceLink {
            uri,
            name,
            title,
            description,
            mime_type,
        } => Content::ResourceLink(DeclaredLink {
            uri,
            name,
            title,
            description,
            mime_type,
        }),
    };
    DeclaredMessage { role, content }
}

/// A stored argument.
pub(super) fn argument(argument: prompt::Argument) -> DeclaredArgument {
    let values = argument.values.into_iter().map(|suggestion| Suggestion {
        value: suggestion.value,
        when: suggestion.when,
    });
    DeclaredArgument {
        name: argument.name,
        title: argument.title,
        description: argument.description,
        required: argument.required,
        values: values.collect(),
    }
}

/// The form of a resource; `source` is that of an HTTP read.
pub(super) fn resource_form<T: DeserializeOwned>(
    resource: &format::DeclaredResource,
    source: Option<SourceId>,
) -> Result<T, ConsoleError> {
    let holds = match &resource.holds {
        Holds::Text(text) => json!({"kind": "text", "text": text}),
        Holds::File(data) => json!({"kind": "file", "data": data}),
        Holds::Http(read) => json!({"kind": "http", "source_id": source, "path": read.path}),
    };
    read(json!({
        "uri": resource.uri, "name": resource.name, "title": resource.title,
        "description": resource.description, "mime_type": resource.mime_type,
        "variables": resource.variables, "holds": holds,
        "enabled": resource.enabled.unwrap_or(true),
    }))
}

/// The definition of a tool as the engine of hand-made tools has it.
pub(super) fn hand_made(name: &str, define: &Definition) -> HandMade {
    let anything = || json!({});
    let parameters = define.parameters.iter().map(|parameter| HandMadeParameter {
        name: parameter.name.clone(),
        location: match parameter.place {
            format::ParameterPlace::Path => Location::Path,
            format::ParameterPlace::Query => Location::Query,
            format::ParameterPlace::Header => Location::Header,
            format::ParameterPlace::Cookie => Location::Cookie,
        },
        required: parameter.required || parameter.place == format::ParameterPlace::Path,
        description: parameter.description.clone(),
        schema: parameter.schema.clone().unwrap_or_else(anything),
    });
    HandMade {
        name: name.to_owned(),
        title: define.title.clone(),
        description: define.description.clone(),
        method: define.method.clone(),
        path: define.path.clone(),
        parameters: parameters.collect(),
        body: define.body.as_ref().map(|body| HandMadeBody {
            content_type: body
                .content_type
                .clone()
                .unwrap_or_else(|| "application/json".to_owned()),
            schema: body.schema.clone().unwrap_or_else(anything),
            required: body.required,
        }),
    }
}

/// A stored definition.
pub(super) fn definition(made: HandMade) -> Definition {
    let parameters = made.parameters.into_iter().map(|parameter| Parameter {
        name: parameter.name,
        place: match parameter.location {
            Location::Path => format::ParameterPlace::Path,
            Location::Query => format::ParameterPlace::Query,
            Location::Header => format::ParameterPlace::Header,
            Location::Cookie => format::ParameterPlace::Cookie,
        },
        required: parameter.required || parameter.location == Location::Path,
        description: parameter.description,
        schema: Some(parameter.schema),
    });
    Definition {
        title: made.title,
        description: made.description,
        method: made.method,
        path: made.path,
        parameters: parameters.collect(),
        body: made.body.map(|body| Body {
            content_type: Some(body.content_type),
            schema: Some(body.schema),
            required: body.required,
        }),
    }
}

/// The bounds of calls with every default.
pub(super) fn settings(settings: Option<&format::Settings>) -> SourceSettings {
    let default = SourceSettings::default();
    let Some(given) = settings else {
        return default;
    };
    SourceSettings {
        timeout_ms: given.timeout_ms.unwrap_or(default.timeout_ms),
        max_response_bytes: given
            .max_response_bytes
            .unwrap_or(default.max_response_bytes),
        follow_redirects: match given.follow_redirects {
            Some(format::Redirects::None) => FollowRedirects::None,
            Some(format::Redirects::SameOrigin) => FollowRedirects::SameOrigin,
            None => default.follow_redirects,
        },
        tasks: given.tasks.unwrap_or(default.tasks),
    }
}

/// Stored bounds of calls.
pub(super) fn stored_settings(settings: &SourceSettings) -> format::Settings {
    format::Settings {
        timeout_ms: Some(settings.timeout_ms),
        max_response_bytes: Some(settings.max_response_bytes),
        follow_redirects: Some(match settings.follow_redirects {
            FollowRedirects::None => format::Redirects::None,
            FollowRedirects::SameOrigin => format::Redirects::SameOrigin,
        }),
        tasks: Some(settings.tasks),
    }
}

/// A stored credential, with references to the workspace in the place of its secrets (CONF-7).
pub(super) fn referring(credential: &Credential, source: &str) -> format::Credential {
    let secret = SecretReference::vault(source);
    match credential {
        Credential::ApiKey { place, name, .. } => format::Credential::ApiKey(ApiKey {
            place: match place {
                KeyPlace::Header => format::KeyPlace::Header,
                KeyPlace::Query => format::KeyPlace::Query,
                KeyPlace::Cookie => format::KeyPlace::Cookie,
            },
            name: name.clone(),
            secret,
        }),
        Credential::Bearer { .. } => format::Credential::Bearer(Bearer { secret }),
        Credential::Basic { username, .. } => format::Credential::Basic(Basic {
            username: username.clone(),
            secret,
        }),
        Credential::Headers { headers } => {
            let headers = headers.iter().map(|header| HeaderSecret {
                name: header.name.clone(),
                secret: secret.clone(),
            });
            format::Credential::Headers(headers.collect())
        }
        Credential::OauthClientCredentials {
            token_url,
            client_id,
            scope,
            auth,
            ..
        } => format::Credential::OauthClientCredentials(ClientCredentials {
            token_url: token_url.clone(),
            client_id: client_id.clone(),
            secret,
            scope: scope.clone(),
            auth: Some(match auth {
                ClientAuth::Basic => format::ClientAuth::Basic,
                ClientAuth::Post => format::ClientAuth::Post,
            }),
        }),
    }
}

/// A credential with its secrets: `secret` gives the value of a reference, and of a header by its
/// name.
pub(super) fn filled(
    credential: &format::Credential,
    mut secret: impl FnMut(&SecretReference, Option<&str>) -> Result<String, ConsoleError>,
) -> Result<Credential, ConsoleError> {
    Ok(match credential {
        format::Credential::ApiKey(key) => Credential::ApiKey {
            place: match key.place {
                format::KeyPlace::Header => KeyPlace::Header,
                format::KeyPlace::Query => KeyPlace::Query,
                format::KeyPlace::Cookie => KeyPlace::Cookie,
            },
            name: key.name.clone(),
            value: secret(&key.secret, None)?,
        },
        format::Credential::Bearer(bearer) => Credential::Bearer {
            token: secret(&bearer.secret, None)?,
        },
        format::Credential::Basic(basic) => Credential::Basic {
            username: basic.username.clone(),
            password: secret(&basic.secret, None)?,
        },
        format::Credential::Headers(headers) => {
            let mut filled = Vec::with_capacity(headers.len());
            for header in headers {
                filled.push(CredentialHeader {
                    name: header.name.clone(),
                    value: secret(&header.secret, Some(&header.name))?,
                });
            }
            Credential::Headers { headers: filled }
        }
        format::Credential::OauthClientCredentials(client) => Credential::OauthClientCredentials {
            token_url: client.token_url.clone(),
            client_id: client.client_id.clone(),
            client_secret: secret(&client.secret, None)?,
            scope: client.scope.clone(),
            auth: match client.auth {
                Some(format::ClientAuth::Post) => ClientAuth::Post,
                Some(format::ClientAuth::Basic) | None => ClientAuth::Basic,
            },
        },
    })
}

/// The secret of a stored credential in the place that `wanted` has, or of its header `name`. None
/// if the stored one is of another kind, or would go to another token endpoint.
pub(super) fn kept_secret(
    stored: &Credential,
    wanted: &format::Credential,
    name: Option<&str>,
) -> Option<String> {
    match (stored, wanted) {
        (Credential::ApiKey { value, .. }, format::Credential::ApiKey(_)) => Some(value.clone()),
        (Credential::Bearer { token }, format::Credential::Bearer(_)) => Some(token.clone()),
        (Credential::Basic { password, .. }, format::Credential::Basic(_)) => {
            Some(password.clone())
        }
        (Credential::Headers { headers }, format::Credential::Headers(_)) => headers
            .iter()
            .find(|header| name.is_some_and(|name| header.name.eq_ignore_ascii_case(name)))
            .map(|header| header.value.clone()),
        (
            Credential::OauthClientCredentials {
                token_url,
                client_secret,
                ..
            },
            format::Credential::OauthClientCredentials(client),
        ) => (token_url.trim() == client.token_url.trim()).then(|| client_secret.clone()),
        _ => None,
    }
}
