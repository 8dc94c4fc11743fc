//! Races: what must happen once is tried by many at the same instant, again and again (AUTH-6.3, AUTH-6.4). `make test` tries it in
//! fifty rounds, `make races` in a thousand: `PORTOLAN_TEST_RACE_ROUNDS` says how many.

/// Rounds in `make test`.
pub const IN_TEST: usize = 50;
/// As many of a crowd come in the rounds of `make test` that are not for all of them.
const FEW: usize = 4;

/// How many rounds there are.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a test runs is no setting of the product"
)]
fn count() -> usize {
    match std::env::var("PORTOLAN_TEST_RACE_ROUNDS") {
        Ok(text) => match text.parse() {
            Ok(rounds) if rounds > 0 => rounds,
            _ => panic!("PORTOLAN_TEST_RACE_ROUNDS: {text:?}"),
        },
        Err(_) => IN_TEST,
    }
}

/// The rounds of a race, from 0 on. Says which race it was when the last one is over: `make races` counts these lines.
pub fn rounds(race: &'static str) -> impl Iterator<Item = usize> {
    let count = count();
    let over = std::iter::from_fn(move || {
        eprintln!("race {race}: {count} rounds");
        None
    });
    (0..count).chain(over)
}

/// How many of `all` take part in a round. In `make test` every tenth round has all of them.
pub fn crowd(round: usize, all: usize) -> usize {
    if round.is_multiple_of(10) || count() > IN_TEST {
        all
    } else {
        all.min(FEW)
    }
}
