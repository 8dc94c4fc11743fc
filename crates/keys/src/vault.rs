//! Envelope encryption of what a tenant's tools need to sign in elsewhere (AUTH-3.5).
//!
//! Each tenant has a random data key, wrapped under the master secret. Credentials are sealed under
//! the data key with associated data that names tenant, source and version, so that a row copied to
//! another tenant or another source does not open. Rotating the master secret rewraps data keys
//! only; destroying a tenant's wrapped key destroys every credential of it.

use time::OffsetDateTime;

use crate::{Keys, KeysError, MasterSecret, OpenError, Purpose, Secret, random};

/// A tenant's data key, open. Mute in logs, wiped when dropped.
#[derive(Debug, Clone)]
pub struct DataKey(Keys);

impl Keys {
    /// Makes a data key. The second value is what is stored; `owner` (tenant and key id) is bound
    /// to it.
    pub fn new_data_key(&self, owner: &[u8]) -> Result<(DataKey, Vec<u8>), KeysError> {
        let bytes = Secret::new(random::bytes::<32>()?);
        let wrapped = self.seal(
            Purpose::Credential,
            bytes.expose(),
            &bound(b"data-key", owner),
        )?;
        Ok((
            DataKey(Keys::new(&MasterSecret::from_bytes(*bytes.expose()), &[])?),
            wrapped,
        ))
    }

    /// Opens a stored data key.
    pub fn open_data_key(
        &self,
        owner: &[u8],
        wrapped: &[u8],
        now: OffsetDateTime,
    ) -> Result<DataKey, OpenError> {
        let bytes = self.open(
            Purpose::Credential,
            wrapped,
            &bound(b"data-key", owner),
            now,
        )?;
        let bytes: [u8; 32] = bytes
            .expose()
            .as_slice()
            .try_into()
            .map_err(|_| OpenError::Malformed)?;
        Keys::new(&MasterSecret::from_bytes(bytes), &[])
            .map(DataKey)
            .map_err(|_| OpenError::Malformed)
    }
}

impl Keys {
    /// Wraps a stored data key under the current master secret. The credentials under it stay as
    /// they are.
    pub fn rewrap_data_key(
        &self,
        owner: &[u8],
        wrapped: &[u8],
        now: OffsetDateTime,
    ) -> Result<Vec<u8>, OpenError> {
        self.reseal(
            Purpose::Credential,
            wrapped,
            &bound(b"data-key", owner),
            now,
        )
    }
}

impl DataKey {
    /// Seals a credential; `place` names where it is kept.
    pub fn seal(&self, place: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, KeysError> {
        self.0
            .seal(Purpose::Credential, plaintext, &bound(b"credential", place))
    }

    /// Opens what was sealed for the same place.
    pub fn open(
        &self,
        place: &[u8],
        sealed: &[u8],
        now: OffsetDateTime,
    ) -> Result<Secret<Vec<u8>>, OpenError> {
        self.0.open(
            Purpose::Credential,
            sealed,
            &bound(b"credential", place),
            now,
        )
    }
}

impl DataKey {
    /// Seals the content of a call (CAPTURE-5); `call` names tenant and call.
    pub fn seal_content(&self, call: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, KeysError> {
        let place = bound(b"call-content", call);
        self.0.seal(Purpose::CallContent, plaintext, &place)
    }

    /// Opens what was sealed for the same call.
    pub fn open_content(
        &self,
        call: &[u8],
        sealed: &[u8],
        now: OffsetDateTime,
    ) -> Result<Secret<Vec<u8>>, OpenError> {
        let place = bound(b"call-content", call);
        self.0.open(Purpose::CallContent, sealed, &place, now)
    }
}

/// Where the content of a call is kept (UUIDs): bound into its seal.
pub fn content_place(tenant: [u8; 16], call: [u8; 16]) -> Vec<u8> {
    [&tenant[..], &call[..]].concat()
}

/// Where a source's credential is kept (UUIDs and version): bound into its seal.
pub fn credential_place(tenant: [u8; 16], source: [u8; 16], version: i32) -> Vec<u8> {
    [&tenant[..], &source[..], &version.to_be_bytes()[..]].concat()
}

/// Returns the associated data that binds a data key to its tenant and id.
pub fn data_key_owner(tenant: [u8; 16], key: [u8; 16]) -> Vec<u8> {
    [&tenant[..], &key[..]].concat()
}

fn bound(label: &[u8], rest: &[u8]) -> Vec<u8> {
    [label, b"\0", rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_copied_to_another_tenant_or_version_does_not_open() {
        // CASE-166
        let keys = Keys::new(&MasterSecret::generate().unwrap(), &[]).unwrap();
        let now = OffsetDateTime::now_utc();
        let (acme, wrapped) = keys
            .new_data_key(&data_key_owner([1; 16], [9; 16]))
            .unwrap();
        let (beta, _) = keys
            .new_data_key(&data_key_owner([2; 16], [9; 16]))
            .unwrap();
        let place = credential_place([1; 16], [7; 16], 1);
        let sealed = acme.seal(&place, b"token").unwrap();
        assert_eq!(acme.open(&place, &sealed, now).unwrap().expose(), b"token");
        assert!(
            beta.open(&place, &sealed, now).is_err(),
            "another tenant's key"
        );
        assert!(
            acme.open(&credential_place([2; 16], [7; 16], 1), &sealed, now)
                .is_err(),
            "another tenant's row"
        );
        assert!(
            acme.open(&credential_place([1; 16], [7; 16], 2), &sealed, now)
                .is_err(),
            "another version"
        );
        let again = keys
            .open_data_key(&data_key_owner([1; 16], [9; 16]), &wrapped, now)
            .unwrap();
        assert_eq!(again.open(&place, &sealed, now).unwrap().expose(), b"token");
        assert!(
            keys.open_data_key(&data_key_owner([2; 16], [9; 16]), &wrapped, now)
                .is_err(),
            "a wrapped key of another tenant"
        );
    }
}
