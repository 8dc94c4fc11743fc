//! What a node reads: only what is published, only of the tenant of the transaction.

use portolan_model::{
    id::{ServerId, SourceId, TenantId, ToolId},
    registry::{ServerStatus, SourceKind},
};
use portolan_storage::{
    Store, TenantTx, calls, catalog, credentials,
    registry_news::{self, News, NewsListener},
    servers, sources, tools,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    database::Database,
    scene::{Scene, now},
};

struct Registry {
    tenant: TenantId,
    source: SourceId,
    server: ServerId,
    tools: Vec<ToolId>,
}

async fn change(store: &Store, tenant: TenantId) -> TenantTx {
    store.tenant(tenant).await.expect("a transaction")
}

/// A source with three tools and a credential, and a draft server with all three.
async fn registry(store: &Store, tenant: TenantId) -> Registry {
    let (source, server) = (SourceId::generate(), ServerId::generate());
    let mut tx = change(store, tenant).await;
    let new = sources::NewSource {
        id: source,
        kind: SourceKind::Http,
        name: "Pets",
        base_url: "https://pets.example",
        document: None,
        security: &json!([]),
    };
    sources::insert(&mut tx, &new, now()).await.unwrap();
    let imported: Vec<tools::Imported> = ["c", "B", "a"]
        .iter()
        .map(|name| tools::Imported {
            operation_key: format!("GET /{name}"),
            wording: tools::Wording {
                name: (*name).to_owned(),
                title: "Title".to_owned(),
                description: "Text".to_owned(),
            },
            input_schema: json!({"type": "object"}),
            output_schema: None,
            annotations: json!({"readOnlyHint": true}),
            plan: json!({"method": "GET", "path": "/"}),
            definition: None,
            warnings: Vec::new(),
        })
        .collect();
    let enabled: Vec<(tools::Imported, bool)> =
        imported.into_iter().map(|tool| (tool, true)).collect();
    tools::insert_many(&mut tx, source, &enabled, now())
        .await
        .unwrap();
    let all = tools::list(&mut tx, &tools::Filter::default(), 10)
        .await
        .unwrap();
    let tools: Vec<ToolId> = ["c", "B", "a"]
        .map(|name| all.iter().find(|tool| tool.name() == name).expect(name).id)
        .into();
    let key = credentials::WrappedKey {
        id: Uuid::now_v7(),
        wrapped: vec![1; 60],
    };
    credentials::insert_data_key(&mut tx, &key, now())
        .await
        .unwrap();
    let sealed = credentials::SealedCredential {
        kind: "bearer".to_owned(),
        sealed: vec![2; 60],
        key,
        version: 3,
    };
    credentials::put(&mut tx, source, &sealed, "••••cafe", now())
        .await
        .unwrap();
    let new = servers::NewServer {
        id: server,
        slug: "pets",
        name: "Pets",
        description: None,
        instructions: Some("Be kind."),
    };
    servers::insert(&mut tx, &new, now()).await.unwrap();
    let names = ["c", "B", "a"];
    let chosen: Vec<(ToolId, String)> = tools
        .iter()
        .zip(names)
        .map(|(id, name)| (*id, name.to_owned()))
        .collect();
    servers::set_tools(&mut tx, server, &chosen, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    Registry {
        tenant,
        source,
        server,
        tools,
    }
}

async fn published(store: &Store, tenant: TenantId) -> Option<catalog::PublishedServer> {
    let mut tx = store.node(tenant).await.expect("a transaction");
    catalog::published(&mut tx, "pets")
        .await
        .expect("an answer")
}

#[tokio::test]
async fn a_node_sees_a_server_only_while_it_is_published() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let registry = registry(&store, scene.tenant).await;
    assert!(
        published(&store, registry.tenant).await.is_none(),
        "a draft"
    );
    for (status, visible) in [
        (ServerStatus::Published, true),
        (ServerStatus::Paused, false),
        (ServerStatus::Published, true),
    ] {
        let mut tx = change(&store, registry.tenant).await;
        servers::set_status(&mut tx, registry.server, status, now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(
            published(&store, registry.tenant).await.is_some(),
            visible,
            "{status:?}"
        );
    }
    let server = published(&store, registry.tenant).await.unwrap();
    let names: Vec<&str> = server.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        ["B", "a", "c"],
        "TL-3: byte order, whatever the collation"
    );
    let source = &server.sources[&registry.source];
    assert_eq!(
        (
            source.base_url.as_str(),
            source.credential.as_ref().map(|one| one.version)
        ),
        ("https://pets.example", Some(3))
    );
    assert_eq!(server.instructions.as_deref(), Some("Be kind."));

    let mut tx = change(&store, registry.tenant).await;
    servers::delete(&mut tx, registry.server, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert!(
        published(&store, registry.tenant).await.is_none(),
        "deleted"
    );
}

#[tokio::test]
async fn a_node_sees_no_disabled_tool_and_none_of_a_deleted_source() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let registry = registry(&store, scene.tenant).await;
    let mut tx = change(&store, registry.tenant).await;
    servers::set_status(&mut tx, registry.server, ServerStatus::Published, now())
        .await
        .unwrap();
    tools::set_enabled(&mut tx, &registry.tools[..1], false, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        published(&store, registry.tenant)
            .await
            .unwrap()
            .tools
            .len(),
        2
    );
    let mut tx = change(&store, registry.tenant).await;
    sources::delete(&mut tx, registry.source, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let server = published(&store, registry.tenant).await.unwrap();
    assert!(server.tools.is_empty() && server.sources.is_empty());
}

#[tokio::test]
async fn a_node_sees_nothing_of_another_tenant() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let registry = registry(&store, scene.tenant).await;
    let mut tx = change(&store, registry.tenant).await;
    servers::set_status(&mut tx, registry.server, ServerStatus::Published, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let stranger = TenantId::generate();
    assert!(published(&store, stranger).await.is_none());
    let mut tx = store.node(stranger).await.unwrap();
    assert_eq!(catalog::address(&mut tx).await.unwrap(), None);
    let mut tx = store.node(registry.tenant).await.unwrap();
    assert_eq!(
        catalog::address(&mut tx).await.unwrap().unwrap().slugs,
        ["acme"]
    );
    calls::insert_many(&mut tx, &[])
        .await
        .expect("a node writes the log of calls");
    let refused = servers::set_status(&mut tx, registry.server, ServerStatus::Paused, now()).await;
    assert!(refused.is_err(), "and changes nothing of the registry");
}

#[tokio::test]
async fn a_change_of_the_registry_is_heard_when_it_is_committed() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let mut listener = NewsListener::new(&store);
    assert_eq!(
        listener.next().await,
        News::Everything,
        "nothing is known yet"
    );
    let before = address_revision(&store, scene.tenant).await;
    let mut tx = change(&store, scene.tenant).await;
    registry_news::changed(&mut tx).await.unwrap();
    drop(tx);
    let mut tx = change(&store, scene.tenant).await;
    registry_news::changed(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(listener.next().await, News::Changed(scene.tenant));
    assert_eq!(
        address_revision(&store, scene.tenant).await,
        before + 1,
        "what was rolled back is no news"
    );
}

async fn address_revision(store: &Store, tenant: TenantId) -> i64 {
    let mut tx = store.node(tenant).await.unwrap();
    catalog::address(&mut tx)
        .await
        .unwrap()
        .unwrap()
        .registry_revision
}
