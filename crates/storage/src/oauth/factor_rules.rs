//! What tenants ask of how their members sign in (AUTH-L14).

use portolan_model::{
    Timestamp,
    factor::SecondFactor,
    id::{TenantId, UserId},
};

use crate::{
    StorageError, SystemTx, TenantTx,
    oauth::{
        grants::REVOCATION_MEMORY,
        revocations::{self, New, RevocationKind},
    },
};

/// The rule of a tenant.
pub async fn of(tx: &mut SystemTx, tenant: TenantId) -> Result<SecondFactor, StorageError> {
    let word = sqlx::query_scalar!(
        r#"select policy->>'second_factor' as "rule" from tenants where id = $1"#,
        tenant.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    read(word.flatten().as_deref())
}

/// The rule of the transaction's tenant.
pub async fn own(tx: &mut TenantTx) -> Result<SecondFactor, StorageError> {
    let tenant = tx.tenant().uuid();
    let word = sqlx::query_scalar!(
        r#"select policy->>'second_factor' as "rule" from tenants where id = $1"#,
        tenant,
    )
    .fetch_optional(tx.connection())
    .await?;
    read(word.flatten().as_deref())
}

/// Sets the rule of a tenant, and returns the previous one. A stricter rule raises the tenant's
/// epoch. Nodes then refuse every older access token as soon as they receive the epoch, and the
/// refresh that follows checks the rule.
pub async fn set(
    tx: &mut SystemTx,
    tenant: TenantId,
    rule: SecondFactor,
    now: Timestamp,
) -> Result<SecondFactor, StorageError> {
    // Two changes at once take turns.
    sqlx::query!(
        "select id from tenants where id = $1 for no key update",
        tenant.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    let before = of(tx, tenant).await?;
    let is_stricter = rule > before;
    let epoch = sqlx::query_scalar!(
        "update tenants set policy = policy || jsonb_build_object('second_factor', $2::text), epoch = epoch + $3::int where id = $1 returning epoch",
        tenant.uuid(),
        rule.as_str(),
        i32::from(is_stricter),
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(epoch) = epoch.filter(|_| is_stricter) else {
        return Ok(before);
    };
    let revocation = New {
        kind: RevocationKind::Tenant,
        reference: &tenant.to_string(),
        tenant: Some(tenant),
        epoch: Some(epoch),
        expires_at: now + REVOCATION_MEMORY,
    };
    revocations::insert(tx, &revocation).await?;
    Ok(before)
}

/// Counts of a tenant's members that meet the rule and that do not, shown before an admin sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// Active members.
    pub members: i64,
    /// Of these, who have a passkey.
    pub with_passkey: i64,
    /// Of these, who have a passkey or an authenticator app.
    pub with_any: i64,
}

/// Counts them. Crosses to people's factors, which the tenant's role cannot read: the tenant is an
/// argument and comes from a checked workspace.
pub async fn readiness(
    tx: &mut SystemTx,
    tenant: TenantId,
    host: &str,
) -> Result<Readiness, StorageError> {
    let row = sqlx::query!(
        r#"select count(*) as "members!", count(*) filter (where has_passkey) as "with_passkey!",
             count(*) filter (where has_passkey or has_app) as "with_any!"
           from (select exists (select 1 from webauthn_credentials c where c.user_id = m.user_id and c.rp_id = $2) as has_passkey,
                   exists (select 1 from totp_credentials t where t.user_id = m.user_id and t.confirmed_at is not null) as has_app
                 from memberships m join users u on u.id = m.user_id and u.status = 'active'
                 where m.tenant_id = $1 and m.status = 'active') as each"#,
        tenant.uuid(),
        host,
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(Readiness {
        members: row.members,
        with_passkey: row.with_passkey,
        with_any: row.with_any,
    })
}

/// Whether the person can meet the rule with what they have.
pub async fn can_meet(
    tx: &mut SystemTx,
    user: UserId,
    rule: SecondFactor,
    host: &str,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from webauthn_credentials where user_id = $1 and rp_id = $3)
             or ($2 and exists (select 1 from totp_credentials where user_id = $1 and confirmed_at is not null)) as "can!""#,
        user.uuid(),
        rule != SecondFactor::Passkey,
        host,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// The rule that a policy names.
pub(crate) fn read(word: Option<&str>) -> Result<SecondFactor, StorageError> {
    word.map_or(Ok(SecondFactor::Off), |word| {
        word.parse().map_err(|_| StorageError::Inconsistent {
            table: "tenants",
            column: "policy",
        })
    })
}
