//! Trusted certificate authorities: those of the machine, and those that the operator adds.

use std::{error::Error, fmt, fs};

use portolan_config::Form;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, TrustAnchor};

/// Certificate authorities to trust beside those of the machine: a company's own, for APIs and MCP
/// servers inside of it.
#[derive(Clone, Default)]
pub struct Authorities {
    anchors: Vec<TrustAnchor<'static>>,
}

/// A setting is the path of a file, which is read at once: calls would otherwise fail one by one.
impl portolan_config::Value for Authorities {
    const FORM: Form = Form::Text("the path of a file of certificates in PEM");
    fn parse(path: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let text = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
        Self::from_pem(&text).map_err(|error| match error.source() {
            Some(cause) => format!("cannot be used: {error}: {cause}").into(),
            None => format!("cannot be used: {error}").into(),
        })
    }
    fn text(&self) -> String {
        String::new()
    }
}

/// Why a text is not a list of certificate authorities.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    /// Base64 or a frame is broken.
    #[error("it is not PEM")]
    NotPem(#[source] pem::Error),
    /// No certificate, perhaps only a key.
    #[error("there is no certificate in it (-----BEGIN CERTIFICATE-----)")]
    Empty,
    /// A frame without a certificate in it.
    #[error("certificate {number} in it cannot be read")]
    Unreadable {
        /// Which one, from 1.
        number: usize,
        /// Cause of the failure.
        #[source]
        source: rustls::Error,
    },
}

impl Authorities {
    /// Reads certificates in PEM. Other text is skipped.
    ///
    /// # Errors
    /// [`AuthoritiesError`]: one unreadable certificate is an error, because the operator relies on
    /// it.
    pub fn from_pem(text: &[u8]) -> Result<Self, AuthoritiesError> {
        let mut store = RootCertStore::empty();
        for (before, certificate) in CertificateDer::pem_slice_iter(text).enumerate() {
            let certificate = certificate.map_err(AuthoritiesError::NotPem)?;
            store
                .add(certificate)
                .map_err(|source| AuthoritiesError::Unreadable {
                    number: before + 1,
                    source,
                })?;
        }
        if store.is_empty() {
            return Err(AuthoritiesError::Empty);
        }
        Ok(Self {
            anchors: store.roots,
        })
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.anchors.len()
    }

    /// True if there are only those of the machine.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// These and those of the machine (`SSL_CERT_FILE` is honoured by the loader).
    pub(crate) fn with_the_machines(&self) -> RootCertStore {
        let mut store = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            // Plain HTTP to an allowed destination still works, and what the operator names may be
            // all that is called, so this is no reason to refuse to start.
            tracing::warn!(
                errors = ?found.errors,
                "no certificate authorities found (package ca-certificates): https calls will fail, save to hosts of egress_ca_file"
            );
        }
        store.extend(self.anchors.iter().cloned());
        store
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorities({})", self.anchors.len())
    }
}
