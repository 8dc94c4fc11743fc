//! Sealing and MACs under keys derived from the master secrets.
//!
//! A sealed value is `1 | key id (4) | expiry (8, seconds, 0 = none) | nonce (12) | ciphertext |
//! tag (16)`. The associated data is the header, the purpose and the caller's own, so nothing of it
//! can be swapped. The key id is the beginning of the master secret's SHA-256 under a label: it
//! names a key and tells nothing of it.

use std::{fmt, sync::Arc};

use aws_lc_rs::{aead, hkdf, hmac};
use base64::{Engine, engine::general_purpose};
use portolan_model::Timestamp;
use zeroize::Zeroize;

use crate::{KeysError, OpenError, Purpose, Secret, random};

const VERSION: u8 = 1;
const HEADER_LEN: usize = 1 + 4 + 8;
const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;
/// Bytes of MAC in an authenticated opaque value: 128 bits.
const STAMP_LEN: usize = 16;

/// 32 bytes from which all symmetric keys are derived.
#[derive(Debug, Clone)]
pub struct MasterSecret(Secret<[u8; 32]>);

impl MasterSecret {
    /// A new one, for a first start.
    pub fn generate() -> Result<Self, KeysError> {
        Ok(Self(Secret::new(random::bytes()?)))
    }

    /// Takes raw bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Secret::new(bytes))
    }

    /// Reads 64 hex digits, or base64 (standard or URL-safe, padded or not), with white space
    /// around.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let text = text.trim();
        if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            let mut bytes = [0; 32];
            for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
                let pair = std::str::from_utf8(pair).map_err(|_| KeysError::MasterSecret)?;
                *byte = u8::from_str_radix(pair, 16).map_err(|_| KeysError::MasterSecret)?;
            }
            return Ok(Self::from_bytes(bytes));
        }
        let standard = text
            .trim_end_matches('=')
            .replace('-', "+")
            .replace('_', "/");
        let mut decoded = general_purpose::STANDARD_NO_PAD
            .decode(standard)
            .map_err(|_| KeysError::MasterSecret)?;
        let bytes = <[u8; 32]>::try_from(decoded.as_slice()).map_err(|_| KeysError::MasterSecret);
        decoded.zeroize();
        bytes.map(Self::from_bytes)
    }

    /// 64 hex digits, to be kept in a file with mode 0600.
    pub fn to_hex(&self) -> Secret<String> {
        use fmt::Write as _;
        let mut text = String::with_capacity(64);
        for byte in self.0.expose() {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Secret::new(text)
    }
}

struct Derived {
    aead: aead::LessSafeKey,
    mac: hmac::Key,
}

struct Generation {
    id: [u8; 4],
    /// What more keys are derived from.
    prk: hkdf::Prk,
    /// In the order of `Purpose::ALL`.
    derived: Vec<Derived>,
}

/// All symmetric keys of this installation. Cheap to clone.
#[derive(Clone)]
pub struct Keys {
    /// The current one first. Never empty.
    ring: Arc<[Generation]>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} generations)", self.ring.len())
    }
}

