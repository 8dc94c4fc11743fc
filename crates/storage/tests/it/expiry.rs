//! A purge deletes expired rows, and nothing else.

use portolan_model::{
    Clock,
    email::EmailAddress,
    id::{ServerId, SourceId},
    registry::SourceKind,
};
use portolan_storage::{
    Reason, Store,
    accounts::{users, workspace_hints},
    expiry::{self, Expired},
    oauth::{
        authorization_requests, clients, grants, refresh_tokens,
        revocations::{self, RevocationKind},
    },
    registry::{servers, sources, trash},
};
use serde_json::json;
use time::Duration;

use crate::{
    database::Database,
    scene::{self, Scene},
};

/// Days after the time of the scene.
fn days(days: i64) -> portolan_model::Timestamp {
    scene::now() + Duration::days(days)
}

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
    assert!(trash::delete(&mut tx, id, now).await.unwrap());
    assert!(
        trash::restore(&mut tx, id, now + Duration::days(29))
            .await
            .unwrap()
    );
    assert!(trash::delete(&mut tx, id, now).await.unwrap());
    assert!(
        !trash::restore(&mut tx, id, now + Duration::days(31))
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
        assert!(trash::delete(&mut tx, id, at).await.unwrap());
        ids.push(id);
    }
    let later = now + Duration::hours(1);
    let listed = trash::list(&mut tx, later).await.unwrap();
    assert_eq!(listed.len(), ids.len() - 1, "the oldest gave way");
    assert_eq!(listed[0].name, format!("Source {}", trash::MOST));
    assert_eq!(listed[0].kind, trash::DeletedKind::Source);
    assert!(!trash::restore(&mut tx, ids[0], later).await.unwrap());
    assert!(trash::restore(&mut tx, ids[1], later).await.unwrap());
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
    assert!(trash::delete(&mut tx, id, now).await.unwrap());
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
    assert!(!trash::restore(&mut tx, id, later).await.unwrap());
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

/// AUTH-3.4: `/oauth/authorize` writes a row for each request, also for callers without a session.
#[tokio::test]
async fn requests_that_expired_go_and_one_with_a_code_stays() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let mut tx = scene::system(&store).await;
    let left = scene.request(&mut tx).await;
    let (code, _) = scene.code(&mut tx).await;
    tx.commit().await.unwrap();

    assert_eq!(
        purge(&store, Expired::AuthorizationRequests, days(1)).await,
        0,
        "they expire after an hour and stay for a day"
    );
    assert_eq!(
        purge(&store, Expired::AuthorizationRequests, days(2)).await,
        1
    );
    let mut tx = scene::system(&store).await;
    let found = authorization_requests::find(&mut tx, left).await.unwrap();
    assert!(found.is_none());
    assert!(grants::find_code(&mut tx, &code).await.unwrap().is_some());
    drop(tx);

    assert_eq!(purge(&store, Expired::AuthorizationCodes, days(2)).await, 1);
    assert_eq!(
        purge(&store, Expired::AuthorizationRequests, days(2)).await,
        1,
        "after its code"
    );
}

/// AUTH-T3: the second use of a code ends the grant while a token of its family can live.
#[tokio::test]
async fn codes_stay_as_long_as_the_refresh_family_of_their_grant() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let now = scene::now();
    let mut tx = scene::system(&store).await;
    let (unused, _) = scene.code(&mut tx).await;
    let (redeemed, grant) = scene.code(&mut tx).await;
    let attempt = uuid::Uuid::new_v4();
    assert!(
        grants::redeem_code(&mut tx, &redeemed, attempt, now)
            .await
            .unwrap()
    );
    refresh_tokens::create_family(&mut tx, grant, &scene::digest(), days(90), now)
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let code_purge = Expired::AuthorizationCodes;
    assert_eq!(purge(&store, code_purge, now + Duration::HOUR).await, 0);
    assert_eq!(purge(&store, code_purge, days(2)).await, 1);
    // The family ends after 30 days without use; its row stays for 30 more.
    for day in [31, 59] {
        assert_eq!(purge(&store, Expired::RefreshFamilies, days(day)).await, 0);
        assert_eq!(purge(&store, code_purge, days(day)).await, 0);
    }
    let mut tx = scene::system(&store).await;
    assert!(grants::find_code(&mut tx, &unused).await.unwrap().is_none());
    let code = grants::find_code(&mut tx, &redeemed).await.unwrap();
    assert!(code.unwrap().redeemed_at.is_some(), "a replay is seen");
    drop(tx);

    assert_eq!(purge(&store, Expired::RefreshFamilies, days(61)).await, 1);
    assert_eq!(purge(&store, code_purge, days(61)).await, 1);
}

