//! Writes the configuration of MCP clients. Everything else in the file stays as it is, comments
//! and order included; the result is read again and compared before anything is written.

mod clients;
mod json;
mod toml_text;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use time::{OffsetDateTime, macros::format_description};

pub use self::clients::InstallClient;

/// A server in a client's configuration.
#[derive(Debug, Clone)]
pub struct InstallEntry {
    /// Its name there: letters, digits, `-` and `_`.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment; may hold a key.
    pub environment: Vec<(String, String)>,
}

/// Why a configuration was not written.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The file is not what the client reads.
    #[error("{} is not changed: {why}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Cause of the failure.
        why: &'static str,
    },
    /// The name has other characters.
    #[error("a name has 1 to 60 letters, digits, `-` or `_`")]
    Name,
}

/// A change that is not written yet.
#[derive(Debug, Clone)]
pub struct Plan {
    file: PathBuf,
    before: Option<String>,
    after: String,
    entry: String,
    name: String,
    is_new: bool,
}

/// Makes a name of a host: `mcp.example.com` becomes `mcp-example-com`.
pub fn name_of_host(host: &str) -> String {
    let name: String = host
        .chars()
        .map(|sign| {
            if sign.is_ascii_alphanumeric() {
                sign
            } else {
                '-'
            }
        })
        .take(60)
        .collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() {
        "server".to_owned()
    } else {
        name
    }
}

fn is_name(name: &str) -> bool {
    (1..=60).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Reads the client's `file` and works out the change.
///
/// # Errors
/// [`InstallError`]; nothing was written.
pub fn plan(
    client: InstallClient,
    file: &Path,
    entry: &InstallEntry,
) -> Result<Plan, InstallError> {
    if !is_name(&entry.name) {
        return Err(InstallError::Name);
    }
    let before = match fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(failed(file, source)),
    };
    let text = before.as_deref().unwrap_or_default();
    let changed = if client.has_toml() {
        toml_text::set(text, entry)
    } else {
        json::set(text, client.section(), &entry.name, &client.json(entry))
    };
    let (after, is_new) = changed.map_err(|why| InstallError::Unreadable {
        path: file.to_owned(),
        why,
    })?;
    Ok(Plan {
        file: file.to_owned(),
        before,
        after,
        entry: shown(client, entry),
        name: entry.name.clone(),
        is_new,
    })
}

/// The entry as a person sees it, without the values of its environment.
fn shown(client: InstallClient, entry: &InstallEntry) -> String {
    let hidden = InstallEntry {
        environment: entry
            .environment
            .iter()
            .map(|(name, _)| (name.clone(), "…".to_owned()))
            .collect(),
        ..entry.clone()
    };
    if client.has_toml() {
        toml_text::block(&hidden)
    } else {
        let text = serde_json::to_string_pretty(&client.json(&hidden)).unwrap_or_default();
        format!("\"{}\": {text}\n", entry.name)
    }
}

fn failed(path: &Path, source: io::Error) -> InstallError {
    InstallError::File {
        path: path.to_owned(),
        source,
    }
}

impl Plan {
    /// True if the file would be another.
    pub fn changes(&self) -> bool {
        self.before.as_deref() != Some(self.after.as_str())
    }

    /// What changes, for a person.
    pub fn description(&self) -> String {
        let file = self.file.display();
        if !self.changes() {
            return format!(
                "{file} has the server `{}` already; nothing changes.",
                self.name
            );
        }
        let verb = match (&self.before, self.is_new) {
            (None, _) => "The file is made, with the server",
            (Some(_), true) => "This server is added",
            (Some(_), false) => "This server is replaced",
        };
        format!("{file}\n{verb}:\n\n{}", self.entry)
    }

    /// Writes the file, after a backup of the one that was there. Gives lines for a person.
    ///
    /// # Errors
    /// [`InstallError::File`]. The file is then as it was.
    pub fn write(&self) -> Result<Vec<String>, InstallError> {
        // A link stays a link: the file behind it is replaced.
        let target = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        let mut lines = Vec::new();
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
        }
        if self.before.is_some() {
            let form = format_description!("[year][month][day]-[hour][minute][second]");
            let now = OffsetDateTime::now_utc().format(&form).unwrap_or_default();
            let mut backup = target.clone().into_os_string();
            backup.push(format!(".before-portolan-{now}"));
            let backup = PathBuf::from(backup);
            fs::copy(&target, &backup).map_err(|source| failed(&backup, source))?;
            lines.push(format!("Backup: {}", backup.display()));
        }
        let mut next = target.clone().into_os_string();
        next.push(".portolan-new");
        let next = PathBuf::from(next);
        self.replace(&next, &target)
            .map_err(|source| failed(&target, source))?;
        lines.push(format!("Written: {}", self.file.display()));
        Ok(lines)
    }

    fn replace(&self, next: &Path, target: &Path) -> io::Result<()> {
        fs::write(next, &self.after)?;
        // The entry may hold a key: a new file is its owner's alone.
        match fs::metadata(target) {
            Ok(known) => fs::set_permissions(next, known.permissions())?,
            #[cfg(unix)]
            Err(_) => {
                use std::os::unix::fs::PermissionsExt as _;
                fs::set_permissions(next, fs::Permissions::from_mode(0o600))?;
            }
            #[cfg(not(unix))]
            Err(_) => {}
        }
        fs::rename(next, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> InstallEntry {
        InstallEntry {
            name: "harbour".to_owned(),
            command: "/usr/bin/portolan".to_owned(),
            arguments: vec![
                "connect".to_owned(),
                "https://mcp.example.com/mcp".to_owned(),
            ],
            environment: vec![("PORTOLAN_API_KEY".to_owned(), "secret-1".to_owned())],
        }
    }

    #[test]
    fn a_file_is_made_backed_up_and_left_alone_when_nothing_changes() {
        for client in InstallClient::ALL {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("deep/down/config");
            let first = plan(client, &file, &entry()).unwrap();
            assert!(first.changes() && !first.description().contains("secret-1"));
            assert_eq!(first.write().unwrap().len(), 1, "no backup of no file");
            assert!(fs::read_to_string(&file).unwrap().contains("secret-1"));
            let again = plan(client, &file, &entry()).unwrap();
            assert!(!again.changes(), "{client:?}");
            let mut other = entry();
            other.arguments.push("--allow-http".to_owned());
            let third = plan(client, &file, &other).unwrap();
            assert!(third.description().contains("replaced"));
            let lines = third.write().unwrap();
            assert!(lines[0].starts_with("Backup: "), "{lines:?}");
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(text.matches("--allow-http").count(), 1);
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                let mode = fs::metadata(&file).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
            }
        }
    }

    #[test]
    fn a_name_is_made_of_a_host_and_checked() {
        assert_eq!(name_of_host("mcp.example.com"), "mcp-example-com");
        assert_eq!(name_of_host("[::1]"), "1");
        assert_eq!(name_of_host("..."), "server");
        let mut bad = entry();
        for name in ["", "a b", "a.b", "ü", "a\"b"] {
            bad.name = name.to_owned();
            let folder = tempfile::tempdir().unwrap();
            let refused = plan(InstallClient::Codex, &folder.path().join("f"), &bad);
            assert!(matches!(refused, Err(InstallError::Name)), "{name}");
        }
    }
}
