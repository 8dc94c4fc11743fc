//! Prompts and resources: written, chosen, published, undone; and nothing of them shows elsewhere.

use portolan_model::{
    id::{PromptId, PromptKind, ResourceId, ServerId, SourceId, TenantId},
    prompt::{Argument, Block, Message, Speaker},
    registry::{ResourceBody, ResourceShape, ServerStatus, SourceKind},
};
use portolan_storage::{
    Reason, Store, TenantTx,
    expiry::{self, Expired},
    registry::{
        catalog, prompts,
        published_items::{self, PublishedItem as _},
        resources, servers, sources, trash,
    },
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    database::Database,
    scene::{Scene, now},
};

fn prompt<'a>(name: &'a str, messages: &'a [Message]) -> prompts::Definition<'a> {
    prompts::Definition {
        name,
        title: "Title",
        description: "",
        arguments: &[],
        messages,
        enabled: true,
    }
}

fn text(text: &str) -> Vec<Message> {
    vec![Message {
        role: Speaker::User,
        content: Block::Text {
            text: text.to_owned(),
        },
    }]
}

fn resource<'a>(
    uri: &'a str,
    annotations: &'a Value,
    holds: resources::Holds<'a>,
) -> resources::Definition<'a> {
    resources::Definition {
        shape: if uri.contains('{') {
            ResourceShape::Template
        } else {
            ResourceShape::Resource
        },
        uri,
        name: "notes",
        title: "",
        description: "",
        mime_type: Some("text/plain"),
        annotations,
        variables: &[],
        holds,
        enabled: true,
    }
}

async fn server(tx: &mut TenantTx) -> ServerId {
    let id = ServerId::generate();
    let new = servers::NewServer {
        id,
        slug: "notes",
        name: "Notes",
        description: None,
        instructions: None,
    };
    servers::insert(tx, &new, now()).await.unwrap();
    servers::set_status(tx, id, ServerStatus::Published, now())
        .await
        .unwrap();
    id
}

