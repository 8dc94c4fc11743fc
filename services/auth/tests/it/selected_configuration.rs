//! Plans of selected objects of a file (CONF-16).

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    access_tokens::code,
    configuration::{applied, exported, file, fine, planned, put},
    console::workspace,
    test_service::TestService,
};

const TWO: &str = "sources:
  - name: crm
    kind: http
    base_url: https://api.example/v1
    credential: {bearer: {secret: env:CRM_KEY}}
    tools:
      find: {define: {description: Finds, method: GET, path: /find}}
  - name: erp
    kind: http
    base_url: https://erp.example/v1
    tools:
      book: {define: {description: Books, method: GET, path: /book}}
prompts:
  - {name: greet, messages: [{role: user, content: {text: Hello}}]}
servers:
  - {slug: sales, from: [crm], prompts: [{prompt: greet}]}
  - {slug: books, from: [erp]}
";

fn select(selectors: &[&str]) -> Value {
    json!({ "select": selectors })
}

fn changed(plan: &Value) -> Vec<String> {
    let changes = plan["changes"].as_array().unwrap();
    let key = |one: &Value| format!("{} {}", one["op"], one["key"]).replace('"', "");
    changes.iter().map(key).collect()
}

/// Rule: CONF-16
#[tokio::test]
async fn only_selected_objects_are_planned_and_applied() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let text = file(TWO);
    // The secret of a source that is not selected is not needed.
    let erp = select(&["sources/erp", "servers/boo*"]);
    let plan = fine(&planned(&ann, "acme", &text, erp.clone()).await);
    assert_eq!(changed(&plan), ["create erp", "create books"]);
    fine(&applied(&ann, "acme", &plan).await);
    let plan = fine(&planned(&ann, "acme", &text, erp).await);
    assert_eq!(plan["changes"], json!([]), "{plan}");
    let export = exported(&ann, "acme").await;
    assert!(
        !export.contains("crm") && !export.contains("greet"),
        "{export}"
    );

    // Pruning looks at selected objects alone.
    let more = file(&format!("{TWO}  - {{slug: old, from: [erp]}}\n"));
    put(&ann, "acme", &more, select(&["servers/old"])).await;
    let less = file("prompts: []\n");
    for (selectors, gone) in [
        (&["servers/old"][..], vec!["delete old"]),
        (
            &["servers/o*", "servers/b*"],
            vec!["delete books", "delete old"],
        ),
        (&["sources/erp"], vec!["delete erp"]),
    ] {
        let plan = fine(&planned(&ann, "acme", &less, select(selectors)).await);
        let own: Vec<_> = changed(&plan)
            .into_iter()
            .filter(|one| one.starts_with("delete"))
            .collect();
        assert_eq!(own, gone, "{plan}");
    }
    put(&ann, "acme", &less, select(&["servers/old"])).await;
    let export = exported(&ann, "acme").await;
    assert!(
        export.contains("books") && !export.contains("old"),
        "{export}"
    );
}

/// Rule: CONF-16
#[tokio::test]
async fn references_to_what_is_left_out_must_exist() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let text = file(TWO);
    let sales = planned(&ann, "acme", &text, select(&["servers/sales"])).await;
    assert_eq!(code(&sales), "reference_unknown", "{}", sales.text);
    assert!(
        sales
            .text
            .contains("`sources/crm` of the file is not selected"),
        "{}",
        sales.text
    );
    assert_eq!(
        sales.json()["error"]["details"]["line"],
        18,
        "{}",
        sales.text
    );
    let mut with_source = select(&["servers/sales", "sources/crm"]);
    with_source["secrets"] = json!({"env:CRM_KEY": "planted"});
    let answer = planned(&ann, "acme", &text, with_source).await;
    assert_eq!(code(&answer), "reference_unknown", "{}", answer.text);
    assert!(
        answer.text.contains("`prompts/greet` of the file"),
        "{}",
        answer.text
    );

    // Once the workspace has them, the server alone is enough.
    let all = json!({"secrets": {"env:CRM_KEY": "planted"}});
    put(&ann, "acme", &text, all).await;
    let other = text.replace("slug: sales,", "slug: sales, name: Sales,");
    let plan = fine(&planned(&ann, "acme", &other, select(&["servers/sales"])).await);
    assert_eq!(changed(&plan), ["update sales"]);
}

/// Rule: CONF-16
#[tokio::test]
async fn an_unknown_selector_is_refused_with_its_index() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let cases = [
        (&["servers/sales", "servers/salse"][..], 1, "servers/sales"),
        (&["sevrers/sales"], 0, "servers/sales"),
        (&["sales"], 0, "kind/key"),
        (
            &["webhooks/*"],
            0,
            "neither in the file nor in the workspace",
        ),
    ];
    for (selectors, index, words) in cases {
        let answer = planned(&ann, "acme", &file(TWO), select(selectors)).await;
        assert_eq!(
            answer.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            answer.text
        );
        assert_eq!(code(&answer), "selector_unknown", "{}", answer.text);
        let field = &answer.json()["error"]["field"];
        assert_eq!(*field, format!("select[{index}]"), "{}", answer.text);
        assert!(answer.text.contains(words), "{}", answer.text);
    }
}
