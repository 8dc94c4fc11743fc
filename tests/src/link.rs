//! A TCP proxy between two parts as a network of our own: it can be cut, fall silent, grow slow, or
//! lose only notifications.

use std::{
    net::SocketAddr,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
    time::sleep,
};

use crate::stack::ANY_PORT;

/// How the stretch behaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weather {
    /// Everything passes.
    #[default]
    Clear,
    /// Open connections are reset, and new ones at once.
    Cut,
    /// Connections stay, and nothing passes. Sent bytes arrive when it is over.
    Silent,
    /// Everything takes so much longer, each way.
    Slow(Duration),
    /// Bytes to the client are lost on connections with a subscription. They are reset when it is
    /// over.
    Deaf,
}

#[derive(Debug, Clone, Copy)]
struct State {
    target: SocketAddr,
    weather: Weather,
    /// Counts what ends every open connection.
    breaks: u64,
}

/// A TCP proxy. Stops when dropped.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    state: watch::Sender<State>,
}

impl Link {
    /// Starts it in front of `target`, on a free port. It has a thread of its own: a busy test does not slow it.
    pub fn start(target: SocketAddr) -> Result<Self> {
        Self::start_at(ANY_PORT, target)
    }

    /// Does the same, at this address.
    pub fn start_at(at: SocketAddr, target: SocketAddr) -> Result<Self> {
        let state = watch::Sender::new(State {
            target,
            weather: Weather::Clear,
            breaks: 0,
        });
        let seen = state.subscribe();
        let (sender, started) = mpsc::channel();
        thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind(at).await?;
                let _ = sender.send(listener.local_addr()?);
                serve(&listener, seen).await;
                Ok(())
            })
        });
        let address = started
            .recv_timeout(Duration::from_secs(10))
            .context("the link did not start")?;
        Ok(Self { address, state })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the weather.
    pub fn set(&self, weather: Weather) {
        self.state.send_modify(|state| {
            // Lost bytes cannot be restored: clients that lost some reconnect.
            if weather == Weather::Cut
                || (state.weather == Weather::Deaf && weather != Weather::Deaf)
            {
                state.breaks += 1;
            }
            state.weather = weather;
        });
    }

    /// Resets every open connection; new ones are made at once.
    pub fn reset(&self) {
        self.state.send_modify(|state| state.breaks += 1);
    }

    /// Leads somewhere else from now on. Open connections are reset.
    pub fn lead_to(&self, target: SocketAddr) {
        self.state.send_modify(|state| {
            state.target = target;
            state.breaks += 1;
        });
    }
}

async fn serve(listener: &TcpListener, mut state: watch::Receiver<State>) {
    let mut lines = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    lines.spawn(carry(stream, state.clone()));
                }
            }
            Some(_) = lines.join_next(), if !lines.is_empty() => {}
            // The link was dropped: every line goes with this set.
            true = async { state.changed().await.is_err() } => return,
        }
    }
}

/// One connection, to its end.
async fn carry(client: TcpStream, mut state: watch::Receiver<State>) {
    let State {
        target,
        weather,
        breaks,
    } = *state.borrow();
    let open = async {
        anyhow::ensure!(weather != Weather::Cut, "cut");
        let server = TcpStream::connect(target).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok((client, server))
    };
    let Ok((client, server)) = open.await else {
        return;
    };
    let subscribed = AtomicBool::new(false);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (there, back) = (state.clone(), state.clone());
    let is_broken = tokio::select! {
        () = pump(&mut from_client, &mut to_server, there, &subscribed, true) => false,
        () = pump(&mut from_server, &mut to_client, back, &subscribed, false) => false,
        _ = state.wait_for(|state| state.breaks != breaks) => true,
    };
    if is_broken {
        // The connections are reset, not closed.
        for end in [&to_client, &to_server] {
            let _ = end.as_ref().set_zero_linger();
        }
    }
}

async fn pump(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut state: watch::Receiver<State>,
    subscribed: &AtomicBool,
    is_way_there: bool,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..count];
        if is_way_there
            && bytes
                .windows(9)
                .any(|word| word.eq_ignore_ascii_case(b"SUBSCRIBE"))
        {
            subscribed.store(true, Ordering::Relaxed);
        }
        let weather = state.borrow().weather;
        match weather {
            Weather::Silent => {
                if state
                    .wait_for(|state| state.weather != Weather::Silent)
                    .await
                    .is_err()
                {
                    return;
                }
            }
            Weather::Slow(delay) => sleep(delay).await,
            Weather::Deaf if !is_way_there && subscribed.load(Ordering::Relaxed) => continue,
            Weather::Clear | Weather::Cut | Weather::Deaf => {}
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
