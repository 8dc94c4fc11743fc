//! Trusted pipelines: jobs of CI systems exchange their JWT for a token of the management API
//! (API-16 to API-22).

use futures_util::future::join_all;
use http::{Method, StatusCode, header};
use portolan_storage::{
    Reason,
    expiry::{self, Expired},
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    access_tokens::{Program, code},
    ci_issuer::{CiIssuer, Fault},
    console::workspace,
    invitations::member,
    races,
    test_service::{Answer, Browser, TestService},
};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const ACME: &str = "https://portolan.test/api/v1/workspaces/acme";
const TRUSTS: &str = "/workspaces/acme/trusted-pipelines";

/// The body of a trust in the main branch of `acme/web`, with changes; `null` removes a member.
fn trust(issuer: &CiIssuer, change: &Value) -> Value {
    let mut body = json!({
        "name": "Deploy", "issuer": issuer.origin(), "subject": "repo:acme/web:ref:refs/heads/main",
        "scopes": ["registry:write"],
    });
    for (name, value) in change.as_object().unwrap() {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value.clone();
        }
    }
    body
}

async fn trusted(admin: &Browser<'_>, body: Value) -> Value {
    let answer = admin.call(Method::POST, TRUSTS, Some(body)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.json()
}

/// The exchange of a job, with further or other parameters; an empty one is absent.
async fn exchange_with(service: &TestService, jwt: &str, change: &[(&str, &str)]) -> Answer {
    let mut fields = vec![
        ("grant_type", GRANT),
        ("subject_token", jwt),
        ("subject_token_type", JWT),
        ("resource", ACME),
    ];
    for &(name, value) in change {
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value));
    }
    service.browser().post("/oauth/token", &fields).await
}

async fn exchange(service: &TestService, jwt: &str) -> Answer {
    exchange_with(service, jwt, &[]).await
}

/// The program of a job that got a token.
fn program<'a>(service: &'a TestService, answer: &Answer) -> Program<'a> {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    Program::new(service, answer.json()["access_token"].as_str().unwrap())
}

/// The refusals of the only trust, by reason.
async fn refusals(admin: &Browser<'_>) -> Vec<(String, String, i64)> {
    let shown = admin.call(Method::GET, TRUSTS, None).await.json();
    let all = shown["items"][0]["refusals"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|one| {
            (
                text(&one["reason"]),
                text(&one["seen"]),
                one["times"].as_i64().unwrap(),
            )
        })
        .collect()
}

async fn plan(program: &Program<'_>) -> Answer {
    let path = "/workspaces/acme/configuration/plans";
    let body = json!({"bundle": "format: portolan/v1\nname: pipeline\n"});
    program.call(Method::POST, path, Some(body)).await
}

