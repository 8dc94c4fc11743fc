//! A private Postgres as a child process: same SQL, same row-level security, nothing to install.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Postgres refuses to run as root, so a root process starts it as this user instead. Every Unix
/// has it.
const UNPRIVILEGED: u32 = 65_534;
/// Longest path of a Unix socket on Linux is 107 bytes; Postgres adds `/.s.PGSQL.5432`.
const LONGEST_SOCKET_FOLDER: usize = 90;

/// A running Postgres. Stopped when dropped; the left-over of a killed process is stopped by the
/// next start.
#[derive(Debug)]
pub(crate) struct EmbeddedPostgres {
    bin: PathBuf,
    data: PathBuf,
    socket: PathBuf,
    child: Child,
    user: Option<u32>,
}

impl EmbeddedPostgres {
    /// Starts Postgres on `folder` (made on the first start), listening on a private Unix socket
    /// only.
    pub(crate) fn start(bin: &Path, folder: &Path) -> Result<Self> {
        // The user id decides, not the name: in a container root may be called anything.
        let is_root = fs::metadata("/proc/self")
            .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
        let user = is_root.then_some(UNPRIVILEGED);
        let folder = place_for(folder, user)?;
        let (data, socket) = (folder.join("data"), socket_folder(&folder));
        for path in [&folder, &socket] {
            fs::create_dir_all(path)
                .with_context(|| format!("cannot make the folder {}", path.display()))?;
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
            if let Some(user) = user {
                chown(path, Some(user), Some(user))?;
            }
        }
        if !data.join("PG_VERSION").exists() {
            initialise(bin, &data, user)?;
        }
        check_version(bin, &data, user)?;
        stop_left_over(bin, &data, user);
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("postgres.log"))?;
        let child = as_user(Command::new(bin.join("postgres")), user)
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&socket)
            .args([
                "-c",
                "listen_addresses=",
                "-c",
                "max_connections=60",
                "-c",
                "shared_buffers=64MB",
                "-c",
                "logging_collector=off",
            ])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0) // Ctrl-C reaches this process alone, which then stops Postgres in order
            .spawn()
            .with_context(|| format!("cannot start {}", bin.join("postgres").display()))?;
        let mut postgres = Self {
            bin: bin.to_owned(),
            data,
            socket,
            child,
            user,
        };
        postgres.wait_until_ready(&folder.join("postgres.log"))?;
        Ok(postgres)
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        // Postgres writes the word into its pid file when it takes connections; pg_ctl waits for
        // the same.
        loop {
            if let Some(status) = self.child.try_wait()? {
                let text = fs::read_to_string(log).unwrap_or_default();
                let last: Vec<&str> = text.lines().rev().take(8).collect();
                bail!(
                    "Postgres stopped at once ({status}). The end of {}:\n{}",
                    log.display(),
                    last.into_iter().rev().collect::<Vec<_>>().join("\n")
                );
            }
            let pid_file = fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
            if pid_file
                .lines()
                .nth(7)
                .is_some_and(|state| state.trim() == "ready")
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "Postgres did not become ready within 60 seconds; see {}",
                    log.display()
                );
            }
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// URL for `user` on `database`.
    pub(crate) fn url(&self, user: &str, database: &str) -> String {
        url_on(&self.socket, user, database)
    }
}

fn url_on(socket: &Path, user: &str, database: &str) -> String {
    let host: String =
        url::form_urlencoded::byte_serialize(socket.as_os_str().as_encoded_bytes()).collect();
    format!("postgres://{user}@localhost/{database}?host={host}")
}

/// URL of the server that another process runs on `folder`.
pub(crate) fn url_of(folder: &Path, user: &str, database: &str) -> Result<String> {
    let is_root = fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let folder = place_for(folder, is_root.then_some(UNPRIVILEGED))?;
    Ok(url_on(&socket_folder(&folder), user, database))
}

