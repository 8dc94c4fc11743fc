//! People: sign-in, sessions, second factors, members, invitations and other providers.

pub mod access_tokens;
pub mod account_links;
pub mod api_access;
pub mod browser_sessions;
pub mod email_changes;
pub mod endings;
pub mod idempotent_requests;
pub mod identities;
pub mod identity_offers;
pub mod invitations;
pub mod login_attempts;
pub mod members;
pub mod passkeys;
pub mod second_factors;
pub mod single_sign_on;
pub mod tenant_domains;
pub mod trusted_pipelines;
pub mod users;
pub mod verifications;
pub mod ways_in;
pub mod workspace_hints;
