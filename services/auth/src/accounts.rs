//! Accounts of people: sign-up, sign-in, second factors, passkeys, other providers, account pages,
//! invitations and the delivery of mail.

pub(crate) mod account;
pub(crate) mod domains;
pub(crate) mod invitations;
pub mod login;
pub mod mail;
pub(crate) mod passkeys;
pub(crate) mod second_factor;
