//! The sealed part of an endpoint: signing secrets, headers, and a URL that is a secret (HOOK-5).

use portolan_keys::{
    DataKey, Keys, KeysError, OpenError, WebhookSecret,
    vault::{credential_place, data_key_owner},
};
use portolan_model::{
    Timestamp,
    id::{TenantId, WebhookId},
};
use portolan_storage::{registry::credentials::WrappedKey, webhooks::endpoints::SealedEndpoint};
use serde::{Deserialize, Serialize};

/// The sealed value. No `Debug`: it holds secrets.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct EndpointSecrets {
    /// The whole URL.
    pub url: String,
    /// Headers of the endpoint's own: names and values.
    pub headers: Vec<(String, String)>,
    /// Text forms (`whsec_…`), the present one first; the previous one after it. Empty for Slack.
    pub secrets: Vec<String>,
}

impl std::fmt::Debug for EndpointSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointSecrets").finish_non_exhaustive()
    }
}

/// Why a sealed part does not open or close.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The seal is of another place or key.
    #[error("the secrets of an endpoint do not open")]
    Open(#[from] OpenError),
    /// The value cannot be sealed.
    #[error("the secrets of an endpoint cannot be sealed")]
    Seal(#[from] KeysError),
    /// The seal holds another form.
    #[error("the secrets of an endpoint do not read")]
    Form(#[from] serde_json::Error),
}

/// The identity of an endpoint, which its seal is bound to.
#[derive(Debug, Clone, Copy)]
pub struct EndpointPlace {
    /// Its workspace.
    pub tenant: TenantId,
    /// Its id.
    pub endpoint: WebhookId,
}

impl EndpointPlace {
    fn data_key(self, keys: &Keys, key: &WrappedKey, now: Timestamp) -> Result<DataKey, OpenError> {
        let owner = data_key_owner(self.tenant.uuid().into_bytes(), key.id.into_bytes());
        keys.open_data_key(&owner, &key.wrapped, now)
    }

    fn of_version(self, version: i32) -> Vec<u8> {
        // The label keeps it apart from credentials, whose place has the same parts.
        let place = credential_place(
            self.tenant.uuid().into_bytes(),
            self.endpoint.uuid().into_bytes(),
            version,
        );
        [b"webhook\0".as_slice(), &place].concat()
    }

    /// Seals under a data key of the workspace.
    pub fn seal(
        self,
        keys: &Keys,
        key: WrappedKey,
        version: i32,
        secrets: &EndpointSecrets,
        now: Timestamp,
    ) -> Result<SealedEndpoint, SecretsError> {
        let plaintext = serde_json::to_vec(secrets)?;
        let sealed = self
            .data_key(keys, &key, now)?
            .seal(&self.of_version(version), &plaintext)?;
        Ok(SealedEndpoint {
            sealed,
            key,
            version,
        })
    }

    /// Opens a stored part.
    pub fn open(
        self,
        keys: &Keys,
        stored: &SealedEndpoint,
        now: Timestamp,
    ) -> Result<EndpointSecrets, SecretsError> {
        let plaintext = self.data_key(keys, &stored.key, now)?.open(
            &self.of_version(stored.version),
            &stored.sealed,
            now,
        )?;
        Ok(serde_json::from_slice(plaintext.expose())?)
    }
}

impl EndpointSecrets {
    /// Names of the headers, which may be shown.
    pub fn header_names(&self) -> Vec<String> {
        self.headers.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The secrets that sign now: the present one, and the previous one until its end.
    pub fn signing(&self, previous_until: Option<Timestamp>, now: Timestamp) -> Vec<WebhookSecret> {
        let both = previous_until.is_some_and(|until| now < until);
        self.secrets
            .iter()
            .take(if both { 2 } else { 1 })
            .filter_map(|text| WebhookSecret::parse(text))
            .collect()
    }
}
