//! The cost of a login by password, against the comparison of passwords in it (AUTH-L1, AUTH-L2):
//! everything else should be little, no more comparisons should run at a time than there are cores,
//! and tool calls should go on meanwhile.
//!
//! The bare work is the product's own [`PasswordHasher`] with the same parameters, in this process,
//! with as many threads as there are cores: memory is shared as it is in the product, where as many
//! run at a time. Two ratios are taken and the lower one counts, because either alone could be good
//! for the wrong reason:
//!
//! - logins for each second of processor time of the node, which show the work beside hashing, but
//!   not idle cores while clients wait;
//! - logins for each second of all cores together, which show those; less the share of the load
//!   generator and Postgres, because the bare work has the cores alone.

use std::{
    cell::Cell,
    net::SocketAddr,
    thread::available_parallelism,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use portolan_keys::{PasswordCost, PasswordHasher, Secret, password::Verification};
use portolan_tests::person::Person;

use crate::{
    Arguments,
    figure::{Bar, Figure, Spread, Table, each, number},
    issuer::Issuer,
    load::{Connection, Load, permille},
    process::{cpu_seconds, cpu_seconds_of_children},
    scene::Alone,
};

/// Logins that are under way, for each core: while one is compared, the next one waits.
const UNDER_WAY: usize = 2;
/// Logins that come at the same moment, for each core.
const AT_ONCE: usize = 3;
/// Logins that may wait for their turn, for a while; the next one would be refused (AUTH-L2).
const QUEUE: usize = 32;
/// Logins of a round, on each connection. A round takes seconds: a quarter of a comparison more or less at its end should not matter.
const LOGINS: usize = 6;
/// So long a round need not be repeated as often as one of calls.
const MOST_ROUNDS: usize = 7;
/// Kept connections of the calls beside the logins.
const CALLERS: usize = 32;

/// Signing in, alone and beside calls.
pub(crate) async fn measure(
    arguments: &Arguments,
    api: SocketAddr,
    table: &mut Table,
) -> Result<()> {
    let alone = Alone::new(api).await?;
    let issuer = Issuer::new(alone.url())?;
    let cores = available_parallelism()?.get();
    // Each has an account of its own, so that no limit of an account is met (AUTH-L6); right
    // passwords do not count, and development does not limit requests from this machine.
    let people = alone.people((AT_ONCE * cores).min(cores + QUEUE)).await?;
    let mut doors = Vec::with_capacity(people.len());
    for person in &people {
        doors.push(Door::of(person, &issuer).await?);
    }
    let hashes = Hashes::new(cores).await?;
    hashes.check(&alone).await?;
    let rounds = arguments.rounds.min(MOST_ROUNDS);
    let under_way = (UNDER_WAY * cores).min(doors.len());

    let process = alone.process_id();
    costs(rounds, &hashes, &mut doors[..under_way], process, table).await?;
    at_a_time(rounds, cores, &mut doors, table).await?;
    beside_calls(arguments, rounds, &alone, &mut doors[..under_way], table).await
}

/// A sign-in form in a browser, filled in, to be sent again and again.
struct Door {
    address: SocketAddr,
    connection: Connection,
    request: Vec<u8>,
}

impl Door {
    /// Opens the page in a browser that knows nothing of the person.
    async fn of(person: &Person, issuer: &Issuer) -> Result<Self> {
        let browser = &person.browser;
        browser.forget();
        let page = browser.open("/login").await?;
        let form = page
            .form_with("password")?
            .fill("email", &person.email)
            .fill("password", &person.password);
        let mark = browser
            .cookie("bid")
            .context("the page did not mark the browser")?;
        let headers = format!("origin: {}\r\ncookie: bid={mark}\r\n", issuer.origin);
        Ok(Self {
            address: issuer.address,
            connection: Connection::open(issuer.address).await?,
            request: issuer.form(form.action.path(), &headers, &form.fields),
        })
    }

    /// Sends it. The person must be signed in then.
    async fn sign_in(&mut self) -> Result<()> {
        let answer = self.connection.call(&self.request).await?;
        let status = answer.head.lines().next().unwrap_or_default();
        ensure!(
            status.starts_with("HTTP/1.1 303") && answer.head.contains("sid=sid_"),
            "a sign-in with the right password was answered with {status}"
        );
        Ok(())
    }
}

/// Before each round: what was measured before it takes seconds, and a server closes a connection that was silent for so long, sooner if nothing
/// was ever asked on it.
async fn connect_again(doors: &mut [Door]) -> Result<()> {
    for door in doors {
        door.connection = Connection::open(door.address).await?;
    }
    Ok(())
}

/// Each person signs in so often, one after the other. Returns the number of logins.
async fn sign_in(doors: &mut [Door]) -> Result<usize> {
    let all = doors.iter_mut().map(|door| async move {
        for _ in 0..LOGINS {
            door.sign_in().await?;
        }
        anyhow::Ok(LOGINS)
    });
    Ok(try_join_all(all).await?.into_iter().sum())
}

/// Seconds for each password.
struct Cost {
    /// Of processor time, as charged to the process that compares.
    spent: f64,
    /// Of all cores together, as far as others left them.
    room: f64,
}

impl Cost {
    /// Of logins.
    async fn of_logins(doors: &mut [Door], process: u32, cores: usize) -> Result<Self> {
        connect_again(doors).await?;
        let own = std::process::id();
        // The whole process is measured: a hash has a thread of its own, which is gone with it.
        let (node, generator) = (cpu_seconds(process)?, cpu_seconds(own)?);
        let database = cpu_seconds_of_children(process)?;
        let begun = Instant::now();
        let count = sign_in(doors).await?;
        let room = begun.elapsed().as_secs_f64() * number(cores);
        let spent = cpu_seconds(process)? - node;
        let generator = cpu_seconds(own)? - generator;
        let database = cpu_seconds_of_children(process)? - database;
        Ok(Self {
            spent: each(spent, count),
            room: each(room - generator - database, count),
        })
    }
}

/// The bare comparisons.
struct Hashes {
    hasher: PasswordHasher,
    cores: usize,
    password: Secret<String>,
    stored: String,
}

impl Hashes {
    async fn new(cores: usize) -> Result<Self> {
        // As the product is started: release builds refuse the other one.
        let cost = if cfg!(debug_assertions) {
            PasswordCost::Test
        } else {
            PasswordCost::Standard
        };
        let hasher = PasswordHasher::new(cost, cores)?;
        let password = Secret::new("seven lanterns over nobody's harbour".to_owned());
        let stored = hasher.hash(&password).await?;
        Ok(Self {
            hasher,
            cores,
            password,
            stored,
        })
    }

    /// Fails unless people's passwords are kept with the same parameters.
    async fn check(&self, alone: &Alone) -> Result<()> {
        let question = "select distinct split_part(phc, '$', 2), split_part(phc, '$', 3), split_part(phc, '$', 4) from user_passwords";
        let kept = alone.sql().await?.ask(question).await?;
        let ours: Vec<&str> = self.stored.split('$').skip(1).take(3).collect();
        ensure!(
            kept == [ours.as_slice()],
            "people's passwords are kept as {kept:?}, the bare ones as {ours:?}"
        );
        Ok(())
    }

    /// About as many comparisons as there are logins in a round, as many at a time as there are cores.
    async fn cost(&self, logins: usize) -> Result<Cost> {
        let own = std::process::id();
        let share = logins.div_ceil(self.cores);
        let before = cpu_seconds(own)?;
        let begun = Instant::now();
        let all = (0..self.cores).map(|_| async move {
            for _ in 0..share {
                let outcome = self
                    .hasher
                    .verify(&self.password, Some(&self.stored))
                    .await?;
                ensure!(
                    outcome == Verification::Match { rehash: false },
                    "a password does not match its own hash"
                );
            }
            anyhow::Ok(share)
        });
        let count: usize = try_join_all(all).await?.into_iter().sum();
        let room = begun.elapsed().as_secs_f64() * number(self.cores);
        Ok(Cost {
            spent: each(cpu_seconds(own)? - before, count),
            room: each(room, count),
        })
    }
}

async fn costs(
    rounds: usize,
    hashes: &Hashes,
    doors: &mut [Door],
    process: u32,
    table: &mut Table,
) -> Result<()> {
    let (cores, logins) = (hashes.cores, doors.len() * LOGINS);
    connect_again(doors).await?;
    sign_in(doors).await?;
    let (mut by_charge, mut by_room) = (Vec::new(), Vec::new());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Turn about, so that neither always comes first on a machine that becomes faster or slower.
        let (login, bare) = if round % 2 == 0 {
            let login = Cost::of_logins(doors, process, cores).await?;
            (login, hashes.cost(logins).await?)
        } else {
            let bare = hashes.cost(logins).await?;
            (Cost::of_logins(doors, process, cores).await?, bare)
        };
        by_charge.push(bare.spent / login.spent);
        by_room.push(bare.room / login.room);
        ours.push(login.spent);
        theirs.push(bare.spent);
    }
    let (by_charge, by_room) = (Spread::of(&mut by_charge), Spread::of(&mut by_room));
    table.add(Figure {
        what: "a login by password : argon2id with the same parameters".to_owned(),
        seen: by_charge.median.min(by_room.median),
        unit: "",
        bar: Bar::AtLeast(0.9),
        note: format!(
            "the lower of logins per CPU-second {:.2} ({}) and per second of the cores that others left {:.2} ({}); {:.0} ms of the node, bare {:.0} ms",
            by_charge.median,
            by_charge.text(),
            by_room.median,
            by_room.text(),
            1e3 * Spread::of(&mut ours).median,
            1e3 * Spread::of(&mut theirs).median
        ),
    });
    Ok(())
}

