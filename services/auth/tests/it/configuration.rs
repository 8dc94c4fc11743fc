//! Configuration as code through the API: export, plan and apply, on a real Postgres.

use http::{Method, StatusCode};
use portolan_model::member::Role;
use proptest::{
    collection::vec,
    option,
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    access_tokens::{code, of_workspace},
    console::workspace,
    races,
    test_service::{Answer, Browser, TestService},
    webhook_receivers::Receiver,
};

/// Random workspaces of one run. One person owns 20 at most, and each has a copy.
const WORKSPACES: usize = 10;

const SECRET: &str = "planted-crm-key";

/// The answer of a request that succeeds.
pub(crate) fn fine(answer: &Answer) -> Value {
    assert!(answer.status.is_success(), "{}", answer.text);
    if answer.text.is_empty() {
        Value::Null
    } else {
        answer.json()
    }
}

async fn send(person: &Browser<'_>, method: Method, path: &str, body: Value) -> Value {
    fine(&person.call(method, path, Some(body)).await)
}

/// A plan of a file, with `more` members of the request.
pub(crate) async fn planned(person: &Browser<'_>, slug: &str, text: &str, more: Value) -> Answer {
    let mut body = json!({"bundle": text});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let path = format!("/workspaces/{slug}/configuration/plans");
    person.call(Method::POST, &path, Some(body)).await
}

pub(crate) async fn applied(person: &Browser<'_>, slug: &str, plan: &Value) -> Answer {
    let id = plan["id"].as_str().unwrap();
    let path = format!("/workspaces/{slug}/configuration/plans/{id}/apply");
    let body = json!({"meta": {"commit": "1a2b3c"}});
    person.call(Method::POST, &path, Some(body)).await
}

/// Plans and applies.
pub(crate) async fn put(person: &Browser<'_>, slug: &str, text: &str, more: Value) -> Value {
    let plan = fine(&planned(person, slug, text, more).await);
    fine(&applied(person, slug, &plan).await)
}

