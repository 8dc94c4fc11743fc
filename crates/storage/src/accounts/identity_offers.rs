//! Identities that were proved in a browser and are not linked yet (AUTH-F4). An offer lasts until
//! the person signs in to an account to link it to, or proves an address.

use portolan_model::{
    Digest, Timestamp,
    id::{IdentityOfferId, TenantId, UserId},
};
use time::Duration;

use crate::{StorageError, SystemTx, accounts::identities::Identity};

/// How long one can be gone on with: a sign-in or a mail lies between.
pub const LIFE: Duration = Duration::hours(1);

/// An offer, open.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Its id. It opens nothing in another browser.
    pub id: IdentityOfferId,
    /// Whose provider, if it is one of a tenant.
    pub tenant: Option<TenantId>,
    /// Name or id of the provider.
    pub provider: String,
    /// Who issued it.
    pub issuer: String,
    /// Whom it is about, there.
    pub subject: String,
    /// How the person knows the account there.
    pub label: String,
    /// As the person is called there.
    pub display_name: String,
    /// Their address there, if the provider sent one.
    pub email: Option<String>,
    /// Where to go on.
    pub target: String,
}

impl Offer {
    /// The key of the offered identity.
    pub fn identity(&self) -> Identity<'_> {
        Identity {
            tenant: self.tenant,
            provider: &self.provider,
            issuer: &self.issuer,
            subject: &self.subject,
        }
    }
}

/// Keeps an identity for this browser.
pub async fn open(
    tx: &mut SystemTx,
    offer: &Offer,
    browser: &Digest,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into identity_offers
           (id, browser_digest, tenant_id, provider, issuer, subject, label, display_name, email, target, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        offer.id.uuid(),
        browser.as_bytes(),
        offer.tenant.map(TenantId::uuid),
        offer.provider,
        offer.issuer,
        offer.subject,
        offer.label,
        offer.display_name,
        offer.email,
        offer.target,
        now,
        now + LIFE,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The open offer of this id in this browser.
pub async fn find(
    tx: &mut SystemTx,
    id: IdentityOfferId,
    browser: &Digest,
    now: Timestamp,
) -> Result<Option<Offer>, StorageError> {
    let row = sqlx::query!(
        "select tenant_id, provider, issuer, subject, label, display_name, email, target from identity_offers
         where id = $1 and browser_digest = $2 and used_at is null and expires_at > $3",
        id.uuid(),
        browser.as_bytes(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Offer {
        id,
        tenant: row.tenant_id.map(TenantId::from_uuid),
        provider: row.provider,
        issuer: row.issuer,
        subject: row.subject,
        label: row.label,
        display_name: row.display_name,
        email: row.email,
        target: row.target,
    }))
}

/// Uses an offer up, once. False if it was, or is not this browser's, or too old.
pub async fn consume(
    tx: &mut SystemTx,
    id: IdentityOfferId,
    browser: &Digest,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update identity_offers set used_at = $3 where id = $1 and browser_digest = $2 and used_at is null and expires_at > $3",
        id.uuid(),
        browser.as_bytes(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes which new account it is for, once the address of that is proved. False if it is gone.
pub async fn promise(
    tx: &mut SystemTx,
    id: IdentityOfferId,
    browser: &Digest,
    user: UserId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update identity_offers set user_id = $3 where id = $1 and browser_digest = $2 and tenant_id is null and used_at is null and expires_at > $4",
        id.uuid(),
        browser.as_bytes(),
        user.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Links the promised identity to a person whose address was just proved in this browser. Returns
/// its provider. `None` if there is no promise, or the identity has since been linked to another
/// person.
pub async fn keep_promise(
    tx: &mut SystemTx,
    user: UserId,
    browser: &Digest,
    now: Timestamp,
) -> Result<Option<String>, StorageError> {
    Ok(sqlx::query_scalar!(
        "with taken as (
           update identity_offers set used_at = $3
           where user_id = $1 and browser_digest = $2 and tenant_id is null and used_at is null and expires_at > $3
           returning tenant_id, provider, issuer, subject, label, email
         )
         insert into identity_links (id, user_id, tenant_id, provider, issuer, subject, label, email_seen, created_at, last_used_at)
         select gen_random_uuid(), $1, tenant_id, provider, issuer, subject, label, email, $3, $3 from taken limit 1
         on conflict (tenant_id, provider, issuer, subject) do nothing
         returning provider",
        user.uuid(),
        browser.as_bytes(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?)
}
