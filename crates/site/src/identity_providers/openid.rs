//! OpenID Connect: the ID token identifies the person (AUTH-F2).

use portolan_keys::{Expected, IdToken, IdTokenError, assertion::ALGORITHMS, id_token};
use portolan_model::email::EmailAddress;
use portolan_upstream::oauth::{AuthorizationServer, Grant, Tokens, bearer, redeem};
use serde::Deserialize;

use crate::identity_providers::{
    Code, Exchange, Proved, ProviderClient, SubjectOf, Unproved, cleaned,
};

/// An OpenID provider.
#[derive(Debug, Clone)]
pub struct OpenId {
    /// The issuer, byte for byte as the provider writes it.
    pub issuer: String,
    /// The requested scopes, including `openid`.
    pub scope: String,
    /// The accepted signature algorithms of ID tokens. `None` means those in the provider's
    /// metadata that this service supports.
    pub algorithms: Option<Vec<String>>,
    /// The claims that identify a person.
    pub subject: SubjectOf,
}

/// Claims of the userinfo endpoint (OpenID Connect Core §5.3).
#[derive(Deserialize)]
struct UserInfo {
    sub: String,
    email: Option<String>,
    email_verified: Option<id_token::Flag>,
    name: Option<String>,
    preferred_username: Option<String>,
}

impl OpenId {
    /// Creates a provider with the defaults of the standard.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            scope: "openid email profile".to_owned(),
            algorithms: None,
            subject: SubjectOf::default(),
        }
    }

    /// Redeems the code and returns the person of the ID token.
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
        let tokens = redeem(
            exchange.egress,
            server,
            &identity,
            grant,
            None,
            None,
            exchange.now,
        )
        .await?;
        let mut token = self
            .verified(exchange, server, client, code.nonce, &tokens)
            .await?;
        if token.email.is_none()
            && let Some(address) = &server.userinfo_endpoint
        {
            self.complete(exchange, address, &tokens.access, &mut token)
                .await;
        }
        self.read(token)
    }

    /// Adds the claims of the userinfo endpoint. The ID token already identifies the person, so a
    /// failed request does not prevent the sign-in.
    async fn complete(
        &self,
        exchange: &Exchange<'_>,
        address: &str,
        access: &str,
        token: &mut IdToken,
    ) {
        let told = bearer(exchange.egress, address, access)
            .await
            .ok()
            .and_then(|told| serde_json::from_value::<UserInfo>(told).ok());
        let Some(told) = told else {
            tracing::info!(issuer = self.issuer, "no word of the userinfo endpoint");
            return;
        };
        // OpenID Connect Core §5.3.2: with another `sub` the claims describe another person.
        if told.sub == token.subject {
            token.email = told.email;
            token.email_verified = told.email_verified.map(|flag| flag.is_set());
            token.name = token.name.take().or(told.name);
            token.preferred_username = token.preferred_username.take().or(told.preferred_username);
        }
    }

    async fn verified(
        &self,
        exchange: &Exchange<'_>,
        server: &AuthorizationServer,
        client: &ProviderClient,
        nonce: &str,
        tokens: &Tokens,
    ) -> Result<IdToken, Unproved> {
        let text = tokens
            .id_token
            .as_deref()
            .ok_or(Unproved::Missing("an ID token"))?;
        let address = server
            .jwks_uri
            .as_deref()
            .ok_or(Unproved::Missing("a jwks_uri"))?;
        let algorithms = self.algorithms(server);
        let expected = Expected {
            issuer: &self.issuer,
            client_id: &client.id,
            nonce,
            access_token: &tokens.access,
            algorithms: &algorithms,
        };
        let known = exchange.known;
        let keys = known.keys(exchange, address).await?;
        match id_token::verify(text, &keys, &expected, exchange.now) {
            // The provider may just have rotated its keys.
            Err(IdTokenError::UnknownKey) => {
                let keys = known.newer_keys(exchange, address).await?;
                Ok(id_token::verify(text, &keys, &expected, exchange.now)?)
            }
            other => Ok(other?),
        }
    }

    /// The accepted algorithms: those that are set, or those in the metadata. Both are limited to
    /// the supported ones.
    fn algorithms(&self, server: &AuthorizationServer) -> Vec<String> {
        let named = self
            .algorithms
            .as_ref()
            .or(server.id_token_signing_alg_values_supported.as_ref());
        match named {
            None => vec!["RS256".to_owned()],
            Some(named) => named
                .iter()
                .filter(|name| ALGORITHMS.contains(&name.as_str()))
                .cloned()
                .collect(),
        }
    }

    fn read(&self, token: IdToken) -> Result<Proved, Unproved> {
        let subject = match self.subject {
            SubjectOf::Subject => token.subject,
            SubjectOf::Entra => match (&token.tid, &token.oid) {
                (Some(tid), Some(oid)) if !tid.is_empty() && !oid.is_empty() => {
                    format!("{tid}.{oid}")
                }
                _ => return Err(Unproved::Missing("tid and oid")),
            },
        };
        let label = cleaned([
            token.email.as_deref(),
            token.preferred_username.as_deref(),
            Some(&subject),
        ]);
        let email = token
            .email
            .as_deref()
            .and_then(|text| EmailAddress::parse(text).ok());
        Ok(Proved {
            issuer: self.issuer.clone(),
            label: label.unwrap_or_else(|| "?".to_owned()),
            name: cleaned([token.name.as_deref(), token.preferred_username.as_deref()]),
            email_verified: token.email_verified,
            email,
            subject,
            auth_time: token.auth_time,
        })
    }
}
