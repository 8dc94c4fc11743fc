//! Codes of authenticator apps (RFC 6238: SHA-1, six digits, thirty seconds; AUTH-L11), and codes
//! for when the app is lost.

use aws_lc_rs::{constant_time, hmac};
use portolan_model::Timestamp;

use crate::{KeysError, Secret, random};

/// Seconds of one step.
const PERIOD: i64 = 30;
/// Steps before and after the present one that are good too: clocks differ, and people type slowly.
const SKEW: i64 = 1;
/// 160 bits, as RFC 4226 recommends.
const SECRET_LEN: usize = 20;
/// RFC 4648 §6.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The secret shared with an authenticator app.
#[derive(Debug, Clone)]
pub struct TotpSecret(Secret<Vec<u8>>);

impl TotpSecret {
    /// A new one.
    pub fn generate() -> Result<Self, KeysError> {
        Ok(Self(Secret::new(random::bytes::<SECRET_LEN>()?.to_vec())))
    }

    /// From its bytes, as they were sealed.
    pub const fn from_bytes(bytes: Secret<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// Its bytes, to be sealed.
    pub fn expose(&self) -> &[u8] {
        self.0.expose()
    }

    /// For people who type it into the app.
    pub fn base32(&self) -> Secret<String> {
        Secret::new(base32(self.0.expose()))
    }

    /// For apps that read it from a picture.
    pub fn uri(&self, issuer: &str, account: &str) -> Secret<String> {
        let encode = |text: &str| {
            text.bytes()
                .map(|byte| match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                        char::from(byte).to_string()
                    }
                    other => format!("%{other:02X}"),
                })
                .collect::<String>()
        };
        let (issuer, account) = (encode(issuer), encode(account));
        Secret::new(format!(
            "otpauth://totp/{issuer}:{account}?secret={}&issuer={issuer}&algorithm=SHA1&digits=6&period=30",
            self.base32().expose()
        ))
    }

    /// The step whose code this is, if it is one of the present step or of its neighbours. Each
    /// step is good once: who accepts it has to remember it.
    pub fn step_of(&self, code: &str, now: Timestamp) -> Option<i64> {
        let present = now.unix_timestamp().div_euclid(PERIOD);
        let mut found = None;
        // All of them are compared, whichever fits.
        for step in present - SKEW..=present + SKEW {
            let expected = self.code(step);
            if constant_time::verify_slices_are_equal(expected.as_bytes(), code.as_bytes()).is_ok()
            {
                found = Some(step);
            }
        }
        found
    }

    /// The code at a time: what the app shows.
    pub fn code_at(&self, now: Timestamp) -> String {
        self.code(now.unix_timestamp().div_euclid(PERIOD))
    }

    fn code(&self, step: i64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, self.0.expose());
        let tag = hmac::sign(&key, &step.to_be_bytes());
        let tag = tag.as_ref();
        // RFC 4226 §5.3: the last four bits say where to read.
        let at = usize::from(tag[tag.len() - 1] & 0x0f);
        let word = u32::from_be_bytes([tag[at] & 0x7f, tag[at + 1], tag[at + 2], tag[at + 3]]);
        format!("{:06}", word % 1_000_000)
    }
}

/// A code for when the app is lost (AUTH-L12): 80 random bits, in four groups of four letters and
/// digits.
pub fn recovery_code() -> Result<Secret<String>, KeysError> {
    let text = base32(&random::bytes::<10>()?);
    let groups: Vec<&str> = [0, 4, 8, 12].map(|at| &text[at..at + 4]).to_vec();
    Ok(Secret::new(groups.join("-")))
}

/// The form in which recovery codes are compared, however a person types them; `None` for what
/// cannot be one.
pub fn read_recovery_code(typed: &str) -> Option<Secret<String>> {
    let text: String = typed
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .map(|c| c.to_ascii_uppercase())
        .collect();
    let fits = text.len() == 16 && text.bytes().all(|byte| BASE32.contains(&byte));
    fits.then(|| Secret::new(text))
}

fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut word = [0; 8];
        word[3..3 + chunk.len()].copy_from_slice(chunk);
        let word = u64::from_be_bytes(word);
        let letters = (chunk.len() * 8).div_ceil(5);
        for at in 0..letters {
            let index = (word >> (35 - 5 * at)) & 31;
            text.push(char::from(BASE32[usize::try_from(index).unwrap_or(0)]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rfc() -> TotpSecret {
        TotpSecret::from_bytes(Secret::new(b"12345678901234567890".to_vec()))
    }

    #[test]
    fn l11_the_codes_are_those_of_rfc_6238() {
        for (at, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let at = Timestamp::from_unix_timestamp(at).unwrap();
            assert_eq!(rfc().code_at(at), code);
        }
    }

    #[test]
    fn l11_neighbouring_steps_are_good_and_others_are_not() {
        let now = Timestamp::from_unix_timestamp(1_000_000_005).unwrap();
        let step = 1_000_000_005 / 30;
        for (seconds, expected) in [
            (-60, None),
            (-30, Some(step - 1)),
            (0, Some(step)),
            (30, Some(step + 1)),
            (60, None),
        ] {
            let code = rfc().code_at(now + time::Duration::seconds(seconds));
            assert_eq!(rfc().step_of(&code, now), expected, "{seconds}");
        }
        for wrong in ["", "00000", "0000000", "abcdef", "２８７０８２"] {
            assert_eq!(rfc().step_of(wrong, now), None);
        }
    }

    #[test]
    fn rfc_4648_base32_and_what_an_app_scans() {
        for (bytes, text) in [
            (&b"f"[..], "MY"),
            (b"fo", "MZXQ"),
            (b"foo", "MZXW6"),
            (b"foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(bytes), text);
        }
        let uri = rfc().uri("Portolan", "ann+x@acme.example");
        assert_eq!(
            uri.expose(),
            "otpauth://totp/Portolan:ann%2Bx%40acme.example?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Portolan&algorithm=SHA1&digits=6&period=30"
        );
        assert!(!format!("{:?}", rfc()).contains("123"), "AUTH-X1");
    }

    #[test]
    fn l12_a_recovery_code_reads_back_however_it_is_typed() {
        let code = recovery_code().unwrap();
        assert_eq!(code.expose().len(), 19);
        let read = read_recovery_code(&format!(" {} ", code.expose().to_lowercase())).unwrap();
        assert_eq!(*read.expose(), code.expose().replace('-', ""));
        for wrong in ["", "123456", "AAAA-AAAA-AAAA-AAA1", "AAAA-AAAA-AAAA"] {
            assert!(read_recovery_code(wrong).is_none(), "{wrong}");
        }
    }
}
