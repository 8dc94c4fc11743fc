//! Three nodes on one store, and the network between them and the clients. Time is tokio's, paused;
//! the seed decides all random values.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use portolan_cluster::{
    Streams,
    memory::MemoryStore,
    node::{Node, NodeSettings},
    store::{Bounds, SessionKey},
};
use portolan_model::Clock;
use tokio::time::{Instant, sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    between::{Between, Gossip, Wrong},
    news::{self, Registry},
    record::{Fact, Record},
    words::Seals,
};
use crate::fixture::{
    fault::{FaultStore, Rates},
    rng::NodeRng,
    standstill::Standstill,
};

/// Number of nodes.
pub(super) const NODES: usize = 3;
/// Pause between two attempts of a node to start while the store is down.
const START_AGAIN: Duration = Duration::from_millis(500);
/// Time after which a gateway treats a silent node as dead.
const CONNECT: Duration = Duration::from_secs(1);
/// Maximum latency between a client and a node, in milliseconds.
pub(super) const WAY: u64 = 40;

/// A session of the clients.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) name: String,
    pub(super) key: SessionKey,
}

/// Behaviour of the store for every node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weather {
    pub(super) is_away: bool,
    /// The store refuses large writes.
    pub(super) is_full: bool,
    pub(super) rates: Rates,
}

impl Weather {
    /// Combines two behaviours.
    fn and(self, other: Self) -> Self {
        let (one, two) = (self.rates, other.rates);
        Self {
            is_away: self.is_away || other.is_away,
            is_full: self.is_full || other.is_full,
            rates: Rates {
                before: one.before.max(two.before),
                lost: one.lost.max(two.lost),
                message_lost: one.message_lost.max(two.message_lost),
                message_twice: one.message_twice.max(two.message_twice),
                message_late: one.message_late.max(two.message_late),
                delay: one.delay.max(two.delay),
                reply_delay: one.reply_delay.max(two.reply_delay),
            },
        }
    }
}

/// Disconnected parts of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cuts {
    /// The store is disconnected.
    pub(super) is_off: bool,
    /// Messages are disconnected.
    pub(super) is_deaf: bool,
}

/// State of the network between clients and a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Open,
    /// No data passes, and no error is reported.
    Silent,
    /// Connections are refused.
    Closed,
}

/// Network between clients and a node; a new one after each break.
#[derive(Debug, Clone)]
pub(super) struct Line {
    way: Way,
    /// All its connections are reset.
    pub(super) broken: CancellationToken,
    silence: Standstill,
}

impl Line {
    fn new(way: Way) -> Self {
        Self {
            way,
            broken: CancellationToken::new(),
            silence: Standstill::default(),
        }
    }
}

/// One life of a node.
pub(super) struct Process {
    pub(super) node: Node,
    pub(super) faults: Arc<FaultStore>,
    /// `SIGSTOP`.
    pub(super) still: Standstill,
    /// `SIGKILL`.
    pub(super) dead: CancellationToken,
    stop: CancellationToken,
    /// The process accepts new requests.
    is_ready: AtomicBool,
    line: Mutex<Line>,
    /// Disconnected parts by a fault of this node, and in effect together with the weather.
    cuts: Mutex<(Cuts, Cuts)>,
    /// Long-lived streams.
    pub(super) streams: Streams<news::Subscriber>,
}

/// A connection broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

impl Process {
    pub(super) fn line(&self) -> Line {
        self.line.lock().expect("whole").clone()
    }

    /// Sets the state of the network. A closed one resets its connections first.
    pub(super) fn set_way(&self, way: Way) {
        let mut line = self.line.lock().expect("whole");
        match way {
            Way::Silent => {
                line.way = way;
                line.silence.stop();
            }
            Way::Open | Way::Closed => {
                line.broken.cancel();
                *line = Line::new(way);
            }
        }
    }

    /// Kills the process: no operation reaches the store any more, and all connections break.
    pub(super) fn kill(&self) {
        self.dead.cancel();
        self.faults.cut_off(true);
        self.stop.cancel();
        // Suspended tasks end, too.
        self.still.go_on();
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.is_cancelled()
    }

