//! REVIEW-S-3: calls every route of the console's API with every role and a sign-in that is not
//! recent, and compares with the table of `docs/console-routes.md`.

use std::collections::BTreeSet;

use http::{Method, Request, StatusCode, header};
use portolan_model::{
    id::{SourceId, TenantId, UserId},
    member::Role,
};
use portolan_storage::{Reason, accounts::members};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    api_sign_in::link,
    console::{ids, workspace},
    test_service::{Browser, TestService},
};

const TABLE: &str = include_str!("../../../../docs/console-routes.md");
const ROLES: [Role; 5] = [
    Role::Viewer,
    Role::Member,
    Role::Developer,
    Role::Admin,
    Role::Owner,
];
const API: &str = "https://api.example/v1";
const NOTHING: &str = "01939d6c1e7b7c6e8f3a2b1c0d9e8f7a";

/// A row of the table.
#[derive(Debug)]
struct Row {
    method: Method,
    /// Without `/api/v1`.
    path: &'static str,
    /// The weakest permitted role; `None` is every signed-in person.
    role: Option<Role>,
    /// True if other roles get the answer for a thing that is not there (CAPTURE-8).
    hidden: bool,
    /// True if it requires a recent sign-in, perhaps under a condition.
    asks: bool,
    /// True if there is such a condition.
    sometimes: bool,
}

fn table() -> Vec<Row> {
    let rows = TABLE.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (method, path) = cells[0].trim_end_matches('`').split_once(' ').unwrap();
        let role = cells[1].split(' ').next().unwrap();
        let proof = cells[2];
        assert!(
            matches!(proof, "yes" | "no") || proof.starts_with("when "),
            "{line}"
        );
        Row {
            method: method.parse().unwrap(),
            path,
            hidden: cells[1].ends_with("(others: 404)"),
            role: ROLES.into_iter().find(|one| one.as_str() == role),
            asks: proof != "no",
            sometimes: proof.starts_with("when "),
        }
    })
    .collect()
}

