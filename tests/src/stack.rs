//! A running Portolan: the built binary, started the way `make run` does it.

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io::{BufRead, BufReader, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use url::Url;

/// Longest time a start may take on a machine that builds at the same time.
const START: Duration = Duration::from_secs(90);

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository")
        .to_owned()
}

/// The binary that this build made: beside the test program's folder, or beside the program itself.
pub fn binary() -> PathBuf {
    let test_program = std::env::current_exe().expect("a test program has a path");
    // target/debug/deps/it is two folders below it, target/release/portolan-bench one.
    let found = test_program
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("portolan"))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "no portolan beside {}: `make test` builds it, or `cargo build`",
            test_program.display()
        )
    })
}

/// How to start a [`Stack`].
#[derive(Debug, Clone, Default)]
pub struct StackBuilder {
    environment: Vec<(String, String)>,
    listen: Option<SocketAddr>,
}

impl StackBuilder {
    /// A setting, as `PORTOLAN_<NAME>`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((
            format!("PORTOLAN_{}", name.to_ascii_uppercase()),
            value.to_string(),
        ));
        self
    }

    /// Lets tools call this loopback address besides the demo API.
    #[must_use]
    pub fn allow_egress(self, address: SocketAddr) -> Self {
        self.setting("egress_allow", address)
    }

    /// Lets it listen at this address, such as 127.0.0.2 with a port. By its names of this machine it is
    /// known at the same port, where a [`crate::link::Link`] can stand.
    #[must_use]
    pub fn at(mut self, listen: SocketAddr) -> Self {
        self.listen = Some(listen);
        self
    }

    /// Starts it and waits until it reports that it is ready.
    pub fn start(self) -> Result<Stack> {
        let data = TempDir::with_prefix("portolan-test-")?;
        copy_template(data.path())?;
        let mut environment = self.environment;
        // Release builds refuse it, and the benchmark measures one.
        if cfg!(debug_assertions) {
            environment.push(("PORTOLAN_PASSWORD_COST".to_owned(), "test".to_owned()));
        }
        let listen = self.listen.unwrap_or(ANY_PORT);
        let process = Process::start_at(data.path(), listen, &environment)?;
        Ok(Stack { process, data })
    }
}

/// A running Portolan with its own data. Stopped and deleted when dropped.
#[derive(Debug)]
pub struct Stack {
    // Dropped before the folder that it writes to.
    process: Process,
    data: TempDir,
}

impl Stack {
    /// With the defaults of the tests.
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// With settings.
    pub fn builder() -> StackBuilder {
        StackBuilder::default()
    }

    /// Its origin, without a path.
    pub fn url(&self) -> &Url {
        &self.process.url
    }

    /// The second listener.
    pub fn admin_url(&self) -> &Url {
        &self.process.admin_url
    }

    /// Where its data is.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The process, for tests about starting and stopping.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Everything that it has written so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.process.log).unwrap_or_default()
    }
}

/// One `portolan dev`.
#[derive(Debug)]
pub struct Process {
    child: Child,
    url: Url,
    admin_url: Url,
    log: PathBuf,
}

impl Process {
    /// Starts it on `data` and waits for the line that names its URL.
    pub fn start(data: &Path, environment: &[(String, String)]) -> Result<Self> {
        Self::start_at(data, ANY_PORT, environment)
    }

    /// Does the same, at this address.
    pub fn start_at(
        data: &Path,
        listen: SocketAddr,
        environment: &[(String, String)],
    ) -> Result<Self> {
        let admin = free_port()?;
        let log = data.join("stderr.log");
        let mut child = command(data, listen, admin)
            // Tests also speak to it over bare sockets, which know addresses and no names.
            .env("PORTOLAN_PUBLIC_URL", "http://127.0.0.1")
            .envs(environment.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(&log)?)
            .spawn()
            .context("cannot start the binary")?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        let (sender, lines) = mpsc::channel();
        // Reads until the end, so that the child never blocks on a full pipe.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut process = Self {
            child,
            url: format!("http://{admin}").parse()?,
            admin_url: format!("http://{admin}").parse()?,
            log,
        };
        let deadline = Instant::now() + START;
        loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(url) = line
                        .split_whitespace()
                        .find(|word| word.starts_with("http://"))
                        .filter(|_| line.contains("is ready"))
                    {
                        process.url = url.parse()?;
                        return Ok(process);
                    }
                }
                Err(error) => {
                    let log = fs::read_to_string(&process.log).unwrap_or_default();
                    bail!("portolan dev did not get ready ({error}). It wrote:\n{log}");
                }
            }
        }
    }

    /// Its origin.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, `TERM` or `INT`.
    pub fn signal(&self, name: &str) -> Result<()> {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status()?;
        anyhow::ensure!(sent.success(), "cannot send {name}");
        Ok(())
    }

    /// Waits until it has ended.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            anyhow::ensure!(Instant::now() < deadline, "still running after {limit:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!(
                "--- the end of what portolan wrote ---\n{}",
                lines[lines.len().saturating_sub(40)..].join("\n")
            );
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.signal("TERM");
            if self.wait(Duration::from_secs(30)).is_err() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// A port that the system chooses.