impl Keys {
    /// Derives every key. `current` seals; `previous` only opens and verifies.
    pub fn new(current: &MasterSecret, previous: &[MasterSecret]) -> Result<Self, KeysError> {
        let ring = std::iter::once(current)
            .chain(previous)
            .map(Generation::derive)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { ring: ring.into() })
    }

    /// What keys of owners are derived from, by key id; the current one first.
    pub(crate) fn generations(&self) -> impl Iterator<Item = ([u8; 4], &hkdf::Prk)> {
        self.ring
            .iter()
            .map(|generation| (generation.id, &generation.prk))
    }

    /// Seals without expiry. `aad` ties the value to its place: a row id, a field, a version
    /// (AUTH-3.5).
    pub fn seal(
        &self,
        purpose: Purpose,
        plaintext: &[u8],
        aad: &[u8],
    ) -> Result<Vec<u8>, KeysError> {
        self.seal_header(purpose, plaintext, aad, 0)
    }

    /// Seals until `expires_at` (resolution one second).
    pub fn seal_until(
        &self,
        purpose: Purpose,
        plaintext: &[u8],
        aad: &[u8],
        expires_at: Timestamp,
    ) -> Result<Vec<u8>, KeysError> {
        self.seal_header(purpose, plaintext, aad, expires_at.unix_timestamp().max(1))
    }

    fn seal_header(
        &self,
        purpose: Purpose,
        plaintext: &[u8],
        aad: &[u8],
        expires_at: i64,
    ) -> Result<Vec<u8>, KeysError> {
        let current = &self.ring[0];
        let mut out = Vec::with_capacity(HEADER_LEN + NONCE_LEN + plaintext.len() + TAG_LEN);
        out.push(VERSION);
        out.extend_from_slice(&current.id);
        out.extend_from_slice(&expires_at.to_be_bytes());
        let associated = associated(&out, purpose.label(), aad);
        append_sealed(
            &current.derived[purpose.index()].aead,
            &associated,
            plaintext,
            &mut out,
        )?;
        Ok(out)
    }

    /// Opens what [`Keys::seal`] or [`Keys::seal_until`] made for the same purpose and associated
    /// data.
    pub fn open(
        &self,
        purpose: Purpose,
        sealed: &[u8],
        aad: &[u8],
        now: Timestamp,
    ) -> Result<Secret<Vec<u8>>, OpenError> {
        let (header, body) = sealed
            .split_at_checked(HEADER_LEN)
            .ok_or(OpenError::Malformed)?;
        if header[0] != VERSION {
            return Err(OpenError::Malformed);
        }
        let generation = self
            .ring
            .iter()
            .find(|generation| generation.id == header[1..5])
            .ok_or(OpenError::UnknownKey)?;
        let associated = associated(header, purpose.label(), aad);
        let plaintext = open_body(&generation.derived[purpose.index()].aead, &associated, body)?;
        let mut expiry = [0; 8];
        expiry.copy_from_slice(&header[5..HEADER_LEN]);
        let expiry = i64::from_be_bytes(expiry);
        if expiry != 0 && now.unix_timestamp() >= expiry {
            return Err(OpenError::Expired);
        }
        Ok(plaintext)
    }

    /// Whether a sealed value is under the current master secret: what is not has to be sealed
    /// again before a former one can go.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        sealed.get(1..5) == Some(&self.ring[0].id)
    }

    /// Opens under whichever master secret sealed it and seals under the current one, with the same
    /// expiry. For what is kept.
    pub fn reseal(
        &self,
        purpose: Purpose,
        sealed: &[u8],
        aad: &[u8],
        now: Timestamp,
    ) -> Result<Vec<u8>, OpenError> {
        let plaintext = self.open(purpose, sealed, aad, now)?;
        let mut expiry = [0; 8];
        expiry.copy_from_slice(&sealed[5..HEADER_LEN]);
        self.seal_header(purpose, plaintext.expose(), aad, i64::from_be_bytes(expiry))
            .map_err(|_| OpenError::Broken)
    }

    /// HMAC-SHA256 under the current key of `purpose`.
    pub fn mac(&self, purpose: Purpose, bytes: &[u8]) -> [u8; 32] {
        mac(&self.ring[0], purpose, bytes)
    }

    /// The MAC under every key of the ring, the current one first: for what is found again by its
    /// MAC, and may be older than the current master secret.
    pub fn macs(&self, purpose: Purpose, bytes: &[u8]) -> Vec<[u8; 32]> {
        self.ring
            .iter()
            .map(|generation| mac(generation, purpose, bytes))
            .collect()
    }

    /// Compares in constant time with the MAC under every key of the ring. `tag` may be truncated,
    /// to 16 bytes at the least.
    pub fn verify_mac(&self, purpose: Purpose, bytes: &[u8], tag: &[u8]) -> bool {
        (STAMP_LEN..=32).contains(&tag.len())
            && self.ring.iter().any(|generation| {
                let full = mac(generation, purpose, bytes);
                aws_lc_rs::constant_time::verify_slices_are_equal(&full[..tag.len()], tag).is_ok()
            })
    }

    /// Makes an opaque value that any holder can read and only we can make: base64url of `payload |
    /// MAC`. For pagination cursors and form tokens. `scope` is not in the value, but must be given
    /// again to read it.
    pub fn stamp(&self, purpose: Purpose, scope: &[u8], payload: &[u8]) -> String {
        let tag = self.mac(purpose, &associated(payload, "stamp", scope));
        let mut out = Vec::with_capacity(payload.len() + STAMP_LEN);
        out.extend_from_slice(payload);
        out.extend_from_slice(&tag[..STAMP_LEN]);
        general_purpose::URL_SAFE_NO_PAD.encode(out)
    }

    /// Reads back what [`Keys::stamp`] made with the same purpose and scope; `None` for anything
    /// else.
    pub fn read_stamp(&self, purpose: Purpose, scope: &[u8], text: &str) -> Option<Vec<u8>> {
        let mut bytes = general_purpose::URL_SAFE_NO_PAD.decode(text).ok()?;
        let at = bytes.len().checked_sub(STAMP_LEN)?;
        let (payload, tag) = bytes.split_at(at);
        if !self.verify_mac(purpose, &associated(payload, "stamp", scope), tag) {
            return None;
        }
        bytes.truncate(at);
        Some(bytes)
    }
}

