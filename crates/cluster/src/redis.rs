//! The store in Redis: each operation is one script and one round trip.
//!
//! A few multiplexed connections carry commands, one carries doorbells; neither grows with sessions or streams (`streams.md` §0.6).
//! Keys of a session share a hash tag and every script names keys of one slot only; a standalone server (or a
//! primary with replicas behind one address) is what the connections speak to.

mod answers;
mod connection;
mod doorbells;
mod keys;
mod options;
mod scripts;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use redis::{
    Client, Cmd, IntoConnectionInfo as _, ProtocolVersion, Value,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::options::RedisOptions;
use self::{
    answers::{Answer, corrupt, int},
    connection::{Link, Server},
    doorbells::{Wish, attempt_text, subscribe},
    keys::{Keys, hex, member, owner, parse_member},
    scripts::{Scripts, Source},
};
use crate::{
    bells::Bells,
    gcra::Wanted,
    store::{
        Adopt, Adopted, Append, Appended, Attached, Begin, Bounds, Class, Cursor, Doorbell, Fresh,
        LANES, Lane, Lease, LeaseWanted, MOST_SEQ, Member, Members, NodeId, Nonce, Principal, Read,
        ReadWanted, Registered, Result, Routed, SessionKey, State, Store, StoreError, StreamKey,
        Update, Version,
    },
};

/// A wish to hear doorbells waits no longer for the subscriber.
const SUBSCRIBE: Duration = Duration::from_secs(2);

/// The store in Redis.
#[derive(Debug)]
pub struct RedisStore {
    server: Arc<Server>,
    links: Vec<Link>,
    bounds: Bounds,
    bells: Arc<Bells>,
    wishes: mpsc::Sender<Wish>,
    commands: AtomicU64,
}

impl RedisStore {
    /// Connects, checks that the server can hold what is promised (version, no eviction), and loads the scripts.
    ///
    /// The subscriber of doorbells runs on `tracker` until `stop`, or until the store is dropped.
    pub async fn connect(
        options: RedisOptions,
        tracker: &TaskTracker,
        stop: CancellationToken,
    ) -> Result<Self> {
        let refused = |error: redis::RedisError| {
            StoreError::Refused(format!("the address of Redis: {}", error.category()))
        };
        let info = options
            .url
            .as_str()
            .into_connection_info()
            .map_err(refused)?;
        let settings = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let tcp = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(TcpKeepalive::new().with_time(Duration::from_secs(30)));
        let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
        let client = Client::open(info).map_err(refused)?;
        let server = Arc::new(Server::new(
            client,
            Keys::new(&options.prefix),
            options.allow_eviction,
        ));
        let links: Vec<_> = (0..options.connections.max(1))
            .map(|_| Link::new(Arc::clone(&server)))
            .collect();
        for link in &links {
            link.ready().await?;
        }
        let bells = Arc::new(Bells::default());
        let (wishes, wished) = mpsc::channel(64);
        tracker.spawn(subscribe(
            Arc::clone(&server),
            Arc::clone(&bells),
            wished,
            stop,
        ));
        let store = Self {
            server,
            links,
            bounds: options.bounds,
            bells,
            wishes,
            commands: AtomicU64::new(0),
        };
        for script in store.scripts().all() {
            let mut load = redis::cmd("SCRIPT");
            load.arg("LOAD").arg(script.text);
            store.links[0].send(&load, &AtomicU64::new(0)).await?;
        }
        Ok(store)
    }

    /// Commands sent on behalf of operations so far; each was one round trip (§5).
    pub fn redis_commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    fn keys(&self) -> &Keys {
        &self.server.keys
    }

    fn scripts(&self) -> &Scripts {
        &self.server.scripts
    }

    /// Operations of a lane take the same connection and so keep their order.
    fn link(&self, lane: Lane) -> &Link {
        &self.links[usize::from(lane.0) % self.links.len()]
    }

    /// Runs a script. `fill` writes the number of keys, the keys and the arguments.
    async fn run(
        &self,
        lane: Lane,
        script: &Source,
        fill: impl Fn(&mut Cmd) + Send,
    ) -> Result<Value> {
        let mut by_name = redis::cmd("EVALSHA");
        by_name.arg(&script.sha1);
        fill(&mut by_name);
        let by_text = || {
            let mut by_text = redis::cmd("EVAL");
            by_text.arg(script.text);
            fill(&mut by_text);
            by_text
        };
        self.link(lane)
            .script(script, &by_name, by_text, &self.commands)
            .await
    }

