//! Processes of the command: started, kept, given to sessions, ended.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{Inner, State, command::Process, era::Era, session::Session};
use crate::random::random_id;

/// How long a node's request waits for a process.
pub(super) const PATIENCE: Duration = Duration::from_secs(25);
/// Most sessions at once. A new one beyond ends the one that is idle for the longest time.
const SESSIONS: usize = 64;
/// A session without a message for so long is ended.
const IDLE: Duration = Duration::from_secs(3600);
/// Interval of that check.
const SWEEP: Duration = Duration::from_secs(60);

/// No process can be had at the moment.
#[derive(Debug)]
pub(super) struct Unavailable {
    pub(super) message: String,
    pub(super) retry_after: Duration,
}

impl Inner {
    /// Finds the era; then keeps a spare process, and ends sessions that nothing uses.
    pub(super) async fn keep(self: &Arc<Self>) {
        let era = loop {
            match self.find_era().await {
                Ok(era) => break era,
                Err(error) => {
                    let pause = self.state().restarts.pause(Instant::now());
                    let pause = pause.max(Duration::from_millis(500));
                    tracing::error!(
                        next_start_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                        "{error}"
                    );
                    self.state().error = Some(error);
                    sleep(pause).await;
                }
            }
        };
        self.era.send_replace(Some(era));
        loop {
            self.sweep();
            if era == Era::Sessions && self.state().spare.is_none() {
                let pause = self.state().restarts.pause(Instant::now());
                sleep(pause).await;
                match self.line.start() {
                    Ok(process) => self.state().spare = Some(process),
                    Err(error) => tracing::error!("{}", self.not_started(&error)),
                }
            }
            let _ = timeout(SWEEP, self.spare_taken.notified()).await;
        }
    }

    fn sweep(&self) {
        let idle: Vec<_> = {
            let mut state = self.state();
            // A spare process that ended is replaced.
            let is_gone = |spare: &mut Process| !matches!(spare.child.try_wait(), Ok(None));
            if state.spare.as_mut().is_some_and(is_gone)
                && let Some(spare) = state.spare.take()
            {
                self.failed(&mut state, spare.started);
            }
            let is_idle = |session: &Session| {
                session
                    .idle_since()
                    .is_some_and(|since| since.elapsed() >= IDLE)
            };
            let sessions = &mut state.sessions;
            let ids: Vec<String> = sessions
                .iter()
                .filter(|(_, session)| is_idle(session))
                .map(|(id, _)| id.clone())
                .collect();
            ids.iter().filter_map(|id| sessions.remove(id)).collect()
        };
        for session in idle {
            tracing::info!(pid = session.pid, "an idle session is ended");
            session.dismiss();
        }
    }

    /// Records that a process ended by itself. Returns the pause before the next start.
    pub(super) fn failed(&self, state: &mut State, started: Instant) -> Duration {
        self.figures.failure();
        state.restarts.failed(started, Instant::now())
    }

    pub(super) fn not_started(&self, error: &std::io::Error) -> String {
        let program = self.line.program.to_string_lossy();
        let message = format!("{program} cannot be started: {error}");
        let mut state = self.state();
        self.failed(&mut state, Instant::now());
        state.error = Some(message.clone());
        message
    }

    /// A process for a session: the spare one, or a new one when the rule allows it.
    pub(super) async fn process(self: &Arc<Self>) -> Result<Process, Unavailable> {
        let until = Instant::now() + PATIENCE;
        loop {
            let spare = self.state().spare.take();
            if let Some(mut spare) = spare {
                self.spare_taken.notify_one();
                if matches!(spare.child.try_wait(), Ok(None)) {
                    return Ok(spare);
                }
                self.failed(&mut self.state(), spare.started);
            }
            let (pause, error) = {
                let state = self.state();
                (state.restarts.pause(Instant::now()), state.error.clone())
            };
            if Instant::now() + pause > until {
                return Err(Unavailable {
                    message: error.unwrap_or_else(|| "The command does not start.".to_owned()),
                    retry_after: pause,
                });
            }
            sleep(pause).await;
            match self.line.start() {
                Ok(process) => return Ok(process),
                Err(error) => {
                    self.not_started(&error);
                }
            }
        }
    }

    /// Makes a session of a process. It is not found before it is admitted.
    pub(super) fn session(self: &Arc<Self>, process: Process) -> Arc<Session> {
        let id = format!("{}.{}", self.instance, random_id());
        let this = Arc::downgrade(self);
        tracing::info!(pid = process.pid, "a process for a session");
        Session::begin(id, process, move |session, failure| {
            if let Some(this) = this.upgrade() {
                this.ended(session, failure);
            }
        })
    }

    fn ended(&self, session: &Arc<Session>, failure: Option<String>) {
        let mut state = self.state();
        state.sessions.remove(&session.id);
        if state
            .modern
            .as_ref()
            .is_some_and(|modern| Arc::ptr_eq(modern, session))
        {
            state.modern = None;
        }
        let Some(words) = failure else {
            tracing::info!(pid = session.pid, "a process has ended");
            return;
        };
        let pause = self.failed(&mut state, session.started);
        state.error = Some(format!("The command ended by itself ({words})."));
        drop(state);
        tracing::warn!(
            pid = session.pid,
            next_start_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
            "the command ended by itself ({words}); its requests are answered with an error"
        );
    }

    pub(super) fn admit(&self, session: Arc<Session>) {
        let oldest = {
            let mut state = self.state();
            state.error = None;
            let idle = state.sessions.values().filter_map(|one| {
                let since = one.idle_since()?;
                Some((since, Arc::clone(one)))
            });
            let oldest = idle.min_by_key(|(since, _)| *since);
            let oldest = oldest.filter(|_| state.sessions.len() >= SESSIONS);
            if let Some((_, oldest)) = &oldest {
                state.sessions.remove(&oldest.id);
            }
            if !session.is_over() {
                state.sessions.insert(session.id.clone(), session);
            }
            oldest
        };
        if let Some((_, oldest)) = oldest {
            tracing::info!(pid = oldest.pid, "an idle session is ended for a new one");
            oldest.dismiss();
        }
    }
}
