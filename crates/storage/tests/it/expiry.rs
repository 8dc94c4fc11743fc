//! A purge deletes expired rows, and nothing else.

use portolan_model::{
    Clock,
    email::EmailAddress,
    id::{ServerId, SourceId},
    registry::SourceKind,
};
use portolan_storage::{
    Reason, Store,
    accounts::users,
    expiry::{self, Expired},
    oauth::{clients, grants},
    registry::{servers, sources, trash},
};
use serde_json::json;
use time::Duration;

use crate::{
    database::Database,
    scene::{self, Scene},
};

async fn purge(store: &Store, what: Expired, now: portolan_model::Timestamp) -> u64 {
    let mut tx = store.system(Reason::Janitor).await.unwrap();
    assert!(
        expiry::try_lock(&mut tx).await.unwrap(),
        "nobody else purges this database"
    );
    let rows = expiry::purge(&mut tx, what, now).await.unwrap();
    tx.commit().await.unwrap();
    rows
}

#[tokio::test]
async fn every_kind_can_be_purged_and_a_living_scene_survives_it() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    for what in Expired::ALL {
        assert_eq!(
            purge(&store, *what, scene::now() + Duration::HOUR).await,
            0,
            "{what:?}"
        );
    }
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    assert!(
        sources::list(&mut tx).await.unwrap().is_empty(),
        "the tenant is still there"
    );
}

#[tokio::test]
async fn l7_an_address_that_was_never_verified_is_forgotten_after_a_day() {
    let store = Database::new().await.store(4).await;
    let now = Clock::system().now();
    let mut tx = store.system(Reason::SignIn).await.unwrap();
    let address = EmailAddress::parse("ghost@acme.example").unwrap();
    users::create_unverified(&mut tx, "Ghost", &address, "phc", now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        purge(&store, Expired::UnverifiedUsers, now + Duration::hours(23)).await,
        0
    );
    assert_eq!(
        purge(&store, Expired::UnverifiedUsers, now + Duration::hours(25)).await,
        1
    );
}

#[tokio::test]
async fn a_deleted_source_can_be_restored_for_30_days_and_is_gone_afterwards() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let now = Clock::system().now();
    let id = SourceId::generate();
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let new = sources::NewSource {
        id,
        kind: SourceKind::Http,
        name: "Harbour",
        base_url: "https://api.example.com",
        document: None,
        security: &json!([]),
    };
    sources::insert(&mut tx, &new, now).await.unwrap();
    assert!(sources::delete(&mut tx, id, now).await.unwrap());
    assert!(
        sources::restore(&mut tx, id, now + Duration::days(29))
            .await
            .unwrap()
    );
    assert!(sources::delete(&mut tx, id, now).await.unwrap());
    assert!(
        !sources::restore(&mut tx, id, now + Duration::days(31))
            .await
            .unwrap(),
        "too late"
    );
    tx.commit().await.unwrap();
    assert_eq!(
        purge(&store, Expired::Sources, now + Duration::days(30)).await,
        0
    );
    assert_eq!(
        purge(&store, Expired::Sources, now + Duration::days(31)).await,
        1
    );
}

/// REVIEW-UX-BUG-2: a trash that lists what can be restored, and is bounded.
#[tokio::test]
async fn the_trash_lists_deletions_newest_first_and_keeps_a_hundred_sources() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let now = Clock::system().now();
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..=trash::MOST {
        let id = SourceId::generate();
        let name = format!("Source {n}");
        let new = sources::NewSource {
            id,
            kind: SourceKind::Http,
            name: &name,
            base_url: "https://api.example.com",
            document: None,
            security: &json!([]),
        };
        sources::insert(&mut tx, &new, now).await.unwrap();
        let at = now + Duration::seconds(n);
        assert!(sources::delete(&mut tx, id, at).await.unwrap());
        ids.push(id);
    }
    let later = now + Duration::hours(1);
    let listed = trash::list(&mut tx, later).await.unwrap();
    assert_eq!(listed.len(), ids.len() - 1, "the oldest gave way");
    assert_eq!(listed[0].name, format!("Source {}", trash::MOST));
    assert_eq!(listed[0].kind, trash::Kind::Source);
    assert!(!sources::restore(&mut tx, ids[0], later).await.unwrap());
    assert!(sources::restore(&mut tx, ids[1], later).await.unwrap());
    let listed = trash::list(&mut tx, later).await.unwrap();
    assert_eq!(listed.len(), ids.len() - 2);
    let over = now + trash::KEPT + Duration::hours(1);
    assert!(trash::list(&mut tx, over).await.unwrap().is_empty());
}

#[tokio::test]
async fn m3_the_address_of_a_deleted_server_is_never_given_to_another() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let now = Clock::system().now();
    let server = |id| servers::NewServer {
        id,
        slug: "harbour",
        name: "Harbour",
        description: None,
        instructions: None,
    };
    let id = ServerId::generate();
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    servers::insert(&mut tx, &server(id), now).await.unwrap();
    assert!(servers::delete(&mut tx, id, now).await.unwrap());
    tx.commit().await.unwrap();
    let later = now + Duration::days(31);
    assert_eq!(purge(&store, Expired::Servers, later).await, 1);
    assert_eq!(
        purge(&store, Expired::Servers, later).await,
        0,
        "what is empty is not emptied again"
    );
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    assert!(servers::list(&mut tx).await.unwrap().is_empty());
    assert!(!servers::restore(&mut tx, id, later).await.unwrap());
    let again = servers::insert(&mut tx, &server(ServerId::generate()), later).await;
    assert!(again.is_err(), "the address stays taken");
}

#[tokio::test]
async fn case_94_a_registration_that_was_never_used_goes_and_one_with_a_revoked_grant_stays() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let now = scene::now();
    let mut tx = store.system(Reason::OAuth).await.unwrap();
    let unused = scene::register(&mut tx, scene::digest()).await;
    let digest = scene::digest();
    let again = scene::register(&mut tx, digest).await;
    let grant = scene.grant(&mut tx).await;
    clients::note_granted(&mut tx, scene.client.id, now)
        .await
        .unwrap();
    grants::revoke(&mut tx, grant, "by_user", now + Duration::DAY)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let days = |days: i64| now + Duration::days(days);
    assert_eq!(purge(&store, Expired::Clients, days(179)).await, 0);

    // AUTH-C10: its client registers it anew after some months, and gets the id that it had.
    let mut tx = store.system(Reason::OAuth).await.unwrap();
    let same = scene::register_at(&mut tx, digest, days(100)).await;
    assert_eq!(same.client_id, again.client_id);
    tx.commit().await.unwrap();

    assert_eq!(purge(&store, Expired::Clients, days(181)).await, 1);
    let mut tx = store.system(Reason::OAuth).await.unwrap();
    for (client, is_there) in [(&unused, false), (&again, true), (&scene.client, true)] {
        let found = clients::find(&mut tx, &client.client_id).await.unwrap();
        assert_eq!(found.is_some(), is_there, "AUTH-C11");
    }
    drop(tx);
    assert_eq!(purge(&store, Expired::Clients, days(281)).await, 1);
    assert_eq!(purge(&store, Expired::Clients, days(4000)).await, 0);
}
