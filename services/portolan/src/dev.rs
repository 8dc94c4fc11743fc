//! `portolan dev`: the whole service on a laptop with nothing installed.
//!
//! A private Postgres runs as a child process on a folder of its own; the demo API listens beside it; mail is shown on a page.
//! Same SQL, same row-level security, same code as in production.

mod postgres;

use std::{
    fs::{self, File, Permissions, TryLockError},
    io::Write,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use portolan_config::Values;
use portolan_keys::MasterSecret;
use url::Url;

use crate::{
    lifecycle,
    serve::{self, DemoApi, Extras},
    settings::{Role, Settings},
};
use postgres::{EmbeddedPostgres, explain_io, find_binaries};

const DATABASE: &str = "portolan";
/// Logs in as a member of `portolan_app` and nothing else, as in production.
const LOGIN_ROLE: &str = "portolan_dev";

/// Options of `portolan dev`.
#[derive(Debug, Clone, clap::Args)]
pub struct DevArguments {
    /// Folder that keeps the data between starts.
    #[arg(long, value_name = "FOLDER", default_value = ".portolan/dev")]
    pub data: PathBuf,
    /// Address of the service.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Address of the demo API.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    pub demo_listen: SocketAddr,
    /// Address of health and metrics.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8082")]
    pub admin_listen: SocketAddr,
    /// Folder with initdb, postgres and pg_ctl. Found by itself when not given.
    #[arg(long, value_name = "FOLDER", env = "PORTOLAN_POSTGRES_BIN")]
    pub postgres_bin: Option<PathBuf>,
}

/// Runs until Ctrl-C. Everything it keeps is under `--data`.
pub fn run(arguments: &DevArguments, mut values: Values) -> Result<ExitCode> {
    if !arguments.listen.ip().is_loopback() {
        bail!(
            "--listen {}: `portolan dev` shows sign-in codes on a page, so it listens on loopback addresses only",
            arguments.listen
        );
    }
    fs::create_dir_all(&arguments.data).map_err(|error| explain_io(error, &arguments.data))?;
    fs::set_permissions(&arguments.data, Permissions::from_mode(0o755))
        .map_err(|error| explain_io(error, &arguments.data))?;
    let _lock = lock(&arguments.data)?;
    let secret = master_secret(&arguments.data.join("master-secret"))?;
    let bin = find_binaries(arguments.postgres_bin.as_deref())?;

    let runtime = lifecycle::runtime()?;
    // Taken before the database starts: a port that is taken is known at once, and port 0 gets its
    // number.
    let (listeners, demo) = {
        let _inside = runtime.enter();
        (
            serve::Listeners::bind(arguments.listen, arguments.admin_listen)?,
            DemoApi::bind(arguments.demo_listen)?,
        )
    };
    let listen = listeners.public.local_addr()?;

    let database = EmbeddedPostgres::start(&bin, &arguments.data.join("postgres"))?;
    let asked = values.text("public_url").map(str::to_owned);
    values.set("public_url", origin(asked.as_deref(), listen));
    values.set("listen", listen.to_string());
    values.set("admin_listen", listeners.admin.local_addr()?.to_string());
    values.set("database_url", database.url(LOGIN_ROLE, DATABASE));
    values.set("master_secret", secret);
    values.set_default("log_filter", "info");
    // No balancer has to notice first.
    values.set_default("drain_accept_secs", "0");
    // All clients share the address 127.0.0.1.
    values.set_default("address_requests_per_minute", "0");
    values.set_default("listen_max_connections_per_address", "0");
    let allowed = values
        .text("egress_allow")
        .map(|list| format!("{list},"))
        .unwrap_or_default();
    values.set("egress_allow", format!("{allowed}{}", demo.address()));

    let outcome = Settings::read(&values).and_then(|settings| {
        runtime.block_on(async {
            prepare(&database).await?;
            serve::run(
                &settings,
                Role::All,
                Extras {
                    listeners: Some(listeners),
                    demo: Some(demo),
                    shows_mail: true,
                },
            )
            .await
        })
    });
    // Connections first, then the database.
    lifecycle::end(runtime);
    // Whatever happened above, the child must not outlive this process.
    drop(database);
    outcome.map(|()| ExitCode::SUCCESS)
}

/// The origin of a listener on this machine: by name, since passkeys are bound to names, unless
/// `asked` names the address, or the name stands for another one. The port is the listener's.
fn origin(asked: Option<&str>, listen: SocketAddr) -> String {
    let asks_for_address = asked
        .and_then(|url| url.parse::<Url>().ok())
        .is_some_and(|url| !matches!(url.host(), Some(url::Host::Domain("localhost"))));
    let has_name = listen.ip() == Ipv4Addr::LOCALHOST || listen.ip() == Ipv6Addr::LOCALHOST;
    if has_name && !asks_for_address {
        format!("http://localhost:{}", listen.port())
    } else {
        format!("http://{listen}")
    }
}

/// Lets the settings name what a running `portolan dev` on this folder stands on: for operators'
/// commands.
pub(crate) fn point_to(values: &mut Values, folder: &Path) -> Result<()> {
    let secret = folder.join("master-secret");
    if !secret.exists() {
        bail!(
            "{} is not the folder of a `portolan dev`: start it first, or name its folder (--dev=FOLDER)",
            folder.display()
        );
    }
    values.set_default("public_url", "http://localhost:8080");
    values.set(
        "database_url",
        postgres::url_of(&folder.join("postgres"), LOGIN_ROLE, DATABASE)?,
    );
    values.set("master_secret", master_secret(&secret)?);
    Ok(())
}

/// Database, schema, and the role that the service logs in as.
async fn prepare(database: &EmbeddedPostgres) -> Result<()> {
    portolan_storage::bootstrap(&database.url("postgres", "postgres"), DATABASE)
        .await
        .context("cannot make the database")?;
    let owner = database.url("postgres", DATABASE);
    portolan_storage::migrate(&owner).await?;
    portolan_storage::ensure_login(&owner, LOGIN_ROLE, "portolan_app")
        .await
        .context("cannot make the service's role")
}

fn lock(data: &Path) -> Result<File> {
    let path = data.join("lock");
    let file = File::create(&path).map_err(|error| explain_io(error, &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another `portolan dev` is running on {}. Stop it first, or give this one another folder (--data) and other ports \
             (--listen, --demo-listen, --admin-listen)",
            data.display()
        ),
        Err(TryLockError::Error(error)) => Err(explain_io(error, &path)),
    }
}

/// Made once, readable by the owner only.
fn master_secret(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(explain_io(error, path)),
    }
    let secret = MasterSecret::generate()?.to_hex();
    // Written beside and renamed: a full disk must not leave an empty secret behind.
    let partial = path.with_extension("new");
    let mut file = File::create(&partial).map_err(|error| explain_io(error, &partial))?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(secret.expose().as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| explain_io(error, &partial))?;
    fs::rename(&partial, path).map_err(|error| explain_io(error, path))?;
    Ok(secret.expose().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_ones_own_is_named_unless_its_address_is_asked_for() {
        for (asked, listen, expected) in [
            (None, "127.0.0.1:8080", "http://localhost:8080"),
            (None, "[::1]:7", "http://localhost:7"),
            (None, "127.0.0.2:7", "http://127.0.0.2:7"),
            (
                Some("http://localhost"),
                "127.0.0.1:7",
                "http://localhost:7",
            ),
            (
                Some("http://localhost:9"),
                "127.0.0.1:7",
                "http://localhost:7",
            ),
            (
                Some("http://127.0.0.1"),
                "127.0.0.1:7",
                "http://127.0.0.1:7",
            ),
        ] {
            let listen = listen.parse().unwrap();
            assert_eq!(origin(asked, listen), expected, "{asked:?} {listen}");
        }
    }
}
