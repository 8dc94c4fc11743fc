//! Scripts with deliberate defects. The comparison with the model, or the contract, must find each
//! (TEST-M, *Mutation check*). The mutants of reader and writer are in
//! `scripts/mutants.sh`.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use portolan_cluster::redis::RedisStore;
use redis::Script;

use crate::{
    contract, differential,
    fixture::{Kind, connect_with, go_between::GoBetween, options_at, server::RedisServer},
    model,
};

struct Mutant {
    /// Rule that the mutant breaks.
    breaks: &'static str,
    text: &'static str,
    from: &'static str,
    to: &'static str,
}

macro_rules! mutants {
    ($($script:literal: $breaks:literal, $from:literal => $to:literal;)*) => {
        &[$(Mutant {
            breaks: concat!($script, ": ", $breaks),
            text: include_str!(concat!("../../src/redis/scripts/", $script, ".lua")),
            from: $from,
            to: $to,
        }),*]
    };
}

const MUTANTS: &[Mutant] = mutants! {
    "append": "fenced by name only",
        "if h[1] ~= ARGV[1] or h[8] ~= ARGV[2] then return {2} end" => "if h[1] ~= ARGV[1] then return {2} end";
    "append": "not fenced by name",
        "if h[1] ~= ARGV[1] or h[8] ~= ARGV[2] then return {2} end" => "if h[8] ~= ARGV[2] then return {2} end";
    "append": "no compare and swap for who knows less",
        "if tonumber(ARGV[3]) ~= tail then" => "if tonumber(ARGV[3]) > tail then";
    "append": "an ended stream takes more",
        "if h[6] ~= 'O' then return {4, h[6], tail} end" => "";
    "append": "trimming drops what is pinned",
        "if c == 'N' and tonumber(s) < tail" => "if tonumber(s) < tail";
    "append": "trimming hides what it dropped",
        "drop = math.max(drop, tonumber(s))" => "drop = drop";
    "append": "an ended session gets a new stream",
        "if redis.call('GETRANGE', KEYS[6], 0, 0) == 'E' then return {4, 'X', 0} end" => "";
    "append": "the end leaves the running request behind",
        "redis.call('HDEL', KEYS[4], ARGV[13])" => "";
    "append": "an overflow is not told",
        "overflow = 1" => "overflow = 0";
    "append": "the attached node is not rung",
        "if h[4] ~= '-' and h[4] ~= ARGV[1] then" => "if false then";
    "attach": "the generation is not raised",
        "ag = ag + 1" => "ag = ag + 0";
    "attach": "the mark is ignored",
        "if mark ~= ARGV[4] then" => "if false then";
    "attach": "a stranger is let in",
        "or string.sub(h, 10, 25) ~= ARGV[1]) then return {0} end" => "or false) then return {0} end";
    "attach": "the last event comes again",
        "if tonumber(s) > cur then" => "if tonumber(s) >= cur then";
    "read": "a superseded connection is fed",
        "if q[3] == ARGV[j] and cur < tail then" => "if cur < tail then";
    "read": "another attempt is called unchanged",
        "and q[1] == ARGV[j + 2] and q[5] == ARGV[j + 3] then" => "and q[1] == ARGV[j + 2] then";
    "take_over": "no compare and swap",
        "if m[1] ~= ARGV[1] and left >= -tonumber(ARGV[3]) then return {1} end" => "";
    "take_over": "the cursor that a client showed is ignored",
        "if shown > tail then" => "if false then";
    "take_over": "the attempt is not raised",
        "n = math.max(n, tonumber(ARGV[5])) + 1" => "n = math.max(n, tonumber(ARGV[5]))";
    "cancel": "the former owner is rung after an adoption",
        "if n ~= '-' then node = redis.call('HGET', ARGV[7] .. n, 'own') or node end" => "";
    "register": "a cancellation that came first is forgotten",
        "if string.sub(c, 1, 1) ~= 'R' then return 1 end" => "";
    "remove": "the streams' nodes are not told",
        "if m[1] then nodes[m[1]] = 1; redis.call" => "if m[1] then redis.call";
};

async fn store(between: &GoBetween, bounds: portolan_cluster::store::Bounds) -> RedisStore {
    connect_with(options_at(between.url(), bounds)).await
}

/// Runs the tests on a mutant. Returns the test that found it.
async fn is_killed(server: &RedisServer, mutant: &Mutant) -> Option<&'static str> {
    assert_eq!(
        mutant.text.matches(mutant.from).count(),
        1,
        "{}: the script says something else now",
        mutant.breaks
    );
    let wrong = Script::new(&mutant.text.replace(mutant.from, mutant.to));
    let right = Script::new(mutant.text);
    let mut load = server.connection().await;
    wrong
        .prepare_invoke()
        .load_async(&mut load)
        .await
        .expect("it is a script");
    let between = GoBetween::start(server.port(), right.get_hash(), wrong.get_hash());
    let walks = async {
        let store = store(&between, model::bounds()).await;
        differential::walk_through(&store, server, 60).await;
    };
    let found = if AssertUnwindSafe(walks).catch_unwind().await.is_err() {
        Some("model")
    } else {
        let kind = Kind::At(between.url());
        let cases = contract::run(kind, contract::quick());
        let cases = AssertUnwindSafe(cases).catch_unwind().await;
        cases.is_err().then_some("contract")
    };
    assert!(between.exchanged() > 0, "{}: never ran", mutant.breaks);
    found
}

#[tokio::test]
async fn every_wrong_script_is_found() {
    let server = RedisServer::start();
    let mut alive = Vec::new();
    let mut by = [0, 0];
    for mutant in MUTANTS {
        match is_killed(&server, mutant).await {
            Some(who) => {
                by[usize::from(who == "contract")] += 1;
                println!("killed by the {who}: {}", mutant.breaks);
            }
            None => alive.push(mutant.breaks),
        }
    }
    println!(
        "{} of {} wrong scripts killed: {} by the model, {} by the contract",
        MUTANTS.len() - alive.len(),
        MUTANTS.len(),
        by[0],
        by[1]
    );
    assert!(alive.is_empty(), "alive: {alive:#?}");
}

/// Tests the check itself: the correct scripts pass.
#[tokio::test]
async fn a_right_script_passes_both() {
    let server = RedisServer::start();
    let same = Mutant {
        breaks: "append: nothing",
        text: include_str!("../../src/redis/scripts/append.lua"),
        from: "-- Called by Store::append",
        to: "-- Called by Store::append, under another name",
    };
    assert_eq!(is_killed(&server, &same).await, None);
}
