//! A node reads only published items of the transaction's tenant.

use portolan_model::{
    id::{ServerId, SourceId, TenantId, ToolId},
    registry::{ServerStatus, SourceKind},
};
use portolan_storage::{
    Store, TenantTx,
    registry::{
        catalog, credentials, published_items,
        registry_news::{self, News, NewsListener},
        servers, sources, tools, trash,
    },
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
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
            written: None,
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
    published_items::choose(&mut tx, server, &chosen, now())
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
    catalog::published(&mut tx, Some("pets"))
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
        "MCP-TL-3: byte order, whatever the collation"
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
    trash::delete(&mut tx, registry.server, now())
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
    published_items::set_enabled(&mut tx, &registry.tools[..1], false, now())
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
    trash::delete(&mut tx, registry.source, now())
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

/// The slug of what the tenant's own URL serves.
async fn served_by_default(store: &Store, tenant: TenantId) -> Option<String> {
    let mut tx = store.node(tenant).await.expect("a transaction");
    let server = catalog::published(&mut tx, None).await.expect("an answer");
    server.map(|server| server.slug)
}

/// Publishes as the console does: the first one becomes the default.
async fn publish(store: &Store, tenant: TenantId, server: ServerId) -> bool {
    let mut tx = change(store, tenant).await;
    let is_first = servers::make_default_if_first(&mut tx, server)
        .await
        .unwrap();
    servers::set_status(&mut tx, server, ServerStatus::Published, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    is_first
}

/// Another draft.
async fn draft(store: &Store, tenant: TenantId, slug: &str) -> ServerId {
    let id = ServerId::generate();
    let mut tx = change(store, tenant).await;
    let new = servers::NewServer {
        id,
        slug,
        name: slug,
        description: None,
        instructions: None,
    };
    servers::insert(&mut tx, &new, now()).await.unwrap();
    tx.commit().await.unwrap();
    id
}

#[tokio::test]
async fn section_5_1_the_first_published_server_is_the_default_until_another_is_chosen() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    let first = registry(&store, scene.tenant).await.server;
    let tenant = scene.tenant;
    assert_eq!(served_by_default(&store, tenant).await, None);
    let second = draft(&store, tenant, "boats").await;
    assert!(publish(&store, tenant, first).await);
    assert!(!publish(&store, tenant, second).await, "not the first");
    assert!(!publish(&store, tenant, first).await, "it is already");
    assert_eq!(
        served_by_default(&store, tenant).await.as_deref(),
        Some("pets")
    );
    let choose = async |id: Option<ServerId>| {
        let mut tx = change(&store, tenant).await;
        let chosen = servers::set_default(&mut tx, id).await.unwrap();
        tx.commit().await.unwrap();
        chosen
    };
    assert!(choose(Some(second)).await);
    assert_eq!(
        served_by_default(&store, tenant).await.as_deref(),
        Some("boats")
    );
    let mut tx = change(&store, tenant).await;
    let listed = servers::list(&mut tx).await.unwrap();
    let defaults: Vec<&str> = listed
        .iter()
        .filter(|server| server.is_default)
        .map(|server| server.slug.as_str())
        .collect();
    assert_eq!(defaults, ["boats"], "there is one");
    drop(tx);
    assert!(!choose(Some(ServerId::generate())).await, "nobody's");
    assert!(choose(None).await);
    assert_eq!(served_by_default(&store, tenant).await, None);
    assert!(
        !publish(&store, tenant, first).await,
        "none was chosen, and stays"
    );

    // A default that is paused or deleted is there again when it is.
    assert!(choose(Some(second)).await);
    let mut tx = change(&store, tenant).await;
    trash::delete(&mut tx, second, now()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(served_by_default(&store, tenant).await, None);
    assert!(!choose(Some(second)).await, "a deleted one");
    let mut tx = change(&store, tenant).await;
    trash::restore(&mut tx, second, now()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        served_by_default(&store, tenant).await.as_deref(),
        Some("boats")
    );
    // Not even who owns the tables gives it the server of another.
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let statement = format!(
        "insert into tenants (id, name, default_server, created_at) values ('{}', 'Beta', '{}', now())",
        Uuid::now_v7(),
        second.uuid()
    );
    let refused = sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut owner)
        .await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("tenants_default_server")
    );
}

#[tokio::test]
async fn section_5_1_of_two_servers_published_at_once_one_is_the_first() {
    let store = Database::new().await.store(8).await;
    let scene = Scene::new(&store).await;
    let one = draft(&store, scene.tenant, "boats").await;
    let other = draft(&store, scene.tenant, "crews").await;
    let (one, other) = tokio::join!(
        publish(&store, scene.tenant, one),
        publish(&store, scene.tenant, other)
    );
    assert!(one != other, "one and not both");
    assert!(served_by_default(&store, scene.tenant).await.is_some());
}
