//! Keys of one owner: derived from the master secret like those of a purpose, with the owner's name
//! in the derivation, so that what was sealed for one tenant does not open with the key of another
//! (STREAM-3.1).

use std::{fmt, sync::Arc};

use aws_lc_rs::aead;

use crate::{
    Keys, KeysError, OpenError, Purpose,
    seal::{aead_key, append_sealed, associated, derive_key, open_plain},
};

const VERSION: u8 = 2;
/// Version and key id.
const HEADER_LEN: usize = 1 + 4;

/// The key of one owner for one purpose. Cheap to clone; worth keeping, because deriving it costs
/// more than a seal.
#[derive(Clone)]
pub struct OwnerKey {
    label: &'static str,
    /// The current one first. Never empty.
    ring: Arc<[([u8; 4], aead::LessSafeKey)]>,
}

impl fmt::Debug for OwnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerKey({})", self.label)
    }
}

impl Keys {
    /// The key of `owner` (a tenant's id) for `purpose`, under every master secret of the ring.
    pub fn of_owner(&self, purpose: Purpose, owner: &[u8]) -> Result<OwnerKey, KeysError> {
        let label = purpose.label();
        let derived = self.generations().map(|(id, prk)| {
            let key = derive_key(prk, &[b"aead-of-owner", label.as_bytes(), owner])?;
            Ok((id, aead_key(key.expose())?))
        });
        Ok(OwnerKey {
            label,
            ring: derived.collect::<Result<Vec<_>, KeysError>>()?.into(),
        })
    }
}

impl OwnerKey {
    /// Seals under the current key. `place` ties the value to where it belongs.
    pub fn seal(&self, plaintext: &[u8], place: &[u8]) -> Result<Vec<u8>, KeysError> {
        let (id, key) = &self.ring[0];
        let mut out = Vec::with_capacity(HEADER_LEN + 28 + plaintext.len());
        out.push(VERSION);
        out.extend_from_slice(id);
        let associated = associated(&out, self.label, place);
        append_sealed(key, &associated, plaintext, &mut out)?;
        Ok(out)
    }

    /// Opens what [`OwnerKey::seal`] made for the same owner, purpose and place.
    pub fn open(&self, sealed: &[u8], place: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (header, body) = sealed
            .split_at_checked(HEADER_LEN)
            .filter(|(header, _)| header[0] == VERSION)
            .ok_or(OpenError::Malformed)?;
        let known = self.ring.iter().find(|(id, _)| *id == header[1..]);
        let (_, key) = known.ok_or(OpenError::UnknownKey)?;
        open_plain(key, &associated(header, self.label, place), body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MasterSecret;

    fn keys(byte: u8, previous: &[MasterSecret]) -> Keys {
        Keys::new(&MasterSecret::from_bytes([byte; 32]), previous).unwrap()
    }

    #[test]
    fn streams_3_1_what_one_tenant_sealed_opens_with_no_other_tenants_key() {
        let of = |owner: &[u8]| {
            keys(7, &[])
                .of_owner(Purpose::StreamPayload, owner)
                .unwrap()
        };
        let sealed = of(b"acme").seal(b"answer", b"place").unwrap();
        assert_eq!(of(b"acme").open(&sealed, b"place").unwrap(), b"answer");
        assert_eq!(of(b"beta").open(&sealed, b"place"), Err(OpenError::Broken));
        assert_eq!(of(b"acme").open(&sealed, b"other"), Err(OpenError::Broken));
        let elsewhere = keys(7, &[])
            .of_owner(Purpose::RequestState, b"acme")
            .unwrap();
        assert_eq!(elsewhere.open(&sealed, b"place"), Err(OpenError::Broken));
        for end in 0..sealed.len() {
            assert!(of(b"acme").open(&sealed[..end], b"place").is_err(), "{end}");
        }
    }

    #[test]
    fn a_former_master_secret_still_opens_what_it_sealed_for_an_owner() {
        let old = MasterSecret::from_bytes([7; 32]);
        let of = |keys: Keys| keys.of_owner(Purpose::StreamPayload, b"acme").unwrap();
        let sealed = of(keys(7, &[])).seal(b"answer", b"").unwrap();
        assert!(of(keys(8, &[old])).open(&sealed, b"").is_ok());
        let stranger = of(keys(9, &[])).open(&sealed, b"");
        assert_eq!(stranger, Err(OpenError::UnknownKey));
    }
}
