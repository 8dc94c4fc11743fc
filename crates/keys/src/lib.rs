//! Key material and all that is made with it: tokens, seals, MACs, passwords, JWTs.
//!
//! Everything symmetric comes from one 32-byte master secret: HKDF-SHA256 gives each [`Purpose`]
//! its own key (AUTH-J5), and the ring keeps former master secrets, so that what they sealed still
//! opens. Access tokens are signed with ES256 keys that live as rows, sealed at rest ([`ring`]).
//!
//! | Module | Subject |
//! |---|---|
//! | [`secret`] | `Secret<T>`: wiped on drop, mute in logs |
//! | [`random`] | the only source of chance |
//! | [`token`] | bearer values: codes, refresh tokens, client secrets, cookies; and their digests |
//! | [`purpose`] | what a derived key is for |
//! | [`seal`] | [`Keys`]: AEAD with purpose, associated data and expiry; MACs; authenticated opaque values |
//! | [`owner`] | keys of one tenant, derived from the same secret |
//! | [`password`] | argon2id behind a bounded queue, and the rules for new passwords |
//! | [`jwt`] | access tokens: claims, strict verification |
//! | [`assertion`] | JWTs by which clients prove themselves, and the keys that these are checked with |
//! | [`id_token`] | what an OpenID provider says of who signed in there |
//! | [`subject_token`] | what a job of a CI system says of itself |
//! | [`jwks`] | public keys on the wire |
//! | [`client_key`] | our client assertions for external authorization servers |
//! | [`totp`] | codes of authenticator apps, and recovery codes |
//! | [`webauthn`] | what authenticators say: passkeys |
//! | [`webhook_secret`] | secrets of webhook endpoints, and their signatures |
//! | [`vault`] | data keys of tenants, and the credentials sealed under them |
//! | [`ring`] | signing keys: pending, active, retiring, retired |

pub mod assertion;
pub mod client_key;
mod config;
pub mod error;
pub mod id_token;
pub mod jwks;
pub mod jwt;
pub mod owner;
pub mod password;
pub mod purpose;
pub mod random;
pub mod ring;
pub mod seal;
pub mod secret;
pub mod subject_token;
pub mod token;
pub mod totp;
pub mod vault;
pub mod webauthn;
pub mod webhook_secret;

pub use assertion::{Assertion, AssertionError, ClientKeys, InvalidKeys};
pub use config::KeysConfig;
pub use error::{KeysError, OpenError};
pub use id_token::{Expected, IdToken, IdTokenError};
pub use jwks::{Jwks, PublicJwk};
pub use jwt::{AccessClaims, Epochs, Verifier, VerifyError};
pub use owner::OwnerKey;
pub use password::{PasswordCost, PasswordHasher};
pub use purpose::Purpose;
pub use ring::SigningKeys;
pub use seal::{Keys, MasterSecret};
pub use secret::Secret;
pub use subject_token::{JobClaims, SubjectToken, SubjectTokenError};
pub use token::{SecretToken, TokenForm, digest, digests_equal};
pub use totp::TotpSecret;
pub use vault::DataKey;
pub use webhook_secret::WebhookSecret;
