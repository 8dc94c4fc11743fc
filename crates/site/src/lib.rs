//! What all pages and APIs of the site share: URLs and cookies, the state of handlers, browser
//! sessions, forms, the frame of pages, error answers, throttles, and texts of messages.
//!
//! | Module | Subject |
//! |---|---|
//! | [`config`], [`state`], [`oauth_parts`] | settings, and the state of every handler |
//! | [`request_context`], [`browser`], [`session`] | facts of a request: address, browser, person |
//! | [`presented_token`] | the token of the management API that a request has |
//! | [`forms`], [`pages`], [`target`] | form tokens, server-rendered HTML, continuations |
//! | [`console_error`] | error answers of the JSON API |
//! | [`access_policy`] | what a workspace requires of a session |
//! | [`throttle`], [`rate`], [`turns`], [`readers`] | budgets and queues |
//! | [`identity_providers`], [`breached`] | requests to sign-in providers and password lists |
//! | [`mail`] | messages: their texts and the outbox |
//! | [`revocation`], [`workspaces`], [`names`] | what several parts of the service do with the registry |

// Templates of this crate and of those above name functions by the same path.
extern crate self as portolan_site;

pub mod access_policy;
pub mod breached;
pub mod browser;
pub mod config;
pub mod console_error;
pub mod error_chain;
pub mod forms;
pub mod identity_providers;
pub mod live_sessions;
pub mod mail;
pub mod names;
pub mod oauth_parts;
pub mod pages;
pub mod pipeline_issuers;
pub mod presented_token;
pub mod rate;
pub mod readers;
pub mod request_context;
pub mod returned;
pub mod revocation;
pub mod session;
pub mod state;
pub mod target;
pub mod throttle;
pub mod turns;
pub mod watchers;
pub mod workspaces;