async fn published(store: &Store, tenant: TenantId) -> catalog::PublishedServer {
    let mut tx = store.node(tenant).await.unwrap();
    catalog::published(&mut tx, Some("notes"))
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn pr_1_a_node_sees_chosen_prompts_that_are_enabled_and_not_deleted() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let (first, second) = (PromptId::generate(), PromptId::generate());
    let (short, long) = (text("Say {{what}}."), text(&"x".repeat(20_000)));
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let server = server(&mut tx).await;
    let arguments = [Argument {
        name: "what".into(),
        required: true,
        ..Argument::default()
    }];
    let with_argument = prompts::Definition {
        arguments: &arguments,
        ..prompt("say", &short)
    };
    prompts::insert(&mut tx, first, &with_argument, now())
        .await
        .unwrap();
    prompts::insert(&mut tx, second, &prompt("Long", &long), now())
        .await
        .unwrap();
    let chosen = [(first, "say".to_owned()), (second, "Long".to_owned())];
    published_items::choose(&mut tx, server, &chosen, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let seen = published(&store, scene.tenant).await;
    let names: Vec<&str> = seen.prompts.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Long", "say"], "byte order");
    assert_eq!(seen.prompts[1].arguments, arguments);
    assert_eq!(seen.prompts[1].messages, Some(json!(short)));
    assert_eq!(
        seen.prompts[0].messages, None,
        "large ones are read when asked for"
    );
    let mut tx = store.node(scene.tenant).await.unwrap();
    assert_eq!(
        prompts::messages(&mut tx, second).await.unwrap(),
        Some((1, json!(long)))
    );
    drop(tx);

    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let disabled = published_items::set_enabled(&mut tx, &[second], false, now()).await;
    assert_eq!(disabled.unwrap(), [second]);
    assert!(trash::delete(&mut tx, first, now()).await.unwrap());
    tx.commit().await.unwrap();
    assert!(published(&store, scene.tenant).await.prompts.is_empty());

    let mut tx = store.tenant(scene.tenant).await.unwrap();
    assert!(trash::restore(&mut tx, first, now()).await.unwrap());
    assert!(
        !trash::delete(&mut tx, PromptId::generate(), now())
            .await
            .unwrap()
    );
    assert_eq!(
        published_items::rename(&mut tx, first, "say", "tell")
            .await
            .unwrap(),
        1
    );
    tx.commit().await.unwrap();
    let seen = published(&store, scene.tenant).await;
    assert_eq!(
        seen.prompts[0].name, "tell",
        "its servers follow, and deleting is undone"
    );
}

#[tokio::test]
async fn a_clash_of_names_and_of_uris_is_refused_and_says_which() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let messages = text("x");
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    prompts::insert(
        &mut tx,
        PromptId::generate(),
        &prompt("say", &messages),
        now(),
    )
    .await
    .unwrap();
    let taken = prompts::insert(
        &mut tx,
        PromptId::generate(),
        &prompt("say", &messages),
        now(),
    )
    .await;
    assert!(taken.unwrap_err().is_conflict_on(prompts::NAME_TAKEN));
    drop(tx);

    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let (one, two) = (PromptId::generate(), PromptId::generate());
    let server_id = server(&mut tx).await;
    prompts::insert(&mut tx, one, &prompt("a", &messages), now())
        .await
        .unwrap();
    prompts::insert(&mut tx, two, &prompt("b", &messages), now())
        .await
        .unwrap();
    let chosen = [(one, "same".to_owned()), (two, "same".to_owned())];
    let clash = published_items::choose(&mut tx, server_id, &chosen, now()).await;
    assert!(clash.unwrap_err().is_conflict_on(PromptKind::CLASH));
    drop(tx);

    let none = json!({});
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let held = resource("notes://a", &none, resources::Holds::Text("x"));
    let id = ResourceId::generate();
    resources::insert(&mut tx, id, &held, now()).await.unwrap();
    assert!(trash::delete(&mut tx, id, now()).await.unwrap());
    resources::insert(&mut tx, ResourceId::generate(), &held, now())
        .await
        .expect("a deleted one is in nobody's way");
    let taken = trash::restore(&mut tx, id, now()).await;
    assert!(taken.unwrap_err().is_conflict_on(resources::URI_TAKEN));
}

#[tokio::test]
async fn re_2_a_resource_keeps_its_file_and_raises_its_version_with_every_change() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let none = json!({});
    let (file, large) = (ResourceId::generate(), ResourceId::generate());
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let server = server(&mut tx).await;
    let bytes = vec![7_u8; 20_000];
    let small = resource("notes://file", &none, resources::Holds::File(&[0, 255]));
    resources::insert(&mut tx, file, &small, now())
        .await
        .unwrap();
    let held = resource("notes://{id}", &none, resources::Holds::File(&bytes));
    resources::insert(&mut tx, large, &held, now())
        .await
        .unwrap();
    let chosen = [
        (file, "notes://file".to_owned()),
        (large, "notes://{id}".to_owned()),
    ];
    published_items::choose(&mut tx, server, &chosen, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let seen = published(&store, scene.tenant).await.resources;
    assert_eq!(
        (seen[0].content.as_deref(), seen[0].size),
        (Some(&[0, 255][..]), Some(2))
    );
    assert_eq!(
        (seen[1].content.as_deref(), seen[1].size),
        (None, Some(20_000))
    );
    assert_eq!(seen[1].shape, ResourceShape::Template);
    assert_eq!(seen[0].version, 1);
    let mut tx = store.node(scene.tenant).await.unwrap();
    assert_eq!(
        resources::content(&mut tx, large).await.unwrap(),
        Some((1, bytes))
    );
    drop(tx);

    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let same = resource("notes://renamed", &none, resources::Holds::SameFile);
    assert!(
        resources::replace(&mut tx, file, &same, now())
            .await
            .unwrap()
    );
    assert_eq!(
        published_items::rename(&mut tx, file, "notes://file", "notes://renamed")
            .await
            .unwrap(),
        1
    );
    tx.commit().await.unwrap();
    let seen = published(&store, scene.tenant).await.resources;
    assert_eq!(seen[0].uri, "notes://renamed");
    assert_eq!(
        (seen[0].content.as_deref(), seen[0].version),
        (Some(&[0, 255][..]), 2)
    );

    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let text = resource("notes://renamed", &none, resources::Holds::Text("x"));
    assert!(
        resources::replace(&mut tx, file, &text, now())
            .await
            .unwrap()
    );
    let lost = resources::replace(&mut tx, file, &same, now()).await;
    assert!(lost.is_err(), "what holds a text has no file to keep");
}

