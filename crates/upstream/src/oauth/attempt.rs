//! One try to get a person's consent: the way to the authorization server, and what comes back
//! (MCP-AU-9…MCP-AU-12).

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_keys::random;
use portolan_net::egress::Egress;
use url::Url;

use super::{
    Challenge, Discovered, OauthError, error::shown_code, fetch::checked,
    metadata::AuthorizationServer,
};

/// Longest list of scopes that is made of what servers name.
const LONGEST_SCOPES: usize = 2048;

/// Secrets of one try. Both are unguessable and used once.
#[derive(Clone)]
pub struct AuthorizationAttempt {
    /// Comes back with the answer.
    pub state: String,
    /// PKCE verifier: proves that the client that redeems the code also requested it (RFC 7636).
    pub verifier: String,
}

impl std::fmt::Debug for AuthorizationAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attempt")
    }
}

/// Query parameters with which an authorization server redirects the browser back.
#[derive(Clone, Default)]
pub struct Callback {
    /// The code.
    pub code: Option<String>,
    /// An error code.
    pub error: Option<String>,
    /// Issuer of the answer (RFC 9207).
    pub iss: Option<String>,
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Callback")
    }
}

impl AuthorizationAttempt {
    /// New secrets.
    ///
    /// # Errors
    /// [`OauthError::Keys`].
    pub fn begin() -> Result<Self, OauthError> {
        Ok(Self {
            state: URL_SAFE_NO_PAD.encode(random::bytes::<32>()?),
            verifier: URL_SAFE_NO_PAD.encode(random::bytes::<48>()?),
        })
    }

    /// The challenge of the verifier, by S256 (RFC 7636 §4.2).
    pub fn challenge(&self) -> String {
        let digest = portolan_keys::digest(self.verifier.as_bytes());
        URL_SAFE_NO_PAD.encode(digest.as_bytes())
    }

    /// Address to which the browser is redirected.
    ///
    /// # Errors
    /// [`OauthError::UnsafeAddress`] (MCP-AU-15), [`OauthError::Unusable`] if the server has no
    /// such endpoint.
    pub fn address(
        &self,
        egress: &Egress,
        server: &AuthorizationServer,
        client_id: &str,
        redirect_uri: &str,
        resource: Option<&str>,
        scope: Option<&str>,
    ) -> Result<Url, OauthError> {
        let endpoint = server
            .authorization_endpoint
            .as_deref()
            .ok_or(OauthError::Unusable("metadata"))?;
        let mut url = checked(egress, endpoint)?;
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", client_id)
                .append_pair("redirect_uri", redirect_uri)
                .append_pair("state", &self.state)
                .append_pair("code_challenge", &self.challenge())
                .append_pair("code_challenge_method", "S256");
            if let Some(resource) = resource {
                query.append_pair("resource", resource);
            }
            if let Some(scope) = scope.filter(|scope| !scope.is_empty()) {
                query.append_pair("scope", scope);
                // OpenID Connect Core §11: without it some servers give no refresh token.
                if scope.split(' ').any(|one| one == "offline_access") {
                    query.append_pair("prompt", "consent");
                }
            }
        }
        Ok(url)
    }

    /// Returns the code of an answer whose `state` matched this attempt. The issuer is compared
    /// first, so that no text of an answer from another server is shown (MCP-AU-9).
    ///
    /// # Errors
    /// [`OauthError::MixedUp`], [`OauthError::Denied`], [`OauthError::Unusable`].
    pub fn check(server: &AuthorizationServer, callback: &Callback) -> Result<String, OauthError> {
        match &callback.iss {
            // The expected `iss` is unknown. A redirect address of its own distinguishes this
            // server from others (RFC 9700 §4.4.2.2).
            _ if server.is_nameless => {}
            Some(iss) if *iss != server.issuer => return Err(OauthError::MixedUp),
            None if server.authorization_response_iss_parameter_supported => {
                return Err(OauthError::MixedUp);
            }
            _ => {}
        }
        if let Some(error) = &callback.error {
            return Err(OauthError::Denied(shown_code(error)));
        }
        callback
            .code
            .clone()
            .filter(|code| !code.is_empty())
            .ok_or(OauthError::Unusable("answer"))
    }
}

/// Returns the scopes to request (MCP-AU-11, MCP-AU-12): those of the challenge, else all that the
/// resource declares, else none. Scopes that were granted before are added, and `offline_access`
/// where the server supports it.
pub fn offered_scopes(
    challenge: &Challenge,
    found: &Discovered,
    earlier: Option<&str>,
) -> Option<String> {
    let known = found.scopes.as_ref().map(|scopes| scopes.join(" "));
    let wanted = challenge.scope.clone().or(known);
    let mut scopes = union(
        earlier.unwrap_or_default(),
        wanted.as_deref().unwrap_or_default(),
    );
    let offline = found.server.scopes_supported.as_ref();
    let knows_offline =
        offline.is_some_and(|all| all.iter().any(|scope| scope == "offline_access"));
    if knows_offline {
        scopes = union(&scopes, "offline_access");
    }
    Some(scopes).filter(|scopes| !scopes.is_empty())
}

