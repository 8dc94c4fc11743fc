//! Signing keys on command (AUTH-J2 to AUTH-J4): rotation without an effect on clients, and removal
//! in an emergency.

use portolan_keys::{
    Keys, MasterSecret, SigningKeys, VerifyError,
    ring::{ACTIVE_FOR, KeyTimes, NewKeyPair, RETIRING_FOR, SigningKey},
};
use portolan_oauth::jwks;
use portolan_storage::{
    Reason, SystemTx,
    oauth::{
        revocations,
        signing_keys::{self, StoredKey},
    },
};
use serde_json::Value;
use time::Duration;

use crate::harness::{Node, Scene};

/// The key that signed a token.
fn kid(token: &str) -> String {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let header = URL_SAFE_NO_PAD
        .decode(token.split('.').next().unwrap())
        .unwrap();
    serde_json::from_slice::<Value>(&header).unwrap()["kid"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn verify(node: &Node, token: &str) -> Result<(), VerifyError> {
    node.state
        .oauth
        .verifier
        .verify(token, node.clock.now())
        .map(drop)
}

async fn published(node: &Node) -> Vec<String> {
    let jwks = node.get("/oauth/jwks.json").await.json();
    jwks["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["kid"].as_str().unwrap().to_owned())
        .collect()
}

/// CASE-140: two rotations by command, with constant traffic at two nodes. Every token is valid at
/// both for its whole life, and every key was published a day before it signed.
#[tokio::test]
async fn j2_case_140_two_rotations_under_traffic_and_no_token_is_refused() {
    let mut scene = Scene::new().await;
    let second = scene.second_node().await;
    let client = scene.client.clone();
    let mut refresh = scene.ann.tokens(&client).await["refresh_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let (mut signed_by, mut live) = (Vec::new(), Vec::<(String, time::OffsetDateTime)>::new());
    let mut published_since = std::collections::BTreeMap::new();
    for hour in 0..80 {
        let now = scene.node.clock.now();
        if hour == 2 || hour == 40 {
            let mut tx = scene
                .node
                .store()
                .system(Reason::KeyRotation)
                .await
                .unwrap();
            let next = jwks::hand_over(&mut tx, &scene.node.state.keys, now)
                .await
                .unwrap();
            assert!(next.sign_from >= next.publish_at + Duration::hours(24));
            tx.commit().await.unwrap();
        }
        for node in [&scene.node, &second] {
            // Makes missing keys, as every node does each hour; the other one is notified.
            jwks::rotate(&node.state).await.unwrap();
        }
        jwks::reload(&scene.node.state).await.unwrap();
        for key in published(&scene.node).await {
            published_since.entry(key).or_insert(now);
        }
        let node = if hour % 2 == 0 { &scene.node } else { &second };
        let answer = node.refresh(&client, &refresh).await.json();
        refresh = answer["refresh_token"].as_str().unwrap().to_owned();
        let access = answer["access_token"].as_str().unwrap().to_owned();
        let key = kid(&access);
        if signed_by.last() != Some(&key) {
            if !signed_by.is_empty() {
                assert!(
                    now - published_since[&key] >= Duration::hours(23),
                    "hour {hour}"
                );
            }
            signed_by.push(key);
        }
        live.push((access, now + Duration::minutes(60)));
        live.retain(|(_, until)| *until > now);
        for (token, _) in &live {
            for node in [&scene.node, &second] {
                assert!(verify(node, token).is_ok(), "hour {hour}");
            }
        }
        scene.node.clock.advance(Duration::hours(1));
    }
    assert_eq!(signed_by.len(), 3, "two rotations: {signed_by:?}");
    let last = published(&scene.node).await;
    assert!(
        !last.contains(&signed_by[0]),
        "the first one is gone: {last:?}"
    );
}

/// CASE-141 within one process; over nodes in `tests/it/nodes/operators.rs`.
#[tokio::test]
async fn j3_a_removed_key_is_neither_published_nor_believed_and_the_standby_signs_at_once() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let tokens = scene.ann.tokens(&client).await;
    let access = tokens["access_token"].as_str().unwrap();
    let removed = kid(access);
    let now = scene.node.clock.now();
    let mut tx = scene
        .node
        .store()
        .system(Reason::KeyRotation)
        .await
        .unwrap();
    let signs = jwks::remove(&mut tx, &scene.node.state.keys, &removed, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    jwks::reload(&scene.node.state).await.unwrap();
    assert!(matches!(
        verify(&scene.node, access),
        Err(VerifyError::UnknownKey { .. })
    ));
    assert!(!published(&scene.node).await.contains(&removed));
    let mut tx = scene
        .node
        .store()
        .system(Reason::Revocations)
        .await
        .unwrap();
    let told = revocations::live(&mut tx, None, now).await.unwrap();
    assert_eq!(
        told.entries
            .iter()
            .map(|one| (one.kind, one.reference.as_str()))
            .collect::<Vec<_>>(),
        [(revocations::RevocationKind::Kid, removed.as_str())]
    );
    drop(tx);
    let renewed = scene
        .node
        .refresh(&client, tokens["refresh_token"].as_str().unwrap())
        .await
        .json();
    let access = renewed["access_token"].as_str().unwrap();
    assert_eq!(kid(access), signs);
    assert!(verify(&scene.node, access).is_ok());
    let mut tx = scene
        .node
        .store()
        .system(Reason::KeyRotation)
        .await
        .unwrap();
    let again = jwks::remove(&mut tx, &scene.node.state.keys, &removed, now).await;
    assert!(matches!(again, Err(jwks::RotationError::Unknown)));
}

async fn transaction(node: &Node) -> SystemTx {
    node.store().system(Reason::KeyRotation).await.unwrap()
}

#[tokio::test]
async fn j3_when_the_standby_is_removed_hours_before_it_takes_over_there_is_always_a_key_that_signs()
 {
    let scene = Scene::new().await;
    let node = &scene.node;
    node.clock.advance(ACTIVE_FOR - Duration::hours(5));
    let now = node.clock.now();
    let mut tx = transaction(node).await;
    let standby = signing_keys::list(&mut tx, now)
        .await
        .unwrap()
        .into_iter()
        .find(|key| key.sign_from > now)
        .unwrap()
        .kid;
    let signs = jwks::remove(&mut tx, &node.state.keys, &standby, now)
        .await
        .unwrap();
    assert_ne!(signs, standby);
    tx.commit().await.unwrap();
    for hour in 0..48 {
        // No node makes keys meanwhile.
        jwks::reload(&node.state).await.unwrap();
        let now = node.clock.now();
        assert!(node.state.signing_keys.can_sign(now), "hour {hour}");
        node.clock.advance(Duration::hours(1));
    }
}

#[tokio::test]
async fn j2_a_key_under_a_foreign_master_secret_stops_no_node_and_who_has_only_that_secret_changes_no_keys()
 {
    let scene = Scene::new().await;
    let node = &scene.node;
    let now = node.clock.now();
    let foreign = Keys::new(&MasterSecret::from_bytes([9; 32]), &[]).unwrap();
    let mut tx = transaction(node).await;
    let before = signing_keys::list(&mut tx, now).await.unwrap();
    let refused = jwks::hand_over(&mut tx, &foreign, now).await;
    assert!(matches!(refused, Err(jwks::RotationError::Foreign)));
    let refused = jwks::remove(&mut tx, &foreign, &before[0].kid, now).await;
    assert!(matches!(refused, Err(jwks::RotationError::Foreign)));
    drop(tx);

    let pair = NewKeyPair::generate().unwrap();
    let planted = StoredKey {
        kid: pair.public.kid().to_owned(),
        public_jwk: serde_json::to_value(&pair.public).unwrap(),
        private_sealed: pair.sealed_private(&foreign).unwrap(),
        ..before[0].clone()
    };
    let mut tx = transaction(node).await;
    signing_keys::insert(&mut tx, &planted, now).await.unwrap();
    tx.commit().await.unwrap();
    jwks::reload(&node.state).await.unwrap();
    jwks::rotate(&node.state).await.unwrap();
    assert!(node.state.signing_keys.can_sign(now));
    let published = published(node).await;
    assert_eq!(published.len(), before.len() + 1);
    assert!(published.contains(&planted.kid), "AUTH-J4");

    let mut tx = transaction(node).await;
    let refused = jwks::hand_over(&mut tx, &node.state.keys, now).await;
    assert!(matches!(refused, Err(jwks::RotationError::Foreign)));
    let signs = jwks::remove(&mut tx, &node.state.keys, &planted.kid, now)
        .await
        .unwrap();
    assert_eq!(signs, before[0].kid, "what cannot be opened can be removed");
}

/// AUTH-J4: published keys are the accepted ones, also where the private half does not open.
#[tokio::test]
async fn j4_a_key_that_does_not_open_here_is_published_as_long_as_its_tokens_are_good() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let tokens = scene.ann.tokens(&client).await;
    let node = &scene.node;
    let now = node.clock.now();
    let token = tokens["access_token"].as_str().unwrap();
    let claims = node.state.oauth.verifier.verify(token, now).unwrap();

    // A node with another master secret, which made a key and signs with it.
    let elsewhere = Keys::new(&MasterSecret::from_bytes([9; 32]), &[]).unwrap();
    let pair = NewKeyPair::generate().unwrap();
    let times = KeyTimes::signing_from(now, now);
    let sealed = pair.sealed_private(&elsewhere).unwrap();
    let row = StoredKey {
        kid: pair.public.kid().to_owned(),
        public_jwk: serde_json::to_value(&pair.public).unwrap(),
        private_sealed: sealed.clone(),
        publish_at: times.publish_at,
        sign_from: times.sign_from,
        sign_until: times.sign_until,
        gone_at: times.gone_at,
    };
    let mut tx = transaction(node).await;
    signing_keys::insert(&mut tx, &row, now).await.unwrap();
    tx.commit().await.unwrap();
    let ring = SigningKeys::default();
    let key = SigningKey::open(&elsewhere, pair.public, &sealed, times, now).unwrap();
    ring.replace(vec![key]);
    let foreign = ring.sign(&claims, now).unwrap();

    jwks::reload(&node.state).await.unwrap();
    assert_eq!(verify(node, foreign.expose()), Ok(()));
    assert!(published(node).await.contains(&row.kid));
    let renewed = node
        .refresh(&client, tokens["refresh_token"].as_str().unwrap())
        .await
        .json();
    let signed = renewed["access_token"].as_str().unwrap();
    assert_ne!(kid(signed), row.kid, "this node signs with what it can");
    // Every node publishes the same document.
    let other = scene.second_node().await;
    let etag = async |node: &Node| {
        let reply = node.get("/oauth/jwks.json").await;
        reply.header("etag").to_owned()
    };
    assert_eq!(etag(node).await, etag(&other).await);
    // A key is published as long as its tokens are accepted.
    node.clock.advance(ACTIVE_FOR + RETIRING_FOR);
    jwks::reload(&node.state).await.unwrap();
    assert!(!published(node).await.contains(&row.kid));
    assert!(matches!(
        verify(node, foreign.expose()),
        Err(VerifyError::UnknownKey { .. })
    ));
}
