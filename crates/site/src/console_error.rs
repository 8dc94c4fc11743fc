//! Refusals of the console's API, in one form, each with a sentence that states the remedy.

use std::{borrow::Cow, error::Error};

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use portolan_keys::KeysError;
use portolan_model::{
    api_scope::ApiScope,
    factor::SecondFactor,
    member::{Action, Role},
};
use portolan_net::layers::EntranceFault;
use portolan_storage::StorageError;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Code of refusals that need no alarm: a caller exceeds its share.
const BUSY: &str = "busy";

/// A refusal. The functions below make it; `?` converts storage and key faults.
#[derive(Debug)]
pub struct ConsoleError {
    status: StatusCode,
    body: Box<ErrorBody>,
    retry_after: Option<i64>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The media type of a refusal (RFC 9457).
pub const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The body of a refusal: problem details (RFC 9457 §3.1), with one member more (API-12).
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorAnswer {
    /// `urn:portolan:problem:` and `error.code`.
    #[serde(rename = "type")]
    #[schema(example = "urn:portolan:problem:not_found")]
    kind: String,
    /// The words of the status.
    #[schema(value_type = String)]
    title: &'static str,
    /// The status.
    status: u16,
    /// The same text as `error.message`.
    #[schema(value_type = String)]
    detail: Cow<'static, str>,
    error: ErrorBody,
}

/// The refusal itself.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// For programs: `slug_taken`, `not_found`.
    #[schema(value_type = String)]
    code: Cow<'static, str>,
    /// For people: the fault and the remedy.
    #[schema(value_type = String)]
    message: Cow<'static, str>,
    /// The member of the request that is at fault, as a dotted path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    field: Option<String>,
    /// Details that depend on `code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    details: Option<Value>,
}

