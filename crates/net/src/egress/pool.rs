//! Kept connections. Each was made by the guarded connector for one origin, and is used for that
//! origin only.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use http::Uri;
use hyper::{client::conn::http1, rt::Executor as _};
use hyper_util::rt::TokioExecutor;
use tower::Service as _;
use url::{Position, Url};

use super::{
    connect::{ConnectFailure, Connector},
    wire::Wire,
};

/// Idle connections kept for one origin: as many as a busy tool needs, few enough to stay polite.
const IDLE_PER_ORIGIN: usize = 64;
/// Shorter than the keep-alive of common servers (nginx 75 s).
const IDLE_FOR: Duration = Duration::from_secs(30);
/// The same before a request that must not be sent twice. Node closes a connection after 5 s,
/// perhaps while a request is on its way; only requests that may be repeated are then sent again.
const IDLE_BEFORE_ONE_TRY: Duration = Duration::from_secs(4);
/// Read buffer of one connection; hyper would let it grow to about 400 KiB.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoConnection {
    #[error(transparent)]
    Connect(#[from] ConnectFailure),
    #[error("the connection could not be set up")]
    Handshake(#[source] hyper::Error),
}

/// All kept connections. Cloning shares them.
#[derive(Clone)]
pub(super) struct Pool(Arc<PoolState>);

struct PoolState {
    connector: Connector,
    http: http1::Builder,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    by_origin: HashMap<Box<str>, Vec<IdleConnection>, foldhash::fast::RandomState>,
    /// True while a task closes idle connections.
    is_swept: bool,
}

struct IdleConnection {
    wire: Wire,
    since: Instant,
}

/// How often a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tries {
    /// It could have an effect each time.
    One,
    /// Another one may follow the first.
    Two,
}

impl Tries {
    /// Whether a connection that was idle for so long may take the request.
    fn allow(self, idle_for: Duration) -> bool {
        idle_for
            < match self {
                Self::One => IDLE_BEFORE_ONE_TRY,
                Self::Two => IDLE_FOR,
            }
    }
}

impl IdleConnection {
    fn is_young(&self, now: Instant) -> bool {
        now.duration_since(self.since) < IDLE_FOR
    }

    fn is_good(&mut self, now: Instant) -> bool {
        self.is_young(now) && self.wire.is_at_rest()
    }
}

/// Scheme, host and port.
fn origin(url: &Url) -> &str {
    &url[..Position::BeforePath]
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Self {
        let mut http = http1::Builder::new();
        http.max_buf_size(READ_BUFFER_BYTES);
        Self(Arc::new(PoolState {
            connector,
            http,
            idle: Mutex::default(),
        }))
    }

    /// Takes a kept connection to the origin of the URL: the one that was used last, which is the
    /// least likely to be closed by the peer. If it is closed, sending on it fails and returns the
    /// request.
    pub(super) fn take(&self, url: &Url, now: Instant, tries: Tries) -> Option<Wire> {
        let mut idle = self.0.idle();
        let kept = idle.by_origin.get_mut(origin(url))?;
        let last = kept.last()?;
        if tries.allow(now.duration_since(last.since)) {
            return kept.pop().map(|last| last.wire);
        }
        if !last.is_young(now) {
            // The others are older.
            kept.clear();
        }
        None
    }

    /// A new connection.
    pub(super) async fn connect(&self, url: &Url, uri: Uri) -> Result<Wire, NoConnection> {
        debug_assert_eq!(uri.host(), url.host_str());
        let stream = self.0.connector.clone().call(uri).await?;
        let made = Wire::new(&self.0.http, stream).await;
        made.map_err(NoConnection::Handshake)
    }

    /// Keeps a connection whose answer was read to its end.
    pub(super) fn put(&self, url: &Url, mut wire: Wire) {
        if !wire.is_at_rest() {
            return;
        }
        let kept = IdleConnection {
            wire,
            since: Instant::now(),
        };
        let mut idle = self.0.idle();
        if let Some(others) = idle.by_origin.get_mut(origin(url)) {
            if others.len() >= IDLE_PER_ORIGIN {
                others.retain_mut(|other| other.is_good(kept.since));
            }
            if others.len() < IDLE_PER_ORIGIN {
                others.push(kept);
            }
        } else {
            idle.by_origin.insert(origin(url).into(), vec![kept]);
        }
        if !idle.is_swept {
            idle.is_swept = true;
            TokioExecutor::new().execute(sweep(Arc::downgrade(&self.0)));
        }
    }
}

impl PoolState {
    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that were idle for too long, as long as there are any.
async fn sweep(pool: Weak<PoolState>) {
    loop {
        tokio::time::sleep(IDLE_FOR / 2).await;
        let Some(pool) = pool.upgrade() else { return };
        let now = Instant::now();
        let mut idle = pool.idle();
        idle.by_origin.retain(|_, kept| {
            kept.retain_mut(|one| one.is_good(now));
            !kept.is_empty()
        });
        if idle.by_origin.is_empty() {
            idle.is_swept = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server may close an idle connection while a request is on its way.
    #[test]
    fn a_request_with_one_try_takes_no_long_idle_connection() {
        for (seconds, one, two) in [(3, true, true), (4, false, true), (30, false, false)] {
            let idle_for = Duration::from_secs(seconds);
            assert_eq!(Tries::One.allow(idle_for), one, "{seconds} s");
            assert_eq!(Tries::Two.allow(idle_for), two, "{seconds} s");
        }
    }
}