/// The workspace as YAML, under the name `file`.
pub(crate) async fn exported(person: &Browser<'_>, slug: &str) -> String {
    let path = format!("/workspaces/{slug}/configuration?format=yaml&name=file");
    let answer = person.call(Method::GET, &path, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.text
}

/// A file with this content, under the name `acme-prod`.
pub(crate) fn file(content: &str) -> String {
    format!("format: portolan/v1\nname: acme-prod\n{content}")
}

const CRM: &str = "sources:
  - name: crm
    kind: http
    base_url: https://api.example/v1
    credential: {bearer: {secret: env:CRM_KEY}}
    tools:
      get_customer:
        define: {description: Finds a customer, method: GET, path: '/customers/{id}',
          parameters: [{name: id, in: path}]}
prompts:
  - {name: greet, messages: [{role: user, content: {text: Hello}}]}
servers:
  - {slug: sales, from: [crm], prompts: [{prompt: greet}]}
";

fn crm_key() -> Value {
    json!({"secrets": {"env:CRM_KEY": SECRET}})
}

/// The random parts of a workspace.
#[derive(Debug)]
struct Recipe {
    texts: Vec<String>,
    names: Vec<Option<String>>,
    switches: Vec<bool>,
    timeout: u32,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let text = prop_oneof![
        "[ -~]{1,40}",
        "[a-zäß∂: #\n\"'|>\\-]{1,40}",
        Just("yes".to_owned()),
        Just("one\n  two\n\nthree: [x]".to_owned()),
    ]
    .prop_filter("a text", |text| {
        !text.trim().is_empty() && !text.contains('{')
    });
    (
        vec(text, 8),
        vec(option::of("[a-z]{3,12}"), 4),
        vec(any::<bool>(), 8),
        100_u32..120_000,
    )
        .prop_map(|(texts, names, switches, timeout)| Recipe {
            texts,
            names,
            switches,
            timeout,
        })
}

fn document() -> Value {
    let operation = |id: &str| json!({"operationId": id, "responses": {}});
    json!({"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"},
        "paths": {"/pets": {"get": operation("listPets"), "post": operation("addPet")},
            "/pets/{id}": {"delete": operation("deletePet"), "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}}})
}

/// Makes a workspace by the requests of the console.
async fn make(person: &Browser<'_>, slug: &str, recipe: &Recipe) {
    let at = |path: &str| format!("/workspaces/{slug}{path}");
    let texts = &recipe.texts;
    let pets = json!({"kind": "openapi", "name": "Pets", "base_url": "https://pets.example/v1",
        "input": {"kind": "text", "text": document().to_string()}});
    let pets = send(person, Method::POST, &at("/sources"), pets).await;
    let pets = pets["id"].as_str().unwrap().to_owned();
    let path = at(&format!("/sources/{pets}"));
    let settings = json!({"timeout_ms": recipe.timeout, "max_response_bytes": 2048,
        "follow_redirects": if recipe.switches[0] {"none"} else {"same_origin"}});
    send(person, Method::PATCH, &path, json!({"settings": settings})).await;
    let key = json!({"kind": "api_key", "in": "header", "name": "X-Key", "value": SECRET});
    send(person, Method::PUT, &format!("{path}/credential"), key).await;
    let tools = person
        .call(Method::GET, &format!("{path}/tools"), None)
        .await
        .json();
    let mut chosen = Vec::new();
    for (at_tool, tool) in tools["items"].as_array().unwrap().iter().enumerate() {
        let id = tool["id"].as_str().unwrap();
        let name = recipe.names[at_tool]
            .as_ref()
            .map(|name| format!("{name}{at_tool}"));
        let change = json!({"name": name, "description": texts[at_tool],
            "enabled": recipe.switches[at_tool + 1]});
        send(person, Method::PATCH, &at(&format!("/tools/{id}")), change).await;
        chosen.push(id.to_owned());
    }
    let crm = json!({"kind": "http", "name": texts[3].trim(), "base_url": "https://crm.example"});
    let crm = person.call(Method::POST, &at("/sources"), Some(crm)).await;
    if crm.status == StatusCode::CREATED {
        let id = crm.json()["id"].as_str().unwrap().to_owned();
        let tool = json!({"name": "find", "description": texts[4], "method": "get",
            "path": "/find/{id}", "enabled": recipe.switches[5], "parameters": [
                {"name": "id", "in": "path", "schema": {"type": "integer", "minimum": 1.5}},
                {"name": "q", "in": "query", "required": true, "description": texts[5],
                    "schema": {}}], "body": null});
        let made = send(
            person,
            Method::POST,
            &at(&format!("/sources/{id}/tools")),
            tool,
        )
        .await;
        chosen.push(made["id"].as_str().unwrap().to_owned());
    }
    let prompt = json!({"name": "greet", "description": texts[6], "enabled": recipe.switches[6],
        "arguments": [{"name": "who", "required": true, "values": [{"value": "Ann"}]}],
        "messages": [{"role": "user", "content": {"type": "text", "text": texts[7]}},
            {"role": "assistant", "content": {"type": "image", "data": "AA==",
                "mime_type": "image/png"}}]});
    let prompt = send(person, Method::POST, &at("/prompts"), prompt).await;
    let holds = json!({"kind": "text", "text": texts[0].repeat(300)});
    let note = json!({"uri": "notes://{id}", "name": "note", "mime_type": "text/plain",
        "variables": [{"name": "id", "description": texts[1]}], "holds": holds});
    let note = send(person, Method::POST, &at("/resources"), note).await;
    let picture = json!({"uri": "pictures://one", "name": "picture", "enabled": false,
        "holds": {"kind": "file", "data": "AAECAwQ="}});
    send(person, Method::POST, &at("/resources"), picture).await;
    let title = texts[2].replace('\n', " ");
    let server = json!({"slug": "first", "name": title.trim(), "instructions": texts[5],
        "tool_ids": chosen});
    let server = send(person, Method::POST, &at("/servers"), server).await;
    let path = at(&format!("/servers/{}", server["id"].as_str().unwrap()));
    let prompts = json!({"prompts": [{"prompt_id": prompt["id"], "published_name": "hello"}]});
    send(person, Method::PUT, &format!("{path}/prompts"), prompts).await;
    let resources = json!({"resources": [{"resource_id": note["id"]}]});
    send(person, Method::PUT, &format!("{path}/resources"), resources).await;
    if recipe.switches[7] {
        send(person, Method::POST, &format!("{path}/publish"), json!({})).await;
    }
    let draft = json!({"slug": "second", "name": "second"});
    send(person, Method::POST, &at("/servers"), draft).await;
}

/// Makes endpoints of webhooks by the requests of the console, with one path for each.
async fn make_webhooks(person: &Browser<'_>, slug: &str, recipe: &Recipe, receiver: &Receiver) {
    let events = ["key.created", "server.published", "alert.fired"];
    for (number, is_there) in recipe.switches.iter().take(4).enumerate() {
        if !is_there {
            continue;
        }
        let chosen = &events[number % 3..];
        let header = json!({"name": "X-Key", "value": SECRET});
        let headers = recipe.switches[number + 4].then_some(header);
        let body = json!({"url": format!("{}/{number}?a=b&c", receiver.url()), "events": chosen,
            "description": recipe.texts[number], "headers": Vec::from_iter(headers)});
        let path = format!("/workspaces/{slug}/webhooks");
        let made = send(person, Method::POST, &path, body).await;
        if recipe.switches[number + 3] {
            let id = made["endpoint"]["id"].as_str().unwrap();
            send(
                person,
                Method::POST,
                &format!("{path}/{id}/pause"),
                json!({}),
            )
            .await;
        }
    }
}

/// The value of each secret that the workspace of a recipe has.
fn vault(receiver: &Receiver) -> Value {
    let mut secrets = json!({"vault:Pets": SECRET});
    for number in 0..4 {
        secrets[format!("vault:{}/{number}?a=b&c", receiver.url())] = json!(SECRET);
    }
    json!({ "secrets": secrets })
}

/// Rules: CONF-4, CONF-5, CONF-14
#[tokio::test]
async fn an_export_plans_nothing_and_makes_an_equal_workspace() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person("ann@acme.example").await;
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    for number in 0..WORKSPACES {
        let recipe = recipe().new_tree(&mut runner).unwrap().current();
        let (old, new) = (format!("old-{number}"), format!("new-{number}"));
        workspace(&ann, &old).await;
        workspace(&ann, &new).await;
        make(&ann, &old, &recipe).await;
        make_webhooks(&ann, &old, &recipe, &receiver).await;
        let text = exported(&ann, &old).await;
        let plan = fine(&planned(&ann, &old, &text, json!({"prune": "all"})).await);
        assert_eq!(plan["changes"], json!([]), "{recipe:?}\n{text}");

        let put = put(&ann, &new, &text, vault(&receiver)).await;
        assert!(put["changes"].as_array().unwrap().len() >= 5, "{put}");
        assert_eq!(exported(&ann, &new).await, text, "{recipe:?}");
        let plan = fine(&planned(&ann, &new, &text, json!({})).await);
        assert_eq!(
            (&plan["changes"], &plan["claimed"]),
            (&json!([]), &json!(0)),
            "{text}"
        );
        let json = format!("/workspaces/{new}/configuration?name=file");
        let json = fine(&ann.call(Method::GET, &json, None).await).to_string();
        let plan = fine(&planned(&ann, &new, &json, json!({})).await);
        assert_eq!(plan["changes"], json!([]), "the same as JSON: {json}");
    }
}

/// Rule: CONF-9
#[tokio::test]
async fn of_concurrent_applies_one_wins_and_the_other_is_told() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    put(&ann, "acme", &file(CRM), crm_key()).await;
    for round in races::rounds("of_concurrent_applies_one_wins_and_the_other_is_told") {
        let text = |what: &str| {
            let text = file(CRM).replace("text: Hello", &format!("text: '{what} {round}'"));
            text.replace("Finds a", &format!("Finds {what} {round} a"))
        };
        let one = fine(&planned(&ann, "acme", &text("one"), crm_key()).await);
        let two = fine(&planned(&ann, "acme", &text("two"), crm_key()).await);
        let (first, second, again) = tokio::join!(
            applied(&ann, "acme", &one),
            applied(&ann, "acme", &two),
            applied(&ann, "acme", &one),
        );
        let all = [&first, &second, &again];
        let won = all.iter().filter(|answer| answer.status == StatusCode::OK);
        assert_eq!(won.count(), 1, "{first:?}\n{second:?}\n{again:?}");
        for lost in all.iter().filter(|answer| answer.status != StatusCode::OK) {
            assert_eq!(lost.status, StatusCode::CONFLICT, "{}", lost.text);
        }
        let loser = if second.status == StatusCode::OK {
            &one
        } else {
            &two
        };
        let late = applied(&ann, "acme", loser).await;
        assert_eq!(code(&late), "workspace_moved", "{}", late.text);
        let changed = &late.json()["error"]["details"]["changed"][0];
        assert_eq!(changed["action"], "configuration.applied", "{}", late.text);
        assert_eq!(changed["what"], "acme-prod", "{}", late.text);
        assert_eq!(changed["by"], "ann@acme.example", "{}", late.text);
    }
}

/// Rule: CONF-8
#[tokio::test]
async fn a_plan_ends_after_half_an_hour_and_is_applied_once() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let plan = fine(&planned(&ann, "acme", &file(CRM), crm_key()).await);
    let before = fine(
        &ann.call(Method::GET, "/workspaces/acme/servers", None)
            .await,
    );
    assert_eq!(before["items"], json!([]), "a plan changes nothing");
    service.wait(Duration::minutes(31));
    assert_eq!(code(&applied(&ann, "acme", &plan).await), "plan_over");
    let plan = fine(&planned(&ann, "acme", &file(CRM), crm_key()).await);
    fine(&applied(&ann, "acme", &plan).await);
    let again = applied(&ann, "acme", &plan).await;
    assert_eq!(code(&again), "plan_over", "{}", again.text);
    let foreign = service.person("bob@acme.example").await;
    workspace(&foreign, "other").await;
    let stolen = applied(&foreign, "other", &plan).await;
    assert_eq!(stolen.status, StatusCode::NOT_FOUND, "{}", stolen.text);
}

/// Rule: CONF-2
#[tokio::test]
async fn a_fault_of_a_file_has_its_line_and_changes_nothing() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let cases = [
        ("    base_url", "    base_ur", "configuration_invalid", 6),
        (
            "https://api.example",
            "ftp://api.example",
            "base_url_invalid",
            6,
        ),
        ("path: '/cust", "path: 'cust", "definition_invalid", 9),
        ("prompt: greet}", "prompt: gret}", "reference_unknown", 15),
        ("text: Hello", "text: '{{who}}'", "message_invalid", 13),
        (
            "from: [crm]",
            "tools: [{source: crm, tool: gone}]",
            "reference_unknown",
            15,
        ),
        ("env:CRM_KEY", "env:OTHER", "secret_missing", 7),
        ("env:CRM_KEY", "vault:other", "secret_unknown", 7),
        ("env:CRM_KEY", "vault:crm", "secret_missing", 7),
    ];
    for (good, bad, expected, line) in cases {
        let text = file(CRM).replacen(good, bad, 1);
        let answer = planned(&ann, "acme", &text, crm_key()).await;
        assert_eq!(code(&answer), expected, "{bad}: {}", answer.text);
        let place = &answer.json()["error"]["details"]["line"];
        assert_eq!(*place, line, "{bad}: {}", answer.text);
    }
    let text = file(CRM).replace("base_url", "base_ur");
    let answer = planned(&ann, "acme", &text, crm_key()).await;
    assert!(
        answer.text.contains("did you mean \\\"base_url\\\""),
        "{}",
        answer.text
    );
    let export = exported(&ann, "acme").await;
    assert!(!export.contains("crm"), "{export}");
}

