//! Creates a workspace for a person who comes from an AI client and has none yet (AUTH-N11).
//! The console has its own page for the others.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_model::slug::Slug;
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session::{BrowserSession, MaybeSession},
    state::AuthState,
    workspaces::{self, CreateError},
};
use serde::Deserialize;

use crate::login::{
    continuation::{Continuation, path_after},
    form::{check_form, form_token},
};

#[derive(Template)]
#[template(path = "workspace.html")]
struct WorkspacePage<'a> {
    form_token: String,
    request: String,
    client_name: Option<&'a str>,
    email: &'a str,
    name: &'a str,
    slug: &'a str,
    name_fault: Option<String>,
    slug_fault: Option<String>,
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct WorkspaceQuery {
    request: Option<String>,
}

/// Shows the form.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(query): Query<WorkspaceQuery>,
) -> Result<Response, PageError> {
    let continuation = Continuation::load(&state, &browser, query.request.as_deref()).await?;
    let Some(session) = session else {
        return sign_in_first(browser, &continuation);
    };
    page(
        &state,
        browser,
        &session,
        &continuation,
        StatusCode::OK,
        &ShownForm::default(),
    )
}

/// Fields of the form.
#[derive(Debug, Deserialize)]
pub(crate) struct WorkspaceForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    slug: String,
}

#[derive(Default)]
struct ShownForm<'a> {
    name: &'a str,
    slug: &'a str,
    name_fault: Option<String>,
    slug_fault: Option<String>,
}

/// Creates the workspace and redirects to the target. Without a slug in the form, the name
/// determines it.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<WorkspaceForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let continuation = Continuation::load(&state, &browser, Some(&form.request)).await?;
    let Some(session) = session else {
        return sign_in_first(browser, &continuation);
    };
    let suggested = if form.slug.trim().is_empty() {
        Slug::suggest(&form.name).map(String::from)
    } else {
        None
    };
    let slug = suggested.as_deref().unwrap_or(&form.slug);
    if slug.trim().is_empty() && workspaces::display_name(&form.name).is_some() {
        let slug_fault = Some("Enter an address: none can be derived from this name.".to_owned());
        let shown = ShownForm {
            name: &form.name,
            slug,
            name_fault: None,
            slug_fault,
        };
        return page(
            &state,
            browser,
            &session,
            &continuation,
            StatusCode::UNPROCESSABLE_ENTITY,
            &shown,
        );
    }
    let error = match workspaces::create(&state, &context, session.user, &form.name, slug).await {
        Ok(_) => {
            let path = path_after(&state, session.user, &continuation.target).await?;
            return Ok((browser, pages::see_other(&path)?).into_response());
        }
        Err(CreateError::Storage(error)) => return Err(error.into()),
        Err(error) => error,
    };
    let status = if matches!(error, CreateError::Taken) {
        StatusCode::CONFLICT
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let fault = Some(error.to_string());
    let (name_fault, slug_fault) = match error {
        CreateError::Slug(_) | CreateError::Taken => (None, fault),
        _ => (fault, None),
    };
    page(
        &state,
        browser,
        &session,
        &continuation,
        status,
        &ShownForm {
            name: &form.name,
            slug,
            name_fault,
            slug_fault,
        },
    )
}

fn sign_in_first(browser: Browser, continuation: &Continuation) -> Result<Response, PageError> {
    Ok((
        browser,
        pages::see_other(&continuation.target.on("/login"))?,
    )
        .into_response())
}

fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    continuation: &Continuation,
    status: StatusCode,
    shown: &ShownForm<'_>,
) -> Result<Response, PageError> {
    let page = WorkspacePage {
        form_token: form_token(&state.keys, &browser),
        request: continuation.parameter(),
        client_name: continuation.client_name(),
        email: &session.email,
        name: shown.name,
        slug: shown.slug,
        name_fault: shown.name_fault.clone(),
        slug_fault: shown.slug_fault.clone(),
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
