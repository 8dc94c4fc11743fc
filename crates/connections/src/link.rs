//! Links to the page where a person connects an account. They are sealed, so that account and
//! source can be neither read nor changed (MCP-EL-10, MCP-EL-11). A link alone grants nothing: its
//! page requires that same person to be signed in.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_keys::{Keys, KeysError, Purpose};
use portolan_model::{
    Timestamp,
    id::{SourceId, TenantId, UserId},
};
use uuid::Uuid;

use crate::Account;

/// How long a link can be opened.
const LIFE: time::Duration = time::Duration::hours(24);
/// Longest text that is parsed.
const LONGEST_LINK: usize = 400;

/// The last part of the page's path for a person's account.
///
/// # Errors
/// [`KeysError`].
pub fn write_link(
    keys: &Keys,
    (tenant, source, person): (TenantId, SourceId, UserId),
    now: Timestamp,
) -> Result<String, KeysError> {
    let parts = [tenant.uuid(), source.uuid(), person.uuid()];
    let plain: Vec<u8> = parts.iter().flat_map(|part| *part.as_bytes()).collect();
    let sealed = keys.seal_until(Purpose::ConnectLink, &plain, b"", now + LIFE)?;
    Ok(URL_SAFE_NO_PAD.encode(sealed))
}

/// True if it could be one: for places that only pass it on.
pub fn looks_like_a_link(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST_LINK
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Reads the account of a link; `None` if the link was changed, made elsewhere or is too old.
pub fn read_link(keys: &Keys, text: &str, now: Timestamp) -> Option<Account> {
    if !looks_like_a_link(text) {
        return None;
    }
    let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
    let plain = keys.open(Purpose::ConnectLink, &sealed, b"", now).ok()?;
    let mut parts = plain.expose().chunks_exact(16).map(Uuid::from_slice);
    let mut next = || parts.next()?.ok();
    Some(Account {
        tenant: TenantId::from_uuid(next()?),
        source: SourceId::from_uuid(next()?),
        owner: Some(UserId::from_uuid(next()?)),
    })
}

#[cfg(test)]
mod tests {
    use portolan_keys::MasterSecret;
    use time::OffsetDateTime;

    use super::*;

    #[test]
    fn el_10_and_el_11_a_link_shows_nothing_cannot_be_changed_and_ends() {
        let keys = Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap();
        let now = OffsetDateTime::now_utc();
        let whose = (
            TenantId::generate(),
            SourceId::generate(),
            UserId::generate(),
        );
        let link = write_link(&keys, whose, now).unwrap();
        let read = read_link(&keys, &link, now).unwrap();
        assert_eq!(
            (read.tenant, read.source, read.owner),
            (whose.0, whose.1, Some(whose.2))
        );
        assert!(!link.contains(&whose.2.uuid().simple().to_string()));
        assert!(read_link(&keys, &link, now + LIFE).is_none(), "over");
        for at in 0..link.len() {
            let mut bytes = link.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            // The last character of unpadded base64 may hold spare bits, which decoders refuse.
            assert!(read_link(&keys, &changed, now).is_none(), "changed at {at}");
        }
        let others = Keys::new(&MasterSecret::from_bytes([8; 32]), &[]).unwrap();
        assert!(read_link(&others, &link, now).is_none());
    }
}