/// Rule: CONF-7
#[tokio::test]
async fn secrets_are_compared_and_shown_nowhere() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let first = fine(&planned(&ann, "acme", &file(CRM), crm_key()).await);
    let put = fine(&applied(&ann, "acme", &first).await);
    let same = fine(&planned(&ann, "acme", &file(CRM), crm_key()).await);
    assert_eq!(same["changes"], json!([]));
    let kept = file(CRM).replace("env:CRM_KEY", "vault:crm");
    let kept = fine(&planned(&ann, "acme", &kept, json!({})).await);
    assert_eq!(kept["changes"], json!([]));
    let other = json!({"secrets": {"env:CRM_KEY": "planted-other-key"}});
    let other = fine(&planned(&ann, "acme", &file(CRM), other).await);
    let expected = json!([{"op": "update", "kind": "source", "key": "crm", "fields": [
        {"path": "credential.secret", "before": "(stored)", "after": "(changed)"}]}]);
    assert_eq!(other["changes"], expected);
    let export = exported(&ann, "acme").await;
    assert!(export.contains("secret: vault:crm"), "{export}");
    let audit = fine(&ann.call(Method::GET, "/workspaces/acme/audit", None).await);
    assert!(audit.to_string().contains("1a2b3c"), "{audit}");
    let shown = [first, put, same, other, audit].map(|value| format!("{value}"));
    for text in shown.iter().chain([&export]) {
        assert!(!text.contains("planted-"), "{text}");
    }

    // The address of a kept secret is that which it was given for.
    let moved = file(CRM).replace("env:CRM_KEY", "vault:crm");
    let moved = moved.replace("api.example", "thief.example");
    let answer = planned(&ann, "acme", &moved, json!({})).await;
    assert_eq!(code(&answer), "secret_missing", "{}", answer.text);
    let moved = file(CRM).replace("api.example", "new.example");
    put_again(&ann, &moved).await;
}

