//! The simulation (TEST-N): three nodes, clients and all kinds of failures between
//! them, in one thread and in simulated time. A seed decides everything, so each finding can be
//! repeated. Nodes are called as `mcp` calls them, without HTTP (ADR 30).
//!
//! The run is recorded in the format of the chaos test, whose checker judges it.
#![expect(clippy::unwrap_used, reason = "a test stops where it goes wrong")]

mod between;
mod calls;
mod clients;
mod hardship;
mod news;
mod record;
mod scene;
mod verdict;
mod words;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use portolan_cluster::store::SessionKey;
use tokio::time::{Instant, sleep, sleep_until};

use self::{
    between::Wrong,
    calls::Call,
    record::Fact,
    scene::{Scene, Session},
    verdict::{Verdict, judge},
};
use crate::fixture::rng::NodeRng;
use crate::history::Line;

/// Number of seeds of every test run. The variable `PORTOLAN_TEST_SEEDS` sets another number, and
/// `PORTOLAN_TEST_SEED` runs one.
const SEEDS: u64 = 2_000;
/// One of this many seeds is run twice.
const TWICE: u64 = 100;
/// Clients that make one call after the other.
const PARTITIONS: u64 = 5;
/// Long-lived streams.
const SUBSCRIBERS: usize = 2;
/// Time for which clients continue after the last fault.
const AFTERWARDS: Duration = Duration::from_secs(4);
/// Time without faults after that, before the long-lived streams are checked.
const QUIET: Duration = Duration::from_secs(14);

/// Record of a run.
struct Run {
    lines: Vec<Line>,
    facts: Vec<(u64, Fact)>,
}

fn run(seed: u64, wrong: Option<Wrong>) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(play(seed, wrong))
}

async fn play(seed: u64, wrong: Option<Wrong>) -> Run {
    let scene = Scene::new(seed, wrong).await;
    let mut rng = scene.rng();
    let start = Instant::now();
    let plan = hardship::plan(&mut rng);
    let last = plan.iter().map(hardship::Harm::ends).max();
    let until = start + last.unwrap_or(Duration::from_secs(8)) + AFTERWARDS;
    let harms: Vec<_> = plan
        .into_iter()
        .map(|harm| {
            scene
                .tracker
                .spawn(hardship::befall(Arc::clone(&scene), harm, start))
        })
        .collect();
    let over = Arc::new(Mutex::new(None));
    let listeners: Vec<_> = (0..SUBSCRIBERS)
        .map(|who| {
            let session = session(&mut rng, "news");
            let (scene, over) = (Arc::clone(&scene), Arc::clone(&over));
            let subscribe = news::subscribe(Arc::clone(&scene), session, who, over);
            scene.tracker.spawn(subscribe)
        })
        .collect();
    let changes = change(Arc::clone(&scene), scene.rng(), until);
    let changes = scene.tracker.spawn(changes);
    let numbers = Arc::new(AtomicU64::new(1));
    let partitions: Vec<_> = (0..PARTITIONS)
        .map(|_| {
            let partition = partition(Arc::clone(&scene), scene.rng(), Arc::clone(&numbers), until);
            scene.tracker.spawn(partition)
        })
        .collect();
    for task in harms.into_iter().chain([changes]).chain(partitions) {
        task.await.unwrap();
    }
    *over.lock().unwrap() = Some(Instant::now() + QUIET);
    for listener in listeners {
        listener.await.unwrap();
    }
    scene.count_operations();
    let (lines, facts) = scene.record.take();
    Run { lines, facts }
}

fn session(rng: &mut NodeRng, name: &str) -> Session {
    let key = (u128::from(rng.draw()) << 64) | u128::from(rng.draw());
    Session {
        name: name.to_owned(),
        key: SessionKey(key.to_be_bytes()),
    }
}