/// How many comparisons run at a time when more logins come at once than there are cores.
///
/// `n` logins arrive together. The last one ends with all of the work, and the first one with its
/// own: if `k` at a time share the cores evenly, that is after `k / n` of the time. So `k` follows
/// from the two, however fast the machine is. Work beside hashing makes it seem a little more.
async fn at_a_time(
    rounds: usize,
    cores: usize,
    doors: &mut [Door],
    table: &mut Table,
) -> Result<()> {
    let mut seen = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        connect_again(doors).await?;
        let begun = Instant::now();
        let all = doors.iter_mut().map(|door| async move {
            door.sign_in().await?;
            anyhow::Ok(begun.elapsed())
        });
        let mut waits: Vec<Duration> = try_join_all(all).await?;
        let (first, last) = (permille(&mut waits, 0)?, permille(&mut waits, 1000)?);
        seen.push(number(doors.len()) * first.as_secs_f64() / last.as_secs_f64());
    }
    let spread = Spread::of(&mut seen);
    table.add(Figure {
        what: format!("passwords compared at a time, of {} at once", doors.len()),
        seen: spread.median,
        unit: "",
        bar: Bar::AtMost(number(cores) + 0.5),
        note: format!(
            "{}; {cores} cores; from when the first and the last of them are answered",
            spread.text()
        ),
    });
    Ok(())
}

