//! Settings as texts, before they are checked.

use std::{collections::BTreeMap, error::Error, fmt};

use crate::{Form, Setting, Value};

/// Settings as texts, by name. Empty texts count as not set.
#[derive(Default)]
pub struct Values(BTreeMap<String, String>);

/// Names only: there are secrets among the values.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A setting that cannot be used: its name, what is wrong, and what is allowed.
#[derive(Debug)]
pub struct ConfigError {
    setting: String,
    fault: String,
    allowed: Option<String>,
}

impl ConfigError {
    /// For a rule between settings; `setting` is the one to change.
    pub fn new(setting: &str, fault: impl Into<String>) -> Self {
        Self {
            setting: setting.to_owned(),
            fault: fault.into(),
            allowed: None,
        }
    }

    fn of(setting: &Setting, fault: String) -> Self {
        Self {
            allowed: Some(setting.form.allowed()),
            ..Self::new(setting.name, fault)
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.fault)?;
        match &self.allowed {
            Some(allowed) => write!(f, "; allowed is {allowed}"),
            None => Ok(()),
        }
    }
}

impl Error for ConfigError {}

impl Values {
    /// The text of a setting, if it is set.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    /// Sets a value, whatever was there.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a value that is not set yet.
    pub fn set_default(&mut self, name: &str, value: impl Into<String>) {
        self.0
            .entry(name.to_owned())
            .or_insert_with(|| value.into());
    }

    /// Removes a value.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Reads a setting; `None` where it is not set.
    pub fn get<T: Value>(&self, setting: &Setting) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.text(setting.name) else {
            return Ok(None);
        };
        let shown = |fault: &str| match setting.form {
            // The fault names the item.
            Form::List(_) | Form::Tables(_) => fault.to_owned(),
            _ if setting.secret => format!("the value {fault}"),
            _ => format!("{text:?} {fault}"),
        };
        if let Some(fault) = setting.form.fault(text) {
            return Err(ConfigError::of(setting, shown(fault)));
        }
        T::parse(text)
            .map(Some)
            .map_err(|fault| ConfigError::of(setting, shown(&fault.to_string())))
    }

    /// Reads a setting that must be set.
    pub fn required<T: Value>(&self, setting: &Setting) -> Result<T, ConfigError> {
        self.get(setting)?.ok_or_else(|| {
            ConfigError::new(
                setting.name,
                format!(
                    "it is not set: put it in the configuration file or set {}",
                    setting.variable()
                ),
            )
        })
    }
}
