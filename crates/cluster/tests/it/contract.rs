//! One suite that every store has to pass: the same cases, the same replies (STREAM-18).

mod attach;
mod holds;
mod limits;
mod logs;
mod principals;
mod records;
mod routing;
mod sessions;
mod takeover;
mod trimming;

use std::pin::Pin;

use portolan_cluster::store::Bounds;

use crate::fixture::{Ground, Kind, cluster::RedisCluster, server::RedisServer};

type Run = for<'a> fn(&'a Ground) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A rule and the test that shows it.
pub(crate) struct Case {
    name: &'static str,
    bounds: fn() -> Bounds,
    run: Run,
}

/// Cases by name. Some of them set other bounds than the default.
macro_rules! cases {
    ($($name:ident $(with $bounds:expr)?),* $(,)?) => {
        pub(super) fn cases() -> Vec<$crate::contract::Case> {
            vec![$($crate::contract::Case {
                name: stringify!($name),
                bounds: $crate::contract::first_of!($($bounds,)? portolan_cluster::store::Bounds::default),
                run: |ground| Box::pin($name(ground)),
            }),*]
        }
    };
}

macro_rules! first_of {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

use {cases, first_of};

/// Cases that need no time to pass.
pub(crate) fn quick() -> Vec<Case> {
    let mut cases = attach::cases();
    cases.extend(takeover::cases());
    cases.extend(logs::cases());
    cases.extend(trimming::cases());
    cases.extend(sessions::cases());
    cases.extend(records::cases());
    cases.extend(routing::cases());
    cases.retain(|case| !case.name.contains("life") && !case.name.contains("time"));
    cases
}

pub(crate) async fn run(kind: Kind, cases: Vec<Case>) {
    for case in cases {
        eprintln!("{}: {}", kind.name(), case.name);
        let ground = kind.ground((case.bounds)()).await;
        (case.run)(&ground).await;
    }
}

macro_rules! groups {
    ($($group:ident),*) => {
        mod memory {
            use super::*;
            $(#[tokio::test]
            async fn $group() {
                run(Kind::Memory, super::$group::cases()).await;
            })*
        }

        mod fault_of_memory {
            use super::*;
            $(#[tokio::test]
            async fn $group() {
                run(Kind::Fault, super::$group::cases()).await;
            })*
        }

        mod redis {
            use super::*;
            $(#[tokio::test]
            async fn $group() {
                run(Kind::Redis(RedisServer::start()), super::$group::cases()).await;
            })*
        }

        mod cluster {
            use super::*;
            $(#[tokio::test]
            async fn $group() {
                run(Kind::Cluster(RedisCluster::start().await), super::$group::cases()).await;
            })*
        }
    };
}

groups!(
    takeover, attach, holds, limits, logs, principals, routing, sessions, records, trimming
);