/// Rule: API-18, API-21.
#[tokio::test]
async fn a_job_of_github_gets_a_token_that_plans() {
    let issuer = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let claims = json!({"repository_id": "74", "run_attempt": "2"});
    let made = trusted(&ann, trust(&issuer, &json!({ "claims": claims }))).await;
    assert_eq!(made["audience"], "https://portolan.test");
    assert_eq!(
        (&made["role"], &made["minutes"]),
        (&json!("developer"), &json!(15))
    );
    assert!(made.get("last_used_at").is_none(), "{made}");

    let answer = exchange(&service, &issuer.github(&service, &json!({}))).await;
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    let job = program(&service, &answer);
    let mut body = answer.json();
    let secret = body["access_token"].take();
    let secret = secret.as_str().unwrap();
    assert!(secret.starts_with("ptlw_"), "{secret}");
    let expected = json!({
        "access_token": null, "token_type": "Bearer", "expires_in": 900, "scope": "registry:write",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    });
    assert_eq!(body, expected);

    let planned = plan(&job).await;
    assert!(planned.status.is_success(), "{}", planned.text);
    let beyond = job.get("/workspaces/acme/audit").await;
    assert_eq!(code(&beyond), "insufficient_scope");
    let about = job.get("/token").await.json();
    assert_eq!(about["name"], "Deploy");
    assert_eq!(about["workspaces"][0]["role"], "developer");

    let tokens = ann
        .call(Method::GET, "/workspaces/acme/access-tokens", None)
        .await;
    assert_eq!(
        tokens.json()["items"],
        json!([]),
        "it is none of the permanent ones"
    );
    let shown = ann.call(Method::GET, TRUSTS, None).await.json();
    assert!(shown["items"][0]["last_used_at"].is_string(), "{shown}");
    let log = ann.call(Method::GET, "/workspaces/acme/audit", None).await;
    assert!(
        !log.text.contains(secret) && !log.text.contains("job-1"),
        "no token"
    );
    let log = log.json();
    let entries = log["items"].as_array().unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry["action"] == "access_token.issued")
        .unwrap();
    let detail = &entry["detail"];
    assert_eq!(detail["name"], "Deploy");
    assert_eq!(detail["sub"], "repo:acme/web:ref:refs/heads/main");
    assert_eq!(detail["claims"]["repository"], "acme/web");
    assert_eq!(detail["claims"]["run_id"], "1234567890");
    assert_eq!(detail["claims"].get("repository_visibility"), None);

    service.wait(Duration::minutes(15));
    assert_eq!(
        job.get("/token").await.status,
        StatusCode::UNAUTHORIZED,
        "it ended"
    );
    service.wait(Duration::minutes(1));
    let mut tx = service.store.system(Reason::Janitor).await.unwrap();
    for what in [Expired::IssuedTokens, Expired::PipelineJwts] {
        let gone = expiry::purge(&mut tx, what, service.clock.now()).await;
        assert_eq!(gone.unwrap(), 1, "{what:?}");
    }
}

/// Rule: API-18.
#[tokio::test]
async fn a_job_of_gitlab_gets_the_role_and_scopes_of_its_trust() {
    let issuer = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let body = json!({
        "subject": "project_path:acme/*:ref_type:branch:ref:main", "audience": "portolan",
        "claims": {"environment": "production", "ref_protected": "true", "runner_id": "1"},
        "role": "viewer", "scopes": ["registry:write", "audit:read"], "minutes": 5,
    });
    trusted(&ann, trust(&issuer, &body)).await;
    let id_token = (
        "subject_token_type",
        "urn:ietf:params:oauth:token-type:id_token",
    );
    let with_slash = format!("{ACME}/");
    let jwt = issuer.gitlab(&service, &json!({"aud": ["portolan"]}));
    let answer = exchange_with(&service, &jwt, &[id_token, ("resource", &with_slash)]).await;
    let job = program(&service, &answer);
    assert_eq!(answer.json()["expires_in"], 300);
    assert_eq!(answer.json()["scope"], "registry:write audit:read");
    assert_eq!(code(&plan(&job).await), "forbidden", "a viewer");

    let jwt = issuer.gitlab(&service, &json!({"aud": "portolan"}));
    let narrowed = exchange_with(&service, &jwt, &[("scope", "registry:read")]).await;
    assert_eq!(narrowed.json()["scope"], "registry:read");
    let job = program(&service, &narrowed);
    let servers = job.get("/workspaces/acme/servers").await;
    assert_eq!(servers.status, StatusCode::OK);
    let log = job.get("/workspaces/acme/audit").await;
    assert_eq!(code(&log), "insufficient_scope");
    let jwt = issuer.gitlab(&service, &json!({"aud": "portolan"}));
    for wider in ["registry:read calls:read", "mcp", "  "] {
        let refused = exchange_with(&service, &jwt, &[("scope", wider)]).await;
        assert_eq!(refused.json()["error"], "invalid_scope", "{wider}");
    }
    let answer = exchange(&service, &jwt).await;
    assert_eq!(
        answer.status,
        StatusCode::OK,
        "a refused scope uses nothing up"
    );
}