/// A client that makes call after call, in a session that may be ended meanwhile. It then continues
/// in the ended session for a while, and takes another one.
async fn partition(scene: Arc<Scene>, mut rng: NodeRng, numbers: Arc<AtomicU64>, until: Instant) {
    while Instant::now() < until {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let session = session(&mut rng, &format!("s{number}"));
        let calls = 1 + rng.below(5);
        let ends_after = (rng.below(3) == 0).then(|| rng.below(calls));
        for call in 0..calls {
            if Instant::now() >= until {
                break;
            }
            if ends_after == Some(call) {
                let ending = clients::end(Arc::clone(&scene), session.clone());
                let ending = scene.tracker.spawn(ending);
                if rng.below(2) == 0 {
                    ending.await.unwrap();
                }
            }
            let mut beside = Vec::new();
            for _ in 0..=rng.below(2) {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                let call = Arc::new(Call::drawn(&mut rng, number, session.clone()));
                let call = clients::call(Arc::clone(&scene), call, scene.rng());
                beside.push(scene.tracker.spawn(call));
            }
            for call in beside {
                call.await.unwrap();
            }
            sleep(rng.ms(1_000)).await;
        }
    }
}

/// Changes lists at intervals.
async fn change(scene: Arc<Scene>, mut rng: NodeRng, until: Instant) {
    let most = 1_000 + rng.below(14_000);
    loop {
        let next = Instant::now() + Duration::from_millis(500 + rng.below(most));
        if next >= until {
            return;
        }
        sleep_until(next).await;
        let revision = scene.registry.change();
        scene.record.fact(Fact::Changed { revision });
    }
}

/// Summary of many runs.
#[derive(Debug, Default)]
struct Sum {
    seeds: u64,
    faults: usize,
    calls: usize,
    events: usize,
    touched: usize,
    longest: u64,
    given_up: usize,
    outcomes: BTreeMap<String, usize>,
    kinds: BTreeMap<String, usize>,
    repeated: usize,
    /// Seeds with the rules that they broke.
    broken: Vec<(u64, Vec<String>)>,
}

impl Sum {
    fn add(&mut self, seed: u64, verdict: Verdict) {
        self.seeds += 1;
        self.faults += verdict.faults;
        self.calls += verdict.report.calls;
        self.events += verdict.report.events;
        self.touched += verdict.touched;
        self.longest = self.longest.max(verdict.longest);
        self.given_up += verdict.given_up;
        for (outcome, count) in verdict.report.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        for (kind, count) in verdict.report.faults {
            *self.kinds.entry(kind).or_default() += count;
        }
        if !verdict.violations.is_empty() {
            let texts = verdict.violations.iter();
            let texts = texts.map(|violation| format!("{}: {}", violation.rule, violation.text));
            self.broken.push((seed, texts.collect()));
        }
    }

    fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.faults += other.faults;
        self.calls += other.calls;
        self.events += other.events;
        self.touched += other.touched;
        self.longest = self.longest.max(other.longest);
        self.given_up += other.given_up;
        self.repeated += other.repeated;
        self.broken.extend(other.broken);
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }
}

