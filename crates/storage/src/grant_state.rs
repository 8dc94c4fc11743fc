//! A grant, and what decides whether it may act now (`auth.md` K16), as one read: whoever issues a token for it asks for all of this, in
//! the transaction that issues. The read is a function of the database (`grant_state`), because a refresh needs it in one message (ADR 31).

use portolan_model::{
    Digest,
    admission::{ClientDecision, ClientRule},
    id::{FamilyId, GrantId},
    scope::ScopeSet,
    token_family::Presented,
};
use sqlx::PgConnection;

use crate::{
    StorageError, SystemTx, client_admission,
    clients::{self, Client},
    factor_rules,
    grants::{Grant, Standing},
};

/// A grant and what stands around it.
#[derive(Debug, Clone)]
pub struct GrantState {
    /// The grant.
    pub grant: Grant,
    /// Of its person in its tenant, as [`crate::grants::standing`] reads it; `None` if they never were a member.
    pub standing: Option<Standing>,
    /// Whether the rule by which provider members have to come lets it act: the person had come by the provider that is required, or is an
    /// owner who had come with a passkey (F7).
    pub is_admitted_by_provider: bool,
    /// How the person had proved themselves.
    amr: Vec<String>,
    /// They had come by the tenant's own provider, in a session that opens nothing else.
    is_by_provider: bool,
    /// The tenant's rules and its decision about the client, as they are written. They are parsed when they are asked for: one that cannot be
    /// read must not stand in the way of a refusal that does not depend on it.
    second_factor: Option<String>,
    client_rule: Option<String>,
    client_decision: Option<String>,
}

impl GrantState {
    /// Whether the person had proved themselves as the tenant asks by now (L14).
    pub fn meets_second_factor(&self) -> Result<bool, StorageError> {
        // Whoever came by the tenant's own provider was asked there.
        if self.is_by_provider {
            return Ok(true);
        }
        Ok(factor_rules::read(self.second_factor.as_deref())?.is_met_by(&self.amr))
    }

    /// What the tenant says now about the client of the grant (M7).
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

/// What was found.
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
    let (id, token, client) = match of {
        Of::Id(id) => (Some(id.uuid()), None, None),
        Of::Token(token) => (None, Some(token), None),
        Of::TokenAndClient(token, client) => (None, Some(token), Some(client)),
    };
    let row = sqlx::query!(
        r#"select client_ref, client_id, client_kind, client_tenant, client_name, client_metadata, client_metadata_digest,
             client_auth_method, client_grant_types, client_status, client_redirect_uris,
             family_id, family_generation, family_idle_expires_at, family_expires_at, family_revoked_at,
             token_generation, token_superseded_at, token_successor_sealed, token_replays, head_presented,
             grant_id as "grant_id!", grant_tenant as "grant_tenant!", grant_user as "grant_user!", grant_client as "grant_client!",
             grant_scopes as "grant_scopes!", grant_resource as "grant_resource!", grant_auth_time as "grant_auth_time!",
             grant_expires_at as "grant_expires_at!", grant_revoked_at, grant_amr as "grant_amr!", is_key_bound as "is_key_bound!",
             second_factor, client_rule, client_decision, is_by_provider as "is_by_provider!",
             is_admitted_by_provider as "is_admitted_by_provider!", user_epoch, tenant_epoch as "tenant_epoch!", member_epoch,
             is_active as "is_active!"
           from grant_state($1, $2, $3) where grant_id is not null"#,
        id,
        token.map(|digest| digest.as_bytes().as_slice()),
        client,
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let standing = row
        .user_epoch
        .zip(row.member_epoch)
        .map(|(user_epoch, member_epoch)| Standing {
            is_active: row.is_active,
            user_epoch,
            tenant_epoch: row.tenant_epoch,
            member_epoch,
        });
    let token = match (
        row.family_id,
        row.family_generation,
        row.family_idle_expires_at,
        row.family_expires_at,
        row.token_generation,
        row.token_replays,
        row.head_presented,
    ) {
        (
            Some(family),
            Some(head_generation),
            Some(idle_expires_at),
            Some(expires_at),
            Some(generation),
            Some(replays),
            Some(head_presented),
        ) => Some(TokenState {
            family: family.into(),
            presented: Presented {
                generation,
                head_generation,
                superseded_at: row.token_superseded_at,
                head_presented,
                replays,
                idle_expires_at,
                expires_at,
                revoked: row.family_revoked_at.is_some(),
            },
            successor_sealed: row.token_successor_sealed,
        }),
        _ => None,
    };
    let client = match (
        row.client_ref,
        row.client_id,
        row.client_kind,
        row.client_name,
        row.client_metadata,
        row.client_metadata_digest,
        row.client_auth_method,
        row.client_grant_types,
        row.client_status,
        row.client_redirect_uris,
    ) {
        (
            Some(id),
            Some(client_id),
            Some(kind),
            Some(name),
            Some(metadata),
            Some(metadata_digest),
            Some(auth_method),
            Some(grant_types),
            Some(status),
            Some(redirect_uris),
        ) => Some(
            clients::Row {
                id,
                client_id,
                kind,
                tenant_id: row.client_tenant,
                name,
                metadata,
                metadata_digest,
                auth_method,
                grant_types,
                status,
                redirect_uris,
            }
            .try_into()?,
        ),
        _ => None,
    };
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
    Ok(Some(Present {
        state,
        token,
        client,
    }))
}
