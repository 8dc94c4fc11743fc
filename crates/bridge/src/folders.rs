//! Folders of the person on whose machine the program runs.

use std::path::PathBuf;

/// The person's folders, as the environment names them.
#[derive(Debug, Clone)]
pub struct Folders {
    /// `HOME`, or `USERPROFILE` on Windows.
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`.
    pub configuration: Option<PathBuf>,
    /// `APPDATA` of Windows.
    pub application_data: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex: Option<PathBuf>,
}

impl Folders {
    /// Reads variables. `None` without a home. Relative paths count as absent (XDG Base Directory
    /// Specification).
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| {
            let path = variable(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        Some(Self {
            home: set("HOME").or_else(|| set("USERPROFILE"))?,
            configuration: set("XDG_CONFIG_HOME"),
            application_data: set("APPDATA"),
            codex: set("CODEX_HOME"),
        })
    }

    /// The folder of configuration.
    pub(crate) fn configuration(&self) -> PathBuf {
        let set = self.configuration.clone();
        set.unwrap_or_else(|| self.home.join(".config"))
    }

    /// The folder of the tokens.
    pub fn tokens(&self) -> PathBuf {
        self.configuration().join("portolan").join("connect")
    }

    /// The folder of the tokens of `portolan login`.
    pub fn command_tokens(&self) -> PathBuf {
        self.configuration().join("portolan").join("login")
    }

    /// The folder in which desktop applications keep their settings.
    pub(crate) fn applications(&self) -> PathBuf {
        if cfg!(target_os = "macos") {
            self.home.join("Library").join("Application Support")
        } else if cfg!(windows) {
            let set = self.application_data.clone();
            set.unwrap_or_else(|| self.home.join("AppData").join("Roaming"))
        } else {
            self.configuration()
        }
    }
}