/// Merges two scope lists: each scope once, in the order of first appearance, up to a size limit.
/// The limit is needed because servers may name any scopes, repeatedly, and the result is stored
/// and sent.
pub fn union(one: &str, other: &str) -> String {
    let mut seen = BTreeSet::new();
    let all = one
        .split_ascii_whitespace()
        .chain(other.split_ascii_whitespace());
    let mut union = String::new();
    for scope in all.filter(|scope| seen.insert(*scope)) {
        if union.len() + 1 + scope.len() > LONGEST_SCOPES {
            continue;
        }
        if !union.is_empty() {
            union.push(' ');
        }
        union.push_str(scope);
    }
    union
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(advertised: bool) -> AuthorizationServer {
        serde_json::from_value(serde_json::json!({
            "issuer": "https://as.example", "token_endpoint": "https://as.example/token",
            "authorization_response_iss_parameter_supported": advertised,
        }))
        .unwrap()
    }

    fn callback(iss: Option<&str>) -> Callback {
        Callback {
            code: Some("c".to_owned()),
            error: None,
            iss: iss.map(str::to_owned),
        }
    }

    #[test]
    fn au_9_only_the_issuer_that_was_asked_answers_byte_for_byte() {
        let good = [
            (true, Some("https://as.example")),
            (false, Some("https://as.example")),
            (false, None),
        ];
        for (advertised, iss) in good {
            assert_eq!(
                AuthorizationAttempt::check(&server(advertised), &callback(iss)).unwrap(),
                "c"
            );
        }
        let bad = [
            (true, None),
            (true, Some("https://evil.example")),
            (false, Some("https://evil.example")),
            (true, Some("https://as.example/")),
            (true, Some("HTTPS://as.example")),
        ];
        for (advertised, iss) in bad {
            let mut answer = callback(iss);
            // Untrusted text is not shown either.
            answer.error = Some("access_denied".to_owned());
            let error = AuthorizationAttempt::check(&server(advertised), &answer).unwrap_err();
            assert!(matches!(error, OauthError::MixedUp), "{iss:?}: {error}");
        }
    }

    #[test]
    fn au_9_of_a_server_that_was_entered_no_name_is_compared_and_none_lets_itself_off() {
        let at = |path: &str| Url::parse(&format!("https://as.example{path}")).unwrap();
        let entered = AuthorizationServer::entered(&at("/a"), &at("/t"), None);
        for iss in [None, Some("https://as.example/tenant")] {
            assert_eq!(
                AuthorizationAttempt::check(&entered, &callback(iss)).unwrap(),
                "c"
            );
        }
        let mut denied = callback(None);
        denied.error = Some("access_denied".to_owned());
        assert!(AuthorizationAttempt::check(&entered, &denied).is_err());
        let egress = Egress::new(portolan_net::egress::EgressPolicy::default()).unwrap();
        let said = serde_json::json!({
            "issuer": "https://as.example", "token_endpoint": "https://as.example/token", "is_nameless": true,
        });
        let read = super::super::discovery::read(&egress, said.to_string().as_bytes()).unwrap();
        let error = AuthorizationAttempt::check(&read, &callback(Some("https://evil.example")))
            .unwrap_err();
        assert!(matches!(error, OauthError::MixedUp), "{error}");
    }

    #[test]
    fn au_11_scopes_come_from_the_challenge_then_the_resource_and_only_grow() {
        let mut found = Discovered {
            resource: None,
            scopes: Some(vec!["a".to_owned(), "b".to_owned()]),
            server: server(false),
        };
        let challenge = |scope: Option<&str>| Challenge {
            scope: scope.map(str::to_owned),
            ..Challenge::default()
        };
        let ask =
            |found: &Discovered, scope, earlier| offered_scopes(&challenge(scope), found, earlier);
        assert_eq!(ask(&found, Some("x"), None).as_deref(), Some("x"));
        assert_eq!(ask(&found, None, None).as_deref(), Some("a b"));
        assert_eq!(
            ask(&found, Some("x a"), Some("a c")).as_deref(),
            Some("a c x")
        );
        found.scopes = None;
        assert_eq!(ask(&found, None, None), None);
        found.server.scopes_supported = Some(vec!["offline_access".to_owned()]);
        assert_eq!(
            ask(&found, Some("x"), None).as_deref(),
            Some("x offline_access"),
            "MCP-AU-12"
        );
    }

    #[test]
    fn au_11_a_server_that_asks_for_ever_more_scopes_is_not_asked_for_them_without_end() {
        let mut all = "read".to_owned();
        for round in 0..100 {
            let more: Vec<String> = (0..100).map(|one| format!("s{round}-{one}")).collect();
            all = union(&all, &more.join(" "));
            assert!(all.len() <= LONGEST_SCOPES);
        }
        assert!(all.starts_with("read s0-0 "), "what came first stays");
        assert_eq!(union("a", &"x".repeat(LONGEST_SCOPES)), "a");
        assert_eq!(union("a b", " b  c"), "a b c");
    }

    #[test]
    fn au_10_no_two_attempts_share_a_secret() {
        let (one, other) = (
            AuthorizationAttempt::begin().unwrap(),
            AuthorizationAttempt::begin().unwrap(),
        );
        assert_ne!(one.state, other.state);
        assert_ne!(one.verifier, other.verifier);
        assert!((43..=128).contains(&one.verifier.len()), "RFC 7636 §4.1");
    }
}
