//! Authentication of OAuth clients (AUTH-1.4, AUTH-T10, AUTH-T13 to AUTH-T16).

pub(crate) mod alone;
pub(crate) mod assertion;
pub mod described;
pub(crate) mod first_party;
pub(crate) mod key_set;
pub mod members;
pub mod metadata_document;
pub(crate) mod register;
pub(crate) mod strict_json;
pub mod verified;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header};
use portolan_keys::{SecretToken, TokenForm, digest, digests_equal};
use portolan_model::{
    Digest,
    client::{AuthMethod, ClientKind},
    id::ClientSecretId,
};
use portolan_site::{names, request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason, SystemTx,
    oauth::{
        client_secrets::{self, LiveSecret},
        clients::{self, Client},
    },
};

use crate::{error::OAuthError, parameters::Parameters};

/// The proof that a request offers.
pub(crate) enum Offer {
    /// `client_id` alone.
    Name(String),
    /// `Authorization: Basic`.
    Basic { client_id: String, secret: String },
    /// `client_id` and `client_secret` in the form.
    Post { client_id: String, secret: String },
    /// A signed JWT, which names the client itself (RFC 7523).
    Assertion { client_id: String, jwt: String },
}

impl Offer {
    fn client_id(&self) -> &str {
        match self {
            Self::Name(client_id)
            | Self::Basic { client_id, .. }
            | Self::Post { client_id, .. }
            | Self::Assertion { client_id, .. } => client_id,
        }
    }
}

/// Finds the client of a token or revocation request and checks its proof with the registered
/// method (AUTH-T14).
pub(crate) async fn authenticate(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    form: &Parameters,
) -> Result<Client, OAuthError> {
    let (client, _) = authenticate_in(state, context, headers, form).await?;
    Ok(client)
}

/// Does the same as [`authenticate`], and returns the transaction that read the client. The caller
/// continues in it. It is `None` after a proof that writes, because those writes must last whatever
/// becomes of the request.
pub(crate) async fn authenticate_in(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    form: &Parameters,
) -> Result<(Client, Option<SystemTx>), OAuthError> {
    let offer = read_offer(headers, form)?;
    let refuse = |description| refused(headers, description);

    let mut tx = state.store.system(Reason::OAuth).await?;
    let client = clients::find(&mut tx, offer.client_id()).await?;
    let secrets = match &client {
        Some(client) if client.auth_method.has_secret() => {
            client_secrets::live(&mut tx, client.id, state.now()).await?
        }
        _ => Vec::new(),
    };

    // The comparison runs for unknown clients too, with an empty list of secrets (AUTH-T15).
    let proved = match &offer {
        Offer::Name(_) => None,
        Offer::Basic { secret, .. } => Some((
            AuthMethod::ClientSecretBasic,
            which_secret(secret, &secrets),
        )),
        Offer::Post { secret, .. } => {
            Some((AuthMethod::ClientSecretPost, which_secret(secret, &secrets)))
        }
        Offer::Assertion { .. } => Some((AuthMethod::PrivateKeyJwt, None)),
    };
    let client =
        client.ok_or_else(|| refuse("this client is not registered here, register again"))?;
    if client.is_blocked {
        return Err(refuse("this client is blocked"));
    }
    match (client.auth_method, proved) {
        (AuthMethod::None, None) => Ok((client, Some(tx))),
        (AuthMethod::None, Some(_)) => Err(refuse(
            "this client is public and must not send a secret or an assertion",
        )),
        (AuthMethod::PrivateKeyJwt, None) => {
            Err(refuse("this client has to send a client_assertion"))
        }
        (_, None) => Err(refuse("this client has to send its secret")),
        (registered, Some((used, _))) if !fits(&client, registered, used) => Err(refuse(
            "this client registered another token_endpoint_auth_method",
        )),
        (AuthMethod::PrivateKeyJwt, Some(_)) => {
            drop(tx);
            let Offer::Assertion { jwt, .. } = &offer else {
                return Err(refuse("this client has to send a client_assertion"));
            };
            let client = assertion::check(state, context, client, jwt).await?;
            Ok((client, None))
        }
        (_, Some((_, Some(secret)))) => {
            client_secrets::note_used(&mut tx, secret, state.now()).await?;
            tx.commit().await?;
            Ok((client, None))
        }
        (_, Some((_, None))) => Err(refuse("the client secret is wrong")),
    }
}