impl Generation {
    fn derive(master: &MasterSecret) -> Result<Self, KeysError> {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"portolan/1").extract(master.0.expose());
        let mut id = [0; 4];
        id.copy_from_slice(&derive_key(&prk, &[b"id"])?.expose()[..4]);
        let derived = Purpose::ALL
            .iter()
            .map(|purpose| {
                let aead = derive_key(&prk, &[b"aead", purpose.label().as_bytes()])?;
                let mac = derive_key(&prk, &[b"mac", purpose.label().as_bytes()])?;
                Ok(Derived {
                    aead: aead_key(aead.expose())?,
                    mac: hmac::Key::new(hmac::HMAC_SHA256, mac.expose()),
                })
            })
            .collect::<Result<_, KeysError>>()?;
        Ok(Self { id, prk, derived })
    }
}

/// Seals `plaintext` so that only the holder of `token` can open it (AUTH-K9: a superseded refresh
/// token opens its successor, the database alone opens nothing). `aad` names the place.
pub fn seal_under_token(token: &str, plaintext: &[u8], aad: &[u8]) -> Result<Vec<u8>, KeysError> {
    let mut out = Vec::with_capacity(1 + NONCE_LEN + plaintext.len() + TAG_LEN);
    out.push(VERSION);
    append_sealed(
        &token_key(token)?,
        &associated(&[VERSION], "token", aad),
        plaintext,
        &mut out,
    )?;
    Ok(out)
}

/// Opens what [`seal_under_token`] made with the same token and associated data.
pub fn open_under_token(
    token: &str,
    sealed: &[u8],
    aad: &[u8],
) -> Result<Secret<Vec<u8>>, OpenError> {
    let (&version, body) = sealed.split_first().ok_or(OpenError::Malformed)?;
    if version != VERSION {
        return Err(OpenError::Malformed);
    }
    let key = token_key(token).map_err(|_| OpenError::Broken)?;
    open_body(&key, &associated(&[VERSION], "token", aad), body)
}

fn token_key(token: &str) -> Result<aead::LessSafeKey, KeysError> {
    let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"portolan/1/token").extract(token.as_bytes());
    aead_key(derive_key(&prk, &[b"aead"])?.expose())
}

fn mac(generation: &Generation, purpose: Purpose, bytes: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&generation.derived[purpose.index()].mac, bytes);
    let mut out = [0; 32];
    out.copy_from_slice(tag.as_ref());
    out
}

pub(crate) fn derive_key(prk: &hkdf::Prk, info: &[&[u8]]) -> Result<Secret<[u8; 32]>, KeysError> {
    let mut key = [0; 32];
    let parts: Vec<&[u8]> = info.iter().flat_map(|part| [*part, b"\0"]).collect();
    prk.expand(&parts, hkdf::HKDF_SHA256)?.fill(&mut key)?;
    Ok(Secret::new(key))
}

pub(crate) fn aead_key(bytes: &[u8; 32]) -> Result<aead::LessSafeKey, KeysError> {
    Ok(aead::LessSafeKey::new(aead::UnboundKey::new(
        &aead::AES_256_GCM,
        bytes,
    )?))
}