/// Rule: API-18, API-20.
#[tokio::test]
async fn a_job_that_does_not_fit_gets_one_answer() {
    let issuer = CiIssuer::start().await;
    let stranger = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer, &stranger]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    workspace(&ann, "other").await;
    trusted(
        &ann,
        trust(&issuer, &json!({"claims": {"environment": "prod"}})),
    )
    .await;
    let fits = json!({"environment": "prod"});
    let with = |change: Value| {
        let mut claims = fits.clone();
        claims
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        issuer.github(&service, &claims)
    };
    let now = service.clock.now().unix_timestamp();
    let good = with(json!({}));
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let wrong = [
        (
            with(json!({"aud": "https://others.example"})),
            "audience",
            "https://others.example",
        ),
        (
            with(json!({"aud": ["https://portolan.test", "x"]})),
            "audience",
            "",
        ),
        (
            with(json!({"sub": "repo:acme/web:pull_request"})),
            "subject",
            "repo:acme/web:pull_request",
        ),
        (
            with(json!({"environment": "test\n"})),
            "claim",
            "environment: test",
        ),
        (with(json!({"environment": null})), "claim", "environment"),
        (
            with(json!({"environment": ["prod"]})),
            "claim",
            "environment",
        ),
        (with(json!({"exp": now - 60})), "time", ""),
        (with(json!({"exp": now + 25 * 3600})), "time", ""),
        (with(json!({"nbf": now + 120})), "time", ""),
        (with(json!({"iat": now + 120})), "time", ""),
        (
            format!("{signed}.{}", signature.chars().rev().collect::<String>()),
            "signature",
            "",
        ),
    ];
    let mut answers = Vec::new();
    let mut expected = std::collections::BTreeMap::new();
    for (jwt, reason, seen) in wrong {
        let answer = exchange(&service, &jwt).await;
        let shown = refusals(&ann).await;
        let (_, last, times) = shown.iter().find(|(known, ..)| known == reason).unwrap();
        let counted = expected.entry(reason).or_insert(0);
        *counted += 1;
        assert_eq!((last.as_str(), *times), (seen, *counted), "{reason}");
        answers.push(answer);
    }
    let before = refusals(&ann).await;
    // Nothing is counted of tokens whose issuer is not trusted there, or that are no tokens.
    let head = good.split('.').nth(1).unwrap();
    let none = "eyJhbGciOiJub25lIn0";
    let symmetric = "eyJhbGciOiJIUzI1NiJ9";
    for jwt in [
        stranger.github(&service, &fits),
        with(json!({"iss": "https://unheard-of.example"})),
        with(json!({"iss": null})),
        format!("{none}.{head}."),
        format!("{none}.{head}.{signature}"),
        format!("{symmetric}.{head}.{signature}"),
        "nonsense".to_owned(),
        "x".repeat(20_000),
    ] {
        answers.push(exchange(&service, &jwt).await);
    }
    for slug in ["other", "nowhere"] {
        let resource = format!("https://portolan.test/api/v1/workspaces/{slug}");
        answers.push(exchange_with(&service, &good, &[("resource", &resource)]).await);
    }
    assert_eq!(stranger.key_reads(), 0, "no trust, no request");
    for answer in &answers {
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        assert_eq!(answer.text, answers[0].text);
    }
    assert_eq!(answers[0].json()["error"], "invalid_grant");
    assert_eq!(refusals(&ann).await, before);
    assert_eq!(exchange(&service, &good).await.status, StatusCode::OK);
}

/// Rule: API-18.
#[tokio::test]
async fn a_malformed_exchange_names_its_fault() {
    let issuer = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    trusted(&ann, trust(&issuer, &json!({}))).await;
    let jwt = issuer.github(&service, &json!({}));
    let saml = "urn:ietf:params:oauth:token-type:saml2";
    let refresh = "urn:ietf:params:oauth:token-type:refresh_token";
    let table: [(&[(&str, &str)], &str); 9] = [
        (&[("subject_token", "")], "invalid_request"),
        (&[("subject_token_type", "")], "invalid_request"),
        (&[("subject_token_type", saml)], "invalid_request"),
        (&[("requested_token_type", refresh)], "invalid_request"),
        (&[("actor_token", "x")], "invalid_request"),
        (&[("resource", "")], "invalid_target"),
        (
            &[("resource", "https://portolan.test/t/acme/mcp")],
            "invalid_target",
        ),
        (
            &[("resource", "https://evil.example/api/v1/workspaces/acme")],
            "invalid_target",
        ),
        (&[("audience", "acme")], "invalid_target"),
    ];
    for (change, error) in table {
        let answer = exchange_with(&service, &jwt, change).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{change:?}");
        assert_eq!(answer.json()["error"], error, "{change:?} {}", answer.text);
    }
    let query = format!("/oauth/token?subject_token={jwt}");
    let answer = service
        .browser()
        .post(&query, &[("grant_type", GRANT)])
        .await;
    assert_eq!(
        answer.json()["error"],
        "invalid_request",
        "logs have queries"
    );
    let metadata = service
        .browser()
        .get("/.well-known/oauth-authorization-server")
        .await;
    let grants = metadata.json()["grant_types_supported"].clone();
    assert!(
        grants.as_array().unwrap().contains(&json!(GRANT)),
        "{grants}"
    );
}

