//! The file of tokens: owner-only, replaced as a whole, and locked while a copy renews it.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use portolan_upstream::oauth::{AuthorizationServer, ClientIdentity, Discovered, Tokens};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use time::OffsetDateTime;
use url::Url;

/// Pause between two tries to get the lock.
const AGAIN: Duration = Duration::from_millis(50);

/// Why tokens cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be used: {source}", .path.display())]
pub struct StoreError {
    path: PathBuf,
    source: io::Error,
}

/// The file of one server, or of one installation.
#[derive(Debug, Clone)]
pub struct AccountFiles {
    folder: PathBuf,
    /// Without an ending.
    name: String,
}

/// Content of the file.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct AccountFile {
    /// For people who look into the folder.
    issuer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
    pub(super) server: AuthorizationServer,
    pub(super) client: ClientIdentity,
    /// The authorization server knows the client, with this redirect address.
    pub(super) is_registered: bool,
    pub(super) redirect_uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) access: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh: Option<String>,
    /// Unix seconds.
    #[serde(default)]
    expires_at: i64,
}

/// Tokens are not shown.
impl std::fmt::Debug for AccountFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountFile")
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

impl AccountFile {
    pub(super) fn new(
        found: &Discovered,
        client: ClientIdentity,
        redirect_uri: String,
        scope: Option<String>,
    ) -> Self {
        Self {
            issuer: found.server.issuer.clone(),
            resource: found.resource.clone(),
            server: found.server.clone(),
            client,
            is_registered: true,
            redirect_uri,
            scope,
            access: None,
            refresh: None,
            expires_at: 0,
        }
    }

    /// True if the token holds for longer than `early`.
    pub(super) fn is_fresh(&self, early: Duration) -> bool {
        let early = i64::try_from(early.as_secs()).unwrap_or(i64::MAX);
        self.access.is_some()
            && self.expires_at > OffsetDateTime::now_utc().unix_timestamp() + early
    }

    /// Takes new tokens. A refresh without a new refresh token keeps the old one.
    pub(super) fn take(&mut self, tokens: Tokens) {
        let life = i64::try_from(tokens.life.as_secs()).unwrap_or(i64::MAX);
        self.expires_at = OffsetDateTime::now_utc()
            .unix_timestamp()
            .saturating_add(life);
        self.access = Some(tokens.access);
        self.refresh = tokens.refresh.or(self.refresh.take());
        self.scope = tokens.scope.or(self.scope.take());
    }
}

impl AccountFiles {
    /// The file for `url` and `client` in `folder`.
    pub fn within(folder: PathBuf, url: &Url, client: &str) -> Self {
        let mut whole = url.clone();
        whole.set_fragment(None);
        let digest = portolan_keys::digest(format!("{whole} {client}").as_bytes());
        let short: String = digest.as_bytes()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let host = url.host_str().unwrap_or("server");
        let host: String = host
            .chars()
            .map(|sign| match sign {
                'a'..='z' | '0'..='9' | '.' | '-' => sign,
                _ => '_',
            })
            .take(80)
            .collect();
        Self {
            folder,
            name: format!("{host}-{short}"),
        }
    }

    /// The file.
    pub fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.name))
    }

    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let path = self.file();
        let mut text = String::new();
        match File::open(&path) {
            Ok(mut file) => file
                .read_to_string(&mut text)
                .map_err(|source| StoreError::at(&path, source))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::at(&path, source)),
        };
        // A file of another version is as good as none.
        Ok(serde_json::from_str(&text).ok())
    }

    /// Waits for the lock. The system frees it when the process ends, however that ends.
    pub(crate) async fn lock(&self) -> Result<Locked, StoreError> {
        self.make_folder()
            .map_err(|source| StoreError::at(&self.folder, source))?;
        let path = self.folder.join(format!("{}.lock", self.name));
        let failed = |source| StoreError::at(&path, source);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        owner_only(&mut options);
        let file = options.open(&path).map_err(failed)?;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    return Ok(Locked {
                        place: self.clone(),
                        _file: file,
                    });
                }
                Err(fs::TryLockError::WouldBlock) => tokio::time::sleep(AGAIN).await,
                Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }

    fn make_folder(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
            builder.mode(0o700);
            builder.create(&self.folder)?;
            // A folder that others may enter is closed to them.
            let mode = fs::metadata(&self.folder)?.permissions().mode();
            if mode & 0o077 != 0 {
                fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))?;
            }
        }
        #[cfg(not(unix))]
        builder.create(&self.folder)?;
        Ok(())
    }
}

/// The lock of a [`AccountFiles`]. Dropping it frees it.
#[derive(Debug)]
pub(crate) struct Locked {
    place: AccountFiles,
    _file: File,
}

impl Locked {
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        self.place.read()
    }

    /// Replaces the file: a reader sees the old one or the new one, never a part.
    pub(crate) fn write(&self, held: &impl Serialize) -> Result<(), StoreError> {
        let path = self.place.file();
        let next = path.with_extension("json.new");
        let write = || {
            let _ = fs::remove_file(&next);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            owner_only(&mut options);
            let mut file = options.open(&next)?;
            file.write_all(&serde_json::to_vec_pretty(held)?)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&next, &path)
        };
        write().map_err(|source| StoreError::at(&path, source))
    }

    pub(crate) fn delete(&self) -> Result<(), StoreError> {
        let path = self.place.file();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::at(&path, error))
            }
            _ => Ok(()),
        }
    }
}

fn owner_only(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = options;
}

impl StoreError {
    fn at(path: &Path, source: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            source,
        }
    }
}