/// Runs seeds, one of a hundred twice.
fn run_all(seeds: impl Iterator<Item = u64>) -> Sum {
    let mut sum = Sum::default();
    for seed in seeds {
        let Run { lines, facts } = run(seed, None);
        sum.add(seed, judge(&lines, &facts));
        if seed % TWICE == 0 {
            let again = run(seed, None);
            sum.repeated += 1;
            if record::digest(&lines, &facts) != record::digest(&again.lines, &again.facts) {
                let text = "the same seed has two histories".to_owned();
                sum.broken.push((seed, vec![text]));
            }
        }
    }
    sum
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a test runs is no setting of the product"
)]
fn asked(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

/// Runs one seed and prints its record.
#[expect(clippy::print_stdout, reason = "somebody asked for it")]
fn show(seed: u64) {
    let Run { lines, facts } = run(seed, None);
    let mut all: Vec<(u64, String)> = Vec::new();
    all.extend(
        lines
            .iter()
            .map(|line| (line.at, format!("{:?}", line.what))),
    );
    all.extend(facts.iter().map(|(at, fact)| (*at, format!("{fact:?}"))));
    all.sort_by_key(|(at, _)| *at);
    for (at, text) in all {
        println!("{at:6} {text}");
    }
    let verdict = judge(&lines, &facts);
    println!("{}", verdict.report);
    assert!(verdict.violations.is_empty(), "{:#?}", verdict.violations);
}

/// Layer N. In spite of all faults, nodes keep TEST-C1 to TEST-C10, TEST-C12 and TEST-C15. From a
/// single fault to any outcome it takes 15 s at most. No client gives up unless two faults overlap.
#[test]
fn nodes_keep_their_promises_in_every_simulated_run() {
    if let Some(seed) = asked("PORTOLAN_TEST_SEED") {
        show(seed);
        return;
    }
    let seeds = asked("PORTOLAN_TEST_SEEDS").unwrap_or(SEEDS);
    // The short form leaves the other cores to other tests.
    let threads = if seeds > SEEDS {
        thread::available_parallelism().map_or(1, |count| count.get() as u64)
    } else {
        1
    };
    let mut sum = Sum::default();
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || run_all((0..seeds).filter(|seed| seed % threads == part)))
            })
            .collect();
        for part in parts {
            sum.merge(part.join().unwrap());
        }
    });
    println!(
        "N: {} seeds · {} faults · {} calls · {} events · {} calls touched by one fault, {} ms to the last outcome · {} given up where two overlapped · {} runs repeated · {} violations",
        sum.seeds,
        sum.faults,
        sum.calls,
        sum.events,
        sum.touched,
        sum.longest,
        sum.given_up,
        sum.repeated,
        sum.broken.len()
    );
    println!("outcomes {:?}\nfaults {:?}", sum.outcomes, sum.kinds);
    sum.broken.sort();
    for (seed, texts) in sum.broken.iter().take(20) {
        println!("seed {seed}: {texts:#?}");
        println!(
            "again: PORTOLAN_TEST_SEED={seed} cargo test --package portolan-cluster --test it -- --nocapture simulated::nodes_keep"
        );
    }
    assert!(sum.broken.is_empty(), "{} seeds", sum.broken.len());
}

/// Number of seeds within which a defect has to be found.
const NOTICED_WITHIN: u64 = 60;

/// Tests the check itself: each defect is found by the rule that it breaks.
#[expect(clippy::print_stdout, reason = "with which seed, for whoever looks")]
fn noticed(wrong: Wrong, rule: &str) {
    let mut others = BTreeMap::new();
    for seed in 0..NOTICED_WITHIN {
        let Run { lines, facts } = run(seed, Some(wrong));
        for violation in judge(&lines, &facts).violations {
            if violation.rule == rule {
                println!("{wrong:?} was noticed with seed {seed}: {}", violation.text);
                return;
            }
            *others.entry(violation.rule).or_insert(0) += 1;
        }
    }
    panic!("{wrong:?} broke {rule} unnoticed; what was seen: {others:?}");
}

macro_rules! noticed {
    ($($name:ident: $wrong:ident, $rule:literal;)*) => {
        $(#[test]
        fn $name() {
            noticed(Wrong::$wrong, $rule);
        })*
    };
}

noticed! {
    a_stream_of_another_call_is_noticed: OtherStream, "C1";
    an_event_that_comes_again_is_noticed: OneAgain, "C2";
    an_event_that_is_skipped_is_noticed: OneTooLate, "C4";
    lost_doorbells_that_nobody_makes_good_for_are_noticed: DeafAndBlind, "C5";
    a_dead_node_whose_calls_nobody_ends_is_noticed: NobodyDies, "C5";
    a_request_that_is_sent_twice_is_noticed: SentAgain, "C6";
    an_answer_to_another_question_is_noticed: AnswerOfAnother, "C7";
    a_cancellation_that_is_lost_is_noticed: CancelForgotten, "C8";
    a_session_that_survives_its_end_is_noticed: EndForgotten, "C9";
    a_change_that_is_not_told_is_noticed: ChangeForgotten, "C10";
}
