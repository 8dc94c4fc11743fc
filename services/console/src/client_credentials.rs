//! The credential of a client: public keys, or a secret. A client may have two secrets at a time. Service
//! accounts and registered clients have it in one way (AUTH-C16, AUTH-C17).

use axum::{
    Json,
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};
use portolan_keys::{ClientKeys, SecretToken, TokenForm, digest};
use portolan_model::{
    Timestamp,
    client::{AuthMethod, ClientKind as StoredKind},
    id::{ClientId, ClientSecretId, ClientSecretKind, Id, Kind, TenantId},
    member::Action,
};
use portolan_oauth::clients::described::check_url;
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
    target::ConsolePage,
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    oauth::{
        client_proofs, client_secrets,
        clients::{self, NewClient},
    },
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    input::{Part, PathId},
    workspace::Workspace,
};

/// Largest key set that a form may contain, in bytes of JSON.
const MAX_JWKS_BYTES: usize = 16 * 1024;

/// The visible part of a secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClientSecret {
    #[schema(value_type = String)]
    id: ClientSecretId,
    /// Its first characters.
    hint: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Time when it last proved the account.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
}

/// A secret that was just created. It is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewSecret {
    /// The secret as lists show it.
    secret: ClientSecret,
    /// The secret itself.
    client_secret: String,
}

/// The public keys of an account, or their address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublicKeysBody {
    /// A JWK set.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    jwks: Option<Value>,
    /// Or its address.
    #[serde(default)]
    jwks_uri: Option<String>,
}

/// The part `{secret}` of a path.
#[derive(Debug)]
pub(crate) struct SecretPart;

impl Part for SecretPart {
    const NAME: &'static str = "secret";
    type Kind = ClientSecretKind;
}

/// The visible credentials of some clients.
pub(crate) struct Credentials(Vec<client_secrets::ClientSecret>);

/// The visible credential of one client.
pub(crate) struct Credential {
    pub(crate) secrets: Vec<ClientSecret>,
    pub(crate) jwks_uri: Option<String>,
    pub(crate) jwks: Option<Value>,
}

impl Credentials {
    /// Reads the secrets of the clients.
    pub(crate) async fn read(
        tx: &mut SystemTx,
        clients: impl Iterator<Item = ClientId>,
    ) -> Result<Self, StorageError> {
        let clients: Vec<ClientId> = clients.collect();
        client_secrets::list(tx, &clients).await.map(Self)
    }

    /// The credential of one of the clients; its metadata has the keys.
    pub(crate) fn of(&self, client: ClientId, metadata: &Value) -> Credential {
        let own = self.0.iter().filter(|secret| secret.client == client);
        let view = |secret: &client_secrets::ClientSecret| ClientSecret {
            id: secret.id,
            hint: secret.hint.clone(),
            created_at: secret.created_at,
            last_used_at: secret.last_used_at,
        };
        let uri = metadata.get("jwks_uri").and_then(Value::as_str);
        Credential {
            secrets: own.map(view).collect(),
            jwks_uri: uri.map(str::to_owned),
            jwks: metadata.get("jwks").cloned(),
        }
    }
}

/// A client that the console creates, beside its credential.
pub(crate) struct NewOwner<'a> {
    pub(crate) id: ClientId,
    pub(crate) client_id: &'a str,
    pub(crate) kind: StoredKind,
    pub(crate) name: &'a str,
    pub(crate) application_type: &'a str,
    pub(crate) grant_types: &'a [String],
    pub(crate) redirect_uris: &'a [String],
}

/// How a new client proves itself.
pub(crate) struct NewCredential {
    method: AuthMethod,
    metadata: Value,
}

impl NewCredential {
    /// Checks the keys if the method needs them; other methods need none.
    pub(crate) fn checked(
        method: AuthMethod,
        jwks: Option<Value>,
        jwks_uri: Option<String>,
    ) -> Result<Self, ConsoleError> {
        let metadata = match method {
            AuthMethod::PrivateKeyJwt => key_metadata(PublicKeysBody { jwks, jwks_uri })?,
            _ => json!({}),
        };
        Ok(Self { method, metadata })
    }

