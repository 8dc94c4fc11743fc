//! Tokens of `portolan login` (CONF-15). A person confirms in the console, the browser brings a
//! one-time code to the command over the loopback address (RFC 8252 §7.3), and the command redeems
//! the code with a secret of its own (RFC 7636, S256).

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use portolan_keys::{SecretToken, TokenForm, digest, random};
use portolan_model::{Digest, api_scope::ApiScope};
use portolan_net::layers::{PageKind, SecurityHeaders};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, session::BrowserSession,
    state::AuthState, target::Target,
};
use portolan_storage::{
    Reason,
    accounts::access_tokens::{self, Owner, TokenCode},
};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;

use crate::{
    access_tokens::{CreatedAccessToken, TokenMembers, found},
    input::JsonBody,
    token_rights::ScopeName,
    workspace::require_recent,
};

/// Where a command redeems its code.
const REDEEM_PATH: &str = "/account/command/token";

/// Time for the browser to bring the code, and for the command to redeem it.
const CODE_LIFE: Duration = Duration::minutes(2);

/// Largest body of a redemption in bytes.
const BODY_LIMIT: usize = 4 * 1024;

/// A token that a command asks for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCommandToken {
    /// Display name: 1 to 80 characters.
    name: String,
    /// Its permissions: at least one.
    #[schema(value_type = Vec<ScopeName>, min_items = 1)]
    scopes: Vec<ApiScope>,
    /// Days until it expires: 1 to 365.
    #[schema(minimum = 1, maximum = 365)]
    days: i32,
    /// Slug of the one workspace that it opens; absent for all workspaces of the person.
    #[serde(default)]
    workspace: Option<String>,
    /// The base64url form of the SHA-256 of the command's secret (RFC 7636 §4.2, S256).
    code_challenge: String,
    /// Address of the page, to which a confirmation of the identity leads back.
    page: String,
}

/// The code by which a command gets its token.
#[derive(Serialize, ToSchema)]
pub struct CommandCode {
    /// To be redeemed once, with the command's secret.
    code: String,
    /// It is valid until then.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
}

fn challenge(text: &str) -> Result<Digest, ConsoleError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let digest = bytes.and_then(|bytes| Digest::from_slice(&bytes));
    digest.ok_or_else(|| {
        let message = "Give the base64url form of a SHA-256.";
        ConsoleError::invalid("challenge_invalid", message).field("code_challenge")
    })
}

/// Creates a personal token for a command on the person's machine. The answer is a code, which the
/// command redeems for the token within two minutes.
#[utoipa::path(post, path = "/me/command-tokens", tag = "tokens", request_body = NewCommandToken,
    responses((status = 201, description = "The code.", body = CommandCode)))]
pub(crate) async fn create_command_token(
    State(state): State<AuthState>,
    session: BrowserSession,
    context: RequestContext,
    JsonBody(new): JsonBody<NewCommandToken>,
) -> Result<(StatusCode, Json<CommandCode>), ConsoleError> {
    let wanted = TokenMembers::checked(&new.name, &new.scopes, i64::from(new.days))?;
    let challenge = challenge(&new.code_challenge)?;
    let now = state.now();
    require_recent(&session, now, || Target::of_console(&new.page))?;
    let code = URL_SAFE_NO_PAD.encode(random::bytes::<32>()?);
    let expires_at = now + CODE_LIFE;
    let waiting = TokenCode {
        digest: &digest(code.as_bytes()),
        challenge: &challenge,
        days: new.days,
        until: expires_at,
    };
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let subject = (&session, new.workspace.as_deref());
    // Its secret is forgotten: the redemption makes another one.
    let created = wanted
        .write_personal(&mut tx, subject, &context, now)
        .await?;
    access_tokens::wait_for_code(&mut tx, created.token.id, &waiting).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(CommandCode { code, expires_at })))
}

/// The route of commands. It reads no cookie, and code and secret are in the body, so a request of
/// another site is none that a browser gives rights to.
pub fn router(state: &AuthState) -> Router<AuthState> {
    Router::new()
        .route(REDEEM_PATH, post(redeem_code))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(
            SecurityHeaders::new(PageKind::Machine, state.site.is_secure())
                .no_store()
                .layer(),
        )
}

/// A code with the secret of its command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Redemption {
    code: String,
    code_verifier: String,
}

async fn redeem_code(
    State(state): State<AuthState>,
    context: RequestContext,
    JsonBody(redemption): JsonBody<Redemption>,
) -> Result<Json<CreatedAccessToken>, ConsoleError> {
    let now = state.now();
    let admitted = state.throttle.request(context.ip, now).await;
    admitted.map_err(|early| ConsoleError::over_rate(early.seconds()))?;
    let code = digest(redemption.code.as_bytes());
    let challenge = digest(redemption.code_verifier.as_bytes());
    let secret = SecretToken::generate(TokenForm::PersonalToken)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let made = (&secret.digest(), secret.hint());
    let redeemed = access_tokens::redeem_code(&mut tx, (&code, &challenge), made, now).await?;
    let (id, user) = redeemed.ok_or_else(|| {
        let message = "This code is used, late, or of another command. Sign in again.";
        ConsoleError::new(StatusCode::BAD_REQUEST, "code_invalid", message)
    })?;
    let token = found(&mut tx, Owner::Person(user), id, now).await?;
    tx.commit().await?;
    Ok(Json(CreatedAccessToken {
        token,
        secret: secret.expose().to_owned(),
    }))
}
