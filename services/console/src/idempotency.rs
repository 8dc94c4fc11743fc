//! `Idempotency-Key` on POST (API-13): the first request with a key is carried out, a repetition
//! gets its answer.

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use portolan_keys::{Purpose, digest};
use portolan_model::{Digest, Timestamp, id::AccessTokenId};
use portolan_site::{
    console_error::ConsoleError, presented_token::PresentedToken, state::AuthState,
};
use portolan_storage::{
    Reason,
    accounts::idempotent_requests::{self, Claim},
};

use crate::imports::DOCUMENT_BODY_LIMIT;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Longest key in bytes.
const LONGEST: usize = 255;

/// Largest answer that is kept, in bytes.
const LARGEST: usize = 1024 * 1024;

/// The remedy, when a token keeps as much as it may.
const FULL: &str = "The kept answers of this token take 64 MiB, as much as they may. Send the request without Idempotency-Key, use another token, or wait: an answer is kept for 24 hours.";

/// Carries a POST with a key and a token out once, or repeats its answer. Other requests pass.
pub(crate) async fn once(State(state): State<AuthState>, request: Request, next: Next) -> Response {
    if *request.method() != Method::POST || !request.headers().contains_key(&KEY) {
        return next.run(request).await;
    }
    let Some(token) = request.extensions().get::<PresentedToken>().cloned() else {
        return next.run(request).await;
    };
    match kept(state, token.id, request, next).await {
        Ok(answer) => answer,
        Err(error) => error.into_response(),
    }
}

/// A request with a key.
struct Keyed {
    state: AuthState,
    token: AccessTokenId,
    key: Digest,
    /// When the key was claimed: it names the claim.
    started: Timestamp,
}

async fn kept(
    state: AuthState,
    token: AccessTokenId,
    request: Request,
    next: Next,
) -> Result<Response, ConsoleError> {
    let key = read_key(request.headers())?;
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, DOCUMENT_BODY_LIMIT).await.map_err(|cause| {
        ConsoleError::new(
            StatusCode::BAD_REQUEST,
            "unreadable_body",
            "The request ended early, or it is too large.",
        )
        .caused_by(cause)
    })?;
    let address = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let said = [address.as_bytes(), b"\n".as_slice(), &bytes[..]].concat();
    let started = state.now();
    let keyed = Keyed {
        state,
        token,
        key,
        started,
    };
    let mut tx = keyed.state.store.system(Reason::Workspaces).await?;
    let claim =
        idempotent_requests::claim(&mut tx, (token, &keyed.key), &digest(&said), started).await?;
    tx.commit().await?;
    match claim {
        Claim::Taken => {
            let request = Request::from_parts(parts, Body::from(bytes));
            // A caller that hangs up must not leave the change without its answer.
            let tasks = keyed.state.later.clone();
            let run = tasks.spawn(async move { keyed.run(request, next).await });
            run.await
                .unwrap_or_else(|fault| Err(ConsoleError::internal("idempotent request", fault)))
        }
        Claim::Running => Err(ConsoleError::conflict(
            "idempotency_in_flight",
            "A request with this key is being carried out. Repeat it in a moment.",
        )),
        Claim::Other => Err(ConsoleError::invalid(
            "idempotency_key_reused",
            "This key was sent with another request. Use a new key.",
        )),
        Claim::Done(sealed) => keyed.repeat(&sealed),
        Claim::Full => Err(ConsoleError::too_much("idempotency_full", FULL, 3_600)),
    }
}

/// The digest of the key. 422 unless it is 1 to 255 visible characters, once.
fn read_key(headers: &HeaderMap) -> Result<Digest, ConsoleError> {
    let mut values = headers.get_all(&KEY).iter();
    let key = match (values.next(), values.next()) {
        (Some(value), None) => value.as_bytes(),
        _ => &[],
    };
    if key.is_empty() || key.len() > LONGEST || !key.iter().all(u8::is_ascii_graphic) {
        return Err(ConsoleError::invalid(
            "idempotency_key_invalid",
            format!("Idempotency-Key is 1 to {LONGEST} visible ASCII characters."),
        ));
    }
    Ok(digest(key))
}

