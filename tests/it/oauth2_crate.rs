//! The third-party crate `oauth2`, as a client that an administrator registered by hand (AUTH-6.2,
//! AUTH-C16): code with PKCE, refresh, introspection and revocation, and whether it understands our
//! errors.

use anyhow::{Context, Result, ensure};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, HttpRequest,
    HttpResponse, IntrospectionUrl, PkceCodeChallenge, RedirectUrl, RefreshToken,
    RequestTokenError, RevocationUrl, Scope, StandardRevocableToken, TokenResponse, TokenUrl,
    basic::{BasicClient, BasicErrorResponseType},
};
use portolan_tests::{
    mcp::McpClient,
    oauth::{REDIRECT_URI, query},
    scene::Scene,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Carries requests of the library: it comes without a client of its own.
#[derive(Debug, Clone)]
struct Http(reqwest::Client);

impl Http {
    fn new() -> Result<Self> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self(http))
    }

    async fn send(self, request: HttpRequest) -> Result<HttpResponse, reqwest::Error> {
        let (parts, body) = request.into_parts();
        // The library revokes over https alone, and the tests' service is on this computer.
        let url = parts.uri.to_string().replacen("https://", "http://", 1);
        let answer = self
            .0
            .request(parts.method, url)
            .headers(parts.headers)
            .body(body)
            .send()
            .await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut response = HttpResponse::new(answer.bytes().await?.to_vec());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

#[tokio::test]
async fn c16_a_client_that_was_registered_by_hand_signs_in_with_the_oauth2_crate() -> Result<()> {
    let scene = Scene::new().await?;
    let made = scene
        .owner
        .console()
        .post(
            "/workspaces/harbour/registered-clients",
            json!({"name": "Library", "redirect_uris": [REDIRECT_URI], "proof": "client_secret"}),
        )
        .await?;
    let at = |path: &str| -> Result<String> { Ok(scene.stack.url().join(path)?.to_string()) };
    let text = |name: &str| -> Result<String> {
        let value = made.get(name).or_else(|| made["client"].get(name));
        Ok(value.and_then(Value::as_str).context("a text")?.to_owned())
    };
    let http = Http::new()?;
    let http = |request| http.clone().send(request);
    // Both ways to send the secret: an administrator cannot know which one a program has.
    for way in [AuthType::BasicAuth, AuthType::RequestBody] {
        let client = BasicClient::new(ClientId::new(text("client_id")?))
            .set_client_secret(ClientSecret::new(text("client_secret")?))
            .set_auth_uri(AuthUrl::new(at("/oauth/authorize")?)?)
            .set_token_uri(TokenUrl::new(at("/oauth/token")?)?)
            .set_revocation_url(RevocationUrl::new(
                at("/oauth/revoke")?.replacen("http://", "https://", 1),
            )?)
            .set_introspection_url(IntrospectionUrl::new(at("/oauth/introspect")?)?)
            .set_redirect_uri(RedirectUrl::new(REDIRECT_URI.to_owned())?)
            .set_auth_type(way);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (url, state) = client
            .authorize_url(CsrfToken::new_random)
            .add_scope(Scope::new("mcp".to_owned()))
            .add_extra_param("resource", scene.published.url.clone())
            .set_pkce_challenge(challenge)
            .url();
        let back = scene.owner.agree(url.as_str()).await?;
        let of = |name: &str| query(&back, name).context("a parameter");
        ensure!(of("state")? == *state.secret(), "AUTH-A6");
        let tokens = client
            .exchange_code(AuthorizationCode::new(of("code")?))
            .set_pkce_verifier(verifier)
            .request_async(&http)
            .await?;
        let refresh = tokens.refresh_token().context("a refresh token")?.clone();
        let mcp =
            McpClient::new(&scene.published.url)?.with_token(tokens.access_token().secret())?;
        ensure!(mcp.modern("tools/list", json!({})).await?.status == StatusCode::OK);
        let renewed = client
            .exchange_refresh_token(&RefreshToken::new(refresh.secret().clone()))
            .request_async(&http)
            .await?;
        // AUTH-R8: an ordinary client may not introspect tokens, and gets an error that the library
        // understands.
        let looked = client
            .introspect(renewed.access_token())
            .request_async(&http)
            .await;
        ensure!(
            matches!(looked, Err(RequestTokenError::ServerResponse(_))),
            "a typed refusal"
        );
        let revoked = renewed.refresh_token().context("a refresh token")?.clone();
        client
            .revoke_token(StandardRevocableToken::RefreshToken(revoked.clone()))?
            .request_async(&http)
            .await?;
        let gone = client
            .exchange_refresh_token(&revoked)
            .request_async(&http)
            .await;
        ensure!(
            matches!(&gone, Err(RequestTokenError::ServerResponse(error)) if *error.error() == BasicErrorResponseType::InvalidGrant),
            "{gone:?}"
        );
    }
    Ok(())
}