/// Tool calls while people sign in, by the clock: what a client sees on a machine whose cores are all asked for. The load generator and the API
/// take their part of the cores either way.
async fn beside_calls(
    arguments: &Arguments,
    rounds: usize,
    alone: &Alone,
    doors: &mut [Door],
    table: &mut Table,
) -> Result<()> {
    let access = &alone.access;
    let sessions = access.sessions(CALLERS).await?;
    let requests = sessions.iter().map(|session| access.call(session));
    let mut load = Load::new(access.address, requests.collect(), "NOBGO");
    load.run(arguments.calls).await?;
    let mut ratios = Vec::with_capacity(rounds);
    let (mut logins, mut seconds) = (0_usize, 0.0);
    for round in 0..rounds {
        let ((beside, signed_in), without) = if round % 2 == 0 {
            let beside = call_while_people_sign_in(&mut load, arguments.calls, doors).await?;
            (beside, call(&mut load, arguments.calls).await?)
        } else {
            let without = call(&mut load, arguments.calls).await?;
            let beside = call_while_people_sign_in(&mut load, arguments.calls, doors).await?;
            (beside, without)
        };
        ratios.push(without / beside);
        logins += signed_in;
        seconds += beside;
    }
    let spread = Spread::of(&mut ratios);
    table.add(Figure {
        what: "tools/call while people sign in : while nobody does".to_owned(),
        seen: spread.median,
        unit: "",
        bar: Bar::AtLeast(0.5),
        note: format!(
            "calls per second; {}; {:.1} logins a second beside them",
            spread.text(),
            number(logins) / seconds
        ),
    });
    Ok(())
}

/// Seconds that so many calls take.
async fn call(load: &mut Load, calls: usize) -> Result<f64> {
    let begun = Instant::now();
    load.run(calls).await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The same while all people sign in again and again, and how many logins were through by then.
async fn call_while_people_sign_in(
    load: &mut Load,
    calls: usize,
    doors: &mut [Door],
) -> Result<(f64, usize)> {
    connect_again(doors).await?;
    let is_over = &Cell::new(false);
    let calling = async {
        let took = call(load, calls).await?;
        is_over.set(true);
        anyhow::Ok(took)
    };
    let signing_in = try_join_all(doors.iter_mut().map(|door| async move {
        let mut signed_in = 0_usize;
        while !is_over.get() {
            door.sign_in().await?;
            signed_in += usize::from(!is_over.get());
        }
        anyhow::Ok(signed_in)
    }));
    let (took, signed_in) = tokio::try_join!(calling, signing_in)?;
    Ok((took, signed_in.into_iter().sum()))
}
