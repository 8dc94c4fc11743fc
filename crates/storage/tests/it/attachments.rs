//! Attached servers: keys, and the connections that nodes report (ADR 39).

use portolan_model::{id::SourceId, registry::SourceKind};
use portolan_storage::registry::{
    attachments::{self, NewKey, Report},
    sources,
};
use serde_json::json;

use crate::{
    database::Database,
    scene::{Scene, digest, now},
};

#[tokio::test]
async fn a_report_keeps_the_readable_part_of_a_programs_error() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    let source = SourceId::generate();
    let new = sources::NewSource {
        id: source,
        kind: SourceKind::Mcp,
        name: "office",
        base_url: "https://office.attached.invalid/mcp",
        document: None,
        security: &json!([]),
    };
    let key = NewKey {
        digest: &digest(),
        hint: "mcpa_",
        created_by: Some(scene.user),
    };
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    sources::insert(&mut tx, &new, now()).await.unwrap();
    attachments::insert(&mut tx, source, "office", &key, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let long = format!("a\0b\u{1b}[31m{}", "é".repeat(600));
    let report = Report {
        source,
        node: "n1",
        instance: "program1",
        version: "portolan/0",
        is_ready: false,
        error: Some(&long),
    };
    let mut tx = store.node(scene.tenant).await.unwrap();
    attachments::report(&mut tx, &report, now()).await.unwrap();
    tx.commit().await.unwrap();

    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let tunnels = attachments::tunnels(&mut tx, source, now()).await.unwrap();
    let [tunnel] = &tunnels[..] else {
        panic!("{tunnels:?}")
    };
    let error = tunnel.error.as_deref().unwrap();
    assert!(error.starts_with("ab[31mé"), "{error}");
    assert_eq!(error.chars().count(), 500);
}