/// Returns true if the client may use this method: the registered one and no other (AUTH-T14).
///
/// A service account may send its secret in either of the two ways (MCP-AX-4). Libraries choose
/// freely between them, and the text of the extension and its example disagree. So may a client
/// that an administrator registered, because the administrator cannot know how the program sends
/// the secret (AUTH-C16).
fn fits(client: &Client, registered: AuthMethod, used: AuthMethod) -> bool {
    registered == used
        || (matches!(client.kind, ClientKind::Service | ClientKind::Static)
            && registered.has_secret()
            && used.has_secret())
}

/// `invalid_client`, with the status and header that fit how the request offers its proof
/// (AUTH-T10).
pub(crate) fn refused(headers: &HeaderMap, description: &'static str) -> OAuthError {
    if matches!(basic_credentials(headers), Ok(Some(_))) {
        OAuthError::BasicRefused { description }
    } else {
        OAuthError::invalid_client(description)
    }
}

/// The client that a request claims to come from, unproved.
pub(crate) struct Claim {
    /// The claimed client id.
    pub(crate) client_id: String,
    /// The cache key of the presented secret: a digest over id and secret. `None` for clients
    /// without one.
    pub(crate) secret: Option<Digest>,
}

/// Reads the client that a request claims to come from.
pub(crate) fn claim(headers: &HeaderMap, form: &Parameters) -> Result<Claim, OAuthError> {
    let offer = read_offer(headers, form)?;
    Ok(Claim {
        secret: match &offer {
            Offer::Basic { client_id, secret } | Offer::Post { client_id, secret } => {
                Some(digest(format!("{client_id}\0{secret}").as_bytes()))
            }
            Offer::Name(_) | Offer::Assertion { .. } => None,
        },
        client_id: offer.client_id().to_owned(),
    })
}

/// The client that a request names without a proof, as public clients do.
pub(crate) fn unproved(headers: &HeaderMap, form: &Parameters) -> Option<String> {
    match read_offer(headers, form) {
        Ok(Offer::Name(client_id)) => Some(client_id),
        _ => None,
    }
}

fn which_secret(secret: &str, known: &[LiveSecret]) -> Option<ClientSecretId> {
    // Portolan generates secrets with 256 bits, so a digest is enough; argon2 would invite floods
    // (AUTH-T16).
    let presented = SecretToken::parse(TokenForm::ClientSecret, secret)
        .map_or_else(|| digest(secret.as_bytes()), |token| token.digest());
    let decoy = Digest::from_bytes([0; 32]);
    let mut found = None;
    if digests_equal(&presented, &decoy) {
        return None;
    }
    for one in known {
        if digests_equal(&presented, &one.digest) {
            found = Some(one.id);
        }
    }
    found
}

fn read_offer(headers: &HeaderMap, form: &Parameters) -> Result<Offer, OAuthError> {
    let body_id = form.first("client_id");
    let body_secret = form.first("client_secret");
    let has_assertion =
        form.first("client_assertion").is_some() || form.first("client_assertion_type").is_some();
    let basic = basic_credentials(headers)?;
    if (basic.is_some() && (body_secret.is_some() || has_assertion))
        || (body_secret.is_some() && has_assertion)
    {
        return Err(OAuthError::invalid_request(
            "authenticate the client in one way only",
        ));
    }
    if has_assertion {
        return assertion::offer(form, body_id);
    }
    if let Some((client_id, secret)) = basic {
        if body_id.is_some_and(|id| id != client_id) {
            return Err(OAuthError::invalid_request(
                "client_id differs from the authenticated client",
            ));
        }
        return Ok(Offer::Basic { client_id, secret });
    }
    let client_id = body_id
        .ok_or(OAuthError::invalid_client("client_id is missing"))?
        .to_owned();
    Ok(match body_secret {
        Some(secret) => Offer::Post {
            client_id,
            secret: secret.to_owned(),
        },
        None => Offer::Name(client_id),
    })
}

