//! Bearer values: random, prefixed, known at rest only by their digest (AUTH-T1, AUTH-K6, AUTH-K18,
//! AUTH-S1).

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_model::Digest;

use crate::{KeysError, Secret, random};

/// The kind of a bearer value. The prefix makes a leaked value recognisable and keeps kinds from
/// being mistaken for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenForm {
    /// Authorization code.
    Code,
    /// Refresh token. Carries a CRC32, so that garbage costs no query (AUTH-K6).
    Refresh,
    /// Client secret. Carries a CRC32, for secret scanners.
    ClientSecret,
    /// Cookie of a signed-in browser.
    Session,
    /// Cookie that binds a browser to what it began before it signed in (AUTH-A11).
    Browser,
    /// Link in a mail: a new password, the way back to an address, an invitation.
    Link,
    /// API key. Carries a CRC32, so that garbage costs no query and scanners find leaked ones
    /// (AUTH-C17).
    ApiKey,
    /// Key of a program that offers an attached server. Carries a CRC32 for the same reasons.
    Attach,
    /// Token of the management API that acts as a person. Carries a CRC32 for the same reasons
    /// (API-1).
    PersonalToken,
    /// Token of the management API that acts as a workspace. Carries a CRC32 for the same reasons
    /// (API-1).
    WorkspaceToken,
}

impl TokenForm {
    /// The visible beginning.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Code => "ac_",
            Self::Refresh => "rt_",
            Self::ClientSecret => "cs_",
            Self::Session => "sid_",
            Self::Browser => "bid_",
            Self::Link => "lnk_",
            Self::ApiKey => "mcpk_",
            Self::Attach => "mcpa_",
            Self::PersonalToken => "ptlp_",
            Self::WorkspaceToken => "ptlw_",
        }
    }

    const fn has_checksum(self) -> bool {
        matches!(
            self,
            Self::Refresh
                | Self::ClientSecret
                | Self::ApiKey
                | Self::Attach
                | Self::PersonalToken
                | Self::WorkspaceToken
        )
    }
}

/// 256 random bits with a prefix, in `[A-Za-z0-9_-]` only (AUTH-T13).
#[derive(Clone)]
pub struct SecretToken {
    form: TokenForm,
    text: Secret<String>,
}

/// 32 bytes in base64url without padding.
const BODY_LEN: usize = 43;
/// 4 bytes in base64url without padding.
const CHECKSUM_LEN: usize = 6;

impl SecretToken {
    /// A new one.
    pub fn generate(form: TokenForm) -> Result<Self, KeysError> {
        let mut text = String::with_capacity(form.prefix().len() + BODY_LEN + CHECKSUM_LEN);
        text.push_str(form.prefix());
        URL_SAFE_NO_PAD.encode_string(random::bytes::<32>()?, &mut text);
        if form.has_checksum() {
            let checksum = checksum(&text);
            text.push_str(&checksum);
        }
        Ok(Self {
            form,
            text: Secret::new(text),
        })
    }

    /// Reads a presented value: right prefix, length, alphabet and checksum. `None` needs no look
    /// into the database (CASE-129).
    pub fn parse(form: TokenForm, text: &str) -> Option<Self> {
        let body = text.strip_prefix(form.prefix())?;
        let expected = if form.has_checksum() {
            BODY_LEN + CHECKSUM_LEN
        } else {
            BODY_LEN
        };
        if body.len() != expected
            || !body
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        {
            return None;
        }
        if form.has_checksum() {
            let (covered, given) = text.split_at(text.len() - CHECKSUM_LEN);
            if checksum(covered) != given {
                return None;
            }
        }
        Some(Self {
            form,
            text: Secret::new(text.to_owned()),
        })
    }

    /// Returns its kind.
    pub const fn form(&self) -> TokenForm {
        self.form
    }

    /// The value, to be handed to its holder once.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    /// Its beginning, by which people tell theirs apart: the prefix and 36 of 256 bits.
    pub fn hint(&self) -> &str {
        &self.expose()[..self.form.prefix().len() + 6]
    }

    /// Returns the digest by which it is stored.
    pub fn digest(&self) -> Digest {
        digest(self.expose().as_bytes())
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretToken({}…)", self.form.prefix())
    }
}

fn checksum(covered: &str) -> String {
    URL_SAFE_NO_PAD.encode(crc32fast::hash(covered.as_bytes()).to_be_bytes())
}

/// SHA-256. Right for values of at least 128 random bits; for what people choose or type there is
/// [`crate::password`] and [`crate::Keys::mac`].
pub fn digest(bytes: &[u8]) -> Digest {
    let computed = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut out = [0; 32];
    out.copy_from_slice(computed.as_ref());
    Digest::from_bytes(out)
}

/// Compares in constant time (AUTH-T15).
pub fn digests_equal(a: &Digest, b: &Digest) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a.as_bytes(), b.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [TokenForm; 10] = [
        TokenForm::Code,
        TokenForm::Refresh,
        TokenForm::ClientSecret,
        TokenForm::Session,
        TokenForm::Browser,
        TokenForm::Link,
        TokenForm::ApiKey,
        TokenForm::Attach,
        TokenForm::PersonalToken,
        TokenForm::WorkspaceToken,
    ];

    #[test]
    fn t1_a_token_reads_back_and_is_known_by_its_digest() {
        for form in FORMS {
            let token = SecretToken::generate(form).unwrap();
            let read = SecretToken::parse(form, token.expose()).unwrap();
            assert_eq!(read.digest(), token.digest());
            assert!(
                token
                    .expose()
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
                "AUTH-T13"
            );
            assert!(
                !format!("{token:?}").contains(&token.expose()[4..]),
                "AUTH-X1"
            );
        }
    }

    #[test]
    fn case_53_a_token_of_one_form_is_none_of_another() {
        for form in FORMS {
            let token = SecretToken::generate(form).unwrap();
            for other in FORMS {
                assert_eq!(
                    SecretToken::parse(other, token.expose()).is_some(),
                    form == other
                );
            }
        }
    }

    #[test]
    fn k6_c17_a_changed_refresh_token_or_api_key_fails_its_checksum() {
        for form in FORMS.into_iter().filter(|form| form.has_checksum()) {
            let token = SecretToken::generate(form).unwrap();
            for at in form.prefix().len()..token.expose().len() {
                let mut bytes = token.expose().as_bytes().to_vec();
                bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
                assert!(
                    SecretToken::parse(form, std::str::from_utf8(&bytes).unwrap()).is_none(),
                    "byte {at}"
                );
            }
        }
    }
}
