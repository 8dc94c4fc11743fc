//! People, their addresses and passwords.

use portolan_model::{Timestamp, email::EmailAddress, id::UserId};
use uuid::Uuid;

use crate::{StorageError, SystemTx};

/// The identifiers of a person on pages and in the console.
#[derive(Debug, Clone)]
pub struct User {
    /// Who.
    pub id: UserId,
    /// As they call themselves.
    pub display_name: String,
    /// Primary address, as typed.
    pub email: String,
    /// Raised to invalidate the person's access tokens.
    pub epoch: i32,
}

/// What sign-in compares with.
#[derive(Debug, Clone)]
pub struct Login {
    /// Who would be signed in.
    pub user: UserId,
    /// The stored hash; `None` when the person has no password.
    pub phc: Option<String>,
}

/// Adds a person whose address is not proved yet: no tenant and no grant until it is (AUTH-L7).
/// Another person may have the same unproved address, so that an address cannot be squatted.
pub async fn create_unverified(
    tx: &mut SystemTx,
    display_name: &str,
    address: &EmailAddress,
    phc: &str,
    now: Timestamp,
) -> Result<UserId, StorageError> {
    let id = UserId::generate();
    sqlx::query!(
        "with person as (
           insert into users (id, display_name, status, created_at) values ($1, $2, 'active', $3) returning id
         ), address as (
           insert into user_emails (id, user_id, address, address_norm, is_primary, created_at)
           select $4, id, $5, $6, true, $3 from person
         )
         insert into user_passwords (id, user_id, phc, created_at) select $7, id, $8, $3 from person",
        id.uuid(),
        display_name,
        now,
        Uuid::now_v7(),
        address.as_typed(),
        address.normalised(),
        Uuid::now_v7(),
        phc,
    )
    .execute(tx.connection())
    .await?;
    Ok(id)
}

/// Adds a person without a password, whose address is not proved yet. The one who proves it signs
/// in with an account elsewhere.
pub async fn create_unverified_without_password(
    tx: &mut SystemTx,
    display_name: &str,
    address: &EmailAddress,
    now: Timestamp,
) -> Result<UserId, StorageError> {
    create_without_password(tx, display_name, address, None, now).await
}

/// Adds a person whose address was proved elsewhere. [`StorageError::is_conflict_on`]
/// `user_emails_verified` when a person with this address exists.
pub async fn create_verified(
    tx: &mut SystemTx,
    display_name: &str,
    address: &EmailAddress,
    now: Timestamp,
) -> Result<UserId, StorageError> {
    create_without_password(tx, display_name, address, Some(now), now).await
}

