//! What all pages and APIs of the site share: URLs and cookies, the state of handlers, browser
//! sessions, forms, the frame of pages, error answers, throttles, and texts of messages.
//!
//! | Module | Subject |
//! |---|---|
//! | [`config`], [`state`], [`oauth_parts`] | settings, and the state of every handler |
//! | [`request_context`], [`browser`], [`session`] | facts of a request: address, browser, person |
//! | [`forms`], [`pages`], [`target`] | form tokens, server-rendered HTML, continuations |
//! | [`console_error`] | error answers of the JSON API |
//! | `access_policy` | what a workspace requires of a session |
//! | [`throttle`], `rate`, `turns`, `readers` | budgets and queues |
//! | [`identity_providers`], [`breached`] | requests to sign-in providers and password lists |
//! | [`mail`] | messages: their texts and the outbox |
//! | `revocation`, `workspaces`, `names` | what several parts of the service do with the registry |

pub(crate) mod access_policy;
pub mod breached;
pub mod browser;
pub mod config;
pub mod console_error;
pub(crate) mod error_chain;
pub mod forms;
pub mod identity_providers;
pub mod mail;
pub(crate) mod names;
pub mod oauth_parts;
pub mod pages;
pub(crate) mod rate;
pub(crate) mod readers;
pub mod request_context;
pub(crate) mod returned;
pub(crate) mod revocation;
pub mod session;
pub mod state;
pub mod target;
pub mod throttle;
pub(crate) mod turns;
pub(crate) mod workspaces;
