//! Breaks things, one after the other, by a seed. The letters and numbers are those of the test plan.

use std::time::Duration;

use anyhow::Result;
use portolan_tests::{
    cluster::{Cluster, Succession},
    fleet::Fleet,
    held::Mood,
    history::{FaultKind, History},
    link::Weather,
};
use tokio::time::sleep;

use super::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strike {
    /// TEST-F1.
    Kill,
    /// TEST-F14.
    KillAllButOne,
    /// TEST-F3.
    Pause,
    /// TEST-F2.
    Drain,
    /// TEST-F4, one node and Redis.
    CutRedis,
    /// TEST-F4, all nodes and Redis.
    CutRedisOff,
    /// TEST-F4, notifications alone.
    LoseDoorbells,
    /// TEST-F5.
    RestartRedis,
    /// TEST-F5, without its data.
    EmptyRedis,
    PauseRedis,
    /// TEST-F6: another one takes over, which lacks the last writes.
    ReplaceRedis,
    /// TEST-F7.
    FillRedis,
    /// TEST-F8, the server.
    SleepRedis,
    /// TEST-F8, the network.
    SlowRedis,
    /// TEST-F9.
    StopPostgres,
    /// TEST-F10.
    ResetClients,
    /// TEST-F10.
    SilenceClients,
    /// TEST-F11.
    RestartBalancer,
    /// TEST-F11: HAProxy becomes nginx, nginx becomes HAProxy.
    ReplaceBalancer,
    /// TEST-F12.
    BreakApi,
    /// TEST-F13.
    WrongClock,
}

/// How often each comes up.
const STRIKES: &[(Strike, usize)] = &[
    (Strike::Kill, 16),
    (Strike::KillAllButOne, 2),
    (Strike::Pause, 3),
    (Strike::Drain, 2),
    (Strike::CutRedis, 2),
    (Strike::CutRedisOff, 1),
    (Strike::LoseDoorbells, 2),
    (Strike::RestartRedis, 2),
    (Strike::EmptyRedis, 1),
    (Strike::PauseRedis, 1),
    (Strike::ReplaceRedis, 1),
    (Strike::FillRedis, 1),
    (Strike::SleepRedis, 1),
    (Strike::SlowRedis, 1),
    (Strike::StopPostgres, 1),
    (Strike::ResetClients, 2),
    (Strike::SilenceClients, 1),
    (Strike::RestartBalancer, 1),
    (Strike::ReplaceBalancer, 2),
    (Strike::BreakApi, 3),
    (Strike::WrongClock, 1),
];

/// After so many harms it is calm until even the last one explains nothing any more: what nothing disturbs is judged, too.
const CALM_EACH: usize = 7;
const CALM: Duration = Duration::from_secs(8);

/// Kinds of harm.
pub(super) const KINDS: usize = STRIKES.len();

/// Strikes, and keeps count.
#[derive(Debug)]
pub(super) struct Nemesis {
    dice: Dice,
    history: History,
    queue: Vec<Strike>,
    /// Nodes that were killed.
    pub(super) deaths: usize,
    /// Faults so far.
    pub(super) strikes: usize,
    moods: usize,
    successions: usize,
}

impl Nemesis {
    pub(super) fn new(seed: u64, history: History) -> Self {
        Self {
            dice: Dice::new(seed),
            history,
            // First one of each: a short run has them all.
            queue: STRIKES.iter().map(|(strike, _)| *strike).collect(),
            deaths: 0,
            strikes: 0,
            moods: 0,
            successions: 0,
        }
    }

