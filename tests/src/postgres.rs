//! A Postgres server of the test's own, with the schema and the role of the service, that can be stopped.

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{
    process::{Daemon, eventually},
    sql::Sql,
    stack::{copy_template, repository},
};

/// The login of the service, in a data folder that `portolan dev` has made.
const LOGIN_ROLE: &str = "portolan_dev";
/// The login of MCP endpoints alone (REVIEW-S-13).
const MCP_LOGIN_ROLE: &str = "portolan_dev_mcp";
/// The owner of the data and the tables.
const OWNER: &str = "postgres";
/// Where `portolan dev` keeps its tables.
const DATABASE: &str = "portolan";
const PATIENCE: Duration = Duration::from_secs(60);

/// Postgres on a copy of what the first start of `portolan dev` leaves. Stopped and deleted when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    process: Option<Daemon>,
    folder: TempDir,
}

impl PostgresServer {
    /// Copies the data, starts it, and waits until it takes connections.
    pub async fn start() -> Result<Self> {
        let folder = TempDir::with_prefix("portolan-nodes-")?;
        copy_template(folder.path())?;
        // Postgres may run as another user, who must get through.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let mut server = Self {
            process: None,
            folder,
        };
        server.start_again().await?;
        let mut owner = server.owner().await?;
        let login = format!("create role {MCP_LOGIN_ROLE} login noinherit in role portolan_mcp");
        owner.ask(&format!("reset role; {login}")).await?;
        Ok(server)
    }

    /// The folder with everything that the stack keeps.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The secret that every key of the service is derived from.
    pub fn master_secret(&self) -> Result<String> {
        Ok(fs::read_to_string(self.folder().join("master-secret"))?
            .trim()
            .to_owned())
    }

    /// For the service, with every door.
    pub fn url(&self) -> String {
        url_of(LOGIN_ROLE, &self.place().join("socket"))
    }

    /// For MCP endpoints alone.
    pub fn mcp_url(&self) -> String {
        url_of(MCP_LOGIN_ROLE, &self.place().join("socket"))
    }

    /// For one node with MCP endpoints alone: a way of its own, that can be closed.
    pub fn open_way(&self, name: &str) -> Result<String> {
        let way = self.folder().join(name);
        symlink(self.place().join("socket"), &way)?;
        Ok(url_of(MCP_LOGIN_ROLE, &way))
    }

    /// Refuses new connections over this way, and ends open ones. The connections of other ways
    /// look the same, so all connections of the service end, and the others reconnect.
    pub async fn close_way(&self, name: &str) -> Result<()> {
        fs::remove_file(self.folder().join(name))?;
        let mut sql = self.owner().await?;
        sql.ask(
            "reset role; select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'portolan'",
        )
        .await?;
        Ok(())
    }

    /// Connects past the service.
    pub async fn sql(&self) -> Result<Sql> {
        Sql::connect(&self.place().join("socket"), LOGIN_ROLE, DATABASE).await
    }

    async fn owner(&self) -> Result<Sql> {
        Sql::connect(&self.place().join("socket"), OWNER, DATABASE).await
    }

    /// Everything that it has written.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder().join("postgres.log")).unwrap_or_default()
    }

    /// Ends it without notice, as a crash does.
    pub fn stop(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.signal("QUIT")?;
            let began = std::time::Instant::now();
            while process.ended()?.is_none() && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }

    /// Starts it on the data that it had.
    pub async fn start_again(&mut self) -> Result<()> {
        let data = self.place().join("data");
        // The owner of the data runs it: Postgres refuses root, as it did for `portolan dev`.
        let owner = fs::metadata(&data)?;
        let mut command = Command::new(binaries()?.join("postgres"));
        let is_root = fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
        if is_root {
            command.uid(owner.uid()).gid(owner.gid()).current_dir("/");
        }
        command
            .env("LC_ALL", "C")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(self.place().join("socket"));
        for setting in [
            "listen_addresses=",
            "max_connections=150",
            "shared_buffers=64MB",
            "logging_collector=off",
        ] {
            command.arg("-c").arg(setting);
        }
        let process = Daemon::start(command, &self.folder().join("postgres.log"))?;
        self.process = Some(process);
        let state = data.join("postmaster.pid");
        let is_ready = async || {
            // Postgres writes the word into its pid file when it takes connections.
            fs::read_to_string(&state).is_ok_and(|text| {
                text.lines()
                    .nth(7)
                    .is_some_and(|word| word.trim() == "ready")
            })
        };
        let ready = eventually("Postgres takes connections", PATIENCE, is_ready).await;
        ready.with_context(|| {
            self.process
                .as_ref()
                .map(Daemon::last_words)
                .unwrap_or_default()
        })
    }

    fn place(&self) -> PathBuf {
        self.folder().join("postgres")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn url_of(login: &str, socket: &Path) -> String {
    let host: String =
        url::form_urlencoded::byte_serialize(socket.as_os_str().as_encoded_bytes()).collect();
    format!("postgres://{login}@localhost/{DATABASE}?host={host}")
}

fn binaries() -> Result<PathBuf> {
    let ours = repository().join(".portolan/tools/postgres/bin");
    let installed = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"));
    std::iter::once(ours)
        .chain(installed)
        .find(|folder| folder.join("postgres").exists())
        .context("no Postgres: run `make test-tools`")
}
