//! How a crate declares its settings once.
//!
//! [`config!`] declares a struct whose fields are settings. Name, type, bounds, default and
//! meaning stand there and nowhere else: reading, the reference page and the JSON Schema are made
//! of them. This crate reads no file and no environment; the binary does, into [`Values`].

mod declare;
mod form;
mod reference;
mod value;
mod values;

pub use self::{
    form::Form,
    reference::{Group, markdown, schema},
    value::{SecretText, Share, Value},
    values::{ConfigError, Values},
};

/// One setting, as its crate declares it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Name in the file; `PORTOLAN_` and the name in upper case in the environment.
    pub name: &'static str,
    /// The default as text; empty without one.
    pub default: fn() -> String,
    /// The allowed values.
    pub form: Form,
    /// The value is never repeated, and can be read from a file by `<name>_file`.
    pub secret: bool,
    /// Must be set: there is no default, and the service does not start without it.
    pub required: bool,
    /// Meaning in Markdown.
    pub meaning: &'static str,
}

impl Setting {
    /// The name in the environment.
    pub fn variable(&self) -> String {
        format!("PORTOLAN_{}", self.name.to_ascii_uppercase())
    }
}

/// Settings of one part, as [`config!`] declares them.
pub trait Config: Sized {
    /// Subject, as a heading of the reference page.
    const SUBJECT: &'static str;
    /// The settings, in the order of the reference page.
    const SETTINGS: &'static [Setting];

    /// Reads and checks all of them.
    fn read(values: &Values) -> Result<Self, ConfigError>;
}