    /// Does one harm, undoes it, and leaves a little quiet.
    pub(super) async fn strike(&mut self, fleet: &mut Fleet) -> Result<()> {
        if self.queue.is_empty() {
            for (strike, count) in STRIKES {
                self.queue.extend(std::iter::repeat_n(*strike, *count));
            }
        }
        self.strikes += 1;
        let card = self.dice.below(self.queue.len() as u64);
        let strike = self.queue.swap_remove(usize::try_from(card)?);
        let cluster = &mut fleet.cluster;
        let count = cluster.nodes.len();
        let victim = usize::try_from(self.dice.below(count as u64))?;
        match strike {
            Strike::Kill => self.kill(cluster, &[victim]).await?,
            Strike::KillAllButOne => {
                let others: Vec<_> = (0..count).filter(|node| *node != victim).collect();
                self.kill(cluster, &others).await?;
            }
            Strike::Pause => {
                let node = &cluster.nodes[victim];
                let secs = self.dice.pick(&[1, 3, 6, 10]);
                self.history
                    .fault(format!("hold {} {secs} s", node.name), FaultKind::Node);
                node.pause()?;
                sleep(Duration::from_secs(secs)).await;
                node.go_on()?;
            }
            Strike::Drain => {
                let node = &mut cluster.nodes[victim];
                self.history
                    .fault(format!("drain {}", node.name), FaultKind::Node);
                node.drain()?;
                node.end(Duration::from_secs(40)).await?;
                node.start()?;
                node.ready().await?;
            }
            Strike::CutRedis | Strike::CutRedisOff | Strike::LoseDoorbells | Strike::SlowRedis => {
                self.weather(cluster, strike, victim).await
            }
            Strike::RestartRedis
            | Strike::EmptyRedis
            | Strike::PauseRedis
            | Strike::ReplaceRedis
            | Strike::FillRedis
            | Strike::SleepRedis => self.redis(cluster, strike).await?,
            Strike::StopPostgres => {
                self.history.fault("stop postgres", FaultKind::Database);
                cluster.postgres.stop()?;
                sleep(Duration::from_secs(5)).await;
                cluster.postgres.start_again().await?;
            }
            Strike::ResetClients => {
                self.history.fault("reset clients", FaultKind::Other);
                if let Some(front) = &cluster.front {
                    front.reset();
                }
            }
            Strike::SilenceClients => {
                self.history.fault("silence clients", FaultKind::Other);
                if let Some(front) = &cluster.front {
                    front.set(Weather::Silent);
                    sleep(Duration::from_secs(3)).await;
                    front.set(Weather::Clear);
                    front.reset();
                }
            }
            Strike::RestartBalancer | Strike::ReplaceBalancer => {
                let next = match strike {
                    Strike::ReplaceBalancer => cluster.proxy.balancer().other(),
                    _ => cluster.proxy.balancer(),
                };
                self.history
                    .fault(format!("balance by {next:?} anew"), FaultKind::Other);
                cluster.proxy.stop()?;
                sleep(Duration::from_millis(self.dice.below(500))).await;
                cluster.proxy.start_again(next).await?;
            }
            Strike::BreakApi => {
                let mood = [Mood::Dead, Mood::Hung, Mood::Mad][self.moods % 3];
                self.moods += 1;
                let name = format!("api is {mood:?}");
                self.history.fault(name, FaultKind::Other);
                fleet.fixture.held.set_mood(mood);
                sleep(Duration::from_secs(3)).await;
                fleet.fixture.held.set_mood(Mood::Well);
            }
            Strike::WrongClock => self.wrong_clock(cluster, victim).await?,
        }
        self.history.fault("it is over", FaultKind::Over);
        sleep(Duration::from_millis(200 + self.dice.below(2_000))).await;
        if self.strikes.is_multiple_of(CALM_EACH) {
            sleep(CALM).await;
        }
        Ok(())
    }

    /// Harm to Redis itself.
    async fn redis(&mut self, cluster: &mut Cluster, strike: Strike) -> Result<()> {
        match strike {
            Strike::RestartRedis => {
                self.history.fault("restart redis", FaultKind::StoreAway);
                cluster.redis.stop()?;
                sleep(Duration::from_millis(self.dice.pick(&[100, 1_000, 3_000]))).await;
                cluster.redis.start_again().await?;
                self.history.fault("redis is back", FaultKind::StoreBack);
            }
            Strike::EmptyRedis => {
                self.history.fault("empty redis", FaultKind::StoreEmptied);
                cluster.redis.empty().await?;
            }
            Strike::ReplaceRedis => self.replace_redis(cluster).await?,
            Strike::FillRedis => {
                self.history.fault("fill redis", FaultKind::StoreFull);
                cluster.redis.starve(true).await?;
                sleep(Duration::from_secs(10)).await;
                cluster.redis.starve(false).await?;
            }
            Strike::SleepRedis => {
                self.history.fault("sleep redis", FaultKind::StoreAway);
                let length = Duration::from_millis(self.dice.pick(&[500, 1_500, 3_000]));
                cluster.redis.sleep(length).await?;
                self.history.fault("redis is back", FaultKind::StoreBack);
            }
            _ => {
                self.history.fault("freeze redis", FaultKind::StoreAway);
                cluster.redis.pause()?;
                sleep(Duration::from_millis(self.dice.pick(&[300, 2_000, 4_000]))).await;
                cluster.redis.go_on()?;
                self.history.fault("redis is back", FaultKind::StoreBack);
            }
        }
        Ok(())
    }