impl ConsoleError {
    /// Makes any refusal. `code` never changes once a client uses it.
    pub fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let body = ErrorBody {
            code: code.into(),
            message: message.into(),
            field: None,
            details: None,
        };
        Self {
            status,
            body: Box::new(body),
            retry_after: None,
            source: None,
        }
    }

    /// Names the member of the request that is at fault.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.body.field = Some(field.into());
        self
    }

    /// Adds machine-readable details.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.body.details = Some(details);
        self
    }

    /// The same refusal of one part of a larger request: `part` stands before message and field. A
    /// failure of the service stays as it is.
    #[must_use]
    pub fn within(mut self, part: &str) -> Self {
        if self.status.is_server_error() {
            return self;
        }
        let body = &mut self.body;
        body.message = format!("{part}: {}", body.message).into();
        body.field = Some(match &body.field {
            Some(field) => format!("{part}.{field}"),
            None => part.to_owned(),
        });
        self
    }

    /// The member of the request that is at fault.
    pub fn at_field(&self) -> Option<&str> {
        self.body.field.as_deref()
    }

    /// The code for programs.
    pub fn code(&self) -> &str {
        &self.body.code
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.body.message
    }

    /// Adds a member to the machine-readable details.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        let details = self
            .body
            .details
            .get_or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let Some(members) = details.as_object_mut() {
            members.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Attaches the cause for the log.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// 401: no session.
    pub fn unauthenticated() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "Please sign in.",
        )
    }

    /// 401: the bearer token is unknown, expired or revoked, or no token of the management API.
    pub fn invalid_token() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "invalid_token",
            "This token is not valid: it is unknown, expired or revoked, or it is not a token of the management API.",
        )
    }

    /// 403: the token lacks a scope (API-5).
    pub fn insufficient_scope(wanted: ApiScope) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "insufficient_scope",
            format!("This needs the scope {wanted}. Make a token that has it."),
        )
        .details(serde_json::json!({ "scope": wanted }))
    }

    /// 403: tokens do not do this, whatever their scopes (API-6, API-7).
    pub fn browser_only() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "browser_only",
            "Tokens cannot do this. Sign in to the console and do it there.",
        )
    }

    /// 403: a workspace token has no person (API-3).
    pub fn person_only() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "person_only",
            "A workspace token cannot do this. Use a personal token, or sign in to the console.",
        )
    }

    /// 403: the sign-in behind a personal token does not meet the workspace's rule (API-4).
    pub fn token_not_admitted(message: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "token_not_admitted", message)
    }

    /// 429: the token made too many requests (API-10).
    pub fn over_rate(seconds: i64) -> Self {
        let mut error = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "over_rate",
            "This token makes too many requests. Wait a moment and try again.",
        );
        error.retry_after = Some(seconds);
        error
    }

    /// 429 with `Retry-After`: the caller has as much as it may of something. `message` says what to
    /// do.
    pub fn too_much(code: &'static str, message: &'static str, seconds: i64) -> Self {
        let mut error = Self::new(StatusCode::TOO_MANY_REQUESTS, code, message);
        error.retry_after = Some(seconds);
        error
    }

    /// 412: the object is not in the version that `If-Match` names (API-14).
    pub fn version_differs() -> Self {
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "version_differs",
            "The workspace changed meanwhile. Read it again, and repeat the change with its new version.",
        )
    }

    /// 412: `If-Match` names a version of something that has none (API-14).
    pub fn no_version() -> Self {
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "no_version",
            "This has no version. Repeat the request without If-Match.",
        )
    }

    /// 403: the role may not do this.
    pub fn forbidden(role: Role, action: Action) -> Self {
        let need = match action {
            Action::Read | Action::CallTools => "a member",
            Action::EditRegistry => "a developer",
            Action::Administer => "an admin or owner",
        };
        let message = format!(
            "Your role in this workspace is {role}. Ask {need} to do this, or ask an admin to change your role."
        );
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 403: only an owner may do this.
    pub fn owners_only() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "Only an owner of the workspace can do this.",
        )
    }

    /// 403: the person has to sign in again. `path` is the page for that.
    pub fn confirm_first(path: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "confirm_first",
            "Verify it’s you: this needs a sign-in from the last ten minutes.",
        )
        .details(serde_json::json!({ "path": path }))
    }

    /// 403: the workspace requires more than the person signed in with (AUTH-L14). `path` is the
    /// page that provides it.
    pub fn factor_first(rule: SecondFactor, path: &str) -> Self {
        let message = if rule == SecondFactor::Passkey {
            "This workspace asks its members to sign in with a passkey."
        } else {
            "This workspace asks its members to sign in with a second factor."
        };
        Self::new(StatusCode::FORBIDDEN, "second_factor_first", message)
            .details(serde_json::json!({ "path": path }))
    }

    /// 403: the workspace requires its own provider (AUTH-F7). `path` is the page that leads there.
    pub fn company_first(path: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "company_sign_in_first",
            "This workspace asks its members to sign in with its own provider.",
        )
        .details(serde_json::json!({ "path": path }))
    }

    /// 404: it does not exist, or not here, or not for this user, with one answer for all
    /// (AUTH-M2). `what` is a phrase like "this source".
    pub fn not_found(what: &str) -> Self {
        let mut chars = what.chars();
        let first = chars.next().unwrap_or_default();
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!(
                "{}{} doesn’t exist or was deleted.",
                first.to_uppercase(),
                chars.as_str()
            ),
        )
    }

    /// 404: it never existed, or the time to restore it is over. `what` is a noun like "source".
    pub fn not_restorable(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!(
                "This {what} can’t be restored: it doesn’t exist, or its time to be restored is over."
            ),
        )
    }

    /// 405.
    pub fn wrong_method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "This address does not take this method.",
        )
    }

    /// 409: `code` names the conflict.
    pub fn conflict(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 422: readable, but against a rule.
    pub fn invalid(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// 500: only the log has `what` and the cause.
    pub fn internal(what: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        tracing::debug!(what, "internal fault");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Something went wrong on our side. Please try again; the X-Request-Id of this answer helps support to find it.",
        )
        .caused_by(source)
    }

    /// 503 with `Retry-After`.
    pub fn unavailable() -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "A part of the service does not answer. Please try again in a moment; nothing was changed.",
        );
        error.retry_after = Some(5);
        error
    }

    /// 503 with `Retry-After`: a part of the service has no capacity at present.
    pub fn busy(seconds: i64, message: &'static str) -> Self {
        let mut error = Self::new(StatusCode::SERVICE_UNAVAILABLE, BUSY, message);
        error.retry_after = Some(seconds);
        error
    }

    /// A limit of the workspace is reached.
    pub fn over_limit(seconds: u64) -> Self {
        let mut error = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "over_limit",
            "This workspace makes as many calls a minute as it may. Try again in a moment, or raise the limit in its settings.",
        );
        error.retry_after = i64::try_from(seconds).ok();
        error
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<StorageError> for ConsoleError {
    fn from(error: StorageError) -> Self {
        if error.is_unavailable() {
            Self::unavailable().caused_by(error)
        } else if error.is_unwritable_text() {
            EntranceFault::Characters.into()
        } else {
            Self::internal("storage", error)
        }
    }
}

impl From<EntranceFault> for ConsoleError {
    fn from(fault: EntranceFault) -> Self {
        let code = match fault {
            EntranceFault::Slow => "body_too_slow",
            EntranceFault::Characters => "control_characters",
        };
        Self::new(fault.status(), code, fault.message())
    }
}

impl From<KeysError> for ConsoleError {
    fn from(error: KeysError) -> Self {
        Self::internal("keys", error)
    }
}

impl IntoResponse for ConsoleError {
    fn into_response(self) -> Response {
        if self.status.is_server_error() && self.body.code != BUSY {
            let source = self
                .source
                .as_deref()
                .map(|source| source as &(dyn Error + 'static));
            tracing::error!(code = %self.body.code, error = source, "the console's API failed");
        }
        let answer = ErrorAnswer {
            kind: format!("urn:portolan:problem:{}", self.body.code),
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: self.body.message.clone(),
            error: *self.body,
        };
        let mut response = (self.status, Json(answer)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, PROBLEM);
        if let Some(value) = self
            .retry_after
            .and_then(|seconds| HeaderValue::try_from(seconds.to_string()).ok())
        {
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
        response
    }
}