async fn put_again(ann: &Browser<'_>, text: &str) {
    let applied = put(ann, "acme", text, crm_key()).await;
    let fields = applied["changes"][0]["fields"].to_string();
    assert!(fields.contains("base_url"), "{applied}");
}

/// Rule: CONF-6
#[tokio::test]
async fn a_file_deletes_what_it_owns_and_nothing_else() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    put(&ann, "acme", &file(CRM), crm_key()).await;
    let by_hand = json!({"name": "own", "messages": [
        {"role": "user", "content": {"type": "text", "text": "x"}}]});
    send(&ann, Method::POST, "/workspaces/acme/prompts", by_hand).await;
    let keys = |plan: &Value| -> Vec<String> {
        let changes = plan["changes"].as_array().unwrap();
        let key = |one: &Value| format!("{} {}", one["op"], one["key"]).replace('"', "");
        changes.iter().map(key).collect()
    };
    let less = file("prompts: [{name: greet, messages: [{role: user, content: {text: Hello}}]}]");
    for (prune, gone) in [
        ("none", vec![]),
        ("owned", vec!["delete crm", "delete sales"]),
        ("all", vec!["delete crm", "delete own", "delete sales"]),
    ] {
        let plan = fine(&planned(&ann, "acme", &less, json!({"prune": prune})).await);
        assert_eq!(keys(&plan), gone, "{prune}");
    }
    let foreign = file(CRM).replace("acme-prod", "another");
    let answer = planned(&ann, "acme", &foreign, crm_key()).await;
    assert_eq!(code(&answer), "managed_by_another", "{}", answer.text);
    let mut more = crm_key();
    more["claim"] = json!(true);
    let plan = fine(&planned(&ann, "acme", &foreign, more).await);
    assert_eq!(
        (&plan["changes"], &plan["claimed"]),
        (&json!([]), &json!(3))
    );
    fine(&applied(&ann, "acme", &plan).await);
    let nothing = fine(&planned(&ann, "acme", &less.replace("greet", "n"), json!({})).await);
    assert_eq!(
        keys(&nothing),
        ["create n"],
        "its objects are of another file"
    );

    // A server comes back with its address while it is in the trash.
    let empty = file("").replace("acme-prod", "another");
    put(&ann, "acme", &empty, json!({})).await;
    put(&ann, "acme", &foreign, crm_key()).await;
    let export = exported(&ann, "acme").await;
    assert!(
        export.contains("slug: sales") && export.contains("tool: get_customer"),
        "{export}"
    );
}