/// Rule: API-19.
#[tokio::test]
async fn a_jwt_is_exchanged_once() {
    let issuer = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    trusted(&ann, trust(&issuer, &json!({}))).await;
    let mut rounds = 0;
    for round in races::rounds("a_jwt_is_exchanged_once") {
        rounds += 1;
        let jwt = issuer.github(&service, &json!({ "round": round }));
        let answers = join_all((0..6).map(|_| exchange(&service, &jwt))).await;
        let given = answers
            .iter()
            .filter(|answer| answer.status == StatusCode::OK);
        assert_eq!(given.count(), 1);
        service.wait(Duration::minutes(1));
    }
    let sub = "repo:acme/web:ref:refs/heads/main".to_owned();
    assert_eq!(
        refusals(&ann).await,
        [("replay".to_owned(), sub, rounds * 5)]
    );
    // Without `jti` too.
    let jwt = issuer.github(&service, &json!({"jti": null}));
    assert_eq!(exchange(&service, &jwt).await.status, StatusCode::OK);
    assert_eq!(
        exchange(&service, &jwt).await.status,
        StatusCode::BAD_REQUEST
    );
}

/// Rule: API-18.
#[tokio::test]
async fn rotated_keys_are_asked_for_once_a_minute() {
    let issuer = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    trusted(&ann, trust(&issuer, &json!({}))).await;
    let job = async || {
        let jwt = issuer.github(&service, &json!({}));
        exchange(&service, &jwt).await.status
    };
    assert_eq!(job().await, StatusCode::OK);
    let reads = issuer.key_reads();
    issuer.change_key();
    assert_eq!(job().await, StatusCode::BAD_REQUEST);
    assert_eq!(issuer.key_reads(), reads, "read a moment ago");
    service.wait(Duration::minutes(1));
    for _ in 0..3 {
        assert_eq!(job().await, StatusCode::BAD_REQUEST, "not published");
    }
    assert_eq!(issuer.key_reads(), reads + 1);
    assert_eq!(
        refusals(&ann).await[0],
        ("key".to_owned(), String::new(), 4)
    );
    issuer.publish_key();
    service.wait(Duration::minutes(1));
    assert_eq!(job().await, StatusCode::OK);
    assert_eq!(issuer.key_reads(), reads + 2);

    // An issuer that does not answer: its keys are used for a day, and it is asked once a minute.
    issuer.set_fault(Some(Fault::Down));
    service.wait(Duration::hours(23));
    for _ in 0..3 {
        assert_eq!(job().await, StatusCode::OK);
    }
    assert_eq!(issuer.key_reads(), reads + 2, "the metadata comes first");
    service.wait(Duration::hours(2));
    assert_eq!(job().await, StatusCode::BAD_REQUEST);
    assert_eq!(refusals(&ann).await[0].0, "issuer");
    issuer.set_fault(None);
    service.wait(Duration::minutes(1));
    assert_eq!(job().await, StatusCode::OK);
}

