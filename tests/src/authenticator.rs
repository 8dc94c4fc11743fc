//! An authenticator in software, with keys of its own. It does the work of a browser and a security
//! key together, and makes mistakes on request.

use anyhow::{Context, Result};
use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::{self, SystemRandom},
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// Flag of its data: the person was present.
pub const PRESENT: u8 = 0x01;
/// The person was verified.
pub const VERIFIED: u8 = 0x04;
/// The key may be copied among a person's devices.
pub const SYNCED: u8 = 0x08;
const ATTESTED: u8 = 0x40;

/// How it answers.
#[derive(Debug, Clone)]
pub struct Manner {
    /// Origin of the page that asked.
    pub origin: String,
    /// Host that it answers for; the one in the options if `None`.
    pub host: Option<String>,
    /// Flags that it reports about the person and itself.
    pub flags: u8,
    /// A challenge other than the given one.
    pub challenge: Option<String>,
    /// Another person than the credential was made for.
    pub user_handle: Option<String>,
}

impl Manner {
    /// As it should be, for pages of this origin.
    pub fn honest(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            host: None,
            flags: PRESENT | VERIFIED,
            challenge: None,
            user_handle: None,
        }
    }

    fn client_data(&self, ceremony: &str, options: &Value) -> Result<String> {
        let challenge = match &self.challenge {
            Some(other) => other,
            None => options["challenge"].as_str().context("a challenge")?,
        };
        Ok(json!({
            "type": ceremony,
            "challenge": challenge,
            "origin": self.origin,
            "crossOrigin": false,
        })
        .to_string())
    }
}

/// A passkey, held here.
#[derive(Debug)]
pub struct Authenticator {
    pair: EcdsaKeyPair,
    id: Vec<u8>,
    user_handle: String,
    /// How often it has signed. 0 for ever if it does not count.
    pub count: u32,
    /// Whether it counts.
    pub counts: bool,
}

/// Names and values of the fields of a form.
pub type Fields = Vec<(&'static str, String)>;

impl Authenticator {
    /// Makes a credential, as `navigator.credentials.create` is asked to. With what the page sends.
    pub fn create(options: &Value, manner: &Manner) -> Result<(Self, Fields)> {
        let mut id = vec![0; 32];
        rand::fill(&mut id)?;
        let made = Self {
            pair: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)?,
            id,
            user_handle: options["user"]["id"].as_str().context("a user")?.to_owned(),
            count: 0,
            counts: true,
        };
        let host = match &manner.host {
            Some(host) => host,
            None => options["rp"]["id"].as_str().context("a relying party")?,
        };
        let mut data = made.data(host, manner.flags | ATTESTED);
        data.extend([0; 16]);
        data.extend(u16::try_from(made.id.len())?.to_be_bytes());
        data.extend(&made.id);
        // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        let point = made.pair.public_key().as_ref();
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]);
        data.extend(&point[1..33]);
        data.extend([0x22, 0x58, 0x20]);
        data.extend(&point[33..]);
        // {"fmt": "none", "attStmt": {}, "authData": data}
        let mut attestation = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59".to_vec();
        attestation.extend(u16::try_from(data.len())?.to_be_bytes());
        attestation.extend(&data);
        let client_data = manner.client_data("webauthn.create", options)?;
        let fields = vec![
            ("client_data", URL_SAFE_NO_PAD.encode(client_data)),
            ("attestation", URL_SAFE_NO_PAD.encode(attestation)),
        ];
        Ok((made, fields))
    }

    /// Signs, as `navigator.credentials.get` is asked to. With what the page sends.
    pub fn sign(&mut self, options: &Value, manner: &Manner) -> Result<Fields> {
        if self.counts {
            self.count += 1;
        }
        let host = match &manner.host {
            Some(host) => host,
            None => options["rpId"].as_str().context("a relying party")?,
        };
        let data = self.data(host, manner.flags);
        let client_data = manner.client_data("webauthn.get", options)?;
        let mut message = data.clone();
        message.extend(digest(&SHA256, client_data.as_bytes()).as_ref());
        let signature = self.pair.sign(&SystemRandom::new(), &message)?;
        let handle = manner.user_handle.as_ref().unwrap_or(&self.user_handle);
        Ok(vec![
            ("credential", URL_SAFE_NO_PAD.encode(&self.id)),
            ("client_data", URL_SAFE_NO_PAD.encode(client_data)),
            ("authenticator_data", URL_SAFE_NO_PAD.encode(data)),
            ("signature", URL_SAFE_NO_PAD.encode(signature.as_ref())),
            ("user_handle", handle.clone()),
        ])
    }

    /// Its id, as options name it.
    pub fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.id)
    }

    /// The user handle that it reports.
    pub fn user_handle(&self) -> &str {
        &self.user_handle
    }

    fn data(&self, host: &str, flags: u8) -> Vec<u8> {
        let mut data = digest(&SHA256, host.as_bytes()).as_ref().to_vec();
        data.push(flags);
        data.extend(self.count.to_be_bytes());
        data
    }
}
