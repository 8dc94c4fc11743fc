//! Upstream servers: one node looks at each, what is gone is marked, and what a node may touch is
//! small.

use portolan_model::{id::SourceId, id::TenantId, registry::SourceKind};
use portolan_storage::{
    Reason, Store,
    platform::tenants,
    registry::{
        sources, trash,
        upstreams::{self, Said, SyncedPrompt},
    },
};
use serde_json::json;
use time::Duration;

use crate::{
    database::Database,
    races,
    scene::{Scene, now, system},
};

async fn upstream(store: &Store, tenant: TenantId) -> SourceId {
    let source = SourceId::generate();
    let new = sources::NewSource {
        id: source,
        kind: SourceKind::Mcp,
        name: "Theirs",
        base_url: "https://mcp.example/mcp",
        document: None,
        security: &json!([]),
    };
    let mut tx = store.tenant(tenant).await.unwrap();
    sources::insert(&mut tx, &new, now()).await.unwrap();
    upstreams::insert(&mut tx, source, "far_", true, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    source
}

async fn take(store: &Store, at: time::OffsetDateTime) -> Vec<(TenantId, SourceId)> {
    take_beside(store, at, &[], &[]).await
}

async fn take_beside(
    store: &Store,
    at: time::OffsetDateTime,
    not_of: &[TenantId],
    not: &[SourceId],
) -> Vec<(TenantId, SourceId)> {
    let mut tx = store.system(Reason::Upstreams).await.unwrap();
    let taken = upstreams::take_due(&mut tx, at, at + Duration::minutes(5), 8, not_of, not)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    taken
}

#[tokio::test]
async fn x_43_a_tenant_with_many_servers_does_not_keep_the_looks_of_others_waiting() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    let many = scene.tenant;
    let mut tx = system(&store).await;
    let slug = "other".parse().unwrap();
    let other = tenants::create(&mut tx, "Other", &slug, scene.user, now()).await;
    let other = other.unwrap().id;
    tx.commit().await.unwrap();
    for _ in 0..20 {
        upstream(&store, many).await;
    }
    let own = upstream(&store, other).await;
    let first = take(&store, now()).await;
    assert_eq!(first.len(), 2, "one of each tenant: {first:?}");
    assert!(first.contains(&(other, own)), "{first:?}");
    // Who hangs is left alone with what it hangs in.
    assert_eq!(take_beside(&store, now(), &[many], &[]).await, []);
    let busy: Vec<SourceId> = first.iter().map(|(_, source)| *source).collect();
    let second = take_beside(&store, now(), &[], &busy).await;
    assert_eq!(second.len(), 1, "{second:?}");
    assert!(!busy.contains(&second[0].1));
    // Asked for again while it is looked at: not by the same node at the same time.
    let mut tx = store.node(other).await.unwrap();
    assert!(
        upstreams::ask_for_a_look(&mut tx, own, now())
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    assert_eq!(take_beside(&store, now(), &[many], &[own]).await, []);
    assert_eq!(
        take_beside(&store, now(), &[many], &[]).await,
        [(other, own)]
    );
}

#[tokio::test]
async fn x_43_of_nodes_that_ask_at_once_one_looks_at_a_server_and_a_change_there_brings_the_look_forward()
 {
    let database = Database::new().await;
    let store = database.store(4).await;
    let tenant = Scene::new(&store).await.tenant;
    let source = upstream(&store, tenant).await;
    let mut at = now();
    for round in races::rounds(
        "x_43_of_nodes_that_ask_at_once_one_looks_at_a_server_and_a_change_there_brings_the_look_forward",
    ) {
        at += Duration::minutes(6);
        let (one, other) = tokio::join!(take(&store, at), take(&store, at));
        assert_eq!(
            one.len() + other.len(),
            1,
            "round {round}: {one:?} {other:?}"
        );
    }
    assert_eq!(take(&store, at + Duration::minutes(1)).await, []);
    // A node that was notified of a change requests a refresh, in its own scope.
    let later = at + Duration::minutes(2);
    let mut tx = store.node(tenant).await.unwrap();
    assert!(
        upstreams::ask_for_a_look(&mut tx, source, later)
            .await
            .unwrap()
    );
    assert!(
        !upstreams::ask_for_a_look(&mut tx, source, later)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    assert_eq!(take(&store, later).await, [(tenant, source)]);
    // That is all that a node may do to it.
    let mut tx = store.node(tenant).await.unwrap();
    assert!(
        upstreams::configure(&mut tx, source, Some("x_"), None)
            .await
            .is_err()
    );
    drop(tx);
    // A deleted source is left alone.
    let mut tx = store.tenant(tenant).await.unwrap();
    trash::delete(&mut tx, source, later).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(take(&store, later + Duration::hours(1)).await, []);
}

#[tokio::test]
async fn what_a_server_no_longer_has_is_marked_and_comes_back_as_it_was() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let tenant = Scene::new(&store).await.tenant;
    let source = upstream(&store, tenant).await;
    let prompt = |name: &str| SyncedPrompt {
        upstream_name: name.to_owned(),
        name: format!("far_{name}"),
        title: String::new(),
        description: String::new(),
        arguments: json!([]),
        upstream: json!({"name": name}),
        written: json!({"name": name}).to_string(),
    };
    let names = |known: Vec<upstreams::KnownItem>| {
        known
            .into_iter()
            .map(|known| known.name)
            .collect::<Vec<_>>()
    };
    let mut tx = store.tenant(tenant).await.unwrap();
    for (offered, expected) in [
        (vec!["a", "b"], vec!["a", "b"]),
        (vec!["b"], vec!["b"]),
        (vec!["a", "b"], vec!["a", "b"]),
    ] {
        let offered: Vec<SyncedPrompt> = offered.into_iter().map(prompt).collect();
        upstreams::sync_prompts(&mut tx, source, &offered, now())
            .await
            .unwrap();
        let mut known = names(upstreams::known(&mut tx, source).await.unwrap());
        known.sort();
        assert_eq!(known, expected);
    }
    let said = Said {
        revision: "2025-11-25",
        name: Some("Theirs"),
        version: None,
        instructions: None,
        capabilities: &json!({"tools": {}}),
        skipped: &json!([]),
    };
    upstreams::failed(&mut tx, source, "no connection", now())
        .await
        .unwrap();
    let known = upstreams::find(&mut tx, source).await.unwrap().unwrap();
    assert_eq!(
        (known.last_error.as_deref(), known.synced_at),
        (Some("no connection"), None)
    );
    // A pending change is not yet taken over.
    let pending = json!({"digest": "d"});
    upstreams::looked(&mut tx, source, &said, Some(&pending), now(), now(), now())
        .await
        .unwrap();
    let known = upstreams::find(&mut tx, source).await.unwrap().unwrap();
    assert_eq!(
        (known.last_error, known.synced_at, known.pending),
        (None, None, Some(pending))
    );
    upstreams::looked(&mut tx, source, &said, None, now(), now(), now())
        .await
        .unwrap();
    let known = upstreams::find(&mut tx, source).await.unwrap().unwrap();
    assert_eq!((known.synced_at, known.pending), (Some(now()), None));
}

/// Rule: MCP-X-41, while a look runs that may have read before the change.
#[tokio::test]
async fn x_41_a_look_asked_for_during_a_look_is_not_lost() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let tenant = Scene::new(&store).await.tenant;
    let source = upstream(&store, tenant).await;
    let said = Said {
        revision: "2026-07-28",
        name: None,
        version: None,
        instructions: None,
        capabilities: &json!({"tools": {}}),
        skipped: &json!([]),
    };
    let mut at = now();
    for is_asked in [true, false] {
        assert_eq!(take(&store, at).await, [(tenant, source)]);
        let begun = at;
        let mut tx = store.tenant(tenant).await.unwrap();
        if is_asked {
            at += Duration::seconds(1);
            assert!(
                upstreams::ask_for_a_look(&mut tx, source, at)
                    .await
                    .unwrap()
            );
        }
        at += Duration::seconds(1);
        let next = at + Duration::minutes(5);
        upstreams::looked(&mut tx, source, &said, None, begun, at, next)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    let late = take(&store, at).await;
    assert!(late.is_empty(), "nothing was asked for since: {late:?}");
}
