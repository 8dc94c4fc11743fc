//! The text of each rule, for people who examine why a client was refused. The ids are those of the
//! design (AUTH-1).

use crate::error::ErrorCode;

/// Rule ids and their texts.
const RULES: &[(&str, &str)] = &[
    (
        "A1",
        "An authorization request names every parameter once, asks for response_type=code, and is not longer than 8 KiB.",
    ),
    (
        "A3",
        "The redirect URI must equal a registered one exactly; only the port of a loopback address may differ.",
    ),
    (
        "A4",
        "Every request must contain the redirect URI, even if only one is registered.",
    ),
    (
        "A5",
        "Every client uses PKCE with S256: a challenge of 43 characters in the authorization request, the verifier with the code.",
    ),
    ("A6", "state is at most 2048 bytes long."),
    (
        "A8",
        "scope is a list of words without quotes and control characters; unknown words are dropped.",
    ),
    (
        "A9",
        "A request names no resource or one, and that one is a server here.",
    ),
    (
        "A10",
        "prompt=none is refused for clients without a key: a user has to see the consent page.",
    ),
    (
        "A11",
        "An authorization request is valid for an hour, in the browser that started it.",
    ),
    (
        "C1",
        "A client_id that is a URL is https, with a host name and a path, without query, port and dot segments.",
    ),
    (
        "C2",
        "A metadata document is fetched without redirects, answers 200 with JSON of at most 5 KiB within 5 seconds, from a public address.",
    ),
    (
        "C3",
        "A metadata document names its own address as client_id, 1 to 20 redirect URIs, and none or private_key_jwt as proof.",
    ),
    (
        "C8",
        "Registrations are JSON of at most 16 KiB, and limited in number for each network.",
    ),
    (
        "C9",
        "A registration names no keys; clients that prove themselves by key use a metadata document.",
    ),
    (
        "C12",
        "An unknown client has to register again; it is told with 401 invalid_client.",
    ),
    (
        "C13",
        "A client assertion is signed with the client's key, for this issuer, is valid for a few minutes, and can be used once.",
    ),
    (
        "C14",
        "Redirect URIs are absolute, without fragment and wildcard: https, http to the own computer, or a scheme of the app.",
    ),
    (
        "C16",
        "A client registered by administrators of a workspace works in that workspace only.",
    ),
    (
        "E2",
        "This server is no OpenID provider: OpenID documents are 404, and the client continues with the OAuth document.",
    ),
    ("E5", "The authorization endpoint is opened with GET."),
    (
        "K11",
        "A refresh token that was replaced long ago is refused, and its use ends the connection, because it may have been copied.",
    ),
    ("K14", "A refresh can request the granted scopes or fewer."),
    (
        "K15",
        "A refresh names the resource that was granted, a server below it, or none.",
    ),
    ("K16", "Access is re-checked at every refresh."),
    ("K17", "One connection can refresh 60 times a minute."),
    (
        "M7",
        "The workspace decides which clients can connect: any, verified ones, those on its list, or after approval.",
    ),
    (
        "N5",
        "The user allows or denies access on the consent page.",
    ),
    (
        "N11",
        "A user without access to the requested workspace can’t grant access to it.",
    ),
    (
        "R9",
        "A revoked token is refused immediately; the client gets a new one, or the user reconnects it.",
    ),
    ("T2", "A code is valid for two minutes."),
    (
        "T4",
        "A code is exchanged by its client, with the verifier, and with the redirect URI of the authorization request if it is sent.",
    ),
    (
        "T6",
        "A code can be used once. A second use ends the connection made by the first.",
    ),
    (
        "T8",
        "Token requests are POST forms, with every parameter once and no secret in the URL.",
    ),
    (
        "T11",
        "Grants are authorization_code, refresh_token and client_credentials, and the client registered for them.",
    ),
    (
        "T14",
        "A client authenticates with its registered method; a public client sends no secret.",
    ),
    (
        "4.5",
        "A token is valid only for the server or workspace it was issued for.",
    ),
];

/// The text of a rule.
pub fn words(rule: &str) -> Option<&'static str> {
    RULES
        .iter()
        .find(|(id, _)| *id == rule)
        .map(|(_, words)| *words)
}

/// Texts of refusals with the rule behind each, where the error code alone does not determine it.
const BY_TEXT: &[(&str, &str)] = &[
    ("PKCE with code_challenge_method S256 is required", "A5"),
    ("code_challenge is missing", "A5"),
    ("code_challenge must be 43 characters of base64url", "A5"),
    ("code_verifier is missing or wrong", "A5"),
    (
        "redirect_uri is not the one of the authorization request",
        "T4",
    ),
    ("the code is invalid, expired or already used", "T6"),
    (
        "this client is public and must not send a secret or an assertion",
        "T14",
    ),
    ("this client has to send its secret", "T14"),
    ("this client has to send a client_assertion", "T14"),
    (
        "this client registered another token_endpoint_auth_method",
        "T14",
    ),
    ("authenticate the client in one way only", "T14"),
    ("the client secret is wrong", "T14"),
    ("send the metadata as application/json", "C8"),
    ("the metadata is not a JSON object", "C8"),
    ("the refresh token is invalid, expired or revoked", "K16"),
    ("scope was not granted", "K14"),
    ("resource was not granted", "K15"),
];

/// The rule behind a refusal.
pub(crate) fn of(code: ErrorCode, description: &str) -> Option<&'static str> {
    if let Some((_, rule)) = BY_TEXT.iter().find(|(text, _)| *text == description) {
        return Some(rule);
    }
    if description.contains("client assertion") || description.contains("client_assertion") {
        return Some("C13");
    }
    Some(match code {
        ErrorCode::InvalidRequest
        | ErrorCode::UnsupportedResponseType
        | ErrorCode::RequestNotSupported
        | ErrorCode::RequestUriNotSupported => "A1",
        ErrorCode::InvalidClient => "C12",
        ErrorCode::InvalidGrant => "T4",
        ErrorCode::UnauthorizedClient | ErrorCode::UnsupportedGrantType => "T11",
        ErrorCode::InvalidScope => "A8",
        ErrorCode::InvalidTarget => "A9",
        ErrorCode::AccessDenied => "N5",
        ErrorCode::LoginRequired | ErrorCode::ConsentRequired => "A10",
        ErrorCode::InvalidRedirectUri => "C14",
        ErrorCode::InvalidClientMetadata => "C9",
        ErrorCode::TemporarilyUnavailable | ErrorCode::ServerError => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn x2_every_rule_that_a_refusal_names_is_told_in_words() {
        let ids: BTreeSet<&str> = RULES.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), RULES.len(), "each once");
        for (text, rule) in BY_TEXT {
            assert!(words(rule).is_some(), "{text}: {rule}");
        }
        for code in [
            ErrorCode::InvalidRequest,
            ErrorCode::InvalidClient,
            ErrorCode::InvalidGrant,
            ErrorCode::UnauthorizedClient,
            ErrorCode::InvalidScope,
            ErrorCode::InvalidTarget,
            ErrorCode::AccessDenied,
            ErrorCode::LoginRequired,
            ErrorCode::InvalidRedirectUri,
            ErrorCode::InvalidClientMetadata,
        ] {
            assert!(of(code, "").and_then(words).is_some(), "{code:?}");
        }
        assert_eq!(
            of(ErrorCode::InvalidClient, "the client assertion has expired"),
            Some("C13")
        );
    }
}
