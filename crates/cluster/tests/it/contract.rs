//! One suite that every store has to pass: the same cases, the same answers (`streams.md` §18).

mod adoption;
mod attach;
mod limits;
mod logs;
mod routing;
mod sessions;
mod trimming;

use std::pin::Pin;

use portolan_cluster::store::Bounds;

use crate::fixture::{Ground, Kind, server::RedisServer};

type Run = for<'a> fn(&'a Ground) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A rule, and what shows it.
pub(super) struct Case {
    name: &'static str,
    bounds: fn() -> Bounds,
    run: Run,
}

/// Cases by name; those that need other bounds than the usual ones say so.
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

async fn run(kind: Kind, cases: Vec<Case>) {
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
    };
}

groups!(adoption, attach, limits, logs, routing, sessions, trimming);
