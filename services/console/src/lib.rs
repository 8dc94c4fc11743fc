//! The JSON API of the console, under `/api/v1`, and its OpenAPI document.
//!
//! Routes and document come from one declaration. [`portolan_site::session::BrowserSession`]
//! identifies the person by the session cookie. [`workspace::Workspace`] finds the workspace and the
//! person's role. [`input`] reads requests, and every refusal is a [`ConsoleError`]. A module serves
//! one noun.

#![expect(
    unused_qualifications,
    reason = "the macros of utoipa write full paths"
)]

pub mod access_tokens;
pub mod alerts;
pub mod api_keys;
pub mod apps;
pub mod arguments;
pub mod attachments;
pub mod audit;
mod bearer;
pub mod caller;
pub mod calls;
pub mod captures;
pub mod change;
pub mod choices;
pub mod client_admission;
mod client_credentials;
pub mod client_limits;
pub mod command_tokens;
pub mod configuration;
pub mod connection;
pub mod connection_diagnostics;
pub mod connects;
pub mod credential_tests;
pub mod credentials;
pub mod default_server;
pub mod deletion;
mod document;
pub(crate) mod hand_made_forms;
pub mod hand_made_tools;
mod idempotency;
pub mod imports;
pub mod input;
pub mod insights;
pub mod invitations;
pub mod limits;
pub mod listing;
pub mod live_sessions;
pub mod me;
pub mod members;
pub mod offers;
pub mod overview;
pub(crate) mod own_server;
pub mod prompts;
pub mod registered_clients;
pub mod reimports;
pub mod resources;
pub mod saved_calls;
pub mod search;
pub mod security;
pub mod server_offers;
pub mod servers;
pub mod service_accounts;
pub mod sign_in;
pub mod single_sign_on;
pub(crate) mod source_rows;
pub mod source_view;
pub mod sources;
pub(crate) mod token_rights;
pub mod token_scopes;
pub mod tool_budget;
pub mod tools;
pub mod trash;
pub mod trial;
pub mod trusted_pipelines;
pub mod upstreams;
mod versions;
pub mod webhooks;
pub mod workspace;
pub mod workspaces;
mod written_items;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::header,
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use portolan_model::member::{Action, Role};
use portolan_net::layers::{Compress, Entrance, FetchSite, PageKind, SecurityHeaders};
use portolan_site::{
    console_error::{ConsoleError, ErrorAnswer},
    state::AuthState,
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        Components, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr,
        Response as DocumentedResponse, ResponseBuilder,
        extensions::Extensions,
        security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

/// Largest request body in bytes. Imports have their own limit.
const BODY_LIMIT: usize = 1024 * 1024;

/// Every route, with its documentation.
#[expect(clippy::too_many_lines, reason = "a table of routes")]
fn documented() -> OpenApiRouter<AuthState> {
    let api = OpenApiRouter::new()
        .routes(routes!(me::show_me))
        .routes(routes!(
            access_tokens::show_token,
            access_tokens::revoke_token
        ))
        .routes(routes!(
            access_tokens::list_personal_tokens,
            access_tokens::create_personal_token
        ))
        .routes(routes!(access_tokens::revoke_personal_token))
        .routes(routes!(command_tokens::create_command_token))
        .routes(routes!(
            access_tokens::list_workspace_tokens,
            access_tokens::create_workspace_token
        ))
        .routes(routes!(access_tokens::revoke_workspace_token))
        .routes(routes!(
            trusted_pipelines::list_trusted_pipelines,
            trusted_pipelines::create_trusted_pipeline
        ))
        .routes(routes!(
            trusted_pipelines::change_trusted_pipeline,
            trusted_pipelines::delete_trusted_pipeline
        ))
        .routes(routes!(workspaces::create_workspace))
        .routes(routes!(
            workspaces::show_workspace,
            workspaces::change_workspace,
            deletion::delete_workspace
        ))
        .routes(routes!(deletion::restore_workspace))
        .routes(routes!(members::list_members))
        .routes(routes!(members::change_member, members::remove_member))
        .routes(routes!(invitations::list_invitations, invitations::invite))
        .routes(routes!(invitations::revoke_invitation))
        .routes(routes!(apps::list_connected_apps))
        .routes(routes!(apps::disconnect_app))
        .routes(routes!(api_keys::list_api_keys, api_keys::create_api_key))
        .routes(routes!(api_keys::revoke_api_key))
        .routes(routes!(
            service_accounts::list_service_accounts,
            service_accounts::create_service_account
        ))
        .routes(routes!(
            service_accounts::change_service_account,
            service_accounts::delete_service_account
        ))
        .routes(routes!(service_accounts::replace_public_keys))
        .routes(routes!(service_accounts::add_account_secret))
        .routes(routes!(service_accounts::revoke_account_secret))
        .routes(routes!(
            service_accounts::api_access::give_api_access,
            service_accounts::api_access::take_api_access
        ))
        .routes(routes!(
            client_admission::show_client_admission,
            client_admission::allow_client
        ))
        .routes(routes!(client_admission::set_client_rule))
        .routes(routes!(client_admission::decide_client))
        .routes(routes!(client_admission::dismiss_askers))
        .routes(routes!(
            registered_clients::list_registered_clients,
            registered_clients::register_client
        ))
        .routes(routes!(
            registered_clients::change_registered_client,
            registered_clients::delete_registered_client
        ))
        .routes(routes!(registered_clients::replace_client_keys))
        .routes(routes!(registered_clients::add_client_secret))
        .routes(routes!(registered_clients::revoke_client_secret))
        .routes(routes!(live_sessions::list_sessions))
        .routes(routes!(live_sessions::end_session))
        .routes(routes!(live_sessions::show_session_timeline))
        .routes(routes!(webhooks::list_webhooks, webhooks::create_webhook))
        .routes(routes!(
            webhooks::show_webhook,
            webhooks::change_webhook,
            webhooks::delete_webhook
        ))
        .routes(routes!(webhooks::move_webhook))
        .routes(routes!(webhooks::rotate_webhook_secret))
        .routes(routes!(webhooks::pause_webhook))
        .routes(routes!(webhooks::resume_webhook))
        .routes(routes!(webhooks::test_webhook))
        .routes(routes!(webhooks::deliveries::list_deliveries))
        .routes(routes!(webhooks::deliveries::show_delivery))
        .routes(routes!(webhooks::deliveries::replay_delivery))
        .routes(routes!(webhooks::deliveries::replay_since))
        .routes(routes!(webhooks::list_event_types))
        .routes(routes!(webhooks::live::listen_to_events))
        .routes(routes!(alerts::list_alerts))
        .routes(routes!(alerts::read_all_alerts))
        .routes(routes!(alerts::read_alert))
        .routes(routes!(alerts::list_alert_rules))
        .routes(routes!(alerts::change_alert_rule))
        .routes(routes!(connects::list_connects))
        .routes(routes!(overview::show_overview))
        .routes(routes!(own_server::speak_mcp))
        .routes(routes!(trash::list_trash))
        .routes(routes!(search::search_workspace))
        .routes(routes!(audit::list_audit_events))
        .routes(routes!(audit::export_audit_events))
        .routes(routes!(limits::show_limits, limits::change_limits))
        .routes(routes!(security::show_security, security::change_security))
        .routes(routes!(single_sign_on::show_single_sign_on))
        .routes(routes!(
            single_sign_on::set_identity_provider,
            single_sign_on::delete_identity_provider
        ))
        .routes(routes!(single_sign_on::test_identity_provider))
        .routes(routes!(single_sign_on::enforce_single_sign_on))
        .routes(routes!(single_sign_on::add_domain))
        .routes(routes!(single_sign_on::remove_domain))
        .routes(routes!(single_sign_on::check_domain))
        .routes(routes!(
            sources::show_source,
            sources::change_source,
            sources::delete_source
        ))
        .routes(routes!(sources::restore_source))
        .routes(routes!(upstreams::preview_upstream))
        .routes(routes!(upstreams::add_upstream))
        .routes(routes!(
            upstreams::show_upstream,
            upstreams::change_upstream
        ))
        .routes(routes!(upstreams::sync_upstream))
        .routes(routes!(attachments::add_attachment))
        .routes(routes!(attachments::show_attachment))
        .routes(routes!(attachments::replace_attachment_key))
        .routes(routes!(
            sign_in::show_sign_in,
            sign_in::set_sign_in,
            sign_in::delete_sign_in
        ))
        .routes(routes!(sign_in::connect_source, sign_in::disconnect_source))
        .routes(routes!(
            credentials::set_credential,
            credentials::delete_credential
        ))
        .routes(routes!(credential_tests::test_credential))
        .routes(routes!(
            tools::list_source_tools,
            hand_made_tools::create_tool
        ))
        .routes(routes!(tools::list_tools))
        .routes(routes!(tools::switch_tools))
        .routes(routes!(
            tools::show_tool,
            tools::change_tool,
            hand_made_tools::delete_tool
        ))
        .routes(routes!(hand_made_tools::redefine_tool))
        .routes(routes!(trial::try_tool))
        .routes(routes!(tool_budget::check_tools))
        .routes(routes!(servers::list_servers, servers::create_server))
        .routes(routes!(
            servers::show_server,
            servers::change_server,
            servers::delete_server
        ))
        .routes(routes!(servers::restore_server))
        .routes(routes!(default_server::choose_default_server))
        .routes(routes!(configuration::export_configuration))
        .routes(routes!(configuration::apply_configuration))
        .routes(routes!(offers::choose_tools))
        .routes(routes!(offers::choose_prompts))
        .routes(routes!(offers::choose_resources))
        .routes(routes!(prompts::restore_prompt))
        .routes(routes!(resources::restore_resource))
        .routes(routes!(servers::publish_server))
        .routes(routes!(servers::pause_server))
        .routes(routes!(connection::show_connection))
        .routes(routes!(
            saved_calls::list_saved_calls,
            saved_calls::save_call
        ))
        .routes(routes!(
            saved_calls::change_saved_call,
            saved_calls::delete_saved_call
        ))
        .routes(routes!(calls::list_calls))
        .routes(routes!(calls::export::export_calls))
        .routes(routes!(calls::live::watch_calls))
        .routes(routes!(calls::show_call))
        .routes(routes!(calls::reveal::reveal_call))
        .routes(routes!(
            calls::views::list_call_views,
            calls::views::save_call_view
        ))
        .routes(routes!(
            calls::views::change_call_view,
            calls::views::delete_call_view
        ))
        .routes(routes!(captures::show_capture, captures::set_capture))
        .routes(routes!(captures::delete_captured))
        .routes(routes!(insights::show_insights))
        .routes(routes!(insights::groups::list_error_causes))
        .routes(routes!(insights::groups::list_people_use))
        .routes(routes!(calls::list_server_calls));
    // Routes whose body is a document or a file: their own limit replaces that of the whole API.
    let documents = OpenApiRouter::new()
        .routes(routes!(configuration::plan_configuration))
        .routes(routes!(imports::preview_import))
        .routes(routes!(sources::list_sources, sources::create_source))
        .routes(routes!(reimports::preview_reimport))
        .routes(routes!(reimports::apply_reimport))
        .routes(routes!(prompts::list_prompts, prompts::create_prompt))
        .routes(routes!(
            prompts::show_prompt,
            prompts::rewrite_prompt,
            prompts::switch_prompt,
            prompts::delete_prompt
        ))
        .routes(routes!(
            resources::list_resources,
            resources::create_resource
        ))
        .routes(routes!(
            resources::show_resource,
            resources::rewrite_resource,
            resources::switch_resource,
            resources::delete_resource
        ))
        .layer(DefaultBodyLimit::max(imports::DOCUMENT_BODY_LIMIT));
    let api = api.merge(documents);
    OpenApiRouter::with_openapi(frame()).nest("/api/v1", api)
}

/// The OpenAPI document of the console's API, from which the console's client is generated.
pub fn openapi() -> OpenApi {
    let mut document = documented().into_openapi();
    let components = document.components.get_or_insert_with(Components::new);
    let mut schemas = Vec::new();
    ErrorAnswer::schemas(&mut schemas);
    schemas.push((ErrorAnswer::name().into_owned(), ErrorAnswer::schema()));
    components.schemas.extend(schemas);
    for item in document.paths.paths.values_mut() {
        for (_, operation) in document::operations(item) {
            operation
                .responses
                .responses
                .insert("default".to_owned(), RefOr::T(refusals()));
        }
    }
    document::complete(&mut document);
    document.extensions = Some(Extensions::from_iter([("x-roles", roles())]));
    document
}

/// For each action of the console, the roles that may do it (AUTH-M1).
fn roles() -> serde_json::Value {
    let allowed = Action::ALL.map(|action| {
        let roles: Vec<&str> = Role::ALL
            .into_iter()
            .filter(|role| role.may(action))
            .map(Role::as_str)
            .collect();
        (action.as_str().to_owned(), roles.into())
    });
    serde_json::Value::Object(allowed.into_iter().collect())
}

fn frame() -> OpenApi {
    let mut components = Components::new();
    components.add_security_scheme(
        "session",
        SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("__Host-sid"))),
    );
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Portolan management API")
                .version("1")
                .description(Some("What the console is made of, open to programs with a token. A browser signs in by the session cookie; other origins are refused."))
                .build(),
        )
        .components(Some(components))
        .security(Some([SecurityRequirement::new("session", Vec::<String>::new())]))
        .build()
}

