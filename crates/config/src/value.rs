//! Types of settings.

use std::{error::Error, fmt, net::SocketAddr, path::PathBuf};

use url::Url;

use crate::Form;

/// A type of settings.
pub trait Value: Sized {
    /// The allowed values.
    const FORM: Form;
    /// The value is never repeated, and can be read from a file.
    const SECRET: bool = false;

    /// Reads a value that has the form.
    ///
    /// # Errors
    /// The fault: a clause without the value, such as `has no port`.
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>>;

    /// Writes a default, as it stands in a configuration.
    fn text(&self) -> String;
}

/// Implements [`Value`] for an enum of words.
///
/// ```
/// #[derive(Debug, Clone, PartialEq)]
/// enum Security { Tls, None }
/// portolan_config::words!(Security { Tls = "tls", None = "none" });
/// ```
#[macro_export]
macro_rules! words {
    ($type:ty { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $crate::Value for $type {
            const FORM: $crate::Form = $crate::Form::Words(&[$($word),+]);
            fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err("is not one of the words".into()),
                }
            }
            fn text(&self) -> String {
                match self {
                    $(Self::$variant => $word.to_owned(),)+
                }
            }
        }
    };
}

/// Implements [`Value`] for types that are read and written as the standard library does.
macro_rules! plain {
    ($($type:ty: $form:expr;)+) => {$(
        impl Value for $type {
            const FORM: Form = $form;
            fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
                Ok(text.parse()?)
            }
            fn text(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

plain! {
    bool: Form::Flag;
    u16: Form::number(0..=65_535);
    u32: Form::number(0..=4_294_967_295);
    u64: Form::number(0..=u64::MAX);
    usize: Form::number(0..=4_294_967_295);
    i64: Form::number(0..=4_294_967_295);
    String: Form::Text("a text");
    SocketAddr: Form::Text("an address and a port, such as 127.0.0.1:8080");
}

impl Value for PathBuf {
    const FORM: Form = Form::Text("the path of a file");
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(text.into())
    }
    fn text(&self) -> String {
        self.display().to_string()
    }
}

impl Value for Url {
    const FORM: Form = Form::Text("an address with https or http, such as https://example.com");
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let url = Self::parse(text).map_err(|_| "is not an address")?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("is not an address with https or http and a host".into());
        }
        Ok(url)
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl<T: Value> Value for Option<T> {
    const FORM: Form = T::FORM;
    const SECRET: bool = T::SECRET;
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        T::parse(text).map(Some)
    }
    fn text(&self) -> String {
        self.as_ref().map(T::text).unwrap_or_default()
    }
}

impl<T: Value> Value for Vec<T> {
    const FORM: Form = Form::List(&T::FORM);
    const SECRET: bool = T::SECRET;
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        text.split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(|item| match T::parse(item) {
                Err(fault) if !T::SECRET => Err(format!("{item:?} {fault}").into()),
                outcome => outcome,
            })
            .collect()
    }
    fn text(&self) -> String {
        self.iter().map(T::text).collect::<Vec<_>>().join(",")
    }
}

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl Value for Share {
    const FORM: Form = Form::Share;
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self(text.parse()?))
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A text that is never printed.
#[derive(Clone)]
pub struct SecretText(String);

impl SecretText {
    /// The secret itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl Value for SecretText {
    const FORM: Form = Form::Text("a text");
    const SECRET: bool = true;
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self(text.to_owned()))
    }
    fn text(&self) -> String {
        String::new()
    }
}
