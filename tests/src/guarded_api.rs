//! A third-party HTTP API that requires the tokens of its own authorization server (oidc-provider),
//! and knows each person by their account there: `tests/oauth-provider/api.mjs`.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use url::Url;

use crate::{authority::Authority, browser::Page, console::text, person::Person};

/// Secret of the client `app`.
pub const SECRET: &str = "app-secret-of-32-characters-or-more-than-that";

/// Running. Stopped when dropped.
#[derive(Debug)]
pub struct GuardedApi {
    /// Issues its tokens.
    pub authority: Authority,
    base_url: String,
    elsewhere: String,
}

impl GuardedApi {
    /// Starts it. The authorization server knows no client yet.
    pub async fn start() -> Result<Self> {
        let authority = Authority::run("api.mjs", &[], String::new())?;
        let seen = authority.seen().await?;
        Ok(Self {
            base_url: text(&seen, "api")?,
            elsewhere: text(&seen, "elsewhere")?,
            authority,
        })
    }

    /// The setting `egress_allow` that lets tools call the API, its authorization server, and the origin that is neither.
    #[must_use]
    pub fn allowed(&self) -> String {
        let origins = [&self.authority.issuer(), &self.base_url, &self.elsewhere];
        origins
            .map(|origin| origin.replace("http://", ""))
            .join(",")
    }

    /// Where its calls go.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// An origin to which it redirects, and no token may go.
    #[must_use]
    pub fn elsewhere(&self) -> &str {
        &self.elsewhere
    }

    /// Its OpenAPI 3.1 document.
    #[must_use]
    pub fn document(&self) -> Value {
        let issuer = self.authority.issuer();
        let operation = |id: &str| {
            json!({
                "operationId": id, "summary": id,
                "responses": {"200": {"description": "Done", "content": {"application/json": {"schema": {"type": "object"}}}}},
            })
        };
        let mut add = operation("add_note");
        add["requestBody"] = json!({"required": true, "content": {"application/json": {
            "schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        }}});
        let flow = json!({
            "authorizationUrl": format!("{issuer}/auth"), "tokenUrl": format!("{issuer}/token"),
            "scopes": {"read": "Reads", "write": "Writes"},
        });
        json!({
            "openapi": "3.1.0", "info": {"title": "Notes", "version": "1"}, "servers": [{"url": self.base_url}],
            "components": {"securitySchemes": {"account": {"type": "oauth2", "flows": {"authorizationCode": flow}}}},
            "paths": {
                "/me": {"get": operation("whoami")}, "/notes": {"post": add},
                "/away": {"get": operation("away")}, "/refuses": {"get": operation("refuses")},
            },
        })
    }

    /// The settings of the authorization server that a tenant enters: its addresses, and the client
    /// `app`.
    #[must_use]
    pub fn sign_in(&self, sharing: &str) -> Value {
        let issuer = self.authority.issuer();
        json!({
            "sharing": sharing, "scope": "read",
            "server": {
                "authorization_endpoint": format!("{issuer}/auth"), "token_endpoint": format!("{issuer}/token"),
                "revocation_endpoint": format!("{issuer}/token/revocation"),
            },
            "client": {"client_id": "app", "client_secret": SECRET, "auth": "post"},
        })
    }

    /// The requests to the API as `Authorization`, oldest first.
    pub async fn authorizations(&self) -> Result<Vec<String>> {
        let seen = self.authority.seen().await?;
        Ok(serde_json::from_value(seen["authorizations"].clone())?)
    }

    /// `who` goes on from the page of a link, is `account` at the authorization server, and comes back: what Portolan shows then.
    pub async fn link(&self, who: &Person, url: &str, account: &str) -> Result<Page> {
        self.authority.set(json!({ "who": account })).await?;
        let page = who.browser.open(url).await?;
        let form = page.form_with("form_token");
        let form = form.with_context(|| format!("{} {}", page.status, page.text()))?;
        let page = who.browser.submit(form).await?;
        let away = page.leaves_to.clone();
        let away = away.with_context(|| format!("{} {}", page.status, page.text()))?;
        let back: Url = self.authority.consent(away.as_str()).await?;
        who.browser.open(back.as_str()).await
    }
}
