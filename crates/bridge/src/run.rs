//! The program: one thread for the network, one that reads, one that writes.

use std::{
    io::{self, Read, Write},
    sync::Arc,
    time::Duration,
};

use http::HeaderMap;
use portolan_net::{
    egress::{Egress, EgressPolicy, EgressSetupError},
    proxies::Proxies,
};
use tokio::{runtime::Builder, sync::mpsc, time::Instant};
use tokio_util::task::TaskTracker;
use url::Url;

use crate::{
    account::{Account, SignIn},
    lines::{self, Line, Out},
    note::Notes,
    pages,
    talk::{GRACE, Talk},
    wire::Wire,
};

/// After a signal: time for lines that the client had written before it. Clients kill what does not
/// end within two seconds of the signal, so all that follows a signal takes less.
const LAST_READ: Duration = Duration::from_millis(200);
/// Time for messages without an answer that are on their way to the server.
const LAST_SENT: Duration = Duration::from_millis(600);
/// Time between two looks at what is on its way.
const AGAIN: Duration = Duration::from_millis(20);
/// Time for a client to read the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Time for tokens that are on their way. Without them the person has to sign in again.
const LAST_TOKENS: Duration = Duration::from_secs(5);
/// Time for a connection, in milliseconds. It is longer than on servers: laptops wake up slowly.
const CONNECT_MS: u64 = 15_000;
const USER_AGENT: &str = concat!("portolan-connect/", env!("CARGO_PKG_VERSION"));

/// What to bridge, and how.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The server.
    pub url: Url,
    /// Headers of every request to it, marked sensitive where they are.
    pub headers: HeaderMap,
    /// How a person signs in. Without it a 401 is an error.
    pub sign_in: Option<SignIn>,
    /// Admits `http://` to public hosts.
    pub allow_plain_http: bool,
    /// The way out of a private network.
    pub proxies: Proxies,
    /// Where notes go.
    pub notes: Notes,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeEnd {
    /// The client closed the input, or a signal came.
    Done,
    /// The server was never reached, or does not speak MCP.
    NotReached,
    /// The server wants a sign-in or a key, and there is none that it accepts.
    NotSignedIn,
}

/// Why it did not start.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No runtime.
    #[error("the program could not start: {0}")]
    Runtime(#[from] io::Error),
    /// No HTTP client.
    #[error("the HTTP client could not start: {0}")]
    Egress(#[from] EgressSetupError),
}

fn egress(setup: &Setup) -> Result<Egress, EgressSetupError> {
    let policy = EgressPolicy {
        allow_plain_http: setup.allow_plain_http,
        connect_timeout_ms: CONNECT_MS,
        ..EgressPolicy::default()
    };
    Egress::on_own_machine(policy, &setup.proxies, USER_AGENT)
}

/// Bridges `input` and `output` to the server until the input ends or a signal comes.
///
/// # Errors
/// [`SetupError`], before anything is read.
pub fn run(
    setup: Setup,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<BridgeEnd, SetupError> {
    pages::allow_huge(false);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (ended, writer) = {
        let _within = runtime.enter();
        let egress = egress(&setup)?;
        let (out, writer) = Out::start(output);
        let tasks = TaskTracker::new();
        let account = setup.sign_in.map(|sign_in| {
            let (egress, url) = (egress.clone(), setup.url.clone());
            Account::new(egress, url, sign_in, setup.notes, tasks.clone())
        });
        let renewing = account.clone();
        let wire = Arc::new(Wire {
            egress,
            url: setup.url,
            headers: setup.headers,
            account,
            tasks,
        });
        let mut lines = lines::read(input);
        let mut talk = Talk::new(wire, out.clone(), setup.notes);
        let ended = runtime.block_on(async {
            if take_all(&mut talk, &mut lines, &out).await {
                tokio::select! {
                    () = answer_all(&talk) => {}
                    () = out.closed() => {}
                    () = signalled() => {}
                }
            }
            send_all(&talk).await;
            talk.end().await;
            if let Some(account) = renewing {
                account.settle(LAST_TOKENS).await;
            }
            match &talk.fault {
                None => BridgeEnd::Done,
                Some(fault) if fault.is_about_sign_in() => BridgeEnd::NotSignedIn,
                Some(_) => BridgeEnd::NotReached,
            }
        });
        (ended, writer)
    };
    // Ends all tasks, and with them all ways to the writer.
    runtime.shutdown_background();
    writer.finish(LAST_LINES);
    Ok(ended)
}

/// Takes lines. True at the end of the input, false when the client is gone or a signal came.
async fn take_all(talk: &mut Talk, lines: &mut mpsc::Receiver<Line>, out: &Out) -> bool {
    let taking = talk.run(lines);
    tokio::pin!(taking);
    tokio::select! {
        () = &mut taking => return true,
        () = out.closed() => {}
        () = signalled() => {}
    }
    // Some clients cancel their calls and send the signal at once.
    let _ = tokio::time::timeout(LAST_READ, taking).await;
    false
}

/// Waits for answers that are on their way.
async fn answer_all(talk: &Talk) {
    let until = Instant::now() + GRACE;
    while talk.count_open() > 0 && Instant::now() < until {
        tokio::time::sleep(AGAIN).await;
    }
}

/// Sends what was read and has no answer, so that no cancellation is lost.
async fn send_all(talk: &Talk) {
    let until = Instant::now() + LAST_SENT;
    while talk.count_unsent() > 0 && Instant::now() < until {
        tokio::time::sleep(AGAIN).await;
    }
}

/// Completes at SIGTERM, SIGINT or SIGHUP.
async fn signalled() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ];
        let [Ok(mut term), Ok(mut int), Ok(mut hup)] = kinds.map(signal) else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = hup.recv() => {}
        }
    }
    #[cfg(not(unix))]
    {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Deletes the tokens for the server. `false` if there were none.
///
/// # Errors
/// What prevented it, as text.
pub fn sign_out(setup: Setup) -> Result<bool, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| said(&error))?;
    let Some(sign_in) = setup.sign_in.clone() else {
        return Ok(false);
    };
    let egress = egress(&setup).map_err(|error| said(&error))?;
    let account = Account::new(egress, setup.url, sign_in, setup.notes, TaskTracker::new());
    runtime
        .block_on(account.sign_out())
        .map_err(|error| said(&error))
}
