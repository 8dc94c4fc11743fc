//! Definitions come back in the order and with the numbers in which they were written, and as the
//! release before wrote them if it did.

use portolan_model::{
    id::{SourceId, TenantId},
    registry::SourceKind,
};
use portolan_storage::{
    Store,
    registry::{
        sources,
        tools::{self, Filter, Imported, Tool, Wording},
    },
};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::{
    database::Database,
    scene::{Scene, now},
};

async fn source(store: &Store, tenant: TenantId) -> SourceId {
    let id = SourceId::generate();
    let new = sources::NewSource {
        id,
        kind: SourceKind::Http,
        name: "Zoo",
        base_url: "https://zoo.example",
        document: None,
        security: &json!([]),
    };
    let mut tx = store.tenant(tenant).await.unwrap();
    sources::insert(&mut tx, &new, now()).await.unwrap();
    tx.commit().await.unwrap();
    id
}

fn schema(description: &str) -> Value {
    json!({"type": "object", "required": ["yak"], "properties": {"zebra": {"type": "string", "description": description}, "yak": {}, "a": {}}})
}

fn tool(key: &str, written: Option<String>) -> Imported {
    Imported {
        operation_key: key.to_owned(),
        wording: Wording {
            name: key.to_owned(),
            title: String::new(),
            description: String::new(),
        },
        input_schema: schema("one"),
        output_schema: Some(schema("out")),
        annotations: json!({"title": "T", "x": 1}),
        plan: json!({"path": "/", "z": 1, "method": "GET"}),
        definition: Some(json!({"path": "/", "name": "x"})),
        written,
        warnings: Vec::new(),
    }
}

async fn stored(store: &Store, tenant: TenantId) -> Vec<Tool> {
    let mut tx = store.tenant(tenant).await.unwrap();
    let mut all = tools::list(&mut tx, &Filter::default(), 10).await.unwrap();
    all.sort_by(|a, b| a.original.name.cmp(&b.original.name));
    all
}

#[tokio::test]
async fn order_and_numbers_of_definitions_are_those_that_were_written() {
    let store = Database::new().await.store(4).await;
    let tenant = Scene::new(&store).await.tenant;
    let source = source(&store, tenant).await;
    let definition = r#"{"x-b":1.50,"x-a":12345678901234567890123456789,"inputSchema":{"z":1,"type":"object","aa":2}}"#;
    let all = [
        (tool("GET /a", None), true),
        (tool("b", Some(definition.to_owned())), true),
    ];
    let mut tx = store.tenant(tenant).await.unwrap();
    tools::insert_many(&mut tx, source, &all, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let check = |tool: &Tool| {
        assert_eq!(tool.input_schema.to_string(), schema("one").to_string());
        let output = tool.output_schema.as_ref().unwrap();
        assert_eq!(output.to_string(), schema("out").to_string());
        assert_eq!(tool.annotations.to_string(), r#"{"title":"T","x":1}"#);
        assert_eq!(
            tool.plan.to_string(),
            r#"{"path":"/","z":1,"method":"GET"}"#
        );
        let form = tool.definition.as_ref().unwrap();
        assert_eq!(form.to_string(), r#"{"path":"/","name":"x"}"#);
        assert_eq!(tool.written, None);
    };
    let found = stored(&store, tenant).await;
    check(&found[0]);
    assert_eq!(found[1].written.as_deref(), Some(definition));
    let schema = r#"{"z":1,"type":"object","aa":2}"#;
    assert_eq!(found[1].input_schema.to_string(), schema);
    // The same again, and in another place.
    let mut tx = store.tenant(tenant).await.unwrap();
    assert!(
        tools::replace(&mut tx, source, &all[0].0, now())
            .await
            .unwrap()
    );
    let moved = Imported {
        operation_key: "GET /c".to_owned(),
        ..all[0].0.clone()
    };
    assert!(
        tools::redefine(&mut tx, found[0].id, &moved, now())
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    check(&stored(&store, tenant).await[0]);
}

#[tokio::test]
async fn what_the_release_before_writes_holds() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let tenant = Scene::new(&store).await.tenant;
    let source = source(&store, tenant).await;
    let mut tx = store.tenant(tenant).await.unwrap();
    let all = [(tool("GET /a", None), true)];
    tools::insert_many(&mut tx, source, &all, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    // A workspace's own settings do not change the definition.
    for (statement, is_kept) in [
        (
            "update tools set title_override = 'Mine', enabled = false",
            true,
        ),
        ("update tools set state = 'active', plan = plan", true),
        (
            r#"update tools set input_schema = '{"type": "object", "new": true}', plan = plan"#,
            false,
        ),
    ] {
        sqlx::raw_sql(statement).execute(&mut owner).await.unwrap();
        let found = stored(&store, tenant).await;
        // A comparison of values would not see the order.
        let plan = found[0].plan.to_string();
        let is_ordered = plan.starts_with(r#"{"path":"/","z":1,"#);
        assert_eq!(is_ordered, is_kept, "{statement}: {plan}");
        assert_eq!(
            found[0].input_schema["new"] == json!(true),
            !is_kept,
            "{statement}"
        );
    }
}