/// Rules: CONF-6, CONF-13
#[tokio::test]
async fn an_object_has_its_part_of_the_export_and_its_owner() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let content = format!(
        "{CRM}resources:\n  - {{uri: 'notes://one', name: note, holds: {{text: A note}}}}\n"
    );
    put(&ann, "acme", &file(&content), crm_key()).await;
    let by_hand = json!({"slug": "own", "name": "Own"});
    send(&ann, Method::POST, "/workspaces/acme/servers", by_hand).await;
    let part = async |query: &str| {
        let path = format!("/workspaces/acme/configuration?{query}");
        ann.call(Method::GET, &path, None).await
    };
    let whole = exported(&ann, "acme").await;
    let yaml = part("format=yaml&kind=server&key=sales").await;
    assert_eq!(yaml.status, StatusCode::OK, "{}", yaml.text);
    assert!(
        yaml.text.starts_with("servers:\n  - slug: sales\n"),
        "{}",
        yaml.text
    );
    let object = yaml.text.trim_start_matches("servers:\n");
    assert!(whole.contains(object), "{whole}\n{object}");
    let source = fine(&part("kind=source&key=crm").await);
    let members: Vec<&String> = source.as_object().unwrap().keys().collect();
    assert_eq!(members, ["sources"], "{source}");
    assert_eq!(source["sources"].as_array().unwrap().len(), 1, "{source}");
    assert_eq!(source["sources"][0]["base_url"], "https://api.example/v1");
    assert!(!source.to_string().contains(SECRET), "{source}");

    // A part is no file: applied by mistake, it would delete the rest.
    let plan = planned(&ann, "acme", &yaml.text, json!({})).await;
    assert_eq!(code(&plan), "configuration_invalid", "{}", plan.text);
    let unknown = part("kind=server&key=gone").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND, "{}", unknown.text);
    for (query, field) in [("kind=server", "key"), ("key=sales", "kind")] {
        let answer = part(query).await;
        assert_eq!(code(&answer), "object_incomplete", "{}", answer.text);
        assert_eq!(answer.json()["error"]["field"], field, "{}", answer.text);
    }

    for noun in ["sources", "prompts", "resources", "servers"] {
        let path = format!("/workspaces/acme/{noun}");
        let listed = fine(&ann.call(Method::GET, &path, None).await);
        for item in listed["items"].as_array().unwrap() {
            let is_own = item["slug"] == "own";
            let owner = (!is_own).then_some("acme-prod");
            assert_eq!(item["managed_by"].as_str(), owner, "{item}");
            let one = format!("{path}/{}", item["id"].as_str().unwrap());
            let one = fine(&ann.call(Method::GET, &one, None).await);
            assert_eq!(one["managed_by"].as_str(), owner, "{one}");
        }
    }
}

