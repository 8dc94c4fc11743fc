//! Errors of this crate. None of them prints a secret.

/// A cryptographic operation failed, or key material is unusable.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    Random,
    /// The crypto library refused an operation that cannot fail with good key material.
    #[error("cryptographic operation failed")]
    Crypto,
    /// A master secret is not 32 bytes in hex or base64.
    #[error("a master secret must be 32 bytes, written as 64 hex digits or base64")]
    MasterSecret,
    /// A signing key could not be read back.
    #[error("signing key {kid} is unusable")]
    SigningKey {
        /// Its key id.
        kid: String,
    },
    /// No signing key is active at this time.
    #[error("no signing key is active")]
    NoActiveKey,
    /// A token could not be signed.
    #[error("signing failed")]
    Sign(#[source] jsonwebtoken::errors::Error),
    /// A client's private key is none that signs: P-256 or RSA in PEM.
    #[error("the client's key is neither a P-256 nor an RSA key in PEM")]
    ClientKey,
    /// Password parameters are below the floor.
    #[error("password cost is below the floor of 19456 KiB, 2 passes, 1 lane")]
    PasswordCost,
    /// Password hashing failed.
    #[error("password hashing failed")]
    PasswordHash(#[source] argon2::password_hash::Error),
}

impl From<aws_lc_rs::error::Unspecified> for KeysError {
    fn from(_: aws_lc_rs::error::Unspecified) -> Self {
        Self::Crypto
    }
}

/// A sealed value does not open. The variants are for logs; to the outside they are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Too short, or of another format version.
    #[error("not a sealed value")]
    Malformed,
    /// Sealed under a master secret that is not in the ring.
    #[error("sealed under an unknown key")]
    UnknownKey,
    /// Altered, or sealed for another purpose or with other associated data.
    #[error("seal is broken")]
    Broken,
    /// Past its expiry.
    #[error("sealed value has expired")]
    Expired,
}
