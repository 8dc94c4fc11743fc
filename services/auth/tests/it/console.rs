//! The console's API: workspaces, roles, foreign ids, bad input
//! (AUTH-M1 to AUTH-M3, AUTH-S5, AUTH-S11; CASE-103, CASE-106, CASE-162).

use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use portolan_model::{
    id::{TenantId, UserId},
    member::Role,
};
use portolan_storage::{Reason, accounts::members, platform::tenants, registry::catalog};
use serde_json::json;

use crate::{
    races,
    test_service::{Browser, TestService},
};

pub(crate) async fn workspace(person: &Browser<'_>, slug: &str) {
    let answer = person
        .call(
            Method::POST,
            "/workspaces",
            Some(json!({ "name": "Acme GmbH", "slug": slug })),
        )
        .await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}

/// The ids that the API shows.
pub(crate) async fn ids(
    service: &TestService,
    person: &Browser<'_>,
    slug: &str,
) -> (TenantId, UserId) {
    let me = person.call(Method::GET, "/me", None).await.json();
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let tenant = tenants::by_slug(&mut tx, slug).await.unwrap().unwrap();
    (
        tenant.id,
        me["user"]["id"].as_str().unwrap().parse().unwrap(),
    )
}

#[tokio::test]
async fn dp_6_an_administrator_turns_http_sse_off_and_on_and_nodes_hear_of_it() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let as_nodes_see_it = async || {
        let mut tx = service.store.node(tenant).await.unwrap();
        let address = catalog::address(&mut tx).await.unwrap().unwrap();
        (address.reach.http_sse, address.registry_revision)
    };
    let shown = ann.call(Method::GET, "/workspaces/acme", None).await.json();
    assert_eq!(shown["http_sse"], true, "served unless somebody says no");
    let (is_served, before) = as_nodes_see_it().await;
    assert!(is_served);
    let change = async |body: serde_json::Value| {
        let changed = ann
            .call(Method::PATCH, "/workspaces/acme", Some(body))
            .await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
        changed.json()
    };
    assert_eq!(
        change(json!({ "http_sse": false })).await["http_sse"],
        false
    );
    let (is_served, after) = as_nodes_see_it().await;
    assert!(!is_served && after > before, "nodes look again");
    let renamed = change(json!({ "name": "Acme AG" })).await;
    assert_eq!(
        (&renamed["name"], &renamed["http_sse"]),
        (&json!("Acme AG"), &json!(false)),
        "what is not given stays"
    );
    assert_eq!(change(json!({ "http_sse": true })).await["http_sse"], true);
    change(json!({ "http_sse": true })).await;
    let audit = ann
        .call(Method::GET, "/workspaces/acme/audit", None)
        .await
        .json();
    let items = audit["items"].as_array().unwrap().iter();
    let changes: Vec<_> = items
        .filter(|item| item["action"] == "tenant.http_sse_changed")
        .collect();
    assert_eq!(changes.len(), 2, "{audit}");
}

#[tokio::test]
async fn a_person_creates_a_workspace_and_owns_it() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let me = ann.call(Method::GET, "/me", None).await.json();
    assert_eq!(me["workspaces"][0]["slug"], "acme");
    assert_eq!(me["workspaces"][0]["role"], "owner");
    assert!(
        me["workspaces"][0]["id"]
            .as_str()
            .unwrap()
            .starts_with("ten_")
    );

    let renamed = ann
        .call(
            Method::PATCH,
            "/workspaces/acme",
            Some(json!({ "name": "  Acme AG " })),
        )
        .await;
    assert_eq!(renamed.json()["name"], "Acme AG");
    let shown = ann.call(Method::GET, "/workspaces/acme", None).await.json();
    assert_eq!(shown["name"], "Acme AG");
    assert!(
        shown["created_at"].as_str().unwrap().ends_with('Z'),
        "{shown}"
    );

    let members = ann
        .call(Method::GET, "/workspaces/acme/members", None)
        .await
        .json();
    assert_eq!(members["items"][0]["email"], "ann@acme.example");

    let audit = ann
        .call(Method::GET, "/workspaces/acme/audit", None)
        .await
        .json();
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        ["tenant.renamed", "tenant.created"],
        "newest first"
    );
    assert_eq!(audit["items"][0]["actor"]["user_id"], me["user"]["id"]);

    let overview = ann
        .call(Method::GET, "/workspaces/acme/overview", None)
        .await
        .json();
    assert_eq!(
        overview["calls_24h"]["by_hour"].as_array().unwrap().len(),
        24
    );
    assert_eq!(
        overview["setup"],
        json!({ "has_source": false, "has_credential": false, "has_server": false, "has_call": false })
    );
}

