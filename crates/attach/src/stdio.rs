//! A Streamable HTTP server in front of a command that speaks MCP on its standard input and output.
//!
//! A command of the session era gets a process for each session, because `initialize` belongs to
//! one. A command of 2026-07-28 gets one process for all requests. Which it is, the command shows
//! at the start: `initialize` first, then `server/discover`.

pub mod command;
mod era;
mod events;
mod processes;
mod requests;
mod restarts;
mod session;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use portolan_net::tunnel::OfferState;
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::figures::Figures;

use self::{
    command::{CommandLine, Process},
    era::Era,
    restarts::Restarts,
    session::Session,
};

/// The first revision whose streams begin with an id alone.
const PRIMED: &str = "2025-11-25";

/// The server in front of the command.
#[derive(Clone)]
pub struct Stdio(Arc<Inner>);

struct Inner {
    line: CommandLine,
    instance: String,
    figures: Arc<Figures>,
    era: watch::Sender<Option<Era>>,
    state: Mutex<State>,
    /// Taken by one start at a time.
    starts: AsyncMutex<()>,
    spare_taken: tokio::sync::Notify,
    stop: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Arc<Session>>,
    /// A started process without a session, so that a new session need not wait.
    spare: Option<Process>,
    /// The process of a command of 2026-07-28.
    modern: Option<Arc<Session>>,
    restarts: Restarts,
    error: Option<String>,
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("program", &self.0.line.program)
            .finish_non_exhaustive()
    }
}

impl Stdio {
    /// Starts the command, and finds its era.
    pub(crate) fn start(line: CommandLine, instance: String, figures: Arc<Figures>) -> Self {
        let this = Self(Arc::new(Inner {
            line,
            instance,
            figures,
            era: watch::Sender::new(None),
            state: Mutex::default(),
            starts: AsyncMutex::default(),
            spare_taken: tokio::sync::Notify::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }));
        let inner = Arc::clone(&this.0);
        this.0.tasks.spawn(async move {
            let stop = inner.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = inner.keep() => {}
            }
        });
        this
    }

    /// Whether the command takes requests, and its last failure.
    pub fn state(&self) -> OfferState {
        let state = self.0.state();
        OfferState {
            // A command that ended is started again; its last failure stays visible.
            is_ready: self.0.era.borrow().is_some()
                && state.restarts.pause(Instant::now()).is_zero(),
            error: state.error.clone(),
        }
    }

    /// Ends all processes.
    pub async fn end(&self) {
        self.0.stop.cancel();
        let (sessions, spare) = {
            let mut state = self.0.state();
            let mut sessions: Vec<_> = state.sessions.drain().map(|(_, one)| one).collect();
            sessions.extend(state.modern.take());
            (sessions, state.spare.take())
        };
        for session in &sessions {
            session.dismiss();
        }
        if let Some(mut spare) = spare {
            drop(spare.input);
            command::end(&mut spare.child, spare.pid).await;
        }
        for session in sessions {
            session.end().await;
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