async fn create_without_password(
    tx: &mut SystemTx,
    display_name: &str,
    address: &EmailAddress,
    verified_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<UserId, StorageError> {
    let id = UserId::generate();
    sqlx::query!(
        "with person as (
           insert into users (id, display_name, status, created_at, verified_at) values ($1, $2, 'active', $3, $7) returning id
         )
         insert into user_emails (id, user_id, address, address_norm, is_primary, created_at, verified_at)
         select $4, id, $5, $6, true, $3, $7 from person",
        id.uuid(),
        display_name,
        now,
        Uuid::now_v7(),
        address.as_typed(),
        address.normalised(),
        verified_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(id)
}

/// Removes what others began with an address that `keep` has proved: their passwords, sessions,
/// factors and links with them (AUTH-F5, CASE-160).
pub async fn forget_unverified(
    tx: &mut SystemTx,
    address_norm: &str,
    keep: UserId,
) -> Result<u64, StorageError> {
    let done = sqlx::query!(
        "delete from users u using user_emails e
         where e.user_id = u.id and e.address_norm = $1 and e.verified_at is null and u.verified_at is null and u.id <> $2",
        address_norm,
        keep.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Marks the person's address as proved. [`StorageError::is_conflict_on`] `user_emails_verified`
/// when another person proved it first.
pub async fn verify_address(
    tx: &mut SystemTx,
    user: UserId,
    address_norm: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update user_emails set verified_at = $3 where user_id = $1 and address_norm = $2 and verified_at is null",
        user.uuid(),
        address_norm,
        now,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "update users set verified_at = coalesce(verified_at, $2) where id = $1",
        user.uuid(),
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Returns whether a person has proved this address.
pub async fn is_address_verified(
    tx: &mut SystemTx,
    address_norm: &str,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from user_emails where address_norm = $1 and verified_at is not null) as "found!""#,
        address_norm,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// The active person with this proved address, and what to compare the password with.
pub async fn find_login(
    tx: &mut SystemTx,
    address_norm: &str,
) -> Result<Option<Login>, StorageError> {
    let row = sqlx::query!(
        r#"select u.id, p.phc as "phc?"
           from user_emails e join users u on u.id = e.user_id
           left join user_passwords p on p.user_id = u.id and p.retired_at is null
           where e.address_norm = $1 and e.verified_at is not null and u.status = 'active'"#,
        address_norm,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Login {
        user: UserId::from_uuid(row.id),
        phc: row.phc,
    }))
}

/// Puts a hash with today's parameters in the place of `old` (AUTH-L1). Does nothing if the
/// password was changed meanwhile.
pub async fn rehash(
    tx: &mut SystemTx,
    user: UserId,
    old: &str,
    new: &str,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update user_passwords set phc = $3 where user_id = $1 and phc = $2 and retired_at is null",
        user.uuid(),
        old,
        new,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Gives an active person another name. False if it was the name already.
pub async fn rename(tx: &mut SystemTx, user: UserId, name: &str) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update users set display_name = $2 where id = $1 and status = 'active' and display_name <> $2",
        user.uuid(),
        name,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Erases an active person's identity: name, addresses and credentials. Rows that refer to them
/// stay, without a name. Returns the raised epoch, which invalidates all their tokens; `None` if
/// there is no such person.
pub async fn erase(tx: &mut SystemTx, user: UserId) -> Result<Option<i32>, StorageError> {
    let epoch = sqlx::query_scalar!(
        "update users set status = 'erased', display_name = 'Deleted account', epoch = epoch + 1
         where id = $1 and status = 'active' returning epoch",
        user.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    if epoch.is_none() {
        return Ok(None);
    }
    crate::accounts::passkeys::remove_all(tx, user).await?;
    crate::accounts::second_factors::remove(tx, user).await?;
    crate::accounts::identities::unlink_all(tx, user).await?;
    sqlx::query!("delete from user_passwords where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    sqlx::query!("delete from verifications where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    sqlx::query!("delete from account_links where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    sqlx::query!("delete from email_changes where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    sqlx::query!("delete from user_emails where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    Ok(epoch)
}

/// Notes a sign-in.
pub async fn signed_in(
    tx: &mut SystemTx,
    user: UserId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update users set last_login_at = $2 where id = $1",
        user.uuid(),
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// One person, unless locked, deactivated or erased.
pub async fn find(tx: &mut SystemTx, user: UserId) -> Result<Option<User>, StorageError> {
    let row = sqlx::query!(
        "select u.id, u.display_name, u.epoch, e.address
         from users u join user_emails e on e.user_id = u.id and e.is_primary
         where u.id = $1 and u.status = 'active'",
        user.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| User {
        id: UserId::from_uuid(row.id),
        display_name: row.display_name,
        email: row.address,
        epoch: row.epoch,
    }))
}

/// The stored hash of a person's password; `None` when they have none.
pub async fn password_of(tx: &mut SystemTx, user: UserId) -> Result<Option<String>, StorageError> {
    Ok(sqlx::query_scalar!(
        "select phc from user_passwords where user_id = $1 and retired_at is null",
        user.uuid()
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Replaces the password that was just compared. False if it was changed meanwhile: of two changes
/// at once one wins.
pub async fn change_password(
    tx: &mut SystemTx,
    user: UserId,
    old: &str,
    new: &str,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update user_passwords set phc = $3, created_at = $4 where user_id = $1 and phc = $2 and retired_at is null",
        user.uuid(),
        old,
        new,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives a person a password, whatever they had: for who proved themselves by a mailed link.
pub async fn set_password(
    tx: &mut SystemTx,
    user: UserId,
    phc: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into user_passwords (id, user_id, phc, created_at) values ($1, $2, $3, $4)
         on conflict (user_id) where retired_at is null do update set phc = excluded.phc, created_at = excluded.created_at",
        Uuid::now_v7(),
        user.uuid(),
        phc,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Takes a person's password away: only a mailed link gives a new one.
pub async fn forget_password(tx: &mut SystemTx, user: UserId) -> Result<(), StorageError> {
    sqlx::query!("delete from user_passwords where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    Ok(())
}

/// Every proved address of a person, as typed, the primary one first.
pub async fn verified_addresses(
    tx: &mut SystemTx,
    user: UserId,
) -> Result<Vec<String>, StorageError> {
    Ok(sqlx::query_scalar!(
        "select address from user_emails where user_id = $1 and verified_at is not null order by is_primary desc, created_at",
        user.uuid()
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Whether one of the person's proved addresses is this one.
pub async fn has_address(
    tx: &mut SystemTx,
    user: UserId,
    address_norm: &str,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from user_emails where user_id = $1 and address_norm = $2 and verified_at is not null) as "has!""#,
        user.uuid(),
        address_norm,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Replaces the person's addresses by a proved one, and returns the former primary address, as
/// typed and as compared. [`StorageError::is_conflict_on`] `user_emails_verified` when it belongs
/// to another person.
pub async fn replace_address(
    tx: &mut SystemTx,
    user: UserId,
    address: (&str, &str),
    now: Timestamp,
) -> Result<Option<(String, String)>, StorageError> {
    // Two changes at once take turns, and the later one sees what the earlier one did.
    sqlx::query!("select id from users where id = $1 for update", user.uuid())
        .fetch_optional(tx.connection())
        .await?;
    let old = sqlx::query!(
        "delete from user_emails where user_id = $1 returning address, address_norm, is_primary",
        user.uuid()
    )
    .fetch_all(tx.connection())
    .await?;
    sqlx::query!(
        "insert into user_emails (id, user_id, address, address_norm, is_primary, verified_at, created_at) values ($1, $2, $3, $4, true, $5, $5)",
        Uuid::now_v7(),
        user.uuid(),
        address.0,
        address.1,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(old
        .into_iter()
        .find(|row| row.is_primary)
        .map(|row| (row.address, row.address_norm)))
}
