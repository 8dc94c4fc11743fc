//! Properties: what must hold for every input and every order of events (AUTH-6.3, last paragraph).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use portolan_model::{
    Timestamp, redirect,
    resource::{RequestedResource, Site},
    token_family::{
        ABSOLUTE_LIFE, IDLE_LIFE, LOST_ANSWER_WINDOW, Presented, PresentedFrom, REPLAY_WINDOW,
        Verdict,
    },
};
use proptest::prelude::*;
use time::Duration;
use url::Url;

/// A family as the database keeps it: what the token endpoint does under the lock, with numbers for
/// tokens.
#[derive(Debug)]
struct Family {
    /// Per generation: when superseded, whether presented, replays.
    tokens: Vec<(Option<Timestamp>, bool, i32)>,
    idle_expires_at: Timestamp,
    expires_at: Timestamp,
    revoked: bool,
}

impl Family {
    fn new(now: Timestamp) -> Self {
        Self {
            tokens: vec![(None, false, 0)],
            idle_expires_at: now + IDLE_LIFE,
            expires_at: now + ABSOLUTE_LIFE,
            revoked: false,
        }
    }

    fn head(&self) -> usize {
        self.tokens.len() - 1
    }

    /// Presents a token; gives the one that the holder leaves with.
    fn present(
        &mut self,
        at: usize,
        now: Timestamp,
        same_network: bool,
    ) -> (Verdict, Option<usize>) {
        let (superseded_at, _, replays) = self.tokens[at];
        let presented = Presented {
            generation: i32::try_from(at).unwrap(),
            head_generation: i32::try_from(self.head()).unwrap(),
            superseded_at,
            head_presented: self.tokens[self.head()].1,
            replays,
            idle_expires_at: self.idle_expires_at,
            expires_at: self.expires_at,
            revoked: self.revoked,
        };
        let from = if same_network {
            PresentedFrom::SameNetwork
        } else {
            PresentedFrom::AnotherOrUnknown
        };
        let verdict = presented.verdict(now, from);
        match verdict {
            Verdict::Rotate => {
                self.tokens[at] = (Some(now), true, replays);
                self.tokens.push((None, false, 0));
                self.idle_expires_at = now + IDLE_LIFE;
            }
            Verdict::ReplayInWindow | Verdict::ReplayLostAnswer => self.tokens[at].2 += 1,
            Verdict::Reuse => self.revoked = true,
            Verdict::Throttled | Verdict::Ended => return (verdict, None),
        }
        (verdict, (verdict != Verdict::Reuse).then(|| self.head()))
    }
}

proptest! {
    /// Several processes of one client, each with some token of the chain, refresh in any order
    /// with any pauses. In every run there is at most one live branch. A successful refresh returns
    /// the head. The holder of the head of a living family is never refused.
    #[test]
    fn a_family_has_one_live_branch_and_its_head_is_reachable(
        steps in prop::collection::vec((0_usize..4, 0_i64..200_000, prop::bool::ANY), 1..60),
    ) {
        let mut now = Timestamp::UNIX_EPOCH;
        let mut family = Family::new(now);
        let mut holders: BTreeMap<usize, usize> = (0..4).map(|process| (process, 0)).collect();
        for (process, pause, same_network) in steps {
            now += Duration::seconds(pause / 10);
            let at = holders[&process];
            let was_head = at == family.head();
            let age = family.tokens[at].0.map(|superseded_at| now - superseded_at);
            let lives = !family.revoked && now < family.idle_expires_at && now < family.expires_at;
            let (verdict, left_with) = family.present(at, now, same_network);

            let live = family.tokens.iter().filter(|(superseded_at, ..)| superseded_at.is_none()).count();
            prop_assert_eq!(live, 1, "at most one live branch");
            if let Some(token) = left_with {
                prop_assert_eq!(token, family.head(), "whoever is answered leaves with the head");
                holders.insert(process, token);
            }
            if was_head && lives {
                prop_assert_eq!(verdict, Verdict::Rotate, "the head's holder is never refused");
            }
            if let (true, Some(age)) = (lives, age) {
                if age <= REPLAY_WINDOW {
                    prop_assert!(matches!(verdict, Verdict::ReplayInWindow | Verdict::Throttled), "{verdict:?} at {age}");
                }
                if age > LOST_ANSWER_WINDOW || (age > REPLAY_WINDOW && !same_network) {
                    prop_assert_eq!(verdict, Verdict::Reuse, "a token from yesterday, or from elsewhere (S-10), is a leak");
                }
            }
            if !lives {
                prop_assert_eq!(verdict, Verdict::Ended);
            }
        }
    }

    /// What matches leads where the registration leads, as a browser reads both.
    #[test]
    fn a_match_has_the_scheme_host_and_path_of_the_registration(
        registered in uri(), requested in uri(),
    ) {
        if redirect::check(&registered).is_ok() && redirect::matches(&registered, &requested) {
            let (one, two) = (Url::parse(&registered.replace(":*", "")).unwrap(), Url::parse(&requested).unwrap());
            prop_assert_eq!(one.scheme(), two.scheme());
            prop_assert_eq!(one.host_str(), two.host_str());
            prop_assert_eq!(one.path(), two.path());
            prop_assert_eq!(one.query(), two.query());
            prop_assert!(two.username().is_empty() && two.password().is_none() && two.fragment().is_none());
        }
    }

    /// Reading never panics, and what is read is written in one way only.
    #[test]
    fn canonical_resources_are_a_fixed_point(text in "https?://[a-zA-Z.:0-9@]{0,20}(/[a-zA-Z0-9%./-]{0,12}){0,5}[?#/]?|.{0,60}") {
        let site = Site::new("https://mcp.example.com").unwrap();
        if let Ok(RequestedResource::Named(resource)) = site.read(&text) {
            let written = site.url(&resource);
            prop_assert_eq!(site.read(&written), Ok(RequestedResource::Named(resource.clone())));
            prop_assert_eq!(site.read_canonical(&written), Some(resource));
        }
    }
}

/// URIs near those that matter: same pieces, put together wrongly more often than not.
fn uri() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec!["http://", "https://", "http:", "cursor://", "HTTP://"]);
    let host = prop::sample::select(vec![
        "127.0.0.1",
        "localhost",
        "[::1]",
        "good.example",
        "GOOD.example",
        "localhost.evil.example",
        "127.0.0.1@evil.example",
        "0x7f.1",
        "",
    ]);
    let port = prop::sample::select(vec!["", ":1", ":8080", ":*", ":", ":80", ":65536"]);
    let path = prop::sample::select(vec![
        "", "/", "/cb", "/cb/", "/CB", "/%63b", "/a/../cb", "/cb\\x", "//cb",
    ]);
    let rest = prop::sample::select(vec!["", "?x=1", "?", "#f", "?x=1&y=2"]);
    (scheme, host, port, path, rest)
        .prop_map(|(scheme, host, port, path, rest)| format!("{scheme}{host}{port}{path}{rest}"))
}
