//! A family of refresh tokens against a model (AUTH-K8 to AUTH-K11, AUTH-K13; AUTH-6.3, last
//! paragraph).
//!
//! Several processes of one client refresh with any token they have, after any pause, at the same
//! instant on two nodes, and lose answers. The model follows those rules and shares no code with
//! the service. For concurrent refreshes there must be an order in which the rules give the same
//! answers.

use http::StatusCode;
use portolan_model::Timestamp;
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use time::Duration;

use crate::{harness::Scene, races, refresh::live_branches};

/// Processes of the client. All begin with the first token.
const HOLDERS: usize = 4;
/// Seconds between two moments. Most are short, or near the ends of the windows.
const PAUSES: [i64; 16] = [
    0,
    0,
    1,
    1,
    30,
    60,
    119,
    120,
    121,
    600,
    6 * 3600,
    24 * 3600,
    24 * 3600 + 1,
    5 * 86_400,
    29 * 86_400,
    31 * 86_400,
];

/// The processes that refresh at one moment, and whether each answer is lost.
type Comers = Vec<(usize, bool)>;

fn walk() -> impl Strategy<Value = Vec<(i64, Comers)>> {
    let comers = prop::collection::vec((0..HOLDERS, prop::bool::weighted(0.25)), 1..=3);
    prop::collection::vec((prop::sample::select(PAUSES.to_vec()), comers), 1..=10)
}

/// The model's state of a family.
#[derive(Debug, Clone)]
struct Family {
    /// Each token, the first one first, and the time when another replaced it.
    tokens: Vec<(String, Option<Timestamp>)>,
    idle_until: Timestamp,
    until: Timestamp,
    is_dead: bool,
}

impl Family {
    fn new(first: String, now: Timestamp) -> Self {
        Self {
            tokens: vec![(first, None)],
            idle_until: now + Duration::days(30),
            until: now + Duration::days(90),
            is_dead: false,
        }
    }

    /// AUTH-K13.
    fn lives(&self, now: Timestamp) -> bool {
        !self.is_dead && now < self.idle_until && now < self.until
    }

    /// Returns true if the rules give this answer to a process with this token.
    fn is_right(&mut self, at: usize, answer: Option<&str>, now: Timestamp) -> bool {
        let head = self.tokens.len() - 1;
        if !self.lives(now) {
            return answer.is_none();
        }
        let Some(superseded_at) = self.tokens[at].1 else {
            // AUTH-K8: a new successor.
            let Some(answer) = answer else { return false };
            let is_new = self.tokens.iter().all(|(known, _)| known != answer);
            self.tokens[at].1 = Some(now);
            self.tokens.push((answer.to_owned(), None));
            self.idle_until = now + Duration::days(30);
            return is_new;
        };
        let age = now - superseded_at;
        // AUTH-K9, AUTH-K10.
        let is_in_window = age <= Duration::seconds(120);
        let is_lost_answer = at + 1 == head && age <= Duration::hours(24);
        if is_in_window || is_lost_answer {
            return answer == Some(self.tokens[head].0.as_str());
        }
        // AUTH-K11.
        self.is_dead = true;
        answer.is_none()
    }

    /// Returns true if some order of these refreshes gives these answers. The model then continues
    /// with that order.
    fn explains(&mut self, came: &[(usize, Option<String>)], now: Timestamp) -> bool {
        for order in orders(came.len()) {
            let mut then = self.clone();
            let is_right = order.into_iter().all(|at| {
                let (token, answer) = &came[at];
                then.is_right(*token, answer.as_deref(), now)
            });
            if is_right {
                *self = then;
                return true;
            }
        }
        false
    }

    fn place_of(&self, token: &str) -> usize {
        self.tokens
            .iter()
            .position(|(known, _)| known == token)
            .unwrap()
    }
}

/// Every order of this number of items.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for next in 0..count {
        let mut longer = Vec::new();
        for order in all {
            for at in 0..=order.len() {
                let mut with: Vec<usize> = order.clone();
                with.insert(at, next);
                longer.push(with);
            }
        }
        all = longer;
    }
    all
}

#[tokio::test]
async fn k8_to_k11_a_family_does_what_the_model_does_in_whatever_order_its_holders_come() {
    let mut scene = Scene::new().await;
    let second = scene.second_node().await;
    let client = scene.client.clone();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[8; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut rotated, mut killed) = (0, 0);
    for round in races::rounds(
        "k8_to_k11_a_family_does_what_the_model_does_in_whatever_order_its_holders_come",
    ) {
        let walk = walk().new_tree(&mut runner).unwrap().current();
        let user = scene.ann.user;
        scene.ann.sign_in(user).await;
        let tokens = scene.ann.tokens(&client).await;
        let first = tokens["refresh_token"].as_str().unwrap().to_owned();
        let mut family = Family::new(first, scene.node.clock.now());
        let mut holds = [0; HOLDERS];
        for (pause, comers) in walk {
            scene.node.clock.advance(Duration::seconds(pause));
            if pause > 3600 {
                for node in [&scene.node, &second] {
                    portolan_oauth::jwks::rotate(&node.state).await.unwrap();
                }
            }
            let now = scene.node.clock.now();
            let came = comers.iter().enumerate().map(|(place, (who, _))| {
                let node = if place % 2 == 0 { &scene.node } else { &second };
                let at = holds[*who];
                let (token, client) = (family.tokens[at].0.clone(), &client);
                async move { (at, node.refresh(client, &token).await) }
            });
            let came: Vec<(usize, Option<String>)> = futures_util::future::join_all(came)
                .await
                .into_iter()
                .map(|(at, reply)| {
                    if reply.status == StatusCode::OK {
                        let token = reply.json()["refresh_token"].as_str().map(str::to_owned);
                        assert!(token.is_some(), "{}", reply.text);
                        return (at, token);
                    }
                    assert_eq!(reply.refusal(), (400, "invalid_grant".to_owned()));
                    (at, None)
                })
                .collect();
            let before = family.clone();
            assert!(
                family.explains(&came, now),
                "round {round}: {came:?} at {now} of {before:?}"
            );
            for ((who, is_lost), (_, answer)) in comers.iter().zip(&came) {
                if let (Some(token), false) = (answer, is_lost) {
                    holds[*who] = family.place_of(token);
                }
            }
            let live = live_branches(&scene, &family.tokens[0].0).await;
            assert_eq!(live, 1, "round {round}");
        }
        // A process with the head of a living family can continue.
        let (head, _) = family.tokens.last().unwrap();
        let reply = scene.node.refresh(&client, head).await;
        let is_answered = reply.status == StatusCode::OK;
        assert_eq!(
            is_answered,
            family.lives(scene.node.clock.now()),
            "round {round}"
        );
        rotated += family.tokens.len() - 1;
        killed += usize::from(family.is_dead);
    }
    assert!(rotated > 0 && killed > 0, "{rotated} {killed}");
}
