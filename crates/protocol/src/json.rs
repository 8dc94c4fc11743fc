//! JSON that stays text: values as they were sent, and an object that is written member by member.

mod raw;
pub(crate) mod scan;
mod write;

pub use raw::{Kind, Misfit, NotJson, Raw, Unsound};
pub(crate) use write::Object;
pub use write::write_string;
