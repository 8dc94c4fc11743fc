//! The file that describes a workspace (`format: portolan/v1`): its types, its reader with the
//! place of each fault, its canonical text, and the differences between two of them (CONF-1).

pub mod canonical;
pub mod changes;
mod check;
pub mod format;
pub mod node;
mod parsed;
mod read;
mod schema;
pub mod secret;
pub mod selection;
pub mod written;

pub use format::Bundle;
pub use node::{Fault, Place};
pub use parsed::Parsed;
pub use read::{MOST_BYTES, parse};
pub use schema::json_schema;
pub use secret::SecretReference;