/// Rule: API-21.
#[tokio::test]
async fn a_changed_or_deleted_trust_ends_its_tokens() {
    let issuer = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let made = trusted(&ann, trust(&issuer, &json!({}))).await;
    let path = format!("{TRUSTS}/{}", made["id"].as_str().unwrap());
    let wrong = issuer.github(&service, &json!({"sub": "repo:acme/web:pull_request"}));
    exchange(&service, &wrong).await;
    let old = exchange(&service, &issuer.github(&service, &json!({}))).await;
    let old = program(&service, &old);
    assert!(plan(&old).await.status.is_success());

    // The issuer is away: a trust can be made narrower all the same.
    issuer.set_fault(Some(Fault::Down));
    let body = trust(
        &issuer,
        &json!({"name": "Plan", "scopes": ["registry:read"], "minutes": 60}),
    );
    let changed = ann.call(Method::PUT, &path, Some(body)).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    let changed = changed.json();
    assert_eq!(changed["created_at"], made["created_at"]);
    assert_eq!(changed["refusals"], json!([]), "of the former conditions");
    assert_eq!(old.get("/token").await.status, StatusCode::UNAUTHORIZED);
    issuer.set_fault(None);
    let new = exchange(&service, &issuer.github(&service, &json!({}))).await;
    assert_eq!(new.json()["expires_in"], 3600);
    let new = program(&service, &new);
    assert_eq!(new.get("/token").await.json()["name"], "Plan");

    let deleted = ann.call(Method::DELETE, &path, None).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.text);
    assert_eq!(new.get("/token").await.status, StatusCode::UNAUTHORIZED);
    let again = exchange(&service, &issuer.github(&service, &json!({}))).await;
    assert_eq!(again.json()["error"], "invalid_grant");
    let gone = ann.call(Method::DELETE, &path, None).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    let log = ann.call(Method::GET, "/workspaces/acme/audit", None).await;
    for action in ["created", "changed", "deleted"] {
        assert!(
            log.text.contains(&format!("trusted_pipeline.{action}")),
            "{action}"
        );
    }
}

/// Rule: API-16, API-17.
#[tokio::test]
async fn a_trust_beyond_its_bounds_is_not_saved() {
    let issuer = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let github = "https://token.actions.githubusercontent.com";
    let eleven: serde_json::Map<_, _> = (0..11).map(|n| (format!("c{n}"), json!("x"))).collect();
    for (change, field) in [
        (json!({"name": " "}), "name"),
        (json!({"issuer": ""}), "issuer"),
        (json!({"audience": ""}), "audience"),
        (json!({"subject": "*"}), "subject"),
        (json!({"subject": "a*b*c*d*e*f*g"}), "subject"),
        (json!({"issuer": github, "subject": "repo:*"}), "subject"),
        (json!({"claims": {"sub": "x"}}), "claims"),
        (json!({"claims": {"ref": ""}}), "claims"),
        (json!({ "claims": eleven }), "claims"),
        (json!({"role": "owner"}), "role"),
        (json!({"scopes": []}), "scopes"),
        (json!({"minutes": 0}), "minutes"),
        (json!({"minutes": 61}), "minutes"),
    ] {
        let refused = ann
            .call(Method::POST, TRUSTS, Some(trust(&issuer, &change)))
            .await;
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(refused.status, status, "{change} {}", refused.text);
        assert_eq!(refused.json()["error"]["field"], field, "{change}");
    }
    let bob = member(&service, &ann, "bob@acme.example", "admin").await;
    let strong = trust(&issuer, &json!({"role": "owner"}));
    let refused = bob.call(Method::POST, TRUSTS, Some(strong)).await;
    assert_eq!(code(&refused), "role_too_strong");
    trusted(&bob, trust(&issuer, &json!({"role": "admin"}))).await;
    for _ in 1..20 {
        trusted(&ann, trust(&issuer, &json!({}))).await;
    }
    let refused = ann
        .call(Method::POST, TRUSTS, Some(trust(&issuer, &json!({}))))
        .await;
    assert_eq!(code(&refused), "too_many_pipelines");
    // Of trusts that all admit the job, the strongest counts.
    let answer = exchange(&service, &issuer.github(&service, &json!({}))).await;
    let job = program(&service, &answer);
    assert_eq!(
        job.get("/token").await.json()["workspaces"][0]["role"],
        "admin"
    );
}

