//! The format, from a text to differences.

mod changes;
mod faults;
mod generated;
mod schema;
mod selection;
mod texts;
