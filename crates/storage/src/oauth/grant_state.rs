//! Reads a grant and all that decides whether it may act now (AUTH-K16), in one query. Each issuer
//! of a token calls it in the transaction that issues. The query is a database function
//! (`grant_states`), because a refresh needs it in one message together with others (ADR 31).

use portolan_model::{
    Digest, Timestamp,
    admission::{ClientDecision, ClientRule},
    id::{FamilyId, GrantId},
    scope::ScopeSet,
    token_family::Presented,
};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    StorageError, SystemTx,
    oauth::{
        client_admission,
        clients::{self, Client},
        factor_rules,
        grants::{Grant, GrantStatus},
    },
    query_batcher::slot_of,
};

/// A grant and what stands around it.
#[derive(Debug, Clone)]
pub struct GrantState {
    /// The grant.
    pub grant: Grant,
    /// Of its person in its tenant, as [`crate::oauth::grants::standing`] reads it; `None` if they
    /// never were a member.
    pub standing: Option<GrantStatus>,
    /// Whether the rule by which provider members have to come lets it act: the person had come by
    /// the provider that is required, or is an owner who had come with a passkey (AUTH-F7).
    pub is_admitted_by_provider: bool,
    /// How the person had proved themselves.
    amr: Vec<String>,
    /// They had come by the tenant's own provider, in a session that opens nothing else.
    is_by_provider: bool,
    /// The tenant's rules and its decision about the client, as stored. They are parsed on use, so
    /// that an unreadable one does not block a refusal that does not depend on it.
    second_factor: Option<String>,
    client_rule: Option<String>,
    client_decision: Option<String>,
}

impl GrantState {
    /// Whether the person had proved themselves as the tenant asks by now (AUTH-L14).
    pub fn meets_second_factor(&self) -> Result<bool, StorageError> {
        // A person who signed in through the tenant's own provider authenticated there.
        if self.is_by_provider {
            return Ok(true);
        }
        Ok(factor_rules::read(self.second_factor.as_deref())?.is_met_by(&self.amr))
    }

    /// The tenant's current rule about the client of the grant (AUTH-M7).
    pub fn client_rule(&self) -> Result<(ClientRule, Option<ClientDecision>), StorageError> {
        Ok((
            client_admission::read_rule(self.client_rule.as_deref())?,
            client_admission::read_decision(self.client_decision.as_deref())?,
        ))
    }
}

/// Which grant is meant.
pub(crate) enum Of<'a> {
    /// This one.
    Id(GrantId),
    /// That of a refresh token.
    Token(&'a Digest),
    /// The same, with the client of this wire id.
    TokenAndClient(&'a Digest, &'a str),
}

/// The grant state and the refresh token that were found.
pub(crate) struct Present {
    pub(crate) state: GrantState,
    /// If a refresh token was asked for.
    pub(crate) token: Option<TokenState>,
    /// If a client was asked for.
    pub(crate) client: Option<Client>,
}

/// A refresh token of the grant, its family and the head of that.
pub(crate) struct TokenState {
    pub(crate) family: FamilyId,
    pub(crate) presented: Presented,
    pub(crate) successor_sealed: Option<Vec<u8>>,
}

/// The grant with this id, and what stands around it.
pub async fn find(tx: &mut SystemTx, id: GrantId) -> Result<Option<GrantState>, StorageError> {
    let present = read(tx.connection(), Of::Id(id)).await?;
    Ok(present.map(|present| present.state))
}

/// Reads it in one look. `None` if anything is not there that was asked for.
pub(crate) async fn read(
    connection: &mut PgConnection,
    of: Of<'_>,
) -> Result<Option<Present>, StorageError> {
    read_all(connection, [of]).await?.pop().unwrap_or(Ok(None))
}

/// Reads all of them in one look, each in its place.
pub(crate) async fn read_all<'a>(
    connection: &mut PgConnection,
    all: impl IntoIterator<Item = Of<'a>>,
) -> Result<Vec<Result<Option<Present>, StorageError>>, StorageError> {
    let (mut ids, mut tokens, mut clients) = (Vec::new(), Vec::new(), Vec::new());
    for of in all {
        let (id, token, client) = match of {
            Of::Id(id) => (Some(id.uuid()), None, None),
            Of::Token(token) => (None, Some(token), None),
            Of::TokenAndClient(token, client) => (None, Some(token), Some(client)),
        };
        ids.push(id);
        tokens.push(token.map(|digest| digest.as_bytes().as_slice()));
        clients.push(client);
    }
    let mut present: Vec<_> = ids.iter().map(|_| Ok(None)).collect();
    let rows = sqlx::query_as!(
        GrantStateRow,
        r#"select place as "place!", client_ref, client_id, client_kind, client_tenant, client_name, client_metadata, client_metadata_digest,
             client_auth_method, client_grant_types, client_status, client_redirect_uris,
             family_id, family_generation, family_idle_expires_at, family_expires_at, family_revoked_at,
             token_generation, token_superseded_at, token_successor_sealed, token_replays, head_presented,
             grant_id as "grant_id!", grant_tenant as "grant_tenant!", grant_user as "grant_user!", grant_client as "grant_client!",
             grant_scopes as "grant_scopes!", grant_resource as "grant_resource!", grant_auth_time as "grant_auth_time!",
             grant_expires_at as "grant_expires_at!", grant_revoked_at, grant_amr as "grant_amr!", is_key_bound as "is_key_bound!",
             second_factor, client_rule, client_decision, is_by_provider as "is_by_provider!",
             is_admitted_by_provider as "is_admitted_by_provider!", user_epoch, tenant_epoch as "tenant_epoch!", member_epoch,
             is_active as "is_active!"
           from grant_states($1, $2, $3)"#,
        ids.as_slice() as &[Option<Uuid>],
        tokens.as_slice() as &[Option<&[u8]>],
        clients.as_slice() as &[Option<&str>],
    )
    .fetch_all(connection)
    .await?;
    for row in rows {
        if let Some(present) = slot_of(&mut present, row.place) {
            *present = read_row(row).map(Some);
        }
    }
    Ok(present)
}