#[tokio::test]
async fn case_106_a_foreign_workspace_and_an_unknown_one_are_the_same_404() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let bob = service.person("bob@beta.example").await;
    workspace(&ann, "acme").await;
    workspace(&bob, "beta").await;
    for path in ["", "/members", "/overview", "/audit"] {
        let foreign = bob
            .call(Method::GET, &format!("/workspaces/acme{path}"), None)
            .await;
        let unknown = bob
            .call(Method::GET, &format!("/workspaces/nobody{path}"), None)
            .await;
        assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(
            (unknown.status, unknown.text),
            (foreign.status, foreign.text),
            "{path}"
        );
    }
    let answer = bob
        .call(
            Method::PATCH,
            "/workspaces/acme",
            Some(json!({ "name": "Mine" })),
        )
        .await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(
        ann.call(Method::GET, "/workspaces/acme", None).await.json()["name"],
        "Acme GmbH"
    );
}

#[tokio::test]
async fn roles_decide_and_are_looked_up_at_each_request() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let bob = service.person("bob@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let (_, bob_id) = ids(&service, &bob, "acme").await;
    let set = async |role: Role| {
        let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
        members::add(&mut tx, tenant, bob_id, role, service.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
    };
    for (role, may_administer) in [
        (Role::Viewer, false),
        (Role::Member, false),
        (Role::Developer, false),
        (Role::Admin, true),
    ] {
        set(role).await;
        assert_eq!(
            bob.call(Method::GET, "/workspaces/acme", None).await.json()["role"],
            role.as_str()
        );
        let expected = if may_administer {
            StatusCode::OK
        } else {
            StatusCode::FORBIDDEN
        };
        let change = bob
            .call(
                Method::PATCH,
                "/workspaces/acme",
                Some(json!({ "name": "Acme" })),
            )
            .await;
        assert_eq!(change.status, expected, "{role}");
        assert_eq!(
            bob.call(Method::GET, "/workspaces/acme/audit", None)
                .await
                .status,
            expected,
            "{role}"
        );
        if !may_administer {
            let message = change.json()["error"]["message"]
                .as_str()
                .unwrap()
                .to_owned();
            assert!(
                message.contains(role.as_str()) && message.contains("admin"),
                "{message}"
            );
        }
    }
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    members::end(&mut tx, tenant, bob_id, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        bob.call(Method::GET, "/workspaces/acme", None).await.status,
        StatusCode::NOT_FOUND,
        "a former member is a stranger"
    );
}

#[tokio::test]
async fn case_162_the_last_owner_cannot_go_also_not_two_at_once() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let bob = service.person("bob@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, ann_id) = ids(&service, &ann, "acme").await;
    let (_, bob_id) = ids(&service, &bob, "acme").await;
    let leave = async |user: UserId| {
        let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
        let ended = members::end(&mut tx, tenant, user, service.clock.now()).await;
        match ended {
            Ok(Some(_)) => tx.commit().await,
            Ok(None) => panic!("not a member"),
            Err(error) => Err(error),
        }
    };
    let refused = leave(ann_id).await.unwrap_err();
    assert!(
        format!("{refused:?}").contains(members::LAST_OWNER),
        "{refused:?}"
    );

    for _ in races::rounds("case_162_the_last_owner_cannot_go_also_not_two_at_once") {
        let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
        for user in [ann_id, bob_id] {
            members::add(&mut tx, tenant, user, Role::Owner, service.clock.now())
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
        let (one, two) = tokio::join!(leave(ann_id), leave(bob_id));
        let left = [one.is_ok(), two.is_ok()]
            .iter()
            .filter(|left| **left)
            .count();
        assert!(left <= 1, "both owners left at the same moment");
    }
}

#[tokio::test]
async fn m3_a_slug_is_checked_and_never_given_twice() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let bob = service.person("bob@acme.example").await;
    workspace(&ann, "acme").await;
    let create = async |slug: &str| {
        bob.call(
            Method::POST,
            "/workspaces",
            Some(json!({ "name": "Bob", "slug": slug })),
        )
        .await
    };
    let taken = create("acme").await;
    assert_eq!(taken.status, StatusCode::CONFLICT);
    assert_eq!(taken.json()["error"]["code"], "slug_taken");
    assert_eq!(taken.json()["error"]["field"], "slug");
    for slug in ["ab", "Acme", "-x-", "xn--bob", "admin", "../..", ""] {
        let invalid = create(slug).await;
        assert_eq!(invalid.status, StatusCode::UNPROCESSABLE_ENTITY, "{slug}");
        assert_eq!(invalid.json()["error"]["code"], "slug_invalid", "{slug}");
    }
    let nameless = bob
        .call(
            Method::POST,
            "/workspaces",
            Some(json!({ "name": " ", "slug": "bobs" })),
        )
        .await;
    assert_eq!(nameless.json()["error"]["field"], "name");
    assert_eq!(
        bob.call(Method::GET, "/me", None).await.json()["workspaces"],
        json!([]),
        "nothing half-made is left"
    );
}

#[tokio::test]
async fn bad_bodies_are_refused_with_what_is_wrong() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let post = async |content_type: Option<&str>, body: &str| {
        let mut request = Request::post("/api/v1/workspaces");
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        ann.send(request.body(Body::from(body.to_owned())).unwrap())
            .await
    };
    let json = Some("application/json; charset=utf-8");
    for (content_type, body, status, code) in [
        (
            None,
            "{}",
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
        ),
        (
            Some("text/plain"),
            "{}",
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
        ),
        (json, "", StatusCode::BAD_REQUEST, "invalid_json"),
        (
            json,
            "{\"name\": \"x\",}",
            StatusCode::BAD_REQUEST,
            "invalid_json",
        ),
        (
            json,
            "{\"name\": \"x\", \"slug\": \"acme\"} x",
            StatusCode::BAD_REQUEST,
            "invalid_json",
        ),
        (
            json,
            "{\"name\": \"x\"}",
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_body",
        ),
        (
            json,
            "{\"name\": 7, \"slug\": \"acme\"}",
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_body",
        ),
        (
            json,
            &format!("{{\"name\": \"{}\"", "x".repeat(2 * 1024 * 1024)),
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
        ),
    ] {
        let answer = post(content_type, body).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(answer.json()["error"]["code"], code, "{}", answer.text);
        assert!(answer.json()["error"]["message"].as_str().unwrap().len() > 10);
        assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    }
    let wrong = post(json, "{\"name\": 7, \"slug\": \"acme\"}").await.json();
    assert_eq!(wrong["error"]["field"], "name");
}

