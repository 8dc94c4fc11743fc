//! Rare cases of client authentication: secrets that are revoked meanwhile, keys at an address,
//! documents that become old (AUTH-C2, AUTH-C4, AUTH-C13, AUTH-C16, AUTH-T10, AUTH-T12).

use http::{Method, StatusCode};
use portolan_cluster::revocations::Revocation;
use portolan_keys::ring::NewKeyPair;
use portolan_storage::{
    Reason,
    oauth::{
        client_proofs, client_secrets,
        clients::{self, Client},
        service_accounts,
    },
};
use serde_json::json;
use time::Duration;

use crate::{
    harness::{Node, Scene, code_request, request},
    races,
    service::{
        VENDOR, assertion, by_assertion, by_secret, is_revoked, jwks, key_client, refused,
        with_proof,
    },
};

const ADDRESS: &str = "https://keys.example/jwks.json";

async fn client_of(node: &Node, account: &str) -> Client {
    let mut tx = node.store().system(Reason::OAuth).await.unwrap();
    clients::find(&mut tx, account).await.unwrap().unwrap()
}

/// Stores keys as if they had just been fetched from there.
async fn keep(node: &Node, client: &Client, address: &str, key: &NewKeyPair) {
    let mut tx = node.store().system(Reason::OAuth).await.unwrap();
    let now = node.clock.now();
    client_proofs::keep_key_set(&mut tx, client.id, address, &jwks(key), now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn c16_a_secret_that_is_revoked_while_it_is_looked_at_gets_no_token_that_lives() {
    let mut scene = Scene::new().await;
    for _ in 0..3 {
        let (id, secret) = scene.ann.service_account(json!({})).await;
        let node = scene.node.clone();
        let now = node.clock.now();
        let client = client_of(&node, &id).await;
        let mut tx = node.store().system(Reason::Workspaces).await.unwrap();
        let account = service_accounts::standing(&mut tx, client.id)
            .await
            .unwrap()
            .unwrap();
        let one = client_secrets::list(&mut tx, &[client.id]).await.unwrap()[0].id;
        assert!(
            client_secrets::revoke(&mut tx, client.id, one, now)
                .await
                .unwrap()
        );
        let epoch = service_accounts::end_tokens(&mut tx, account.tenant, account.id, now)
            .await
            .unwrap()
            .unwrap();
        // The request finds the secret valid, and waits for the row that is being revoked.
        let revoke = async {
            for _ in 0..100 {
                client_secrets::list(&mut tx, &[client.id]).await.unwrap();
            }
            tx.commit().await.unwrap();
            node.state.oauth.revocations.insert(
                Revocation::Service {
                    account: account.id,
                    epoch,
                },
                now + Duration::HOUR,
            );
        };
        let (reply, ()) = tokio::join!(by_secret(&node, &id, &secret, &[]), revoke);
        if reply.status == StatusCode::OK {
            assert!(is_revoked(&node, &reply.json()), "dead on arrival");
        } else {
            assert_eq!(refused(&reply), (401, "invalid_client".to_owned()));
        }
    }
}

#[tokio::test]
async fn c13_keys_at_an_address_serve_while_they_are_fresh_and_for_a_day_while_it_is_away() {
    let mut scene = Scene::new().await;
    let key = NewKeyPair::generate().unwrap();
    let (id, _) = scene
        .ann
        .service_account(json!({"auth": "private_key_jwt", "jwks_uri": ADDRESS}))
        .await;
    let node = scene.node.clone();
    let client = client_of(&node, &id).await;
    let ask = async || by_assertion(&node, &assertion(&node, &key, &id, &json!({})), &[]).await;
    let away = ask().await;
    assert_eq!(
        refused(&away),
        (503, "temporarily_unavailable".to_owned()),
        "AUTH-T10: nobody is to drop a registration"
    );
    assert!(!away.header("retry-after").is_empty());
    assert_eq!(node.fetches(), 1);

    keep(&node, &client, ADDRESS, &key).await;
    assert_eq!(ask().await.status, StatusCode::OK);
    assert_eq!(node.fetches(), 1, "fresh: nobody is asked");

    // With another address, keys from the former one are not valid, however recent.
    let path = format!("/acme/service-accounts/{id}/public-keys");
    let elsewhere = "https://keys.example/other.json";
    let moved = scene
        .ann
        .api(Method::PUT, &path, Some(json!({"jwks_uri": elsewhere})))
        .await;
    assert_eq!(moved.status, StatusCode::OK, "{}", moved.text);
    keep(&node, &client, ADDRESS, &key).await;
    assert_eq!(ask().await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(node.fetches(), 2);

    keep(&node, &client, elsewhere, &key).await;
    node.clock.advance(Duration::HOUR);
    assert_eq!(ask().await.status, StatusCode::OK, "AUTH-C4: stale if away");
    assert_eq!(node.fetches(), 3);
    node.clock.advance(Duration::DAY);
    assert_eq!(
        refused(&ask().await),
        (503, "temporarily_unavailable".to_owned()),
        "but not for ever"
    );
}

#[tokio::test]
async fn case_72_unknown_key_ids_ask_the_address_once_a_minute() {
    let mut scene = Scene::new().await;
    let (key, stranger) = (
        NewKeyPair::generate().unwrap(),
        NewKeyPair::generate().unwrap(),
    );
    let (id, _) = scene
        .ann
        .service_account(json!({"auth": "private_key_jwt", "jwks_uri": ADDRESS}))
        .await;
    let second = scene.second_node().await;
    let node = &scene.node;
    keep(node, &client_of(node, &id).await, ADDRESS, &key).await;
    let forged = async |node: &Node| {
        let jwt = assertion(node, &stranger, &id, &json!({}));
        by_assertion(node, &jwt, &[]).await.status
    };
    for minute in 1..=2 {
        node.clock.advance(Duration::seconds(61));
        for _ in 0..250 {
            assert_ne!(forged(node).await, StatusCode::OK);
            assert_ne!(forged(&second).await, StatusCode::OK);
        }
        assert_eq!(node.fetches() + second.fetches(), minute, "in the cluster");
    }
    let good = assertion(node, &key, &id, &json!({}));
    assert_eq!(by_assertion(node, &good, &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn c13_a_document_with_keys_is_read_again_when_it_is_old_and_serves_while_its_host_is_away() {
    let mut scene = Scene::new().await;
    let (key, stranger) = (
        NewKeyPair::generate().unwrap(),
        NewKeyPair::generate().unwrap(),
    );
    key_client(&scene.node, &key).await;
    let code = scene.ann.code(&request(VENDOR)).await;
    let node = scene.node.clone();
    let tokens = with_proof(&node, &key, &code_request(VENDOR, &code)).await;
    let refresh = tokens.json()["refresh_token"].as_str().unwrap().to_owned();
    assert_eq!(node.fetches(), 0, "it is fresh");
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.as_str()),
    ];
    node.clock.advance(Duration::days(2));
    for _ in 0..3 {
        let reply = with_proof(&node, &key, &form).await;
        assert_eq!(reply.status, StatusCode::OK, "AUTH-C4: {}", reply.text);
    }
    assert_eq!(node.fetches(), 1, "once a minute");
    node.clock.advance(Duration::seconds(61));
    for _ in 0..3 {
        assert_eq!(
            refused(&with_proof(&node, &stranger, &form).await),
            (401, "invalid_client".to_owned())
        );
    }
    assert_eq!(node.fetches(), 2, "also for keys that are not there");
}

#[tokio::test]
async fn c13_an_account_uses_up_so_many_assertions_a_minute() {
    let mut scene = Scene::new().await;
    let key = NewKeyPair::generate().unwrap();
    let (id, _) = scene
        .ann
        .service_account(json!({"auth": "private_key_jwt", "jwks": jwks(&key)}))
        .await;
    let node = &scene.node;
    let jwt = assertion(node, &key, &id, &json!({}));
    for _ in 0..300 {
        let reply = by_assertion(node, &jwt, &[]).await;
        assert_ne!(reply.status, StatusCode::TOO_MANY_REQUESTS);
    }
    let over = by_assertion(node, &jwt, &[]).await;
    assert_eq!(over.status, StatusCode::TOO_MANY_REQUESTS, "{}", over.text);
    assert!(!over.header("retry-after").is_empty());
    let stranger = NewKeyPair::generate().unwrap();
    node.clock.advance(Duration::seconds(61));
    for _ in 0..301 {
        let forged = assertion(node, &stranger, &id, &json!({}));
        by_assertion(node, &forged, &[]).await;
    }
    let good = assertion(node, &key, &id, &json!({}));
    let reply = by_assertion(node, &good, &[]).await;
    assert_eq!(reply.status, StatusCode::OK, "nobody else uses it up");
}

#[tokio::test]
async fn m9_of_five_keys_that_are_made_at_once_the_last_place_goes_to_one() {
    let mut scene = Scene::new().await;
    let body = || Some(json!({"name": "Laptop"}));
    for _ in 0..19 {
        let made = scene.ann.api(Method::POST, "/acme/api-keys", body()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    }
    for round in races::rounds("m9_of_five_keys_that_are_made_at_once_the_last_place_goes_to_one") {
        let mut tries = tokio::task::JoinSet::new();
        for _ in 0..5 {
            let mut ann = scene.ann.clone();
            tries.spawn(async move { ann.api(Method::POST, "/acme/api-keys", body()).await });
        }
        let mut made = tries.join_all().await;
        made.retain(|reply| reply.status == StatusCode::CREATED);
        assert_eq!(made.len(), 1, "round {round}");
        let last = made[0].json()["key"]["id"].as_str().unwrap().to_owned();
        let gone = format!("/acme/api-keys/{last}");
        let gone = scene.ann.api(Method::DELETE, &gone, None).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    }
}
