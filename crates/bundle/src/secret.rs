//! References to secrets: a bundle never holds a value (CONF-7).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most characters of a reference. The longest name is the URL of an endpoint.
const LONGEST: usize = 2_100;

/// Where the value of a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretStore {
    /// A variable of the environment of the command line.
    Environment,
    /// A file of the machine of the command line.
    File,
    /// The workspace, which keeps the value already.
    Vault,
}

/// A reference: `env:NAME`, `file:PATH` or `vault:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretReference(String);

impl SecretReference {
    /// The reference to what the workspace keeps for an object: the name of a source, or the URL of
    /// an endpoint of webhooks.
    pub fn vault(name: &str) -> Self {
        Self(format!("vault:{name}"))
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The store, and the name or path in it.
    pub fn parts(&self) -> (SecretStore, &str) {
        let (store, name) = self.0.split_once(':').unwrap_or_default();
        match store {
            "env" => (SecretStore::Environment, name),
            "file" => (SecretStore::File, name),
            _ => (SecretStore::Vault, name),
        }
    }
}

impl TryFrom<String> for SecretReference {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_known = ["env:", "file:", "vault:"]
            .into_iter()
            .any(|store| text.len() > store.len() && text.starts_with(store));
        if is_known && text.chars().count() <= LONGEST && !text.chars().any(char::is_control) {
            return Ok(Self(text));
        }
        // The text may be a secret that was pasted: it is not repeated.
        Err("a secret is a reference: env:NAME, file:PATH or vault:NAME")
    }
}

impl From<SecretReference> for String {
    fn from(reference: SecretReference) -> Self {
        reference.0
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
