//! People's passwords: argon2id behind a bounded queue, and the rules for new ones
//! (AUTH-L1 to AUTH-L3, AUTH-L5).

mod frequent;
mod predictable;

use std::{sync::Arc, thread, time::Duration};

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use serde::Deserialize;
use tokio::sync::{Semaphore, TryAcquireError, oneshot};
use unicode_normalization::UnicodeNormalization;

use crate::{KeysError, Secret, random};

/// Fewest code points of a new password.
pub const MIN_CODE_POINTS: usize = 12;
/// Most code points of a password.
pub const MAX_CODE_POINTS: usize = 128;
/// Requests that may wait for a permit; the next one is refused and may retry.
const QUEUE: usize = 32;
/// Longest wait for a permit.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// How far the work stands behind everything else that asks for a core, in steps of `nice(2)`: a
/// tenth of the weight. Alone it has whole cores; beside calls it takes what they leave, and a
/// little more than nothing.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 10;

/// The cost of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PasswordCost {
    /// 64 MiB, two passes, parallelism 1 (AUTH-L1).
    #[default]
    Standard,
    /// 1 MiB: for test suites. Refused by release builds.
    Test,
}

impl PasswordCost {
    fn params(self) -> Result<Params, KeysError> {
        let (m_kib, passes) = match self {
            Self::Standard => (65_536, 2),
            Self::Test if cfg!(debug_assertions) => (1024, 1),
            Self::Test => return Err(KeysError::PasswordCost),
        };
        Params::new(m_kib, passes, 1, Some(32)).map_err(|_| KeysError::PasswordCost)
    }
}

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// The password is right.
    Match {
        /// The stored hash has other parameters than today's: hash again and store (AUTH-L1).
        rehash: bool,
    },
    /// It is wrong, or there is nothing to compare with.
    NoMatch,
}

/// The password could not be hashed or compared.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// Too many at once: 503 with `Retry-After`.
    #[error("too many passwords are being checked")]
    Busy,
    /// Our fault.
    #[error("password hashing failed")]
    Failed(#[from] KeysError),
    /// The work ended without an outcome.
    #[error("password worker is gone")]
    Gone(#[from] oneshot::error::RecvError),
}

/// Hashes and compares passwords. At most as many at once as there are cores, each with its 64 MiB:
/// memory is bounded by permits × cost, and a flood of logins waits or is refused instead of
/// starving everything else (AUTH-L2, CASE-146). Each has a thread of its own, which gives way to
/// those of calls.
#[derive(Debug, Clone)]
pub struct PasswordHasher {
    params: Params,
    /// Work and queue together.
    places: Arc<Semaphore>,
    /// Work alone.
    permits: Arc<Semaphore>,
    /// A hash of no real password, with the current parameters (AUTH-L5).
    decoy: Arc<str>,
}

impl PasswordHasher {
    /// Makes the decoy, which takes as long as one hash. `cores` bounds concurrent work.
    pub fn new(cost: PasswordCost, cores: usize) -> Result<Self, KeysError> {
        let params = cost.params()?;
        let decoy = hash_blocking(&params, &random::bytes::<32>()?)?;
        let cores = cores.max(1);
        Ok(Self {
            params,
            places: Arc::new(Semaphore::new(cores + QUEUE)),
            permits: Arc::new(Semaphore::new(cores)),
            decoy: decoy.into(),
        })
    }

    /// The PHC string to store.
    pub async fn hash(&self, password: &Secret<String>) -> Result<String, PasswordError> {
        let normal = normalise(password);
        let params = self.params.clone();
        self.run(move || hash_blocking(&params, normal.expose().as_bytes()))
            .await?
            .map_err(PasswordError::Failed)
    }

    /// Compares with a stored PHC string. `None` (no such user, no password) costs the same and
    /// never matches (AUTH-L5).
    pub async fn verify(
        &self,
        password: &Secret<String>,
        stored: Option<&str>,
    ) -> Result<Verification, PasswordError> {
        let too_long =
            password.expose().chars().take(MAX_CODE_POINTS + 1).count() > MAX_CODE_POINTS;
        let normal = if too_long {
            Secret::new(String::new())
        } else {
            normalise(password)
        };
        let known = stored.is_some() && !too_long;
        let phc = stored.filter(|_| known).unwrap_or(&self.decoy).to_owned();
        let params = self.params.clone();
        let outcome = self
            .run(move || verify_blocking(&params, normal.expose().as_bytes(), &phc))
            .await??;
        Ok(if known {
            outcome
        } else {
            Verification::NoMatch
        })
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {
                return Err(PasswordError::Busy);
            }
        };
        let turn = Arc::clone(&self.permits).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(MAX_WAIT, turn).await else {
            return Err(PasswordError::Busy);
        };
        let (result, done) = oneshot::channel();
        // Start a thread per hash: a lowered thread priority cannot be raised again, so the thread
        // ends with its work. Its cost is small beside a hash. The permit moves into the thread: a
        // caller that goes away must not admit more hashes than the cores can run.
        let started = thread::Builder::new()
            .name("password".to_owned())
            .spawn(move || {
                give_way();
                let outcome = work();
                drop((place, permit));
                // The caller may have gone.
                let _ = result.send(outcome);
            });
        if started.is_err() {
            return Err(PasswordError::Busy);
        }
        Ok(done.await?)
    }
}