pub const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// `portolan dev` on `data`, not started, with an environment of its own. Every address is named:
/// those that it has by default are of a `make run` that goes on meanwhile.
pub fn command(data: &Path, listen: SocketAddr, admin_listen: SocketAddr) -> Command {
    let mut command = portolan();
    command
        .arg("dev")
        .arg("--data")
        .arg(data)
        .arg(format!("--listen={listen}"))
        .arg(format!("--admin-listen={admin_listen}"))
        .arg(format!("--demo-listen={ANY_PORT}"));
    command
}

/// The binary without a verb, with nothing of this process's environment that it would read.
pub fn portolan() -> Command {
    let mut command = Command::new(binary());
    command.current_dir(repository()).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        // A developer's settings must not change what the tests see.
        if name.to_string_lossy().starts_with("PORTOLAN_") {
            command.env_remove(name);
        }
    }
    command
}

/// An address that was free a moment ago. Below the range that the system hands out by itself, so that
/// no connection takes it meanwhile, and reserved until this process ends, so that no other test does:
/// a node that a test kills starts again at its own address.
pub fn free_port() -> Result<SocketAddr> {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = repository().join("target/test-ports");
    fs::create_dir_all(&folder)?;
    for _ in 0..1000 {
        let port = u16::try_from(10_000 + RandomState::new().hash_one(()) % 20_000)?;
        let reservation = File::create(folder.join(port.to_string()))?;
        if reservation.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
            reserved.push(reservation);
            return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
        }
    }
    bail!("no free port between 10000 and 30000")
}

/// Fills `folder` with what a first start of `portolan dev` leaves.
pub fn copy_template(folder: &Path) -> Result<()> {
    let (template, _in_use) = template()?;
    // The copy keeps owners: Postgres insists on owning its files.
    let copied = Command::new("cp")
        .arg("-a")
        .arg(format!("{}/.", template.display()))
        .arg(folder)
        .status()?;
    anyhow::ensure!(copied.success(), "cannot copy {}", template.display());
    Ok(())
}

/// Lets Postgres leave its writes to the system. They survive every end of a process, and no test ends
/// the machine. Figures of a release build keep the waits that a user has.
fn do_not_sync(folder: &Path) -> Result<()> {
    let settings = folder.join("postgres/data/postgresql.auto.conf");
    let mut settings = OpenOptions::new().append(true).open(settings)?;
    writeln!(settings, "fsync = off")?;
    Ok(())
}

/// A program of the machine, or of the project's own tools. `why` completes the message if it is in neither.
pub fn program(name: &str, why: &str) -> Result<PathBuf> {
    let ours = repository().join(".portolan/tools/programs/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps daemons out of an ordinary user's path.
    let folders = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .chain([ours]);
    folders
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .with_context(|| format!("{name} is missing: {why}; `make test-tools` installs it"))
}

/// A data folder after a first start, made once for each build of the binary: a copy of it starts
/// in a fraction of the time. While the lock is held, no other process replaces it with one for
/// another build.
fn template() -> Result<(PathBuf, File)> {
    let built = fs::metadata(binary())?
        .modified()?
        .duration_since(SystemTime::UNIX_EPOCH)?
        .as_millis();
    let base = std::env::temp_dir().join("portolan-test-templates");
    fs::create_dir_all(&base)?;
    let lock = File::create(base.join("lock"))?;
    let place = base.join(built.to_string());
    lock.lock_shared()?;
    if place.exists() {
        return Ok((place, lock));
    }
    lock.unlock()?;
    lock.lock()?;
    if place.exists() {
        return Ok((place, lock));
    }
    for old in fs::read_dir(&base)?
        .flatten()
        .filter(|entry| entry.path().is_dir())
    {
        fs::remove_dir_all(old.path())?;
    }
    let fresh = base.join("fresh");
    fs::create_dir(&fresh)?;
    let mut process = Process::start(&fresh, &[])?;
    process.signal("TERM")?;
    let status = process.wait(Duration::from_secs(60))?;
    anyhow::ensure!(status.success(), "the first start ended with {status}");
    if cfg!(debug_assertions) {
        do_not_sync(&fresh)?;
    }
    fs::rename(&fresh, &place)?;
    Ok((place, lock))
}

/// Runs a command to its end and returns status and output, for starts that must fail.
pub fn run_to_end(mut command: Command, limit: Duration) -> Result<(ExitStatus, String)> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (mut stdout, mut stderr) = (
        child.stdout.take().context("a pipe")?,
        child.stderr.take().context("a pipe")?,
    );
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let mut text = String::new();
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            bail!("still running after {limit:?}");
        }
        thread::sleep(Duration::from_millis(20));
    };
    stderr.read_to_string(&mut text)?;
    text.push_str(&reader.join().unwrap_or_default());
    Ok((status, text))
}
