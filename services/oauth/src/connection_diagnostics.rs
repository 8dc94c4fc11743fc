//! Connection diagnostics (AUTH-X2): records each step of a client's connection to a workspace, so
//! that administrators see the step at which it stopped, and the reason.
//!
//! This module makes the record of one step, with the parameters of a client that may be stored
//! (AUTH-X1). [`rules`] has the text of each rule. The console combines steps into attempts.

pub mod rules;

use portolan_keys::digest;
use portolan_model::resource::{RequestedResource, Resource};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::platform::{
    connect_events::{NewEvent, Step, StepOutcome, StepTenant},
    recorder::{bare, kept},
};
use serde_json::{Map, Value, json};

use crate::{
    error::{ErrorCode, OAuthError},
    parameters::Parameters,
};

/// Begins the record of a step, with the facts of the request.
pub(crate) fn step(state: &AuthState, context: &RequestContext, step: Step) -> NewEvent {
    bare(
        state.now(),
        step,
        &context.request_id,
        context.ip_block(),
        context.agent.as_deref(),
    )
}

/// Setters for the record of a step.
pub(crate) trait DescribeStep: Sized {
    /// Sets the client.
    fn client(self, client_id: &str, name: Option<&str>) -> Self;
    /// Sets the workspace that a resource names, if it names one.
    fn resource(self, resource: Option<&Resource>) -> Self;
    /// Marks the step as refused, with the rule and the text.
    fn refused(self, rule: Option<&'static str>, words: &str) -> Self;
    /// Adds a parameter of the request.
    fn sent(self, name: &str, value: impl Into<Value>) -> Self;
}

impl DescribeStep for NewEvent {
    fn client(mut self, client_id: &str, name: Option<&str>) -> Self {
        self.client_name = name.map(str::to_owned);
        self.of_client(client_id, digest(client_id.as_bytes()))
    }

    fn resource(mut self, resource: Option<&Resource>) -> Self {
        if let Some(slug) = resource.and_then(Resource::tenant) {
            self.place = StepTenant::Slug(slug.to_owned());
        }
        self.server = resource.and_then(Resource::server).map(str::to_owned);
        self
    }

    fn refused(mut self, rule: Option<&'static str>, words: &str) -> Self {
        self.outcome = StepOutcome::Refused;
        self.rule = rule;
        self.fault = kept(words);
        self
    }

    fn sent(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Value::Object(members) = &mut self.detail {
            members.insert(name.to_owned(), value.into());
        }
        self
    }
}

/// The resource that a request names, if it is readable.
pub(crate) fn named(state: &AuthState, parameters: &Parameters) -> Option<Resource> {
    match state.oauth.resources.read(parameters.first("resource")?) {
        Ok(RequestedResource::Named(resource)) => Some(resource),
        _ => None,
    }
}

/// The stored form of a URI: without query and fragment, which may contain secrets.
pub(crate) fn kept_uri(text: &str) -> Option<String> {
    let cut = text.find(['?', '#']);
    let uri = kept(&text[..cut.unwrap_or(text.len())])?;
    // The part before the host may be a password.
    let uri = match uri.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => uri,
    };
    Some(if cut.is_some() {
        format!("{uri}?…")
    } else {
        uri
    })
}

/// The parameters of an authorization or token request that may be stored: never `state`, codes,
/// verifiers, secrets (AUTH-X1).
pub(crate) fn kept_parameters(parameters: &Parameters) -> Map<String, Value> {
    let mut out = Map::new();
    for name in ["redirect_uri", "resource"] {
        if let Some(text) = parameters.first(name).and_then(kept_uri) {
            out.insert(name.to_owned(), json!(text));
        }
    }
    for name in [
        "scope",
        "response_type",
        "response_mode",
        "code_challenge_method",
        "prompt",
        "grant_type",
    ] {
        if let Some(text) = parameters.first(name).and_then(kept) {
            out.insert(name.to_owned(), json!(text));
        }
    }
    out
}

/// Adds an error response of the token or registration endpoint.
pub(crate) fn refused_with(event: NewEvent, error: &OAuthError) -> NewEvent {
    let failed = |mut event: NewEvent, words: &str| {
        event.outcome = StepOutcome::Failed;
        event.fault = kept(words);
        event
    };
    match error {
        OAuthError::Refused { code, description } => event
            .sent("error", code.as_str())
            .refused(rules::of(*code, description), description),
        OAuthError::BasicRefused { description } => event
            .sent("error", ErrorCode::InvalidClient.as_str())
            .refused(
                rules::of(ErrorCode::InvalidClient, description),
                description,
            ),
        OAuthError::TooLarge => event.refused(Some("T8"), "the body is too large"),
        OAuthError::TooSlow => event.refused(None, "the body did not arrive in time"),
        OAuthError::TooMany { .. } => event.refused(Some("K17"), "too many requests, wait"),
        OAuthError::Away { .. } => failed(
            event,
            "the keys of this client cannot be fetched now, try again in a moment",
        ),
        OAuthError::Storage(_) | OAuthError::Keys(_) => {
            failed(event, "the fault is ours, try again in a moment")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_what_opens_something_is_not_kept() {
        let sent = "client_id=c&redirect_uri=https%3A%2F%2Fapp.example%2Fcb%3Ftoken%3Dplanted%23planted&state=planted&code=planted\
            &code_verifier=planted&client_secret=planted&client_assertion=planted&refresh_token=planted&login_hint=planted&nonce=planted\
            &scope=mcp&code_challenge_method=S256&code_challenge=planted";
        let kept = kept_parameters(&Parameters::parse(sent.as_bytes()));
        let text = Value::Object(kept).to_string();
        assert!(!text.contains("planted"), "{text}");
        assert!(text.contains("https://app.example/cb?…") && text.contains("S256"));
        let faulty = kept_uri("https://ann:planted@app.example/cb");
        assert_eq!(faulty.as_deref(), Some("https://app.example/cb"));
    }
}