    /// Another Redis takes over, which lacks the last writes. By turns because the old one is dead,
    /// and although it lives.
    async fn replace_redis(&mut self, cluster: &mut Cluster) -> Result<()> {
        let lost = Duration::from_millis(self.dice.pick(&[200, 700, 2_000]));
        let how = [Succession::Death, Succession::Demotion][self.successions % 2];
        self.successions += 1;
        cluster.heir_knows_all().await?;
        let name = format!("replace redis by {how:?}, {lost:?} lost");
        self.history.fault(name, FaultKind::StoreForgets);
        cluster.forget_from_now().await?;
        sleep(lost).await;
        self.history
            .fault("redis loses its place", FaultKind::StoreAway);
        cluster.succeed(how).await?;
        self.history
            .fault("another redis", FaultKind::StoreRolledBack);
        self.history.fault("redis is back", FaultKind::StoreBack);
        cluster.restore_heir().await
    }

    /// A node is started on a machine whose clock is wrong. It reports that and serves no client
    /// until the clock is set right.
    async fn wrong_clock(&mut self, cluster: &mut Cluster, victim: usize) -> Result<()> {
        let node = &mut cluster.nodes[victim];
        let seconds = self.dice.pick(&[-300, 300]);
        let name = format!("clock of {} {seconds:+} s", node.name);
        self.history.fault(name, FaultKind::Node);
        node.kill()?;
        self.deaths += 1;
        node.set_clock(seconds)?;
        node.start()?;
        node.refuses("clock").await?;
        sleep(Duration::from_secs(3)).await;
        node.refuses("clock").await?;
        node.set_clock(0)?;
        node.ready().await
    }

    /// Harm to the network between nodes and Redis.
    async fn weather(&mut self, cluster: &Cluster, strike: Strike, victim: usize) {
        let lines = match strike {
            Strike::CutRedisOff | Strike::SlowRedis => &cluster.links[..],
            _ => &cluster.links[victim..=victim],
        };
        let name = &cluster.nodes[victim].name;
        let (weather, secs, text) = match strike {
            Strike::LoseDoorbells => (
                Weather::Deaf,
                self.dice.pick(&[2, 5, 9]),
                format!("deafen {name}"),
            ),
            Strike::SlowRedis => (
                Weather::Slow(Duration::from_millis(self.dice.pick(&[30, 120]))),
                5,
                "slow redis".to_owned(),
            ),
            _ => (
                self.dice.pick(&[Weather::Cut, Weather::Silent]),
                self.dice.pick(&[1, 4, 9]),
                match strike {
                    Strike::CutRedisOff => "cut redis off".to_owned(),
                    _ => format!("cut {name} from redis"),
                },
            ),
        };
        // A cut for some nodes may not excuse the others.
        let is_away = weather != Weather::Deaf;
        let kind = if is_away {
            FaultKind::StoreAway
        } else {
            FaultKind::Doorbells
        };
        self.history
            .fault(format!("{text} {weather:?} {secs} s"), kind);
        for line in lines {
            line.set(weather);
        }
        sleep(Duration::from_secs(secs)).await;
        for line in lines {
            line.set(Weather::Clear);
        }
        if is_away {
            self.history.fault("redis is back", FaultKind::StoreBack);
        }
    }

    async fn kill(&mut self, cluster: &mut Cluster, victims: &[usize]) -> Result<()> {
        for victim in victims {
            let node = &mut cluster.nodes[*victim];
            self.history
                .fault(format!("kill {}", node.name), FaultKind::Node);
            node.kill()?;
            self.deaths += 1;
        }
        sleep(Duration::from_millis(self.dice.below(2_000))).await;
        for victim in victims {
            cluster.nodes[*victim].start()?;
        }
        for victim in victims {
            cluster.nodes[*victim].ready().await?;
        }
        Ok(())
    }

    /// Everything is well again.
    pub(super) async fn settle(&mut self, cluster: &mut Cluster) -> Result<()> {
        for node in &mut cluster.nodes {
            node.ready().await?;
        }
        Ok(())
    }
}