    /// Registers the client, and returns its secret if it has one.
    pub(crate) async fn register(
        &self,
        tx: &mut SystemTx,
        tenant: TenantId,
        owner: &NewOwner<'_>,
        now: Timestamp,
    ) -> Result<Option<String>, ConsoleError> {
        let secret = if self.method.has_secret() {
            Some(SecretToken::generate(TokenForm::ClientSecret)?)
        } else {
            None
        };
        let secret = secret.as_ref();
        let client = NewClient {
            id: owner.id,
            client_id: owner.client_id,
            kind: owner.kind,
            tenant: Some(tenant),
            name: owner.name,
            metadata: &self.metadata,
            metadata_digest: digest(owner.client_id.as_bytes()),
            auth_method: self.method,
            application_type: owner.application_type,
            grant_types: owner.grant_types,
            redirect_uris: owner.redirect_uris,
            secret: secret.map(|secret| (secret.digest(), secret.hint())),
            ip_block: None,
        };
        clients::register(tx, &client, now).await?;
        Ok(secret.map(|secret| secret.expose().to_owned()))
    }
}

/// Checks a client's public keys or their address, and returns them as metadata.
fn key_metadata(keys: PublicKeysBody) -> Result<Value, ConsoleError> {
    let invalid =
        |field, message: String| Err(ConsoleError::invalid("keys_invalid", message).field(field));
    match (keys.jwks, keys.jwks_uri) {
        (Some(jwks), None) => {
            if jwks.to_string().len() > MAX_JWKS_BYTES {
                return invalid("jwks", "The key set is larger than 16 KiB.".to_owned());
            }
            match ClientKeys::read(&jwks) {
                Ok(_) => Ok(json!({ "jwks": jwks })),
                Err(fault) => invalid("jwks", format!("This key set cannot be used: {fault}.")),
            }
        }
        (None, Some(uri)) => match check_url(uri.trim()) {
            Ok(url) => Ok(json!({ "jwks_uri": url.as_str() })),
            Err(_) => invalid(
                "jwks_uri",
                "Give an https address with a host name and a path, without query.".to_owned(),
            ),
        },
        _ => invalid(
            "jwks",
            "Give either the public keys or the address where they stand.".to_owned(),
        ),
    }
}

/// The words of one kind of owner: in refusals and in the audit log.
pub(crate) struct OwnerWords {
    /// The kind of the target in the audit log.
    pub(crate) target: &'static str,
    /// Where a recent sign-in leads back to.
    pub(crate) page: ConsolePage,
    /// Code and text of the refusal of keys.
    pub(crate) no_keys: [&'static str; 2],
    /// Code and text of the refusal of a secret.
    pub(crate) no_secrets: [&'static str; 2],
    pub(crate) keys_replaced: &'static str,
    pub(crate) secret_added: &'static str,
    pub(crate) secret_revoked: &'static str,
}

/// A kind of id that names the owner of a credential.
pub(crate) trait CredentialOwner: Kind + Sized {
    const WORDS: OwnerWords;

    /// The OAuth client of the owner and its method, or 404.
    async fn client(
        tx: &mut SystemTx,
        workspace: &Workspace,
        id: Id<Self>,
        now: Timestamp,
    ) -> Result<(ClientId, AuthMethod), ConsoleError>;

    /// Ends what the owner got with a credential that was withdrawn. Returns the epoch from which
    /// its tokens are valid, if it has one.
    async fn withdraw(
        tx: &mut SystemTx,
        workspace: &Workspace,
        id: Id<Self>,
        now: Timestamp,
    ) -> Result<Option<i32>, StorageError>;

    /// Notifies the nodes of this process of an epoch; the others read it from the feed.
    fn notify(state: &AuthState, id: Id<Self>, epoch: Option<i32>);
}

/// A change of the credential of the owner in a path. The extractor answers 403 unless the member is
/// an administrator.
#[derive(Debug)]
pub(crate) struct CredentialChange<K: CredentialOwner> {
    pub(crate) state: AuthState,
    pub(crate) workspace: Workspace,
    pub(crate) id: Id<K>,
    /// The time of the change.
    pub(crate) now: Timestamp,
    context: RequestContext,
}

impl<K: CredentialOwner> FromRequestParts<AuthState> for CredentialChange<K> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AuthState) -> Result<Self, Response> {
        let workspace = Workspace::from_request_parts(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        workspace
            .require(Action::Administer)
            .map_err(IntoResponse::into_response)?;
        let PathId(id) = PathId::from_request_parts(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        Ok(Self {
            context: RequestContext::from_request_parts(parts, state).await?,
            state: state.clone(),
            workspace,
            id,
            now: state.now(),
        })
    }
}

impl<K: CredentialOwner> CredentialChange<K> {
    /// Begins a transaction.
    pub(crate) async fn begin(&self) -> Result<SystemTx, StorageError> {
        self.state.store.system(Reason::Workspaces).await
    }