#[tokio::test]
async fn what_does_not_exist_answers_json_and_nobody_gets_in_without_a_session() {
    let service = TestService::open().await;
    let guest = service.browser();
    for path in ["/me", "/workspaces/acme", "/workspaces/acme/audit"] {
        let answer = guest.call(Method::GET, path, None).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(answer.json()["error"]["code"], "unauthenticated");
    }
    assert_eq!(
        guest.call(Method::GET, "/nothing/here", None).await.json()["error"]["code"],
        "not_found"
    );
    let wrong = guest.call(Method::DELETE, "/me", None).await;
    assert_eq!(
        (wrong.status, wrong.json()["error"]["code"].as_str()),
        (StatusCode::METHOD_NOT_ALLOWED, Some("method_not_allowed"))
    );
    let document = guest.call(Method::GET, "/openapi.json", None).await.json();
    assert!(document["paths"]["/api/v1/me"].is_object());
}

#[tokio::test]
async fn audit_pages_follow_each_other_and_cursors_are_of_their_list() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    workspace(&ann, "acme-two").await;
    for n in 0..60 {
        let answer = ann
            .call(
                Method::PATCH,
                "/workspaces/acme",
                Some(json!({ "name": format!("Acme {n}") })),
            )
            .await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    let first = ann
        .call(Method::GET, "/workspaces/acme/audit", None)
        .await
        .json();
    assert_eq!(first["items"].as_array().unwrap().len(), 50);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = ann
        .call(
            Method::GET,
            &format!("/workspaces/acme/audit?cursor={cursor}"),
            None,
        )
        .await
        .json();
    assert_eq!(second["items"].as_array().unwrap().len(), 11);
    assert!(second.get("next_cursor").is_none());
    assert_eq!(second["items"][0]["detail"]["to"], "Acme 9");
    let foreign = ann
        .call(
            Method::GET,
            &format!("/workspaces/acme-two/audit?cursor={cursor}"),
            None,
        )
        .await;
    assert_eq!(foreign.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(foreign.json()["error"]["field"], "cursor");
}

#[tokio::test]
async fn n11_a_workspace_can_be_made_without_script() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    for name in ["Admin", "日本"] {
        let answer = ann
            .fill("/workspaces/new", &[("name", name), ("slug", "")])
            .await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            answer.text.contains("none can be derived from this name"),
            "{name}"
        );
    }
    let answer = ann
        .fill("/workspaces/new", &[("name", "Acme GmbH"), ("slug", "")])
        .await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, "/"),
        "{}",
        answer.text
    );
    assert_eq!(
        ann.call(Method::GET, "/me", None).await.json()["workspaces"][0]["slug"],
        "acme-gmbh"
    );
    let again = ann
        .fill("/workspaces/new", &[("name", "Acme GmbH"), ("slug", "")])
        .await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("Choose another one"));
    let guest = service.browser().get("/workspaces/new").await;
    assert_eq!(
        (guest.status, guest.location()),
        (StatusCode::SEE_OTHER, "/login")
    );
}

#[tokio::test]
async fn the_audit_log_goes_out_as_json_lines_to_admins_whole_and_of_one_workspace() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let bob = service.person("bob@beta.example").await;
    workspace(&ann, "acme").await;
    workspace(&bob, "beta").await;
    for n in 0..510 {
        let body = json!({ "name": format!("Acme {n}") });
        ann.call(Method::PATCH, "/workspaces/acme", Some(body))
            .await;
    }
    let answer = ann
        .call(Method::GET, "/workspaces/acme/audit/export", None)
        .await;
    assert_eq!(answer.headers[header::CONTENT_TYPE], "application/jsonl");
    let lines: Vec<serde_json::Value> = answer
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 512, "more than one page of them");
    assert_eq!(lines[0]["action"], "audit.exported", "newest first");
    assert_eq!(lines[511]["action"], "tenant.created");
    assert!(!answer.text.contains("beta"));
    let foreign = bob
        .call(Method::GET, "/workspaces/acme/audit/export", None)
        .await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND, "CASE-106");
}