/// Length-prefixed, so that no two different inputs give the same bytes.
pub(crate) fn associated(header: &[u8], label: &str, aad: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(header.len() + label.len() + aad.len() + 24);
    for part in [header, label.as_bytes(), aad] {
        out.extend_from_slice(&(part.len() as u64).to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

pub(crate) fn append_sealed(
    key: &aead::LessSafeKey,
    associated: &[u8],
    plaintext: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), KeysError> {
    let nonce = random::bytes::<NONCE_LEN>()?;
    out.extend_from_slice(&nonce);
    let start = out.len();
    out.extend_from_slice(plaintext);
    let tag = key.seal_in_place_separate_tag(
        aead::Nonce::assume_unique_for_key(nonce),
        aead::Aad::from(associated),
        &mut out[start..],
    )?;
    out.extend_from_slice(tag.as_ref());
    Ok(())
}

fn open_body(
    key: &aead::LessSafeKey,
    associated: &[u8],
    body: &[u8],
) -> Result<Secret<Vec<u8>>, OpenError> {
    open_plain(key, associated, body).map(Secret::new)
}

pub(crate) fn open_plain(
    key: &aead::LessSafeKey,
    associated: &[u8],
    body: &[u8],
) -> Result<Vec<u8>, OpenError> {
    let (nonce, ciphertext) = body
        .split_at_checked(NONCE_LEN)
        .ok_or(OpenError::Malformed)?;
    let nonce = aead::Nonce::try_assume_unique_for_key(nonce).map_err(|_| OpenError::Malformed)?;
    let mut buffer = ciphertext.to_vec();
    let len = key
        .open_in_place(nonce, aead::Aad::from(associated), &mut buffer)
        .map_err(|_| OpenError::Broken)?
        .len();
    buffer.truncate(len);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use portolan_model::Clock;
    use time::Duration;

    use super::*;

    fn keys() -> Keys {
        Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap()
    }

    fn now() -> Timestamp {
        Clock::test(Timestamp::UNIX_EPOCH + Duration::days(20_000)).now()
    }

    #[test]
    fn case_166_a_sealed_value_opens_only_in_its_place() {
        let keys = keys();
        let sealed = keys
            .seal(Purpose::Credential, b"secret", b"tenant|row")
            .unwrap();
        assert_eq!(
            keys.open(Purpose::Credential, &sealed, b"tenant|row", now())
                .unwrap()
                .expose(),
            b"secret"
        );
        assert_eq!(
            keys.open(Purpose::Credential, &sealed, b"other|row", now())
                .unwrap_err(),
            OpenError::Broken
        );
        assert_eq!(
            keys.open(Purpose::SigningKey, &sealed, b"tenant|row", now())
                .unwrap_err(),
            OpenError::Broken
        );
    }

    #[test]
    fn every_changed_byte_breaks_the_seal() {
        let keys = keys();
        let sealed = keys
            .seal_until(
                Purpose::Credential,
                b"secret",
                b"",
                now() + Duration::hours(1),
            )
            .unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(
                keys.open(Purpose::Credential, &changed, b"", now())
                    .is_err(),
                "byte {at}"
            );
        }
        for len in 0..sealed.len() {
            assert!(
                keys.open(Purpose::Credential, &sealed[..len], b"", now())
                    .is_err(),
                "length {len}"
            );
        }
    }

    #[test]
    fn a_sealed_value_expires() {
        let keys = keys();
        let sealed = keys
            .seal_until(
                Purpose::Credential,
                b"x",
                b"",
                now() + Duration::seconds(10),
            )
            .unwrap();
        assert!(
            keys.open(
                Purpose::Credential,
                &sealed,
                b"",
                now() + Duration::seconds(9)
            )
            .is_ok()
        );
        assert_eq!(
            keys.open(
                Purpose::Credential,
                &sealed,
                b"",
                now() + Duration::seconds(10)
            )
            .unwrap_err(),
            OpenError::Expired
        );
    }

    #[test]
    fn a_former_master_secret_still_opens_and_verifies() {
        let old = MasterSecret::from_bytes([7; 32]);
        let rotated = Keys::new(
            &MasterSecret::from_bytes([8; 32]),
            std::slice::from_ref(&old),
        )
        .unwrap();
        let stranger = Keys::new(&MasterSecret::from_bytes([9; 32]), &[]).unwrap();
        let sealed = keys().seal(Purpose::Credential, b"x", b"").unwrap();
        let stamp = keys().stamp(Purpose::Cursor, b"ten", b"page 2");
        let mac = keys().mac(Purpose::RecoveryCode, b"code");
        assert_eq!(
            rotated.macs(Purpose::RecoveryCode, b"code"),
            [rotated.mac(Purpose::RecoveryCode, b"code"), mac]
        );
        assert!(!stranger.macs(Purpose::RecoveryCode, b"code").contains(&mac));
        assert!(
            rotated
                .open(Purpose::Credential, &sealed, b"", now())
                .is_ok()
        );
        assert_eq!(
            rotated
                .read_stamp(Purpose::Cursor, b"ten", &stamp)
                .as_deref(),
            Some(&b"page 2"[..])
        );
        assert_eq!(
            stranger
                .open(Purpose::Credential, &sealed, b"", now())
                .unwrap_err(),
            OpenError::UnknownKey
        );
        assert_eq!(stranger.read_stamp(Purpose::Cursor, b"ten", &stamp), None);
    }

    #[test]
    fn what_is_sealed_again_needs_the_former_master_secret_no_longer() {
        let (old, new) = (
            MasterSecret::from_bytes([7; 32]),
            MasterSecret::from_bytes([8; 32]),
        );
        let both = Keys::new(&new, std::slice::from_ref(&old)).unwrap();
        let alone = Keys::new(&new, &[]).unwrap();
        let until = now() + Duration::hours(1);
        let sealed = keys()
            .seal_until(Purpose::SecondFactor, b"x", b"row", until)
            .unwrap();
        assert!(!both.is_current(&sealed));
        let again = both
            .reseal(Purpose::SecondFactor, &sealed, b"row", now())
            .unwrap();
        assert!(both.is_current(&again));
        assert!(
            alone
                .open(Purpose::SecondFactor, &again, b"row", now())
                .is_ok()
        );
        assert_eq!(
            alone
                .open(Purpose::SecondFactor, &again, b"row", until)
                .unwrap_err(),
            OpenError::Expired,
            "the expiry stays"
        );
        assert!(
            both.reseal(Purpose::SecondFactor, &sealed, b"other row", now())
                .is_err()
        );
    }

    #[test]
    fn a_stamp_belongs_to_its_purpose_and_scope() {
        let keys = keys();
        let stamp = keys.stamp(Purpose::Cursor, b"a", b"bc");
        assert_eq!(keys.read_stamp(Purpose::Cursor, b"ab", &stamp), None);
        assert_eq!(keys.read_stamp(Purpose::FormToken, b"a", &stamp), None);
        assert_eq!(keys.read_stamp(Purpose::Cursor, b"a", "AAAA"), None);
        assert!(
            !keys.verify_mac(Purpose::Cursor, b"", &[]),
            "an empty tag proves nothing"
        );
    }

    #[test]
    fn k9_only_the_presented_token_opens_its_successor() {
        let sealed = seal_under_token("rt_one", b"rt_two", b"fam|3").unwrap();
        assert_eq!(
            open_under_token("rt_one", &sealed, b"fam|3")
                .unwrap()
                .expose(),
            b"rt_two"
        );
        assert!(open_under_token("rt_other", &sealed, b"fam|3").is_err());
        assert!(open_under_token("rt_one", &sealed, b"fam|4").is_err());
    }

    #[test]
    fn a_master_secret_is_read_from_hex_and_base64() {
        let secret = MasterSecret::from_bytes([0xfb; 32]);
        let hex = secret.to_hex();
        let base64 = general_purpose::STANDARD.encode([0xfb; 32]);
        let url = general_purpose::URL_SAFE_NO_PAD.encode([0xfb; 32]);
        for text in [
            hex.expose().as_str(),
            &base64,
            &url,
            &format!(" {base64}\n"),
        ] {
            assert_eq!(MasterSecret::parse(text).unwrap().0.expose(), &[0xfb; 32]);
        }
        for bad in ["", "abc", &hex.expose()[1..], "!!"] {
            assert!(MasterSecret::parse(bad).is_err());
        }
    }
}