    /// Replaces the public keys of an owner that proves itself by key.
    pub(crate) async fn replace_keys(&self, keys: PublicKeysBody) -> Result<(), ConsoleError> {
        let metadata = key_metadata(keys)?;
        self.workspace.require_recent(self.now, K::WORDS.page)?;
        let mut tx = self.begin().await?;
        let (client, method) = K::client(&mut tx, &self.workspace, self.id, self.now).await?;
        if method != AuthMethod::PrivateKeyJwt {
            let [code, text] = K::WORDS.no_keys;
            return Err(ConsoleError::conflict(code, text));
        }
        clients::set_metadata(&mut tx, client, &metadata).await?;
        client_proofs::forget_key_set(&mut tx, client).await?;
        let epoch = K::withdraw(&mut tx, &self.workspace, self.id, self.now).await?;
        self.commit(tx, K::WORDS.keys_replaced, json!({})).await?;
        K::notify(&self.state, self.id, epoch);
        Ok(())
    }

    /// Adds a secret, if the owner may have one more.
    pub(crate) async fn add_secret(&self) -> Result<(StatusCode, Json<NewSecret>), ConsoleError> {
        self.workspace.require_recent(self.now, K::WORDS.page)?;
        let mut tx = self.begin().await?;
        let (client, method) = K::client(&mut tx, &self.workspace, self.id, self.now).await?;
        if !method.has_secret() {
            let [code, text] = K::WORDS.no_secrets;
            return Err(ConsoleError::conflict(code, text));
        }
        let secret = SecretToken::generate(TokenForm::ClientSecret)?;
        let id = client_secrets::add(&mut tx, client, &secret.digest(), secret.hint(), self.now)
            .await?
            .ok_or_else(|| {
                ConsoleError::conflict(
                    "too_many_secrets",
                    "There are two secrets already. Revoke the one that is not used any more first.",
                )
            })?;
        self.commit(tx, K::WORDS.secret_added, json!({ "secret": id }))
            .await?;
        let new = NewSecret {
            secret: ClientSecret {
                id,
                hint: secret.hint().to_owned(),
                created_at: self.now,
                last_used_at: None,
            },
            client_secret: secret.expose().to_owned(),
        };
        Ok((StatusCode::CREATED, Json(new)))
    }

    /// Revokes a secret: from now on it proves nothing.
    pub(crate) async fn revoke_secret(
        &self,
        secret: ClientSecretId,
    ) -> Result<StatusCode, ConsoleError> {
        let mut tx = self.begin().await?;
        let (client, _) = K::client(&mut tx, &self.workspace, self.id, self.now).await?;
        if !client_secrets::revoke(&mut tx, client, secret, self.now).await? {
            return Err(ConsoleError::not_found("this secret"));
        }
        let epoch = K::withdraw(&mut tx, &self.workspace, self.id, self.now).await?;
        self.commit(tx, K::WORDS.secret_revoked, json!({ "secret": secret }))
            .await?;
        K::notify(&self.state, self.id, epoch);
        Ok(StatusCode::NO_CONTENT)
    }

    async fn commit(
        &self,
        mut tx: SystemTx,
        action: &'static str,
        detail: Value,
    ) -> Result<(), ConsoleError> {
        let event = self
            .workspace
            .event(action, K::WORDS.target, self.id, detail);
        audit::record(&mut tx, &event, &self.context.origin(), self.now).await?;
        Ok(tx.commit().await?)
    }
}