    /// Ends the service like a signal (STREAM-16.4): new requests go to other nodes, and
    /// running ones are cut after a while.
    pub(super) async fn drain(&self, patience: Duration) {
        self.is_ready.store(false, Ordering::Relaxed);
        sleep(patience).await;
        self.still.around(self.node.drain()).await;
        self.kill();
    }

    /// Runs a task in the process: it is suspended and killed with the process.
    pub(super) async fn host(self: Arc<Self>, task: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = self.dead.cancelled() => {}
            () = self.still.around(task) => {}
        }
    }

    /// Sends a request to the process over a network that may break. `way` is the latency in both
    /// directions.
    pub(super) async fn request<T>(
        &self,
        line: &Line,
        (there, back): (Duration, Duration),
        work: impl Future<Output = T>,
    ) -> Result<T, Broken> {
        let exchange = async {
            sleep(there).await;
            let reply = self.still.around(work).await;
            sleep(back).await;
            reply
        };
        tokio::select! {
            biased;
            () = line.broken.cancelled() => Err(Broken),
            () = self.dead.cancelled() => Err(Broken),
            reply = line.silence.around(exchange) => Ok(reply),
        }
    }
}

/// State of a simulation.
pub(super) struct Scene {
    pub(super) store: MemoryStore,
    pub(super) tracker: TaskTracker,
    pub(super) record: Record,
    pub(super) registry: Registry,
    pub(super) wrong: Option<Wrong>,
    slots: Mutex<Vec<Arc<Process>>>,
    /// The basic behaviour of the store, and the additional ones by number.
    weather: Mutex<(Weather, BTreeMap<usize, Weather>)>,
    rng: Mutex<NodeRng>,
    gossip: Gossip,
    seals: Arc<Seals>,
}

impl Scene {
    /// Starts the nodes.
    pub(super) async fn new(seed: u64, wrong: Option<Wrong>) -> Arc<Self> {
        let mut rng = NodeRng(seed);
        let start = Instant::now();
        let clock = Clock::following(move || {
            // An arbitrary time; only differences count.
            1_700_000_000_000_000
                + i64::try_from(start.elapsed().as_micros()).expect("less than 292,000 years")
        });
        let rates = Rates {
            delay: Duration::from_millis([0, 3][usize::from(rng.below(2) == 0)]),
            ..Rates::default()
        };
        let are_on = rng.below(2) == 0 && wrong.is_none();
        let scene = Arc::new(Self {
            store: MemoryStore::new(Bounds::default(), clock),
            tracker: TaskTracker::new(),
            record: Record::new(),
            registry: Registry::default(),
            wrong,
            slots: Mutex::default(),
            weather: Mutex::new((
                Weather {
                    is_away: false,
                    is_full: false,
                    rates,
                },
                BTreeMap::new(),
            )),
            rng: Mutex::new(rng),
            gossip: Gossip::default(),
            seals: Arc::new(Seals { are_on }),
        });
        for _ in 0..NODES {
            let process = scene.start().await;
            scene.slots.lock().expect("whole").push(process);
        }
        scene
    }

    /// Returns a separate sequence of random numbers.
    pub(super) fn rng(&self) -> NodeRng {
        NodeRng(self.rng.lock().expect("whole").draw())
    }

    fn weather(&self) -> Weather {
        let weather = self.weather.lock().expect("whole");
        weather
            .1
            .values()
            .fold(weather.0, |one, other| one.and(*other))
    }

    /// Adds a behaviour of the store, for all processes now and later.
    pub(super) fn add_weather(&self, number: usize, weather: Weather) {
        self.weather
            .lock()
            .expect("whole")
            .1
            .insert(number, weather);
        self.expose_all();
    }

    /// Removes an added behaviour.
    pub(super) fn end_weather(&self, number: usize) {
        self.weather.lock().expect("whole").1.remove(&number);
        self.expose_all();
    }

    fn expose_all(&self) {
        for process in self.processes() {
            self.expose(&process);
        }
    }

    /// Disconnects a node from the store or its messages, or connects it again.
    pub(super) fn cut(&self, process: &Process, change: impl FnOnce(&mut Cuts)) {
        change(&mut process.cuts.lock().expect("whole").0);
        self.expose(process);
    }

