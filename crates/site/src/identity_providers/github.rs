//! GitHub: OAuth without OpenID. Its API identifies the owner of the token.

use portolan_model::email::EmailAddress;
use portolan_upstream::oauth::{AuthorizationServer, Grant, bearer, redeem};
use serde::Deserialize;

use crate::identity_providers::{Code, Exchange, Proved, ProviderClient, Unproved, cleaned};

/// GitHub, or a GitHub Enterprise server.
#[derive(Debug, Clone)]
pub struct Github {
    /// The address of the sign-in pages, without a slash at the end: `https://github.com`.
    pub base: String,
    /// The address of the API: `https://api.github.com`, `https://github.example.com/api/v3`.
    pub api: String,
}

impl Default for Github {
    fn default() -> Self {
        Self {
            base: "https://github.com".to_owned(),
            api: "https://api.github.com".to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct User {
    /// The numeric id. A login name can be given up and taken by another account (AUTH-F3).
    id: u64,
    login: String,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Email {
    email: String,
    #[serde(default)]
    primary: bool,
    #[serde(default)]
    verified: bool,
}

impl Github {
    /// Its endpoints. GitHub publishes no metadata document with them.
    pub fn server(&self) -> AuthorizationServer {
        AuthorizationServer {
            authorization_endpoint: Some(format!("{}/login/oauth/authorize", self.base)),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            token_endpoint_auth_methods_supported: Some(vec!["client_secret_post".to_owned()]),
            ..AuthorizationServer::bare(
                self.base.as_str(),
                format!("{}/login/oauth/access_token", self.base),
            )
        }
    }

    /// Redeems the code and returns the owner of the token.
    pub async fn proved(
        &self,
        exchange: &Exchange<'_>,
        server: &AuthorizationServer,
        client: &ProviderClient,
        code: &Code<'_>,
    ) -> Result<Proved, Unproved> {
        let grant = Grant::Code {
            code: code.code,
            verifier: code.verifier,
            redirect_uri: code.redirect_uri,
        };
        let identity = client.identity(server);
        let egress = exchange.egress;
        let tokens = redeem(egress, server, &identity, grant, None, None, exchange.now).await?;
        let user = bearer(egress, &format!("{}/user", self.api), &tokens.access).await?;
        let user: User = serde_json::from_value(user).map_err(|_| Unproved::Missing("a user"))?;
        // A person who does not share addresses enters one later.
        let listed = bearer(egress, &format!("{}/user/emails", self.api), &tokens.access).await;
        let emails: Vec<Email> = listed
            .ok()
            .and_then(|value| serde_json::from_value(value).ok())
            .unwrap_or_default();
        let primary = emails.into_iter().find(|email| email.primary);
        let email = primary
            .as_ref()
            .and_then(|email| EmailAddress::parse(&email.email).ok());
        let label = cleaned([Some(user.login.as_str())]);
        Ok(Proved {
            issuer: self.base.clone(),
            subject: user.id.to_string(),
            label: label.unwrap_or_else(|| user.id.to_string()),
            name: cleaned([user.name.as_deref(), Some(&user.login)]),
            email_verified: primary.map(|email| email.verified),
            email,
            auth_time: None,
        })
    }
}
