//! The client against servers that behave, and against those that do not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod authority;
mod eras;
mod exchanges;
mod hostile;
mod lists;
mod scripted;