    fn expose(&self, process: &Process) {
        if process.is_dead() {
            return;
        }
        let weather = self.weather();
        let mut rates = weather.rates;
        if self.wrong == Some(Wrong::DeafAndBlind) {
            rates.message_lost = 1000;
        }
        process.faults.set_rates(rates);
        process.faults.refuse_writes(weather.is_full);
        let mut cuts = process.cuts.lock().expect("whole");
        let (wanted, present) = &mut *cuts;
        let now = Cuts {
            is_off: wanted.is_off || weather.is_away,
            is_deaf: wanted.is_deaf || wanted.is_off || weather.is_away,
        };
        // Only if the state differs, because a reconnected node reads everything.
        if now.is_off != present.is_off {
            process.faults.cut_off(now.is_off);
        }
        if now.is_deaf != present.is_deaf || now.is_off != present.is_off {
            process.faults.cut_off_messages(now.is_deaf);
        }
        *present = now;
    }

    pub(super) fn processes(&self) -> Vec<Arc<Process>> {
        self.slots.lock().expect("whole").clone()
    }

    pub(super) fn process(&self, slot: usize) -> Arc<Process> {
        Arc::clone(&self.slots.lock().expect("whole")[slot])
    }

    /// Starts a new process in the slot of a dead one.
    pub(super) async fn restart(self: &Arc<Self>, slot: usize) {
        let process = self.start().await;
        self.slots.lock().expect("whole")[slot] = process;
    }

    async fn start(self: &Arc<Self>) -> Arc<Process> {
        let (mut rng, store) = (self.rng(), self.store.clone());
        let faults = FaultStore::new(Arc::new(store.clone()), rng.draw(), self.tracker.clone());
        let faults = Arc::new(faults);
        let between = Between::new(Arc::clone(&faults), store, self.wrong, &self.gossip);
        let between = Arc::new(between);
        let (still, stop) = (Standstill::default(), CancellationToken::new());
        let blind = self.wrong == Some(Wrong::DeafAndBlind);
        let settings = NodeSettings {
            seed: Some(rng.draw()),
            task_wrapper: Some(still.task_wrapper()),
            sessions_cached: 1_000,
            anti_entropy: Duration::from_secs(if blind { 100_000 } else { 5 }),
            ..NodeSettings::default()
        };
        let node = loop {
            let weather = self.weather();
            faults.set_rates(weather.rates);
            faults.cut_off(weather.is_away);
            let started = Node::start(
                Arc::clone(&between) as _,
                settings.clone(),
                Arc::clone(&self.seals) as _,
                &self.tracker,
                stop.clone(),
            );
            match started.await {
                Ok(node) => break node,
                Err(_) => sleep(START_AGAIN).await,
            }
        };
        let process = Arc::new(Process {
            node,
            faults,
            still,
            dead: CancellationToken::new(),
            stop,
            is_ready: AtomicBool::new(true),
            line: Mutex::new(Line::new(Way::Open)),
            cuts: Mutex::default(),
            streams: Streams::default(),
        });
        self.expose(&process);
        let feed = news::feed(Arc::clone(self), Arc::clone(&process));
        self.tracker.spawn(Arc::clone(&process).host(feed));
        process
    }

    /// Chooses a ready node, as the gateway does for a client. Nodes that refuse are skipped;
    /// silent nodes cost time.
    pub(super) async fn reach(&self, rng: &mut NodeRng) -> Option<(Arc<Process>, Line)> {
        let first = usize::try_from(rng.below(NODES as u64)).expect("small");
        for step in 0..NODES {
            let process = self.process((first + step) % NODES);
            if process.is_dead() || !process.is_ready.load(Ordering::Relaxed) {
                continue;
            }
            let line = process.line();
            match line.way {
                Way::Open => return Some((process, line)),
                Way::Silent => sleep(CONNECT).await,
                Way::Closed => {}
            }
        }
        None
    }

    /// Records the number of operations of each node, to distinguish runs with equal lines.
    pub(super) fn count_operations(&self) {
        for process in self.processes() {
            let count = process.faults.operations();
            self.record.fact(Fact::Operations { count });
        }
    }
}

/// Draws the latency of a message, in both directions.
pub(super) fn way(rng: &mut NodeRng) -> (Duration, Duration) {
    (rng.ms(WAY), rng.ms(WAY))
}