#[test]
fn s3_every_route_of_the_api_is_on_the_page_of_proofs_once() {
    let document = serde_json::to_value(portolan_console::openapi()).unwrap();
    let mut served = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1").unwrap();
        for method in item.as_object().unwrap().keys() {
            served.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let rows = table();
    let listed: BTreeSet<String> = rows
        .iter()
        .map(|row| format!("{} {}", row.method, row.path))
        .collect();
    assert_eq!(listed.len(), rows.len(), "a row stands there twice");
    assert_eq!(listed, served);
    for row in rows.iter().filter(|row| row.method == Method::GET) {
        assert!(!row.asks, "reading never asks: {}", row.path);
    }
}

/// The objects of the requests.
struct Scene {
    /// A member who makes none of the requests.
    other: UserId,
    /// A source with a sign-in and an account.
    open: SourceId,
    /// A source with a credential.
    keyed: SourceId,
    /// A source with neither.
    bare: SourceId,
    /// A service account, switched off.
    account: String,
    /// A client that the workspace registered, switched off.
    client: String,
    /// A client that registered itself, and that the workspace allowed.
    guest: String,
    /// A plan of configuration that changes a credential.
    plan: String,
}

impl Scene {
    fn id(&self, row: &Row) -> String {
        let nothing = |prefix: &str| format!("{prefix}_{NOTHING}");
        let below = ["/workspaces/{ws}/", "/me/"];
        let noun = below
            .into_iter()
            .find_map(|beginning| row.path.strip_prefix(beginning))
            .unwrap_or("");
        match noun.split('/').next().unwrap_or_default() {
            "members" => self.other.to_string(),
            "sources" if row.path.ends_with("/credential") && row.asks => self.keyed.to_string(),
            "sources" if row.asks => self.open.to_string(),
            "sources" => nothing("src"),
            "service-accounts" if row.asks => self.account.clone(),
            "service-accounts" => nothing("svc"),
            "registered-clients" if row.asks => self.client.clone(),
            "clients" if row.asks => self.guest.clone(),
            "registered-clients" | "clients" => nothing("cli"),
            "invitations" => nothing("inv"),
            "api-keys" => nothing("key"),
            "access-tokens" => nothing("tok"),
            "trusted-pipelines" => nothing("pip"),
            "apps" => nothing("gr"),
            "webhooks" => nothing("whk"),
            "alerts" => nothing("alr"),
            "single-sign-on" => nothing("dom"),
            "tools" => nothing("tol"),
            "prompts" => nothing("prm"),
            "resources" => nothing("rsc"),
            "servers" => nothing("srv"),
            "calls" => nothing("call"),
            "call-views" => nothing("viw"),
            "configuration" => self.plan.clone(),
            _ => String::new(),
        }
    }
}

/// A body that the route accepts. It meets the condition under which a recent sign-in is required.
fn body(row: &Row) -> Option<Value> {
    if matches!(row.method, Method::GET)
        || (row.method == Method::DELETE && row.path != "/workspaces/{ws}")
    {
        return None;
    }
    let text = |text: &str| json!({"kind": "text", "text": text});
    let name = match row.path.strip_prefix("/workspaces/{ws}") {
        Some(name) => name,
        None if row.path.starts_with("/me/") => row.path,
        None => "",
    };
    Some(match (row.method.as_str(), name) {
        ("POST", "") => json!({"name": "Acme", "slug": "x"}),
        ("DELETE", "") => json!({"slug": "acme"}),
        ("PATCH", "") => json!({"http_sse": true}),
        (_, "/api-keys") => json!({"name": "Laptop"}),
        (_, "/access-tokens") => {
            json!({"name": "Pipeline", "role": "viewer", "scopes": ["registry:read"], "days": 30})
        }
        (_, "/trusted-pipelines" | "/trusted-pipelines/{id}") => {
            json!({"name": "Deploy", "issuer": "https://ci.example", "subject": "repo:acme/web:*",
                "scopes": ["registry:read"]})
        }
        (_, "/me/access-tokens") => {
            json!({"name": "Laptop", "scopes": ["registry:read"], "days": 30})
        }
        (_, "/me/command-tokens") => {
            json!({"name": "Laptop", "scopes": ["registry:read"], "days": 30,
                "code_challenge": "A".repeat(43), "page": "/account/command"})
        }
        (_, "/client-rule") => json!({"rule": "any"}),
        (_, "/clients") => json!({"client_id": "https://client.example/id"}),
        (_, "/clients/{id}/decision") => json!({"decision": "allowed"}),
        (_, "/default-server") => json!({"server_id": null}),
        (_, "/imports/preview" | "/sources/{id}/reimport/preview") => json!({"input": text("{}")}),
        (_, "/sources/{id}/reimport") => json!({"input": text("{}"), "digest": "00"}),
        (_, "/invitations") => json!({"email": "new@acme.example", "role": "viewer"}),
        (_, "/mcp") => json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        (_, "/limits") => json!({"client_requests": 1}),
        (_, "/members/{id}") => json!({"role": "member"}),
        ("PATCH", "/prompts/{id}" | "/resources/{id}") => json!({"enabled": true}),
        (_, "/prompts" | "/prompts/{id}") => json!({"name": "p", "messages": []}),
        (_, "/registered-clients") => {
            json!({"name": "c", "proof": "none", "redirect_uris": ["https://c.example/back"]})
        }
        (_, "/registered-clients/{id}") => json!({"enabled": true}),
        (_, "/registered-clients/{id}/public-keys" | "/service-accounts/{id}/public-keys") => {
            json!({"jwks_uri": "https://c.example/jwks"})
        }
        (_, "/resources" | "/resources/{id}") => {
            json!({"name": "r", "uri": "https://r.example/", "holds": text("")})
        }
        (_, "/security") => json!({"second_factor": "off"}),
        (_, "/servers/check") => json!({"slug": "s", "tools": []}),
        (_, "/servers") => json!({"name": "", "slug": "s"}),
        (_, "/servers/{id}/prompts") => json!({"prompts": []}),
        (_, "/servers/{id}/resources") => json!({"resources": []}),
        (_, "/servers/{id}/tools") => json!({"tools": []}),
        (_, "/call-views" | "/call-views/{id}") => {
            json!({"name": "v", "filter": {"tool": "t"}, "is_shared": false})
        }
        (_, "/servers/{id}/capture") => json!({"policy": "errors", "days": 7}),
        (_, "/servers/{id}/saved-calls" | "/servers/{id}/saved-calls/{call}") => {
            json!({"name": "c", "method": "tools/call", "params": {"name": "t"}, "expect": {"status": "ok"}})
        }
        (_, "/service-accounts") => json!({"name": "Nightly", "auth": "client_secret"}),
        (_, "/service-accounts/{id}") => json!({"enabled": true}),
        (_, "/service-accounts/{id}/api-access") => {
            json!({"role": "viewer", "scopes": ["registry:read"]})
        }
        (_, "/single-sign-on/domains") => json!({"domain": "acme.example"}),
        (_, "/single-sign-on/enforcement") => json!({"enforced": false}),
        (_, "/single-sign-on/provider") => {
            json!({"name": "P", "issuer": "https://p.example", "client_id": "c"})
        }
        (_, "/sources") => json!({"kind": "http", "name": "", "base_url": ""}),
        (_, "/sources/{id}") => json!({"base_url": "https://other.example/v1"}),
        (_, "/sources/{id}/credential") => json!({"kind": "bearer", "token": "of-the-intruder"}),
        (_, "/sources/{id}/sign-in") => sign_in(),
        (_, "/sources/{id}/tools" | "/tools/{id}/definition") => {
            json!({"name": "t", "description": "", "method": "GET", "path": "/"})
        }
        (_, "/tools/enabled") => json!({"ids": [], "enabled": true}),
        (_, "/attachments") => json!({"name": "Not a name"}),
        ("POST", "/webhooks") => {
            json!({"url": "https://hooks.example/x", "events": ["server.published"]})
        }
        (_, "/webhooks/{id}/target") => json!({"url": "https://hooks.example/x"}),
        (_, "/webhooks/{id}/replay") => json!({"since": "2026-01-01T00:00:00Z"}),
        (_, "/configuration/plans") => new_credential(),
        (_, "/upstreams" | "/upstreams/preview") => json!({"url": "nowhere"}),
        _ => json!({}),
    })
}

/// A plan that replaces the credential of the source `Keyed`.
fn new_credential() -> Value {
    let bundle = format!(
        "format: portolan/v1\nname: routes\nsources: [{{name: Keyed, kind: http, base_url: {API}, \
         credential: {{bearer: {{secret: env:KEY}}}}}}]"
    );
    json!({"bundle": bundle, "secrets": {"env:KEY": "of-the-intruder"}})
}

fn no_change() -> Value {
    json!({"bundle": "format: portolan/v1\nname: routes\n"})
}

fn sign_in() -> Value {
    json!({
        "sharing": "workspace",
        "server": {"authorization_endpoint": "https://as.example/a", "token_endpoint": "https://as.example/t"},
        "client": {"client_id": "app", "client_secret": "planted-secret", "auth": "post"},
    })
}

async fn add(service: &TestService, tenant: TenantId, person: &Browser<'_>, role: Role) -> UserId {
    let me = person.call(Method::GET, "/me", None).await.json();
    let user = me["user"]["id"].as_str().unwrap().parse().unwrap();
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    members::add(&mut tx, tenant, user, role, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    user
}

async fn made(person: &Browser<'_>, method: Method, path: &str, body: Value) -> Value {
    let path = format!("/workspaces/acme{path}");
    let answer = person.call(method, &path, Some(body)).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.text);
    if answer.text.is_empty() {
        return Value::Null;
    }
    answer.json()
}

/// The workspaces `acme` and `gone`, which its owner deleted, with a person for each role.
async fn scene(service: &TestService) -> (Scene, Vec<(Role, Browser<'_>)>) {
    let owner = service.person("owner@acme.example").await;
    workspace(&owner, "acme").await;
    workspace(&owner, "gone").await;
    let (tenant, user) = ids(service, &owner, "acme").await;
    let (gone, _) = ids(service, &owner, "gone").await;
    let mut people = Vec::new();
    for role in ROLES.into_iter().filter(|role| *role != Role::Owner) {
        let person = service.person(&format!("{role}@acme.example")).await;
        add(service, tenant, &person, role).await;
        add(service, gone, &person, role).await;
        people.push((role, person));
    }
    let other = service.person("other@acme.example").await;
    let other = add(service, tenant, &other, Role::Viewer).await;
    let delete = json!({"slug": "gone"});
    let deleted = owner
        .call(Method::DELETE, "/workspaces/gone", Some(delete))
        .await;
    assert_eq!(deleted.status, StatusCode::OK, "{}", deleted.text);
    let api = |name: &str| json!({"kind": "http", "name": name, "base_url": API});
    let source = |made: Value| made["id"].as_str().unwrap().parse::<SourceId>().unwrap();
    let open = source(made(&owner, Method::POST, "/sources", api("Open")).await);
    let bare = source(made(&owner, Method::POST, "/sources", api("Bare")).await);
    let keyed = source(made(&owner, Method::POST, "/sources", api("Keyed")).await);
    let path = format!("/sources/{keyed}/credential");
    let key = json!({"kind": "bearer", "token": "of-before"});
    made(&owner, Method::PUT, &path, key).await;
    let path = format!("/sources/{open}");
    made(&owner, Method::PUT, &format!("{path}/sign-in"), sign_in()).await;
    link(service, tenant, open, (API, None), user).await;
    let account =
        json!({"name": "Nightly", "auth": "private_key_jwt", "jwks_uri": "https://c.example/jwks"});
    let account = made(&owner, Method::POST, "/service-accounts", account).await;
    let account = account["account"]["id"].as_str().unwrap().to_owned();
    let off = json!({"enabled": false});
    let path = format!("/service-accounts/{account}");
    made(&owner, Method::PATCH, &path, off.clone()).await;
    let client = json!({"name": "App", "proof": "private_key_jwt", "jwks_uri": "https://c.example/jwks",
        "redirect_uris": ["https://c.example/back"]});
    let client = made(&owner, Method::POST, "/registered-clients", client).await;
    let client = client["client"]["id"].as_str().unwrap().to_owned();
    let path = format!("/registered-clients/{client}");
    made(&owner, Method::PATCH, &path, off).await;
    let metadata = json!({"client_name": "Guest", "redirect_uris": ["http://127.0.0.1:3333/back"]});
    let registration = Request::post("/oauth/register")
        .header(header::CONTENT_TYPE, "application/json")
        .body(metadata.to_string().into())
        .unwrap();
    let registered = owner.send(registration).await.json();
    let allowed = json!({"client_id": registered["client_id"]});
    made(&owner, Method::POST, "/clients", allowed).await;
    let seen = owner
        .call(Method::GET, "/workspaces/acme/clients", None)
        .await
        .json();
    let guest = seen["clients"][0]["id"].as_str().unwrap().to_owned();
    made(&owner, Method::PUT, "/client-rule", json!({"rule": "list"})).await;
    let less = json!({"http_sse": false, "workspace_tokens": false});
    made(&owner, Method::PATCH, "", less).await;
    let path = "/configuration/plans";
    let plan = made(&owner, Method::POST, path, new_credential()).await;
    people.push((Role::Owner, owner));
    let scene = Scene {
        plan: plan["id"].as_str().unwrap().to_owned(),
        other,
        open,
        keyed,
        bare,
        account,
        client,
        guest,
    };
    (scene, people)
}

#[tokio::test]
async fn s3_every_route_asks_for_a_recent_proof_of_every_role_where_the_page_says_so() {
    let service = TestService::open().await;
    let (scene, people) = scene(&service).await;
    service.wait(Duration::minutes(11));
    let mut wrong = Vec::new();
    // A plan holds for one revision, and other requests change the workspace.
    let mut rows = table();
    rows.sort_by_key(|row| !row.path.contains("/configuration/"));
    for row in rows {
        let slug = if row.path.ends_with("{ws}/restore") {
            "gone"
        } else {
            "acme"
        };
        let path = row
            .path
            .replace("{ws}", slug)
            .replace("{id}", &scene.id(&row))
            .replace("{secret}", &format!("sec_{NOTHING}"))
            .replace("{call}", &format!("cal_{NOTHING}"))
            .replace("{event}", &format!("evt_{NOTHING}"))
            .replace("{rule}", "upstream_down");
        for (role, person) in &people {
            // The head of an event stream has all that is asked for here.
            let answer = person
                .call_and_leave(row.method.clone(), &path, body(&row))
                .await;
            let code = serde_json::from_str::<Value>(&answer.text)
                .map(|body| body["error"]["code"].as_str().unwrap_or("").to_owned())
                .unwrap_or_default();
            let may = row.role.is_none_or(|least| *role >= least);
            let is_right = match (may, row.asks) {
                (false, _) if row.hidden => code == "not_found",
                (false, _) => code == "forbidden",
                (true, true) => code == "confirm_first",
                (true, false) => {
                    !matches!(code.as_str(), "forbidden" | "confirm_first")
                        && answer.status != StatusCode::UNAUTHORIZED
                        && answer.status.as_u16() < 500
                }
            };
            if !is_right {
                wrong.push(format!(
                    "{} {} as {role}: {} {}",
                    row.method, row.path, answer.status, answer.text
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // The opposite of each condition: less access, no change, and first set-up.
    let (_, owner) = people.last().unwrap();
    let (open, bare) = (scene.open, scene.bare);
    let (account, client, guest) = (scene.account, scene.client, scene.guest);
    let off = json!({"enabled": false});
    let plan = made(owner, Method::POST, "/configuration/plans", no_change()).await;
    let plan = plan["id"].as_str().unwrap().to_owned();
    let free = [
        (
            Method::POST,
            format!("/configuration/plans/{plan}/apply"),
            json!({}),
        ),
        (Method::POST, "/configuration/plans".to_owned(), no_change()),
        (
            Method::PATCH,
            String::new(),
            json!({"name": "Acme", "http_sse": false}),
        ),
        (
            Method::PATCH,
            format!("/service-accounts/{account}"),
            json!({"name": "Daily", "enabled": false}),
        ),
        (
            Method::PUT,
            "/client-rule".to_owned(),
            json!({"rule": "approval"}),
        ),
        (
            Method::PUT,
            format!("/clients/{guest}/decision"),
            json!({"decision": "blocked"}),
        ),
        (Method::PATCH, format!("/registered-clients/{client}"), off),
        (
            Method::PATCH,
            format!("/registered-clients/{client}"),
            json!({"name": "Same"}),
        ),
        (
            Method::PATCH,
            format!("/sources/{open}"),
            json!({"name": "Same", "base_url": API}),
        ),
        (
            Method::PUT,
            format!("/sources/{bare}/credential"),
            json!({"kind": "bearer", "token": "first"}),
        ),
        (
            Method::DELETE,
            format!("/sources/{bare}/credential"),
            json!({}),
        ),
        (Method::PUT, format!("/sources/{bare}/sign-in"), sign_in()),
        (Method::POST, format!("/sources/{bare}/account"), json!({})),
    ];
    let tried: BTreeSet<String> = free
        .iter()
        .map(|(method, path, _)| {
            let noun = path.split('/').nth(1).unwrap_or_default();
            let last = path.rsplit('/').next().unwrap_or_default();
            let last = if last.contains('_') { "" } else { last };
            format!("{method} {noun} {last}")
        })
        .collect();
    let conditions = table().iter().filter(|row| row.sometimes).count();
    // One of the requests removes a credential.
    assert_eq!(tried.len() - 1, conditions, "every condition: {tried:?}");
    for (method, path, body) in free {
        made(owner, method, &path, body).await;
    }
}

#[tokio::test]
async fn s3_the_way_back_from_a_proof_leads_to_the_source_and_the_proof_is_enough() {
    let service = TestService::open().await;
    let (scene, people) = scene(&service).await;
    let (_, owner) = people.last().unwrap();
    service.wait(Duration::minutes(11));
    let path = format!("/workspaces/acme/sources/{}/sign-in", scene.open);
    let refused = owner.call(Method::PUT, &path, Some(sign_in())).await;
    let error = refused.json()["error"].clone();
    let confirm = error["details"]["path"].as_str().unwrap();
    let target = confirm.split_once("?request=").unwrap().1;
    assert_eq!(target, format!("s.{}.acme", scene.open));
    let fields = [
        ("request", target),
        ("password", crate::test_service::PASSWORD),
    ];
    let confirmed = owner.fill(confirm, &fields).await;
    assert_eq!(
        (confirmed.status, confirmed.location()),
        (
            StatusCode::SEE_OTHER,
            format!("/w/acme/sources/{}?tab=credential", scene.open).as_str()
        )
    );
    let done = owner.call(Method::PUT, &path, Some(sign_in())).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
}

#[tokio::test]
async fn s3_the_other_owners_hear_of_a_new_owner_or_admin() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let zoe = service.person("zoe@acme.example").await;
    add(&service, tenant, &zoe, Role::Owner).await;
    let bob = service.person("bob@acme.example").await;
    let bob_id = add(&service, tenant, &bob, Role::Viewer).await;
    let before = service.mail_count("ann@acme.example").await;
    let invite = async |email: &str, role: &str| {
        service.wait(Duration::seconds(1));
        let body = json!({"email": email, "role": role});
        made(&ann, Method::POST, "/invitations", body).await
    };
    let told = async || service.mail_count("zoe@acme.example").await;
    let first = told().await;
    invite("dev@acme.example", "developer").await;
    assert_eq!(told().await, first, "a developer gives no roles");
    for role in ["admin", "owner"] {
        let count = told().await;
        invite(&format!("new-{role}@acme.example"), role).await;
        assert_eq!(told().await, count + 1);
        let mail = service.newest_mail("zoe@acme.example").await;
        let subject = format!("new-{role}@acme.example is invited to Acme GmbH as {role}");
        assert_eq!(mail.subject, subject);
        assert!(mail.body.contains("/w/acme/members"), "{}", mail.body);
    }
    let path = format!("/members/{bob_id}");
    let count = told().await;
    for (role, mails) in [("member", 0), ("admin", 1), ("owner", 2), ("admin", 2)] {
        service.wait(Duration::seconds(1));
        made(&ann, Method::PATCH, &path, json!({"role": role})).await;
        assert_eq!(told().await, count + mails, "{role}");
    }
    let mail = service.newest_mail("zoe@acme.example").await;
    assert_eq!(mail.subject, "bob@acme.example is owner of Acme GmbH now");
    assert_eq!(
        service.mail_count("ann@acme.example").await,
        before,
        "who does it knows"
    );
}
