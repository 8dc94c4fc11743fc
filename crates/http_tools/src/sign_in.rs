//! Signs in to an API: the headers and the URL that open it.

use http::HeaderMap;
use portolan_net::egress::Egress;
use url::Url;

use crate::{
    credential::{CredentialSlot, InvalidCredential},
    proof::Proof,
    token_source::{TokenError, TokenSource},
};

/// Why a request cannot be signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// There is no access token.
    #[error("there is no access token, because {0}")]
    Token(#[from] TokenError),
    /// The credential does not fit into a request.
    #[error("{0}")]
    Credential(#[from] InvalidCredential),
}

impl SignInError {
    /// Evidence of this failure about the credential.
    pub fn proof(&self) -> Option<Proof> {
        match self {
            Self::Token(error) => error.proof(),
            Self::Credential(_) => None,
        }
    }
}

impl CredentialSlot {
    /// What opens an API, for requests that are made elsewhere: complete headers, and the URL with
    /// what belongs into its query.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn sign_in(
        &self,
        egress: &Egress,
        tokens: &TokenSource,
        url: &mut Url,
    ) -> Result<HeaderMap, SignInError> {
        let token = tokens.token(egress, self).await?;
        let mut headers = HeaderMap::new();
        self.apply(url, &mut headers, token.as_deref())?;
        Ok(headers)
    }
}