    async fn run_list(
        &self,
        lane: Lane,
        script: &Source,
        fill: impl Fn(&mut Cmd) + Send,
    ) -> Result<Answer> {
        Answer::list(script.name, self.run(lane, script, fill).await?)
    }

    async fn run_int(
        &self,
        lane: Lane,
        script: &Source,
        fill: impl Fn(&mut Cmd) + Send,
    ) -> Result<i64> {
        int(script.name, &self.run(lane, script, fill).await?)
    }
}

/// Whole milliseconds, and no more than a server takes for a life.
fn ms(duration: Duration) -> u64 {
    const CENTURY: u64 = 100 * 365 * 24 * 3600 * 1000;
    u64::try_from(duration.as_millis())
        .unwrap_or(CENTURY)
        .min(CENTURY)
}

const fn class_text(class: Class) -> &'static str {
    match class {
        Class::Notification => "N",
        Class::Question => "R",
        Class::Answer => "A",
        Class::Final => "F",
    }
}

const fn close_text(close: Option<State>) -> &'static str {
    match close {
        None | Some(State::Open) => "-",
        Some(State::Closed) => "C",
        Some(State::Cancelled) => "X",
    }
}

/// Where keys that belong to no session are.
const NO_LANE: Lane = Lane(0);

#[async_trait]
impl Store for RedisStore {
    async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        known: Option<Version>,
        fresh: &Fresh,
    ) -> Result<Begin> {
        let life = ms(fresh.life);
        if life == 0 {
            return Ok(Begin::Unknown);
        }
        let known = known.map_or_else(String::new, |version| format!("{:08x}", version.0));
        let mut answer = self
            .run_list(session.lane(), &self.scripts().begin, |call| {
                call.arg(1)
                    .arg(self.keys().session(session))
                    .arg(&principal.0[..])
                    .arg(&known)
                    .arg(life.min(ms(self.bounds.idle)))
                    .arg(ms(self.bounds.touch()))
                    .arg(&fresh.body[..]);
            })
            .await?;
        match answer.int()? {
            0 => Ok(Begin::Unknown),
            1 => Ok(Begin::Alive {
                version: answer.version()?,
                body: match answer.left() {
                    0 => None,
                    _ => Some(answer.bytes()?),
                },
            }),
            2 => Ok(Begin::Rebuilt {
                version: answer.version()?,
            }),
            _ => Err(corrupt("begin")),
        }
    }

    async fn update(
        &self,
        session: SessionKey,
        principal: Principal,
        expect: Version,
        body: Bytes,
    ) -> Result<Update> {
        let mut answer = self
            .run_list(session.lane(), &self.scripts().update, |call| {
                call.arg(1)
                    .arg(self.keys().session(session))
                    .arg(&principal.0[..])
                    .arg(format!("{:08x}", expect.0))
                    .arg(&body[..]);
            })
            .await?;
        match answer.int()? {
            0 => Ok(Update::Unknown),
            1 => Ok(Update::Done(answer.version()?)),
            2 => Ok(Update::Conflict {
                version: answer.version()?,
                body: answer.bytes()?,
            }),
            _ => Err(corrupt("update")),
        }
    }

    async fn end(&self, session: SessionKey, principal: Principal, life: Duration) -> Result<()> {
        let keys = self.keys();
        self.run_int(session.lane(), &self.scripts().end, |call| {
            call.arg(4)
                .arg(keys.session(session))
                .arg(keys.index(session))
                .arg(keys.running(session))
                .arg(keys.questions(session))
                .arg(&principal.0[..])
                .arg(ms(life))
                .arg(hex(&session.0))
                .arg(keys.lane(session.lane()))
                .arg(keys.channels());
        })
        .await
        .map(|_| ())
    }

    async fn append(&self, stream: StreamKey, append: &Append) -> Result<Appended> {
        let (keys, session, lane) = (self.keys(), stream.session, stream.session.lane());
        let (deadline, start, about) = append.create.as_ref().map_or((0, 0, &[][..]), |create| {
            (
                ms(create.deadline_in),
                create.start.min(MOST_SEQ),
                &create.about[..],
            )
        });
        let mut answer = self
            .run_list(lane, &self.scripts().append, |call| {
                call.arg(7)
                    .arg(keys.meta(stream))
                    .arg(keys.events(stream))
                    .arg(keys.questions(session))
                    .arg(keys.running(session))
                    .arg(keys.index(session))
                    .arg(keys.session(session))
                    .arg(keys.owned(lane, Some(append.owner)))
                    .arg(&append.owner.0[..])
                    .arg(attempt_text(append.attempt))
                    .arg(append.expect)
                    .arg(self.bounds.events)
                    .arg(self.bounds.bytes)
                    .arg(ms(self.bounds.closed_for))
                    .arg(ms(self.bounds.open_grace))
                    .arg(self.bounds.inline)
                    .arg(keys.channels())
                    .arg(hex(&session.0))
                    .arg(hex(&stream.nonce.0))
                    .arg(close_text(append.close))
                    .arg(&append.rpc)
                    .arg(if append.create.is_some() { "1" } else { "" })
                    .arg(deadline)
                    .arg(start)
                    .arg(about);
                for event in &append.events {
                    call.arg(class_text(event.class));
                    match &event.question {
                        Some(question) => call.arg(format!("={question}")),
                        None => call.arg("-"),
                    };
                    call.arg(&event.payload[..]);
                }
            })
            .await?;
        match answer.int()? {
            1 => Ok(Appended::Done {
                tail: answer.number()?,
                attached: answer.owner()?,
                generation: answer.number()?,
                overflow: answer.flag()?,
            }),
            2 => Ok(Appended::Fenced),
            3 => Ok(Appended::Tail {
                tail: answer.number()?,
                state: answer.state()?,
            }),
            4 => Ok(Appended::Closed {
                state: answer.state()?,
                tail: answer.number()?,
            }),
            5 => Ok(Appended::Gone),
            _ => Err(corrupt("append")),
        }
    }

    async fn attach(
        &self,
        stream: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
    ) -> Result<Attached> {
        let (keys, session) = (self.keys(), stream.session);
        let cursor = cursor.bounded();
        let mut answer = self
            .run_list(session.lane(), &self.scripts().attach, |call| {
                call.arg(3)
                    .arg(keys.session(session))
                    .arg(keys.meta(stream))
                    .arg(keys.events(stream))
                    .arg(&principal.0[..])
                    .arg(cursor.seq)
                    .arg(cursor.attempt.map_or(0, |attempt| attempt.number))
                    .arg(format!(
                        "{:04x}",
                        cursor.attempt.map_or(0, |attempt| attempt.mark)
                    ))
                    .arg(&node.0[..])
                    .arg(keys.channels())
                    .arg(hex(&session.0))
                    .arg(hex(&stream.nonce.0))
                    .arg(self.bounds.page.0)
                    .arg(self.bounds.page.1);
            })
            .await?;
        match answer.int()? {
            0 => Ok(Attached::Unknown),
            1 => Ok(Attached::Gone),
            2 => Ok(Attached::Stream {
                view: answer.view()?,
                position: answer.number()?,
                split: answer.flag()?,
            }),
            _ => Err(corrupt("attach")),
        }
    }

    async fn read(&self, lane: Lane, wanted: &[ReadWanted]) -> Result<Vec<Read>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.keys();
        let mut answers = self
            .run_list(lane, &self.scripts().read, |call| {
                call.arg(wanted.len() * 2);
                for wanted in wanted {
                    call.arg(keys.meta(wanted.stream))
                        .arg(keys.events(wanted.stream));
                }
                call.arg(self.bounds.page.0).arg(self.bounds.page.1);
                for wanted in wanted {
                    call.arg(wanted.generation)
                        .arg(wanted.position)
                        .arg(owner(wanted.seen.0.as_ref()))
                        .arg(attempt_text(wanted.seen.1));
                }
            })
            .await?;
        let mut reads = Vec::with_capacity(wanted.len());
        for _ in wanted {
            reads.push(match answers.value()? {
                Value::Int(0) => Read::Gone,
                Value::Int(1) => Read::Unchanged,
                value => {
                    let mut answer = Answer::list("read", value)?;
                    let view = answer.view()?;
                    Read::View(view, answer.owner()?)
                }
            });
        }
        Ok(reads)
    }

    async fn detach(&self, stream: StreamKey, node: NodeId, generation: u64) -> Result<()> {
        self.run_int(stream.session.lane(), &self.scripts().detach, |call| {
            call.arg(1)
                .arg(self.keys().meta(stream))
                .arg(&node.0[..])
                .arg(generation);
        })
        .await
        .map(|_| ())
    }

    async fn adopt(&self, adopt: &Adopt) -> Result<Adopted> {
        let (keys, stream, lane) = (self.keys(), adopt.stream, adopt.stream.session.lane());
        let shown = adopt.shown.bounded();
        let mut answer = self
            .run_list(lane, &self.scripts().adopt, |call| {
                call.arg(3)
                    .arg(keys.meta(stream))
                    .arg(keys.owned(lane, adopt.from))
                    .arg(keys.owned(lane, adopt.to))
                    .arg(owner(adopt.from.as_ref()))
                    .arg(owner(adopt.to.as_ref()))
                    .arg(ms(self.bounds.overdue))
                    .arg(shown.seq)
                    .arg(shown.attempt.map_or(0, |attempt| attempt.number))
                    .arg(format!("{:04x}", adopt.mark))
                    .arg(member(stream))
                    .arg(keys.lane(lane))
                    .arg(keys.channels())
                    .arg(hex(&stream.session.0))
                    .arg(hex(&stream.nonce.0));
            })
            .await?;
        match answer.int()? {
            0 => Ok(Adopted::Over),
            1 => Ok(Adopted::Lost),
            2 => Ok(Adopted::Done {
                tail: answer.number()?,
                attempt: answer.attempt()?,
                about: answer.bytes()?,
                deadline_in: answer.millis()?,
                late: answer.flag()?,
            }),
            _ => Err(corrupt("adopt")),
        }
    }

    async fn owned_by(&self, lane: Lane, node: Option<NodeId>) -> Result<Vec<StreamKey>> {
        let keys = self.keys();
        let mut answer = self
            .run_list(lane, &self.scripts().owned, |call| {
                call.arg(1)
                    .arg(keys.owned(lane, node))
                    .arg(owner(node.as_ref()))
                    .arg(keys.metas_of_lane(lane));
            })
            .await?;
        let mut streams = Vec::with_capacity(answer.left());
        while answer.left() > 0 {
            let text = answer.bytes()?;
            streams.push(parse_member(&text).ok_or_else(|| corrupt("owned"))?);
        }
        Ok(streams)
    }

    async fn register(
        &self,
        session: SessionKey,
        rpc: &str,
        node: NodeId,
        stream: Option<Nonce>,
        deadline_in: Duration,
    ) -> Result<Registered> {
        let nonce = stream.map_or_else(|| "-".to_owned(), |nonce| hex(&nonce.0));
        let answer = self
            .run_int(session.lane(), &self.scripts().register, |call| {
                call.arg(2)
                    .arg(self.keys().session(session))
                    .arg(self.keys().running(session))
                    .arg(rpc)
                    .arg(&node.0[..])
                    .arg(&nonce)
                    .arg(ms(deadline_in))
                    .arg(self.bounds.running);
            })
            .await?;
        match answer {
            0 => Ok(Registered::Done),
            1 => Ok(Registered::Cancelled),
            2 => Ok(Registered::Full),
            _ => Err(corrupt("register")),
        }
    }

    async fn unregister(&self, session: SessionKey, rpc: &str) -> Result<()> {
        let mut command = redis::cmd("HDEL");
        command.arg(self.keys().running(session)).arg(rpc);
        self.link(session.lane())
            .send(&command, &self.commands)
            .await
            .map(|_| ())
    }

    async fn cancel(&self, session: SessionKey, principal: Principal, rpc: &str) -> Result<Routed> {
        let keys = self.keys();
        let answer = self
            .run_int(session.lane(), &self.scripts().cancel, |call| {
                call.arg(2)
                    .arg(keys.session(session))
                    .arg(keys.running(session))
                    .arg(&principal.0[..])
                    .arg(rpc)
                    .arg(keys.channels())
                    .arg(hex(&session.0))
                    .arg(ms(self.bounds.tombstone))
                    .arg(self.bounds.tombstones)
                    .arg(keys.metas(session));
            })
            .await?;
        routed("cancel", answer)
    }

    async fn answer(
        &self,
        session: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
    ) -> Result<Routed> {
        let keys = self.keys();
        let answer = self
            .run_int(session.lane(), &self.scripts().answer, |call| {
                call.arg(2)
                    .arg(keys.session(session))
                    .arg(keys.questions(session))
                    .arg(&principal.0[..])
                    .arg(question)
                    .arg(&payload[..])
                    .arg(keys.channels())
                    .arg(hex(&session.0))
                    .arg(self.bounds.inline)
                    .arg(keys.metas(session));
            })
            .await?;
        routed("answer", answer)
    }

    async fn take_answer(&self, session: SessionKey, question: &str) -> Result<Option<Bytes>> {
        let answer = self
            .run(session.lane(), &self.scripts().take_answer, |call| {
                call.arg(1)
                    .arg(self.keys().questions(session))
                    .arg(question)
                    .arg(self.keys().metas(session));
            })
            .await?;
        match answer {
            Value::Nil => Ok(None),
            Value::BulkString(payload) => Ok(Some(payload.into())),
            _ => Err(corrupt("take_answer")),
        }
    }

    async fn beat(&self, node: NodeId, ttl: Duration) -> Result<Members> {
        let mut answer = self
            .run_list(NO_LANE, &self.scripts().beat, |call| {
                call.arg(1)
                    .arg(self.keys().members())
                    .arg(&node.0[..])
                    .arg(ms(ttl))
                    .arg(ms(self.bounds.dead_for));
            })
            .await?;
        let now = answer.int()?;
        let mut list = Answer::list("beat", answer.value()?)?;
        let mut nodes = Vec::with_capacity(list.left() / 2);
        while list.left() > 0 {
            let name = list.bytes()?;
            let until = list.bytes()?;
            let until: Option<i64> = std::str::from_utf8(&until)
                .ok()
                .and_then(|text| text.parse().ok());
            nodes.push(Member {
                node: NodeId(name[..].try_into().map_err(|_| corrupt("beat"))?),
                valid_ms: until.ok_or_else(|| corrupt("beat"))? - now,
            });
        }
        Ok(Members { nodes })
    }

    async fn leave(&self, node: NodeId) -> Result<()> {
        let mut command = redis::cmd("ZREM");
        command.arg(self.keys().members()).arg(&node.0[..]);
        self.link(NO_LANE)
            .send(&command, &self.commands)
            .await
            .map(|_| ())
    }

    async fn lease(&self, wanted: &[LeaseWanted]) -> Result<Vec<Lease>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let mut answer = self
            .run_list(NO_LANE, &self.scripts().lease, |call| {
                call.arg(wanted.len());
                for wanted in wanted {
                    call.arg(self.keys().bucket(&wanted.shard, &wanted.bucket));
                }
                for wanted in wanted {
                    let wanted = Wanted::from(wanted);
                    call.arg(wanted.interval_us)
                        .arg(wanted.burst)
                        .arg(wanted.want)
                        .arg(wanted.debt);
                }
            })
            .await?;
        let mut leases = Vec::with_capacity(wanted.len());
        for _ in wanted {
            leases.push(Lease {
                granted: answer.number()?,
                wait: answer.millis()?,
            });
        }
        Ok(leases)
    }

    async fn doorbells(&self, node: NodeId) -> Result<mpsc::Receiver<Doorbell>> {
        // Heard from now on, also if the subscriber has to connect first.
        let hears = self.bells.listen(node);
        let (done, opened) = oneshot::channel();
        let work = async {
            self.wishes
                .send((node, done))
                .await
                .map_err(|_| StoreError::Down("the subscriber was stopped".to_owned()))?;
            opened
                .await
                .map_err(|_| StoreError::Down("the subscriber was stopped".to_owned()))?
        };
        tokio::time::timeout(SUBSCRIBE, work)
            .await
            .map_err(|_| StoreError::Down("no subscription in time".to_owned()))??;
        Ok(hears)
    }

    fn incarnation(&self) -> watch::Receiver<u64> {
        self.server.incarnation()
    }
}

fn routed(script: &'static str, answer: i64) -> Result<Routed> {
    match answer {
        0 => Ok(Routed::Unknown),
        1 => Ok(Routed::Rung),
        2 => Ok(Routed::Nobody),
        _ => Err(corrupt(script)),
    }
}

/// Lanes are numbered by a byte.
const _: () = assert!(LANES == 256);