/// Lets the other threads of the machine go first. Elsewhere `nice` is about the whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    // Where it is not allowed, the work runs beside them as an equal.
    let _ = rustix::process::nice(BEHIND);
}

fn normalise(password: &Secret<String>) -> Secret<String> {
    Secret::new(password.expose().nfkc().collect())
}

fn hash_blocking(params: &Params, password: &[u8]) -> Result<String, KeysError> {
    let salt = random::bytes::<16>()?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
    let phc = argon2
        .hash_password_with_salt(password, &salt)
        .map_err(KeysError::PasswordHash)?;
    Ok(phc.to_string())
}

fn verify_blocking(params: &Params, password: &[u8], phc: &str) -> Result<Verification, KeysError> {
    let stored = PasswordHash::new(phc).map_err(|error| KeysError::PasswordHash(error.into()))?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
    match argon2.verify_password(password, &stored) {
        Ok(()) => {
            let used = Params::try_from(&stored).map_err(KeysError::PasswordHash)?;
            let rehash = stored.algorithm.as_str() != "argon2id"
                || stored.version != Some(Version::V0x13.into())
                || (used.m_cost(), used.t_cost(), used.p_cost())
                    != (params.m_cost(), params.t_cost(), params.p_cost());
            Ok(Verification::Match { rehash })
        }
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(Verification::NoMatch),
        Err(error) => Err(KeysError::PasswordHash(error)),
    }
}

/// The reason why a new password is refused. The message explains how to correct it (AUTH-L3).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasswordRule {
    /// Fewer than 12 characters.
    #[error("use at least {MIN_CODE_POINTS} characters")]
    TooShort,
    /// More than 128 characters.
    #[error("use at most {MAX_CODE_POINTS} characters")]
    TooLong,
    /// Easy to guess.
    #[error(
        "this password is easy to guess: use a few unrelated words, or let a password manager choose"
    )]
    TooWeak,
    /// A common password, also with years, seasons, neighbouring keys, or digits and signs at its
    /// end (REVIEW-S-16).
    #[error(
        "this is one of the passwords that are tried first, also with a year, a season, digits or signs added: use a few unrelated words, or let a password manager choose"
    )]
    Common,
    /// In a list of stolen passwords (AUTH-L4).
    #[error("this password is in lists of stolen passwords: choose one that you use nowhere else")]
    Breached,
}

/// What lists of stolen passwords name a password by: SHA-1 of its bytes, in the form in which
/// passwords are compared here. For nothing else.
pub fn breach_digest(password: &Secret<String>) -> [u8; 20] {
    listed_digest(normalise(password).expose().as_bytes())
}