#[tokio::test]
async fn grants_go_180_days_after_their_end_and_living_ones_stay() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let now = scene::now();
    let mut tx = scene::system(&store).await;
    let revoked = scene.grant(&mut tx).await;
    let expired = scene.grant(&mut tx).await;
    let (_, with_code) = scene.code(&mut tx).await;
    let with_family = scene.grant(&mut tx).await;
    refresh_tokens::create_family(&mut tx, with_family, &scene::digest(), days(90), now)
        .await
        .unwrap();
    for grant in [revoked, with_code, with_family] {
        grants::revoke(&mut tx, grant, "by_user", days(10))
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();

    assert_eq!(purge(&store, Expired::Grants, days(190)).await, 0);
    assert_eq!(
        purge(&store, Expired::Grants, days(191)).await,
        1,
        "revoked on day 10"
    );
    assert_eq!(
        purge(&store, Expired::Grants, days(271)).await,
        1,
        "expired on day 90"
    );
    let mut tx = scene::system(&store).await;
    for (grant, is_there) in [
        (revoked, false),
        (expired, false),
        (with_code, true),
        (with_family, true),
    ] {
        let found = grants::find(&mut tx, grant).await.unwrap();
        assert_eq!(found.is_some(), is_there);
    }
    drop(tx);
    assert_eq!(purge(&store, Expired::RefreshFamilies, days(271)).await, 1);
    assert_eq!(
        purge(&store, Expired::AuthorizationCodes, days(271)).await,
        1
    );
    assert_eq!(purge(&store, Expired::Grants, days(271)).await, 2);
}

/// AUTH-4.3: a revocation is enforced until the last token that it concerns expired.
#[tokio::test]
async fn revocations_go_a_day_after_the_last_token_expired() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let mut tx = scene::system(&store).await;
    for (reference, expires_at) in [("short", days(1)), ("long", days(40))] {
        let new = revocations::New {
            kind: RevocationKind::Client,
            reference,
            tenant: Some(scene.tenant),
            epoch: None,
            expires_at,
        };
        revocations::insert(&mut tx, &new).await.unwrap();
    }
    tx.commit().await.unwrap();

    assert_eq!(purge(&store, Expired::Revocations, days(2)).await, 0);
    assert_eq!(
        purge(&store, Expired::Revocations, days(2) + Duration::HOUR).await,
        1
    );
    let mut tx = store.edge(Reason::Revocations).await.unwrap();
    let live = revocations::live(&mut tx, None, days(3))
        .await
        .unwrap()
        .entries;
    let references: Vec<_> = live.iter().map(|row| row.reference.as_str()).collect();
    assert_eq!(references, ["long"]);
    drop(tx);
    assert_eq!(purge(&store, Expired::Revocations, days(42)).await, 1);
}

#[tokio::test]
async fn workspace_hints_go_180_days_after_their_last_use() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let mut tx = scene::system(&store).await;
    let other = scene::register(&mut tx, scene::digest()).await;
    for (client, at) in [(scene.client.id, days(0)), (other.id, days(100))] {
        workspace_hints::remember(&mut tx, client, scene.user, scene.tenant, at)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(purge(&store, Expired::WorkspaceHints, days(180)).await, 0);
    assert_eq!(purge(&store, Expired::WorkspaceHints, days(181)).await, 1);
    assert_eq!(purge(&store, Expired::WorkspaceHints, days(280)).await, 0);
    assert_eq!(purge(&store, Expired::WorkspaceHints, days(281)).await, 1);
}
