//! Secrets of webhook endpoints, and signatures by them (Standard Webhooks, symmetric: `whsec_` and
//! `v1`; HOOK-6).

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{KeysError, Secret, random};

/// Prefix of the text form.
const PREFIX: &str = "whsec_";

/// Bytes of a new secret; the specification allows 24 to 64.
const LEN: usize = 32;

/// A secret that an endpoint shares with us.
#[derive(Debug, Clone)]
pub struct WebhookSecret(Secret<Vec<u8>>);

impl WebhookSecret {
    /// A new one.
    pub fn generate() -> Result<Self, KeysError> {
        Ok(Self(Secret::new(random::bytes::<LEN>()?.to_vec())))
    }

    /// Reads the text form, `whsec_` and standard base64 of 24 to 64 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (24..=64)
            .contains(&bytes.len())
            .then(|| Self(Secret::new(bytes)))
    }

    /// The text form, as receivers configure it.
    pub fn text(&self) -> Secret<String> {
        Secret::new(format!("{PREFIX}{}", STANDARD.encode(self.0.expose())))
    }

    /// The signature of a message, as one item of `webhook-signature`: `v1,<base64>` of HMAC-SHA256
    /// over `id.timestamp.body`. `timestamp` is in seconds since the epoch.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.0.expose());
        let mut context = hmac::Context::with_key(&key);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign().as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: HOOK-6
    #[test]
    fn vector_of_the_specification_is_signed_alike() {
        // The vector of the reference libraries' tests.
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(
            secret.sign(
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                br#"{"test": 2432232314}"#
            ),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    /// Rule: HOOK-6
    #[test]
    fn secret_reads_back_and_short_ones_are_refused() {
        let secret = WebhookSecret::generate().unwrap();
        let again = WebhookSecret::parse(secret.text().expose()).unwrap();
        assert_eq!(secret.sign("a", 1, b"b"), again.sign("a", 1, b"b"));
        assert_eq!(format!("{secret:?}"), "WebhookSecret(Secret(…))");
        for bad in [
            "",
            "whsec_",
            "whsec_AAAA",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert!(WebhookSecret::parse(bad).is_none(), "{bad}");
        }
    }
}