fn refusals() -> DocumentedResponse {
    ResponseBuilder::new()
        .description("A refusal: what is wrong, and what to do.")
        .content(
            "application/problem+json",
            ContentBuilder::new()
                .schema(Some(Ref::from_schema_name(ErrorAnswer::name())))
                .build(),
        )
        .build()
}

/// The guarded routes: requests of our own pages only (AUTH-S5), responses never cached, never
/// framed.
pub fn router(state: &AuthState) -> Router<AuthState> {
    let (router, _) = documented().split_for_parts();
    router
        .route("/api/v1/openapi.json", get(whole_document))
        .route("/api/v1/{*rest}", axum::routing::any(unknown_path))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            versions::versioned,
        ))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            idempotency::once,
        ))
        .layer(Compress.layer())
        .layer(Entrance::new(|fault| ConsoleError::from(fault).into_response()).layer())
        .layer(FetchSite::new([state.site.origin()]).layer())
        .layer(middleware::from_fn_with_state(state.clone(), bearer::admit))
        .layer(
            SecurityHeaders::new(PageKind::Console, state.site.is_secure())
                .no_store()
                .layer(),
        )
}

async fn whole_document() -> Response {
    match openapi().to_json() {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => ConsoleError::internal("openapi document", error).into_response(),
    }
}