/// The same of a line of such a list, whatever encoding that has.
pub fn listed_digest(line: &[u8]) -> [u8; 20] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, line);
    let mut out = [0; 20];
    out.copy_from_slice(digest.as_ref());
    out
}

/// Checks a new password: 12–128 code points after NFKC, nothing trimmed, no composition rule,
/// zxcvbn at least 3 of 4 with `inputs` (address, name, workspace) known to the guesser, none of
/// the commonest (ADR 34), and something behind what is predictable that takes a million guesses
/// (REVIEW-S-16).
pub fn check_new(password: &Secret<String>, inputs: &[&str]) -> Result<(), PasswordRule> {
    let normal = normalise(password);
    let count = normal.expose().chars().take(MAX_CODE_POINTS + 1).count();
    if count < MIN_CODE_POINTS {
        return Err(PasswordRule::TooShort);
    }
    if count > MAX_CODE_POINTS {
        return Err(PasswordRule::TooLong);
    }
    // Parts of an address are guessed too: `ann.smith@acme.example` gives `ann`, `smith`, `acme`.
    let mut known: Vec<&str> = vec!["portolan"];
    for input in inputs {
        known.push(input);
        known.extend(
            input
                .split(|c: char| !c.is_alphanumeric())
                .filter(|part| part.len() > 2),
        );
    }
    if zxcvbn::zxcvbn(normal.expose(), &known).score() < zxcvbn::Score::Three {
        return Err(PasswordRule::TooWeak);
    }
    let lower = Secret::new(normal.expose().to_lowercase());
    let core = Secret::new(predictable::core(lower.expose()));
    let is_known = |text: &str| frequent::is_common(text) || predictable::is_example(text);
    if is_known(lower.expose())
        || is_known(core.expose())
        || zxcvbn::zxcvbn(core.expose(), &known).score() < zxcvbn::Score::Two
    {
        return Err(PasswordRule::Common);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret<String> {
        Secret::new(text.to_owned())
    }

    #[tokio::test]
    async fn l1_a_password_verifies_and_old_parameters_ask_for_a_rehash() {
        let hasher = PasswordHasher::new(PasswordCost::Test, 2).unwrap();
        let phc = hasher.hash(&secret("correct horse battery")).await.unwrap();
        assert!(phc.starts_with("$argon2id$v=19$m=1024,t=1,p=1$"), "{phc}");
        let verify = async |password: &str, stored: Option<&str>| {
            hasher.verify(&secret(password), stored).await.unwrap()
        };
        assert_eq!(
            verify("correct horse battery", Some(&phc)).await,
            Verification::Match { rehash: false }
        );
        assert_eq!(
            verify("correct horse batterz", Some(&phc)).await,
            Verification::NoMatch
        );
        assert_eq!(
            verify("correct horse battery", None).await,
            Verification::NoMatch,
            "AUTH-L5"
        );

        let older = Params::new(512, 1, 1, Some(32)).unwrap();
        let old_phc = hash_blocking(&older, b"correct horse battery").unwrap();
        assert_eq!(
            verify("correct horse battery", Some(&old_phc)).await,
            Verification::Match { rehash: true }
        );
    }

    #[tokio::test]
    async fn l3_a_password_is_compared_in_nfkc_and_long_ones_do_not_collide() {
        let hasher = PasswordHasher::new(PasswordCost::Test, 1).unwrap();
        let phc = hasher.hash(&secret("Å passphrase of mine")).await.unwrap();
        let decomposed = secret("A\u{30a} passphrase of mine");
        assert_eq!(
            hasher.verify(&decomposed, Some(&phc)).await.unwrap(),
            Verification::Match { rehash: false }
        );

        // CASE-147: bcrypt would call these two equal.
        let prefix = "x".repeat(100);
        let phc = hasher.hash(&secret(&format!("{prefix}a"))).await.unwrap();
        assert_eq!(
            hasher
                .verify(&secret(&format!("{prefix}b")), Some(&phc))
                .await
                .unwrap(),
            Verification::NoMatch
        );
        let empty = hasher.hash(&secret("")).await.unwrap();
        assert_eq!(
            hasher
                .verify(&secret(&"x".repeat(129)), Some(&empty))
                .await
                .unwrap(),
            Verification::NoMatch
        );
    }

    #[tokio::test]
    async fn l2_a_full_queue_refuses_instead_of_growing() {
        // CASE-146
        let hasher = PasswordHasher::new(PasswordCost::Test, 1).unwrap();
        let places = Arc::clone(&hasher.places)
            .acquire_many_owned(33)
            .await
            .unwrap();
        assert!(matches!(
            hasher.hash(&secret("x")).await,
            Err(PasswordError::Busy)
        ));
        drop(places);
        assert!(hasher.hash(&secret("x")).await.is_ok());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn l2_the_work_gives_way_to_everything_else_and_nothing_else_does() {
        use rustix::process::getpriority_process;
        let hasher = PasswordHasher::new(PasswordCost::Test, 1).unwrap();
        let before = getpriority_process(None).unwrap();
        let of_work = hasher.run(|| getpriority_process(None).unwrap()).await;
        assert_eq!(of_work.unwrap(), (before + BEHIND).min(19));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }

    #[tokio::test]
    async fn work_that_panics_is_gone_and_its_place_is_free() {
        let hasher = PasswordHasher::new(PasswordCost::Test, 1).unwrap();
        let panics = hasher.run(|| assert!(std::hint::black_box(false))).await;
        assert!(matches!(panics, Err(PasswordError::Gone(_))));
        assert!(hasher.hash(&secret("x")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn l2_a_wait_ends_after_two_seconds() {
        let hasher = PasswordHasher::new(PasswordCost::Test, 1).unwrap();
        let _busy = Arc::clone(&hasher.permits).acquire_owned().await.unwrap();
        assert!(matches!(
            hasher.hash(&secret("x")).await,
            Err(PasswordError::Busy)
        ));
    }

    #[test]
    fn l3_new_passwords_are_long_and_hard_to_guess() {
        assert_eq!(
            check_new(&secret("short"), &[]),
            Err(PasswordRule::TooShort)
        );
        assert_eq!(
            check_new(&secret(&"ab1!".repeat(33)), &[]),
            Err(PasswordRule::TooLong)
        );
        for weak in [
            "Password12345!",
            "aaaaaaaaaaaaaaaa",
            "qwertyuiop1234567890",
            "ann.smith@acme.example",
        ] {
            assert_eq!(
                check_new(&secret(weak), &["ann.smith@acme.example"]),
                Err(PasswordRule::TooWeak),
                "{weak}"
            );
        }
        for common in [
            "Summer2026!!!",
            "welcome2024!!",
            "correcthorsebatterystaple",
            "Correct Horse Battery Staple!",
            "Winter-2025-Winter",
            "zaq12wsxcde34rfv",
            "Yesterday909!!",
        ] {
            let refused = check_new(&secret(common), &["ann.smith@acme.example"]);
            let too_easy = [Err(PasswordRule::Common), Err(PasswordRule::TooWeak)];
            assert!(
                too_easy.contains(&refused),
                "REVIEW-S-16: {common} {refused:?}"
            );
        }
        for good in [
            "anchovy tram lantern sixty",
            "violet gravel teapot nineteen",
            "winter gravel teapot nineteen",
            "xK9mQ2vL7pTz",
            "xK9mQ2vL7p2024!!!",
        ] {
            assert_eq!(
                check_new(&secret(good), &["ann@acme.example"]),
                Ok(()),
                "{good}"
            );
        }
        assert_eq!(
            check_new(&secret("  двенадцать слонов едут  "), &[]),
            Ok(()),
            "nothing is trimmed, any script goes"
        );
    }
}
