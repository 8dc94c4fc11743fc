//! An OAuth client of the tests' own, one request at a time, so that each can be wrong.

use std::{collections::BTreeMap, net::IpAddr};

use anyhow::{Context, Result, ensure};
use aws_lc_rs::{digest, rand};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::{Response, StatusCode, header};
use serde_json::{Value, json};
use url::Url;

use crate::person::Person;

/// The redirect address of the tests' client. No server listens there: the harness reads the
/// redirect instead of following it.
pub const REDIRECT_URI: &str = "http://127.0.0.1:41999/callback";

/// A registered public client.
#[derive(Debug, Clone)]
pub struct OAuthClient {
    http: reqwest::Client,
    issuer: Url,
    /// The result of registration.
    pub client_id: String,
}

/// A pair of PKCE values.
#[derive(Debug, Clone)]
pub struct Pkce {
    /// Stays with the client.
    pub verifier: String,
    /// Goes with the request.
    pub challenge: String,
}

impl Pkce {
    /// A new pair, S256.
    pub fn new() -> Result<Self> {
        let mut random = [0_u8; 32];
        rand::fill(&mut random).ok().context("randomness")?;
        let verifier = URL_SAFE_NO_PAD.encode(random);
        let challenge =
            URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()));
        Ok(Self {
            verifier,
            challenge,
        })
    }
}

/// The answer of the token endpoint.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// For the MCP endpoint.
    pub access: String,
    /// For the next access token.
    pub refresh: String,
    /// The whole answer.
    pub answer: Value,
}

impl OAuthClient {
    /// Registers a public client, as desktop clients do (RFC 7591).
    pub async fn register(issuer: &Url, name: &str) -> Result<Self> {
        Self::register_from(issuer, name, None).await
    }

    /// The same from a given address of this machine, because registrations from one address are
    /// limited.
    pub async fn register_from(issuer: &Url, name: &str, from: Option<IpAddr>) -> Result<Self> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .local_address(from)
            .build()?;
        let response = http
            .post(issuer.join("/oauth/register")?)
            .json(&registration(name))
            .send()
            .await?;
        let status = response.status();
        let body: Value = response.json().await?;
        ensure!(
            status == StatusCode::CREATED,
            "registration: {status} {body}"
        );
        Ok(Self {
            http,
            issuer: issuer.clone(),
            client_id: crate::console::text(&body, "client_id")?,
        })
    }

    /// The parameters of a correct authorization request.
    pub fn parameters(&self, resource: Option<&str>, pkce: &Pkce) -> BTreeMap<String, String> {
        let mut parameters: BTreeMap<String, String> = [
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", REDIRECT_URI),
            ("state", "a state & more"),
            ("code_challenge", &pkce.challenge),
            ("code_challenge_method", "S256"),
            ("scope", "mcp"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        if let Some(resource) = resource {
            parameters.insert("resource".to_owned(), resource.to_owned());
        }
        parameters
    }

    /// The address to open in a browser.
    pub fn authorize_url(&self, parameters: &BTreeMap<String, String>) -> Result<String> {
        let mut url = self.issuer.join("/oauth/authorize")?;
        url.query_pairs_mut().extend_pairs(parameters);
        Ok(url.into())
    }

    /// A request to the token endpoint.
    pub async fn token(&self, parameters: &[(&str, &str)]) -> Result<Response> {
        self.post("/oauth/token", parameters).await
    }

    /// Revokes a token: a refresh token ends its grant.
    pub async fn revoke(&self, token: &str) -> Result<Response> {
        let parameters = [("token", token), ("client_id", &self.client_id)];
        self.post("/oauth/revoke", &parameters).await
    }

    async fn post(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Response> {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        let request = self.http.post(self.issuer.join(path)?);
        Ok(request
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body)
            .send()
            .await?)
    }

    /// Redeems a code.
    pub async fn redeem(&self, code: &str, verifier: &str) -> Result<Response> {
        self.token(&[
            ("grant_type", "authorization_code"),
            ("client_id", &self.client_id),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", REDIRECT_URI),
        ])
        .await
    }

    /// Refreshes.
    pub async fn refresh(&self, refresh_token: &str) -> Result<Response> {
        self.token(&[
            ("grant_type", "refresh_token"),
            ("client_id", &self.client_id),
            ("refresh_token", refresh_token),
        ])
        .await
    }

    /// A code that `person` has agreed to, and its verifier.
    pub async fn code(&self, person: &Person, resource: Option<&str>) -> Result<(String, Pkce)> {
        let pkce = Pkce::new()?;
        let callback = person
            .agree(&self.authorize_url(&self.parameters(resource, &pkce))?)
            .await?;
        let code = query(&callback, "code").with_context(|| format!("no code in {callback}"))?;
        Ok((code, pkce))
    }

    /// The whole flow, through login and consent.
    pub async fn authorize(&self, person: &Person, resource: &str) -> Result<Tokens> {
        let (code, pkce) = self.code(person, Some(resource)).await?;
        tokens(self.redeem(&code, &pkce.verifier).await?).await
    }
}

/// Metadata of a public client with a loopback callback.
pub fn registration(name: &str) -> Value {
    json!({"client_name": name, "redirect_uris": [REDIRECT_URI], "grant_types": ["authorization_code", "refresh_token"],
           "response_types": ["code"], "token_endpoint_auth_method": "none"})
}

/// Reads a good answer of the token endpoint.
pub async fn tokens(response: Response) -> Result<Tokens> {
    let status = response.status();
    let answer: Value = response.json().await?;
    ensure!(
        status == StatusCode::OK,
        "token endpoint: {status} {answer}"
    );
    Ok(Tokens {
        access: crate::console::text(&answer, "access_token")?,
        refresh: answer["refresh_token"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        answer,
    })
}

/// A parameter of a callback.
pub fn query(url: &Url, name: &str) -> Option<String> {
    url.query_pairs()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}