impl Keyed {
    /// Carries the request out. A success is kept, and a failure inside too, because it may have
    /// changed something. After a refusal nothing was changed, so the key is free again.
    async fn run(&self, request: Request, next: Next) -> Result<Response, ConsoleError> {
        let (parts, body) = next.run(request).await.into_parts();
        // Answers of handlers are in memory already.
        let bytes = to_bytes(body, usize::MAX)
            .await
            .map_err(|cause| ConsoleError::internal("idempotent answer", cause))?;
        let mut tx = self.state.store.system(Reason::Workspaces).await?;
        let at = (self.token, &self.key);
        if parts.status.is_success() || parts.status == StatusCode::INTERNAL_SERVER_ERROR {
            let sealed = if bytes.len() > LARGEST {
                self.sealed_in_place_of_large().await?
            } else {
                self.sealed(parts.status, &parts.headers, &bytes)?
            };
            if !idempotent_requests::keep(&mut tx, at, self.started, &sealed).await? {
                tracing::warn!("a request ran longer than its idempotency key was held");
            }
        } else {
            idempotent_requests::release(&mut tx, at, self.started).await?;
        }
        tx.commit().await?;
        Ok(Response::from_parts(parts, Body::from(bytes)))
    }

    /// The answer to repetitions of a request whose own answer is too large to be kept.
    async fn sealed_in_place_of_large(&self) -> Result<Vec<u8>, ConsoleError> {
        let answer = ConsoleError::conflict(
            "idempotency_answer_too_large",
            "This request was carried out. Its answer was too large to be kept.",
        );
        let (parts, body) = answer.into_response().into_parts();
        let bytes = to_bytes(body, LARGEST)
            .await
            .map_err(|cause| ConsoleError::internal("idempotent answer", cause))?;
        self.sealed(parts.status, &parts.headers, &bytes)
    }

    /// Status, content type and body. Answers may hold secrets that are shown once.
    fn sealed(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Vec<u8>, ConsoleError> {
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.map_or(&[][..], HeaderValue::as_bytes);
        let length = u8::try_from(kind.len()).map_err(|fault| {
            ConsoleError::internal("content type of an idempotent answer", fault)
        })?;
        let head = status.as_u16().to_be_bytes();
        let plain = [&head[..], &[length][..], kind, &body[..]].concat();
        let sealed = self
            .state
            .keys
            .seal(Purpose::IdempotentAnswer, &plain, &self.place())?;
        Ok(sealed)
    }

    /// The place of the answer, to which its seal is bound: a copy in another row opens nothing.
    fn place(&self) -> Vec<u8> {
        [
            self.token.uuid_bytes().as_slice(),
            self.key.as_bytes().as_slice(),
        ]
        .concat()
    }

    fn repeat(&self, sealed: &[u8]) -> Result<Response, ConsoleError> {
        let unreadable = || ConsoleError::internal("idempotent answer", "it cannot be read");
        let now = self.state.now();
        let plain = self
            .state
            .keys
            .open(Purpose::IdempotentAnswer, sealed, &self.place(), now)
            .map_err(|fault| ConsoleError::internal("idempotent answer", fault))?;
        let [high, low, length, rest @ ..] = plain.expose().as_slice() else {
            return Err(unreadable());
        };
        let status = StatusCode::from_u16(u16::from_be_bytes([*high, *low]));
        let (kind, body) = rest
            .split_at_checked(usize::from(*length))
            .ok_or_else(unreadable)?;
        let mut answer = Response::new(Body::from(body.to_vec()));
        *answer.status_mut() = status.map_err(|_| unreadable())?;
        let headers = answer.headers_mut();
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
        if !kind.is_empty() {
            let kind = HeaderValue::from_bytes(kind).map_err(|_| unreadable())?;
            headers.insert(header::CONTENT_TYPE, kind);
        }
        Ok(answer)
    }
}