/// A row of the database function. A column that was not requested, or has no value, is null.
struct GrantStateRow {
    place: i64,
    client_ref: Option<Uuid>,
    client_id: Option<String>,
    client_kind: Option<String>,
    client_tenant: Option<Uuid>,
    client_name: Option<String>,
    client_metadata: Option<Value>,
    client_metadata_digest: Option<Vec<u8>>,
    client_auth_method: Option<String>,
    client_grant_types: Option<Vec<String>>,
    client_status: Option<String>,
    client_redirect_uris: Option<Vec<String>>,
    family_id: Option<Uuid>,
    family_generation: Option<i32>,
    family_idle_expires_at: Option<Timestamp>,
    family_expires_at: Option<Timestamp>,
    family_revoked_at: Option<Timestamp>,
    token_generation: Option<i32>,
    token_superseded_at: Option<Timestamp>,
    token_successor_sealed: Option<Vec<u8>>,
    token_replays: Option<i32>,
    head_presented: Option<bool>,
    grant_id: Uuid,
    grant_tenant: Uuid,
    grant_user: Uuid,
    grant_client: Uuid,
    grant_scopes: Vec<String>,
    grant_resource: String,
    grant_auth_time: Timestamp,
    grant_expires_at: Timestamp,
    grant_revoked_at: Option<Timestamp>,
    grant_amr: Vec<String>,
    is_key_bound: bool,
    second_factor: Option<String>,
    client_rule: Option<String>,
    client_decision: Option<String>,
    is_by_provider: bool,
    is_admitted_by_provider: bool,
    user_epoch: Option<i32>,
    tenant_epoch: i32,
    member_epoch: Option<i32>,
    is_active: bool,
}

impl GrantStateRow {
    /// The standing of the person; `None` if they are no member.
    fn standing(&self) -> Option<GrantStatus> {
        Some(GrantStatus {
            is_active: self.is_active,
            user_epoch: self.user_epoch?,
            tenant_epoch: self.tenant_epoch,
            member_epoch: self.member_epoch?,
        })
    }

    /// The refresh token, if the row has one.
    fn token(&mut self) -> Option<TokenState> {
        Some(TokenState {
            family: self.family_id?.into(),
            presented: Presented {
                generation: self.token_generation?,
                head_generation: self.family_generation?,
                superseded_at: self.token_superseded_at,
                head_presented: self.head_presented?,
                replays: self.token_replays?,
                idle_expires_at: self.family_idle_expires_at?,
                expires_at: self.family_expires_at?,
                revoked: self.family_revoked_at.is_some(),
            },
            successor_sealed: self.token_successor_sealed.take(),
        })
    }

    /// The client, if the row has it.
    fn client(&mut self) -> Option<clients::ClientRow> {
        Some(clients::ClientRow {
            id: self.client_ref?,
            client_id: self.client_id.take()?,
            kind: self.client_kind.take()?,
            tenant_id: self.client_tenant,
            name: self.client_name.take()?,
            metadata: self.client_metadata.take()?,
            metadata_digest: self.client_metadata_digest.take()?,
            auth_method: self.client_auth_method.take()?,
            grant_types: self.client_grant_types.take()?,
            status: self.client_status.take()?,
            redirect_uris: self.client_redirect_uris.take()?,
        })
    }
}

fn read_row(mut row: GrantStateRow) -> Result<Present, StorageError> {
    let (standing, token) = (row.standing(), row.token());
    let client = row.client().map(Client::try_from).transpose()?;
    let state = GrantState {
        grant: Grant {
            id: row.grant_id.into(),
            tenant: row.grant_tenant.into(),
            user: row.grant_user.into(),
            client: row.grant_client.into(),
            scopes: ScopeSet::from_stored(&row.grant_scopes),
            resource: row.grant_resource,
            auth_time: row.grant_auth_time,
            expires_at: row.grant_expires_at,
            is_revoked: row.grant_revoked_at.is_some(),
            is_key_bound: row.is_key_bound,
        },
        standing,
        is_admitted_by_provider: row.is_admitted_by_provider,
        amr: row.grant_amr,
        is_by_provider: row.is_by_provider,
        second_factor: row.second_factor,
        client_rule: row.client_rule,
        client_decision: row.client_decision,
    };
    Ok(Present {
        state,
        token,
        client,
    })
}