/// Rule: CONF-12
#[tokio::test]
async fn a_token_needs_the_scopes_of_what_the_file_changes() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let plans = "/workspaces/acme/configuration/plans";
    let export = "/workspaces/acme/configuration";
    let body = json!({"bundle": file(CRM), "secrets": {"env:CRM_KEY": SECRET}});
    let try_plan = async |role, scopes: &[&str], body: &Value| {
        let program = of_workspace(&service, &ann, role, scopes).await;
        program.call(Method::POST, plans, Some(body.clone())).await
    };
    let read = try_plan(Role::Admin, &["registry:read"], &body).await;
    assert_eq!(code(&read), "insufficient_scope", "{}", read.text);
    let write = try_plan(Role::Developer, &["registry:write"], &body).await;
    assert_eq!(code(&write), "insufficient_scope", "{}", write.text);
    let without = file(CRM).replace("    credential: {bearer: {secret: env:CRM_KEY}}\n", "");
    let without = json!({"bundle": without});
    let fits = try_plan(Role::Developer, &["registry:write"], &without).await;
    assert_eq!(fits.status, StatusCode::CREATED, "{}", fits.text);
    let all = ["registry:write", "credentials:write"];
    let all_scopes = try_plan(Role::Developer, &all, &body).await;
    assert_eq!(
        all_scopes.status,
        StatusCode::CREATED,
        "{}",
        all_scopes.text
    );
    let member = try_plan(Role::Member, &all, &without).await;
    assert_eq!(code(&member), "forbidden", "{}", member.text);
    let program = of_workspace(&service, &ann, Role::Developer, &["registry:read"]).await;
    let answer = program.call(Method::GET, export, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
}

/// Rule: CONF-10
#[tokio::test]
async fn a_document_is_imported_again_and_its_tools_follow() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let text = file(
        "sources:\n  - name: Pets\n    kind: openapi\n    location: file:pets.json\n    base_url: \
         https://pets.example\n    unlisted: disabled\n    tools:\n      listPets: {name: \
         list_pets}\nservers:\n  - slug: pets\n    tools: [{source: Pets, tool: list_pets}]\n",
    );
    let files = |document: &Value| json!({"files": {"pets.json": document.to_string()}});
    put(&ann, "acme", &text, files(&document())).await;
    let export = exported(&ann, "acme").await;
    assert!(export.contains("tool: GET /pets\n"), "{export}");
    assert!(
        export.contains("      POST /pets:\n        enabled: false\n"),
        "{export}"
    );
    let missing = planned(&ann, "acme", &text, json!({})).await;
    assert_eq!(code(&missing), "file_missing", "{}", missing.text);
    let mut newer = document();
    newer["paths"]["/ships"] = json!({"get": {"operationId": "ships", "responses": {}}});
    let plan = fine(&planned(&ann, "acme", &text, files(&newer)).await);
    let fields = plan["changes"][0]["fields"].as_array().unwrap();
    let paths: Vec<_> = fields
        .iter()
        .map(|field| field["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["document", "tools.GET /ships.enabled"], "{plan}");
    fine(&applied(&ann, "acme", &plan).await);
    let plan = fine(&planned(&ann, "acme", &text, files(&newer)).await);
    assert_eq!(plan["changes"], json!([]));
}