/// Rule: API-16.
#[tokio::test]
async fn an_issuer_that_cannot_be_asked_is_not_trusted() {
    let issuer = CiIssuer::start().await;
    let other = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer, &other]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let save = async |issuer: &str| {
        let mut body = trust(&other, &json!({}));
        body["issuer"] = json!(issuer);
        ann.call(Method::POST, TRUSTS, Some(body)).await
    };
    // The words of the page, for people who know issuers and no authorization servers.
    let said = |refused: &Answer| {
        let message = refused.json()["error"]["message"].clone();
        let message = message.as_str().unwrap().to_owned();
        let reason = message.strip_prefix("This issuer cannot be used: it");
        assert!(
            reason.is_some() && !message.contains("authorization server"),
            "{message}"
        );
        message
    };
    let faults = [
        Fault::OtherIssuer,
        Fault::MetadataMoved(other.origin().to_owned()),
        Fault::KeysMoved(other.origin().to_owned()),
        Fault::HugeKeys,
        Fault::PrivateKey,
        Fault::Symmetric,
        Fault::Down,
    ];
    for fault in &faults {
        issuer.set_fault(Some(fault.clone()));
        let refused = save(issuer.origin()).await;
        assert_eq!(
            code(&refused),
            "issuer_unusable",
            "{fault:?} {}",
            refused.text
        );
        let message = said(&refused);
        if matches!(fault, Fault::OtherIssuer) {
            assert!(message.ends_with(": its metadata names another issuer."));
        }
    }
    let metadata_service = "http://169.254.169.254";
    for address in [
        metadata_service,
        "https://10.0.0.1",
        "https://127.0.0.1:1",
        "ftp://x.example",
        "x",
    ] {
        let refused = save(address).await;
        assert_eq!(
            code(&refused),
            "issuer_unusable",
            "{address} {}",
            refused.text
        );
        said(&refused);
    }
    assert_eq!(other.key_reads(), 0, "no redirect was followed");

    // The same faults after the trust was saved.
    issuer.set_fault(None);
    trusted(&ann, trust(&issuer, &json!({}))).await;
    for fault in &faults {
        issuer.set_fault(Some(fault.clone()));
        service.wait(Duration::minutes(1));
        let refused = exchange(&service, &issuer.github(&service, &json!({}))).await;
        assert_eq!(refused.json()["error"], "invalid_grant", "{fault:?}");
    }
    let count = i64::try_from(faults.len()).unwrap();
    assert_eq!(
        refusals(&ann).await,
        [("issuer".to_owned(), String::new(), count)]
    );
    issuer.set_fault(None);
    // Another process, whose policy does not know the address.
    let guarded = service.with_another_master_secret();
    let refused = exchange(&guarded, &issuer.github(&service, &json!({}))).await;
    assert_eq!(refused.json()["error"], "invalid_grant");
    service.wait(Duration::minutes(1));
    let answer = exchange(&service, &issuer.github(&service, &json!({}))).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
}

/// Rule: API-22.
#[tokio::test]
async fn exchanges_of_an_address_and_a_workspace_are_limited() {
    let issuer = CiIssuer::start().await;
    let service = CiIssuer::service(&[&issuer]).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    trusted(&ann, trust(&issuer, &json!({}))).await;
    let runner = service.browser_at("203.0.113.7");
    let fields = [
        ("grant_type", GRANT),
        ("subject_token", "nonsense"),
        ("subject_token_type", JWT),
        ("resource", ACME),
    ];
    for _ in 0..60 {
        let refused = runner.post("/oauth/token", &fields).await;
        assert_eq!(refused.json()["error"], "invalid_grant");
    }
    let refused = runner.post("/oauth/token", &fields).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers.contains_key(header::RETRY_AFTER));

    for _ in 0..60 {
        let jwt = issuer.github(&service, &json!({}));
        assert_eq!(exchange(&service, &jwt).await.status, StatusCode::OK);
    }
    let jwt = issuer.github(&service, &json!({}));
    let refused = exchange(&service, &jwt).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    service.wait(Duration::seconds(2));
    assert_eq!(
        exchange(&service, &jwt).await.status,
        StatusCode::OK,
        "it is not used up"
    );
}
