//! Accounts of people: sign-up, sign-in, second factors, passkeys, other providers, account pages,
//! invitations and the delivery of mail.

pub(crate) mod account;
pub mod domains;
pub(crate) mod invitations;
pub mod login;
pub mod mail;
pub(crate) mod passkeys;
pub(crate) mod second_factor;

use axum::Router;
use portolan_site::state::AuthState;

use crate::mail::mailbox;

/// Routes of the pages before, around and behind the sign-in.
pub fn router(state: &AuthState) -> Router<AuthState> {
    Router::new()
        .merge(login::router(state))
        .merge(account::router(state))
        .merge(invitations::router(state))
        .merge(mailbox::router(state))
}
