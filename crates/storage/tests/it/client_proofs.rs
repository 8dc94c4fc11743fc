//! How clients prove themselves: secrets, and keys at an address (AUTH-C13, AUTH-C16).

use portolan_model::id::ServiceAccountId;
use portolan_storage::oauth::{
    client_proofs, client_secrets,
    service_accounts::{self, NewServiceAccount},
};
use serde_json::json;
use time::Duration;

use crate::{
    database::Database,
    scene::{Scene, digest, now, system},
};

#[tokio::test]
async fn c16_the_last_use_of_a_secret_and_of_an_account_is_written_once_in_ten_seconds() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let client = scene.client.id;
    let secret = client_secrets::add(&mut tx, client, &digest(), "cs_", now())
        .await
        .unwrap()
        .unwrap();
    let account = NewServiceAccount {
        id: ServiceAccountId::generate(),
        client,
        tenant: scene.tenant,
        resource: None,
        created_by: scene.user,
    };
    service_accounts::create(&mut tx, &account, now())
        .await
        .unwrap();
    for (at, written) in [(0, 0), (9, 0), (10, 0), (11, 11), (20, 11), (22, 22)] {
        let note = now() + Duration::seconds(at);
        client_secrets::note_used(&mut tx, secret, note)
            .await
            .unwrap();
        service_accounts::note_used(&mut tx, account.id, note)
            .await
            .unwrap();
        let secrets = client_secrets::list(&mut tx, &[client]).await.unwrap();
        let accounts = service_accounts::list(&mut tx, scene.tenant).await.unwrap();
        let expected = Some(now() + Duration::seconds(written));
        assert_eq!(secrets[0].last_used_at, expected, "{at}");
        assert_eq!(accounts[0].last_used_at, expected, "{at}");
    }
}

#[tokio::test]
async fn c13_what_was_read_at_one_address_is_nothing_at_another() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let client = scene.client.id;
    let (old, new) = ("https://a.example/keys", "https://b.example/keys");
    let (pause, later) = (Duration::MINUTE, now() + Duration::MINUTE);
    for uri in [old, new] {
        let jwks = json!({ "keys": [uri] });
        client_proofs::keep_key_set(&mut tx, client, uri, &jwks, now())
            .await
            .unwrap();
        let kept = client_proofs::key_set(&mut tx, client, uri).await.unwrap();
        assert_eq!(kept.unwrap().jwks, jwks);
    }
    let kept = client_proofs::key_set(&mut tx, client, old).await.unwrap();
    assert!(kept.is_none(), "its keys have moved");
    for (uri, at, may) in [(old, later, false), (new, later, true), (new, later, false)] {
        let turn = client_proofs::may_ask(&mut tx, client, uri, pause, at)
            .await
            .unwrap();
        assert_eq!(turn, may, "{uri}");
    }
}
