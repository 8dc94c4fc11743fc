//! Breaks things, one after the other, by a seed.

use std::time::Duration;

use anyhow::Result;
use portolan_tests::{
    cluster::Cluster,
    history::{FaultKind, History},
};
use tokio::time::sleep;

use super::Dice;

#[derive(Debug, Clone, Copy)]
enum Strike {
    Kill,
    KillAllButOne,
    Pause,
    Drain,
    RestartRedis,
    EmptyRedis,
    PauseRedis,
    StopPostgres,
}

/// How often each comes up.
const STRIKES: &[(Strike, usize)] = &[
    (Strike::Kill, 8),
    (Strike::KillAllButOne, 1),
    (Strike::Pause, 4),
    (Strike::Drain, 2),
    (Strike::RestartRedis, 2),
    (Strike::EmptyRedis, 1),
    (Strike::PauseRedis, 2),
    (Strike::StopPostgres, 1),
];

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
}

impl Nemesis {
    pub(super) fn new(seed: u64, history: History) -> Self {
        Self {
            dice: Dice::new(seed),
            history,
            queue: Vec::new(),
            deaths: 0,
            strikes: 0,
        }
    }

    /// Does one harm, undoes it, and leaves a little quiet.
    pub(super) async fn strike(&mut self, cluster: &mut Cluster) -> Result<()> {
        // A shuffled deck: every kind comes, and a short run has them all.
        if self.queue.is_empty() {
            for (strike, count) in STRIKES {
                self.queue.extend(std::iter::repeat_n(*strike, *count));
            }
        }
        self.strikes += 1;
        let card = self.dice.below(self.queue.len() as u64);
        let strike = self.queue.swap_remove(usize::try_from(card)?);
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
            Strike::PauseRedis => {
                self.history.fault("freeze redis", FaultKind::StoreAway);
                cluster.redis.pause()?;
                sleep(Duration::from_millis(self.dice.pick(&[300, 2_000, 4_000]))).await;
                cluster.redis.go_on()?;
                self.history.fault("redis is back", FaultKind::StoreBack);
            }
            Strike::StopPostgres => {
                self.history.fault("stop postgres", FaultKind::Other);
                cluster.postgres.stop()?;
                sleep(Duration::from_secs(5)).await;
                cluster.postgres.start_again().await?;
            }
        }
        sleep(Duration::from_millis(200 + self.dice.below(2_000))).await;
        Ok(())
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