impl Drop for EmbeddedPostgres {
    /// Stops it in order, whatever ends its owner: connections are ended, a checkpoint is written.
    fn drop(&mut self) {
        let stopped = as_user(Command::new(self.bin.join("pg_ctl")), self.user)
            .args(["stop", "-m", "fast", "-w", "-t", "20", "-s", "-D"])
            .arg(&self.data)
            .stdout(Stdio::null())
            .status();
        if !stopped.is_ok_and(|status| status.success()) {
            // Nothing is lost by this: the next start replays the log.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Looks for Postgres: the folder named, then what `make run` installed, then the machine's own.
pub(crate) fn find_binaries(named: Option<&Path>) -> Result<PathBuf> {
    let complete = |folder: &Path| {
        ["initdb", "postgres", "pg_ctl"]
            .iter()
            .all(|name| folder.join(name).exists())
    };
    if let Some(folder) = named {
        if complete(folder) {
            return Ok(folder.to_owned());
        }
        bail!(
            "{} does not hold initdb, postgres and pg_ctl",
            folder.display()
        );
    }
    let mut candidates = vec![PathBuf::from(".portolan/tools/postgres/bin")];
    // The path a Debian package installs to is not in PATH.
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    versions.sort();
    candidates.extend(versions.into_iter().rev());
    candidates.extend(["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"].map(PathBuf::from));
    candidates.into_iter().find(|folder| complete(folder)).and_then(|folder| folder.canonicalize().ok()).context(
        "no Postgres found. `make run` installs one; or install Debian's `postgresql`; or name a folder with --postgres-bin",
    )
}

/// Another user than root must be able to reach the data; below a private home folder it cannot.
fn place_for(folder: &Path, user: Option<u32>) -> Result<PathBuf> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let folder = folder.canonicalize()?;
    let reachable = |path: &Path| {
        path.ancestors().skip(1).all(|above| {
            fs::metadata(above).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
        })
    };
    if user.is_none() || reachable(&folder) {
        return Ok(folder);
    }
    let name: String = folder
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let elsewhere = Path::new("/var/lib/portolan-dev").join(name.trim_matches('-'));
    fs::create_dir_all(&elsewhere)
        .with_context(|| format!("cannot make the folder {}", elsewhere.display()))?;
    Ok(elsewhere)
}

fn socket_folder(folder: &Path) -> PathBuf {
    let beside = folder.join("socket");
    if beside.as_os_str().len() <= LONGEST_SOCKET_FOLDER {
        return beside;
    }
    // A path that is too long for a socket gets a short one, the same at every start.
    let mut digest: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in beside.as_os_str().as_encoded_bytes() {
        digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    std::env::temp_dir().join(format!("portolan-{digest:016x}"))
}

fn as_user(mut command: Command, user: Option<u32>) -> Command {
    if let Some(user) = user {
        command.uid(user).gid(user).current_dir("/");
    }
    command
        .env_remove("PGDATA")
        .env_remove("PGHOST")
        .env_remove("PGPORT")
        .env("LC_ALL", "C");
    command
}

fn initialise(bin: &Path, data: &Path, user: Option<u32>) -> Result<()> {
    let output = as_user(Command::new(bin.join("initdb")), user)
        .arg("-D")
        .arg(data)
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", bin.join("initdb").display()))?;
    if output.status.success() {
        return Ok(());
    }
    // A half-made cluster would be taken for a good one next time.
    let _ = fs::remove_dir_all(data);
    bail!(
        "initdb failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )
}

fn check_version(bin: &Path, data: &Path, user: Option<u32>) -> Result<()> {
    let made_by =
        fs::read_to_string(data.join("PG_VERSION")).context("the data folder has no PG_VERSION")?;
    let output = as_user(Command::new(bin.join("postgres")), user)
        .arg("--version")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text
        .split_whitespace()
        .find_map(|word| word.split('.').next()?.parse::<u32>().ok())
        .unwrap_or(0);
    if found < 15 {
        bail!(
            "Postgres 15 or newer is needed, {} is {}",
            bin.display(),
            text.trim()
        );
    }
    if made_by.trim() != found.to_string() {
        bail!(
            "the data in {} was made by Postgres {}, but {} is version {found}. Name the old one with --postgres-bin, or start afresh with another --data folder",
            data.display(),
            made_by.trim(),
            bin.display()
        );
    }
    Ok(())
}

/// Stops the Postgres that a killed process left running. The lock on the data folder ensures that
/// no other process uses it.
fn stop_left_over(bin: &Path, data: &Path, user: Option<u32>) {
    if data.join("postmaster.pid").exists() {
        let _ = as_user(Command::new(bin.join("pg_ctl")), user)
            .args(["stop", "-m", "fast", "-w", "-t", "20", "-s", "-D"])
            .arg(data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// Makes the folder private and says in plain words when the disk is full.
pub(crate) fn explain_io(error: io::Error, path: &Path) -> anyhow::Error {
    let full = error.kind() == io::ErrorKind::StorageFull;
    let text = if full {
        "the disk is full"
    } else {
        "cannot write"
    };
    anyhow::Error::new(error).context(format!("{text}: {}", path.display()))
}