/// Reads `Authorization: Basic`: split at the first colon, both halves form-decoded (AUTH-T13).
/// Other schemes are ignored.
fn basic_credentials(headers: &HeaderMap) -> Result<Option<(String, String)>, OAuthError> {
    let malformed = OAuthError::BasicRefused {
        description: "the Authorization header is malformed",
    };
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(OAuthError::invalid_request(
            "more than one Authorization header",
        ));
    }
    let (scheme, encoded) = value.as_bytes().split_at(
        value
            .as_bytes()
            .iter()
            .position(|b| *b == b' ')
            .unwrap_or(value.len()),
    );
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return Ok(None);
    }
    let Ok(decoded) = STANDARD.decode(encoded.trim_ascii()) else {
        return Err(malformed);
    };
    let Ok(decoded) = String::from_utf8(decoded) else {
        return Err(malformed);
    };
    let Some((id, secret)) = decoded.split_once(':') else {
        return Err(malformed);
    };
    let decode = |half: &str| {
        url::form_urlencoded::parse(format!("v={}", half.replace('&', "%26")).as_bytes())
            .next()
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    };
    let (id, secret) = (decode(id), decode(secret));
    // REVIEW-S-6: no client of ours has such an id, and Postgres does not store it.
    if id.contains(char::is_control) || secret.contains(char::is_control) {
        return Err(malformed);
    }
    Ok(Some((id, secret)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn offer(authorization: Option<&str>, body: &str) -> Result<Offer, OAuthError> {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        read_offer(&headers, &Parameters::parse(body.as_bytes()))
    }

    fn basic(text: &[u8]) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[test]
    fn t13_both_encodings_of_basic_agree() {
        for value in [
            basic(b"cli_1:cs_a-b_c"),
            basic(b"cli_1:cs%5Fa-b_c"),
            basic(b"cli%5F1:cs_a%2Db_c"),
        ] {
            let Ok(Offer::Basic { client_id, secret }) = offer(Some(&value), "") else {
                panic!("{value}")
            };
            assert_eq!((client_id.as_str(), secret.as_str()), ("cli_1", "cs_a-b_c"));
        }
    }

    #[test]
    fn case_65_malformed_basic_is_401_and_no_panic() {
        for value in [
            basic(b"no-colon"),
            basic(b"\xff\xfe:x"),
            "Basic !!!".to_owned(),
            "basic ".to_owned(),
        ] {
            assert!(
                matches!(
                    offer(Some(&value), "client_id=cli_1"),
                    Err(OAuthError::BasicRefused { .. })
                ),
                "{value}"
            );
        }
    }

    #[test]
    fn case_58_one_method_only() {
        let both = offer(Some(&basic(b"cli_1:cs_x")), "client_secret=cs_x");
        assert!(matches!(
            both,
            Err(OAuthError::Refused {
                code: crate::error::ErrorCode::InvalidRequest,
                ..
            })
        ));
        let both = offer(
            None,
            "client_id=cli_1&client_secret=cs_x&client_assertion=e30",
        );
        assert!(matches!(
            both,
            Err(OAuthError::Refused {
                code: crate::error::ErrorCode::InvalidRequest,
                ..
            })
        ));
        assert!(offer(Some(&basic(b"cli_1:cs_x")), "client_id=cli_2").is_err());
        assert!(offer(Some(&basic(b"cli_1:cs_x")), "client_id=cli_1").is_ok());
    }

    #[test]
    fn a_bearer_header_is_not_for_us() {
        assert!(matches!(
            offer(Some("Bearer x"), "client_id=cli_1"),
            Ok(Offer::Name(_))
        ));
    }
}
