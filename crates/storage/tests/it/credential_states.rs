//! States of credentials: whose they are, for which version they count, and who wins.

use portolan_model::{
    Timestamp,
    id::{SourceId, TenantId},
    registry::SourceKind,
};
use portolan_storage::{
    Store, Tx,
    platform::tenants,
    registry::{
        credential_states::{self, CredentialState, Seen},
        credentials::{self, SealedCredential, WrappedKey},
        sources,
    },
};
use serde_json::json;
use time::Duration;
use uuid::Uuid;

use crate::{
    database::Database,
    scene::{Scene, now, system},
};

/// A source with a credential of version 1.
async fn source(store: &Store, tenant: TenantId) -> SourceId {
    let id = SourceId::generate();
    let new = sources::NewSource {
        id,
        kind: SourceKind::Http,
        name: "API",
        base_url: "https://api.example",
        document: None,
        security: &json!([]),
    };
    let mut tx = store.tenant(tenant).await.unwrap();
    sources::insert(&mut tx, &new, now()).await.unwrap();
    tx.commit().await.unwrap();
    set(store, tenant, id).await;
    id
}

/// Sets the credential of a source; answers its version.
async fn set(store: &Store, tenant: TenantId, source: SourceId) -> i32 {
    let mut tx = store.tenant(tenant).await.unwrap();
    let key = WrappedKey {
        id: Uuid::new_v4(),
        wrapped: b"wrapped".to_vec(),
    };
    credentials::insert_data_key(&mut tx, &key, now())
        .await
        .unwrap();
    let version = credentials::next_version(&mut tx, source).await.unwrap();
    let credential = SealedCredential {
        kind: "bearer".to_owned(),
        sealed: b"sealed".to_vec(),
        key,
        version: version.unwrap(),
    };
    credentials::put(&mut tx, source, &credential, "••••", now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    credential.version
}

fn seen(source: SourceId, version: i32, state: CredentialState, at: Timestamp) -> Seen {
    Seen {
        source,
        version,
        state,
        at,
    }
}

/// As an MCP node writes.
async fn note(store: &Store, tenant: TenantId, seen: Seen) {
    let mut tx = store.node(tenant).await.unwrap();
    credential_states::note(&mut tx, &[seen], credential_states::Repeat::Seldom)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn state(
    store: &Store,
    tenant: TenantId,
    source: SourceId,
) -> Option<(CredentialState, Timestamp)> {
    let mut tx = store.tenant(tenant).await.unwrap();
    let source = sources::find(&mut tx, source).await.unwrap();
    source.and_then(|source| source.credential?.state)
}

#[tokio::test]
async fn friction_5_a_tenant_neither_reads_nor_writes_the_states_of_another() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let slug = "other".parse().unwrap();
    let other = tenants::create(&mut tx, "Other", &slug, scene.user, now()).await;
    let other = other.unwrap().id;
    tx.commit().await.unwrap();
    let own = source(&store, scene.tenant).await;
    note(
        &store,
        other,
        seen(own, 1, CredentialState::Refused(401), now()),
    )
    .await;
    assert_eq!(state(&store, scene.tenant, own).await, None);
    note(
        &store,
        scene.tenant,
        seen(own, 1, CredentialState::Refused(401), now()),
    )
    .await;
    assert_eq!(
        state(&store, scene.tenant, own).await,
        Some((CredentialState::Refused(401), now()))
    );
    let refused = async |tenant| {
        let mut tx = store.tenant(tenant).await.unwrap();
        credential_states::refused(&mut tx).await.unwrap()
    };
    assert_eq!(refused(scene.tenant).await[0].source, own);
    assert!(refused(other).await.is_empty());
    // Without the condition of the query: the policy alone holds.
    for is_node in [false, true] {
        let mut tx = if is_node {
            store.node(other).await.unwrap()
        } else {
            store.tenant(other).await.unwrap()
        };
        let count: i64 = sqlx::query_scalar("select count(*) from credential_states")
            .fetch_one(tx.raw())
            .await
            .unwrap();
        assert_eq!(count, 0, "node: {is_node}");
        let changed = sqlx::query("update credential_states set state = 'works'")
            .execute(tx.raw())
            .await
            .unwrap();
        assert_eq!(changed.rows_affected(), 0, "node: {is_node}");
    }
}

#[tokio::test]
async fn friction_5_a_state_counts_for_its_version_and_the_newest_answer_wins() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let tenant = Scene::new(&store).await.tenant;
    let own = source(&store, tenant).await;
    assert_eq!(state(&store, tenant, own).await, None, "never tried");
    let at = |seconds| now() + Duration::seconds(seconds);
    note(&store, tenant, seen(own, 1, CredentialState::Works, at(10))).await;
    note(
        &store,
        tenant,
        seen(own, 1, CredentialState::Refused(401), at(5)),
    )
    .await;
    let works = |seconds| Some((CredentialState::Works, at(seconds)));
    assert_eq!(
        state(&store, tenant, own).await,
        works(10),
        "the older answer came later"
    );
    note(&store, tenant, seen(own, 1, CredentialState::Works, at(70))).await;
    assert_eq!(
        state(&store, tenant, own).await,
        works(10),
        "the same is not written again"
    );
    note(
        &store,
        tenant,
        seen(own, 1, CredentialState::Works, at(700)),
    )
    .await;
    assert_eq!(
        state(&store, tenant, own).await,
        works(700),
        "but after ten minutes"
    );
    note(
        &store,
        tenant,
        seen(own, 1, CredentialState::Refused(403), at(701)),
    )
    .await;
    let refused = Some((CredentialState::Refused(403), at(701)));
    assert_eq!(state(&store, tenant, own).await, refused);

    assert_eq!(set(&store, tenant, own).await, 2);
    assert_eq!(state(&store, tenant, own).await, None, "another credential");
    note(
        &store,
        tenant,
        seen(own, 1, CredentialState::Refused(401), at(800)),
    )
    .await;
    assert_eq!(
        state(&store, tenant, own).await,
        None,
        "a call with the old one ends late"
    );
    note(&store, tenant, seen(own, 2, CredentialState::Works, at(2))).await;
    assert_eq!(
        state(&store, tenant, own).await,
        works(2),
        "clocks differ between nodes"
    );
}
