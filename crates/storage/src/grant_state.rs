//! A grant, and what decides whether it may act now (`auth.md` K16), as one read: whoever issues a token for it asks for all of this, in
//! the transaction that issues.

use portolan_model::{
    Digest, Timestamp,
    admission::{ClientDecision, ClientRule},
    id::GrantId,
    scope::ScopeSet,
};

use crate::{
    StorageError, SystemTx, client_admission, factor_rules,
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

/// A refresh token of the grant, and the head of its family.
#[derive(Debug)]
pub(crate) struct TokenState {
    pub(crate) generation: i32,
    pub(crate) superseded_at: Option<Timestamp>,
    pub(crate) successor_sealed: Option<Vec<u8>>,
    pub(crate) replays: i32,
    pub(crate) head_generation: i32,
    pub(crate) head_presented: bool,
}

/// The grant with this id, and what stands around it.
pub async fn find(tx: &mut SystemTx, id: GrantId) -> Result<Option<GrantState>, StorageError> {
    Ok(read(tx, id, None).await?.map(|(state, _)| state))
}

/// The same with a refresh token of the grant; `None` if there is none with this digest.
pub(crate) async fn with_token(
    tx: &mut SystemTx,
    id: GrantId,
    token: &Digest,
) -> Result<Option<(GrantState, TokenState)>, StorageError> {
    Ok(read(tx, id, Some(token))
        .await?
        .and_then(|(state, token)| Some((state, token?))))
}

async fn read(
    tx: &mut SystemTx,
    id: GrantId,
    token: Option<&Digest>,
) -> Result<Option<(GrantState, Option<TokenState>)>, StorageError> {
    // Every row is found by a unique key. The token and the head are looked for by themselves: a planner that may join them goes by the family
    // alone, which has few tokens on average, and thousands when it has lived for long.
    let row = sqlx::query!(
        r#"with t as materialized (
             select family_id, generation, superseded_at, successor_sealed, replays from refresh_tokens where digest = $2
           )
           select g.tenant_id as "tenant_id!", g.user_id as "user_id!", g.client_ref as "client_ref!", g.scopes as "scopes!",
             g.resource as "resource!", g.auth_time as "auth_time!", g.expires_at as "expires_at!", g.revoked_at as "revoked_at?", g.amr as "amr!",
             coalesce(g.client_snapshot->>'auth_method' = 'private_key_jwt', false) as "is_key_bound!",
             w.policy->>'second_factor' as second_factor, w.policy->>'clients' as client_rule, d.decision as "client_decision?",
             coalesce(g.sso_confined and p.id = g.sso_provider, false) as "is_by_provider!",
             not (p.enforced_at is not null and g.sso_provider is distinct from p.id
               and (g.amr && array['hwk', 'swk'] and m.status = 'active' and m.role = 'owner') is not true) as "is_admitted_by_provider!",
             u.epoch as "user_epoch?", w.epoch as "tenant_epoch!", m.epoch as "member_epoch?",
             coalesce(u.status = 'active' and u.verified_at is not null and w.status = 'active' and m.status = 'active' and m.role <> 'viewer',
               false) as "is_active!",
             t.generation as "generation?", t.superseded_at as "superseded_at?", t.successor_sealed as "successor_sealed?",
             t.replays as "replays?", f.generation as "head_generation?",
             (select h.presented_at is not null from refresh_tokens h where h.family_id = f.id and h.generation = f.generation) as "head_presented?"
           from grants g join tenants w on w.id = g.tenant_id
             left join memberships m on m.tenant_id = g.tenant_id and m.user_id = g.user_id
             left join users u on u.id = m.user_id
             left join client_decisions d on d.tenant_id = g.tenant_id and d.client_ref = g.client_ref
             left join identity_providers p on p.tenant_id = g.tenant_id and p.off_at is null
             left join (t join refresh_families f on f.id = t.family_id) on f.grant_id = g.id
           where g.id = $1"#,
        id.uuid(),
        token.map(|digest| digest.as_bytes().as_slice()),
    )
    .fetch_optional(tx.connection())
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
        row.generation,
        row.replays,
        row.head_generation,
        row.head_presented,
    ) {
        (Some(generation), Some(replays), Some(head_generation), Some(head_presented)) => {
            Some(TokenState {
                generation,
                superseded_at: row.superseded_at,
                successor_sealed: row.successor_sealed,
                replays,
                head_generation,
                head_presented,
            })
        }
        _ => None,
    };
    let state = GrantState {
        grant: Grant {
            id,
            tenant: row.tenant_id.into(),
            user: row.user_id.into(),
            client: row.client_ref.into(),
            scopes: ScopeSet::from_stored(&row.scopes),
            resource: row.resource,
            auth_time: row.auth_time,
            expires_at: row.expires_at,
            is_revoked: row.revoked_at.is_some(),
            is_key_bound: row.is_key_bound,
        },
        standing,
        is_admitted_by_provider: row.is_admitted_by_provider,
        amr: row.amr,
        is_by_provider: row.is_by_provider,
        second_factor: row.second_factor,
        client_rule: row.client_rule,
        client_decision: row.client_decision,
    };
    Ok(Some((state, token)))
}