#[tokio::test]
async fn an_http_backed_resource_brings_its_source_and_goes_with_it() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let (none, plan) = (json!({}), json!({"method": "GET", "path": "/pets/{id}"}));
    let (source, id) = (SourceId::generate(), ResourceId::generate());
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    let server = server(&mut tx).await;
    let new = sources::NewSource {
        id: source,
        kind: SourceKind::Http,
        name: "Pets",
        base_url: "https://pets.example",
        document: None,
        security: &json!([]),
    };
    sources::insert(&mut tx, &new, now()).await.unwrap();
    let holds = resources::Holds::Http {
        source,
        path: "/pets/{id}",
        plan: &plan,
    };
    resources::insert(&mut tx, id, &resource("pets://{id}", &none, holds), now())
        .await
        .unwrap();
    published_items::choose(&mut tx, server, &[(id, "pets://{id}".to_owned())], now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let seen = published(&store, scene.tenant).await;
    assert_eq!(seen.resources[0].body, ResourceBody::Http);
    assert_eq!(seen.resources[0].source, Some(source));
    assert!(seen.sources.contains_key(&source));

    let mut tx = store.tenant(scene.tenant).await.unwrap();
    trash::delete(&mut tx, source, now()).await.unwrap();
    assert_eq!(
        resources::list(&mut tx).await.unwrap().len(),
        1,
        "the console still shows it"
    );
    tx.commit().await.unwrap();
    let seen = published(&store, scene.tenant).await;
    assert!(seen.resources.is_empty() && seen.sources.is_empty());
}

#[tokio::test]
async fn m2_nobody_sees_or_takes_the_prompts_and_resources_of_another_tenant() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let none = json!({});
    let (id, held) = (PromptId::generate(), ResourceId::generate());
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    prompts::insert(&mut tx, id, &prompt("say", &text("x")), now())
        .await
        .unwrap();
    resources::insert(
        &mut tx,
        held,
        &resource("notes://a", &none, resources::Holds::Text("x")),
        now(),
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let stranger = TenantId::generate();
    let mut tx = store.tenant(stranger).await.unwrap();
    assert!(prompts::find(&mut tx, id).await.unwrap().is_none());
    assert!(resources::find(&mut tx, held).await.unwrap().is_none());
    assert!(resources::content(&mut tx, held).await.unwrap().is_none());
    assert!(!trash::delete(&mut tx, id, now()).await.unwrap());
    drop(tx);
    let mut tx = store.node(stranger).await.unwrap();
    assert!(prompts::messages(&mut tx, id).await.unwrap().is_none());
    assert!(resources::content(&mut tx, held).await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_deleted_and_not_restored_is_purged() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let none = json!({});
    let (id, held) = (PromptId::generate(), ResourceId::generate());
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    prompts::insert(&mut tx, id, &prompt("say", &text("x")), now())
        .await
        .unwrap();
    resources::insert(
        &mut tx,
        held,
        &resource("notes://a", &none, resources::Holds::Text("x")),
        now(),
    )
    .await
    .unwrap();
    trash::delete(&mut tx, id, now()).await.unwrap();
    trash::delete(&mut tx, held, now()).await.unwrap();
    tx.commit().await.unwrap();
    for (after, rows) in [(Duration::days(30), 0), (Duration::days(31), 1)] {
        for what in [Expired::Prompts, Expired::Resources] {
            let mut tx = store.system(Reason::Janitor).await.unwrap();
            assert_eq!(
                expiry::purge(&mut tx, what, now() + after).await.unwrap(),
                rows,
                "{what:?}"
            );
            tx.commit().await.unwrap();
        }
    }
}
