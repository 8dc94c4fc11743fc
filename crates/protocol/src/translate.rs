//! Translates results, definitions and errors from one revision to another
//! (`docs/translation-rules.md`, *Shapes of results and definitions* and *Errors and authorization
//! across legs*).
//!
//! Every function here is total: for any JSON it returns a value that the target revision allows,
//! or a [`Violation`] of the sender. Each omission is recorded as a [`Loss`]. Members that no
//! revision knows pass unchanged (MCP-J-10). Unchanged values are copied as text, so that numbers
//! keep their digits.
//!
//! | Value | Function |
//! |---|---|
//! | results of `tools/call`, `prompts/get`, `resources/read`, `completion/complete` | [`result`] |
//! | tools, prompts, resources and templates in lists | [`definition`] |
//! | errors | [`error`] |
//! | URIs in all of these | [`uris`] |
//! | questions to the client and their answers | [`crate::ask`] |

mod definition;
mod error;
mod result;
mod uris;

pub use crate::shaped::{Loss, Losses, Shaped, Violation};
pub use definition::{Listed, definition};
pub use error::{Failed, UrlStep, error};
pub use result::{Shape, result};
pub use uris::{uri_of_error, uris, uris_of_meta};