async fn unknown_path() -> ConsoleError {
    ConsoleError::not_found("this address")
}

async fn wrong_method() -> ConsoleError {
    ConsoleError::wrong_method()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_document_names_every_operation_once_and_every_refusal() {
        let document = serde_json::to_value(openapi()).unwrap();
        let mut names = BTreeSet::new();
        let tags = document["tags"].as_array().unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            assert!(path.starts_with("/api/v1/"), "{path}");
            for (method, operation) in item.as_object().unwrap() {
                let name = operation["operationId"].as_str().unwrap().to_owned();
                assert!(
                    names.insert(name.clone()),
                    "{name} names two operations, the generated client would have one"
                );
                assert!(
                    operation["responses"]["default"].is_object(),
                    "{method} {path}"
                );
                for tag in operation["tags"].as_array().unwrap() {
                    assert!(
                        tags.iter().any(|known| known["name"] == *tag),
                        "{method} {path}: document.rs, TAGS, has no {tag}"
                    );
                }
            }
        }
        assert!(names.len() >= 6);
        assert!(document["components"]["schemas"]["ErrorAnswer"].is_object());
        assert_eq!(
            document["components"]["securitySchemes"]["session"]["name"],
            "__Host-sid"
        );
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        fn references(value: &serde_json::Value, found: &mut BTreeSet<String>) {
            match value {
                serde_json::Value::Object(members) => {
                    if let Some(target) = members.get("$ref").and_then(|target| target.as_str()) {
                        found.insert(target.to_owned());
                    }
                    members
                        .values()
                        .for_each(|member| references(member, found));
                }
                serde_json::Value::Array(items) => {
                    items.iter().for_each(|item| references(item, found))
                }
                _ => {}
            }
        }
        let document = serde_json::to_value(openapi()).unwrap();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target}");
        }
    }
}
