//! The stream of events: every one once, in whatever order changes commit, and to admins alone
//! (HOOK-27 to HOOK-29, HOOK-31).

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use http::{Method, Request, StatusCode, header};
use portolan_model::{event::EventType, id::TenantId, member::Role};
use portolan_storage::{TenantTx, events};
use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};

use crate::{
    access_tokens::code,
    console::{ids, workspace},
    invitations::member,
    test_service::{Answer, Browser, TestService},
    webhook_receivers::Receiver,
    webhooks::{endpoint, key, run, worker},
};

const LIVE: &str = "/workspaces/acme/events/live";

/// The longest wait: streams end by themselves after 20 s.
const SOON: Duration = Duration::from_secs(30);

/// An open stream.
struct Events {
    body: BodyDataStream,
    text: String,
    /// Id of the last event that was whole.
    last: String,
}

fn request(path: &str, token: Option<&str>, last: Option<&str>) -> Request<Body> {
    let mut request = Request::get(format!("/api/v1{path}"));
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    request.body(Body::empty()).unwrap()
}

impl Events {
    async fn open(
        person: &Browser<'_>,
        path: &str,
        token: Option<&str>,
        last: Option<&str>,
    ) -> Self {
        let response = person.begin(request(path, token, last)).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let headers = response.headers();
        assert_eq!(headers[header::CONTENT_TYPE], "text/event-stream");
        assert_eq!(headers["x-accel-buffering"], "no");
        let mut events = Self {
            body: response.into_body().into_data_stream(),
            text: String::new(),
            last: String::new(),
        };
        let (id, data) = events.frame().await.unwrap();
        assert_eq!(data, "", "the first event has an id alone");
        events.last = id;
        events
    }

    /// Id and data of the next frame that is no comment; `None` at the end.
    async fn frame(&mut self) -> Option<(String, String)> {
        loop {
            while let Some((frame, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = frame.lines().filter_map(|line| line.strip_prefix(name));
                    lines.next().map(|value| value.trim().to_owned())
                };
                let (id, data) = (field("id:"), field("data:"));
                self.text = rest.to_owned();
                if let (Some(id), Some(data)) = (id, data) {
                    return Some((id, data));
                }
            }
            let piece = timeout(SOON, self.body.next()).await.unwrap()?;
            self.text
                .push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
    }

    /// The next event: `{id, message}`. `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let (id, data) = self.frame().await?;
            self.last = id;
            if !data.is_empty() {
                return Some(serde_json::from_str(&data).unwrap());
            }
        }
    }

    /// The name in the data of the next event.
    async fn name(&mut self) -> String {
        let event = self.next().await.unwrap();
        event["message"]["data"]["name"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// Writes an event of this name, in a transaction that the caller ends.
async fn write(service: &TestService, tenant: TenantId, name: &str) -> TenantTx {
    let mut tx = service.store.tenant(tenant).await.unwrap();
    let data = json!({"key": "key_1", "name": name});
    let now = service.clock.now();
    events::write(&mut tx, tenant, EventType::KeyCreated, data, now)
        .await
        .unwrap();
    tx
}

async fn refused(person: &Browser<'_>, path: &str, token: Option<&str>) -> Answer {
    let answer = person.send(request(path, token, None)).await;
    assert!(!answer.status.is_success(), "{path}: {}", answer.text);
    answer
}

/// Rule: HOOK-27
#[tokio::test]
async fn late_commit_is_streamed_after_events_that_were_made_later() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let worker = worker(&service);
    let mut live = Events::open(&ann, LIVE, None, None).await;
    let begin = live.last.clone();
    let slow = write(&service, tenant, "slow").await;
    let lost = write(&service, tenant, "rolled back").await;
    write(&service, tenant, "quick")
        .await
        .commit()
        .await
        .unwrap();
    worker.spread().await.unwrap();
    assert_eq!(live.name().await, "quick");
    let after_quick = live.last.clone();
    drop(lost);
    slow.commit().await.unwrap();
    worker.spread().await.unwrap();
    assert_eq!(live.name().await, "slow", "its id is the smaller one");
    // A connection that was cut goes on where it was.
    let mut again = Events::open(&ann, LIVE, None, Some(&after_quick)).await;
    assert_eq!(again.name().await, "slow");
    let mut whole = Events::open(&ann, LIVE, None, Some(&begin)).await;
    assert_eq!(whole.name().await, "quick");
    assert_eq!(whole.name().await, "slow");
    // Nothing follows: neither stream has an event more.
    let ends = tokio::join!(live.next(), again.next(), whole.next());
    assert_eq!(ends, (None, None, None));
    let last = live.last;
    let mut rest = Events::open(&ann, LIVE, None, Some(&last)).await;
    write(&service, tenant, "next")
        .await
        .commit()
        .await
        .unwrap();
    worker.spread().await.unwrap();
    assert_eq!(rest.name().await, "next");
}

/// Rule: HOOK-27
#[tokio::test]
async fn concurrent_changes_are_streamed_once_each_over_reconnects() {
    const WRITERS: usize = 6;
    const EACH: usize = 20;
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let mut live = Events::open(&ann, LIVE, None, None).await;
    let (done, is_done) = watch::channel(false);
    let service_ref = &service;
    let writer = |writer: usize| async move {
        let mut committed = Vec::new();
        for number in 0..EACH {
            let name = format!("{writer}-{number}");
            let tx = write(service_ref, tenant, &name).await;
            // Others write and commit meanwhile, in an order that differs from run to run.
            for _ in 0..RandomState::new().hash_one(number) % 40 {
                tokio::task::yield_now().await;
            }
            if !RandomState::new().hash_one(writer).is_multiple_of(5) {
                tx.commit().await.unwrap();
                committed.push(name);
            }
        }
        committed
    };
    let writing = async {
        let all = futures_util::future::join_all((0..WRITERS).map(writer)).await;
        done.send_replace(true);
        all.concat()
    };
    // Two processes number events at the same time.
    let spreading = async || {
        let worker = worker(&service);
        loop {
            let was_last = *is_done.borrow();
            worker.spread().await.unwrap();
            if was_last {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let (written, (), ()) = tokio::join!(writing, spreading(), spreading());
    worker(&service).spread().await.unwrap();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for count in 1..=written.len() {
        *seen.entry(live.name().await).or_default() += 1;
        if count % 25 == 0 {
            let last = live.last.clone();
            live = Events::open(&ann, LIVE, None, Some(&last)).await;
        }
    }
    let expected: BTreeMap<String, usize> = written.into_iter().map(|name| (name, 1)).collect();
    assert_eq!(seen, expected);
    assert_eq!(live.next().await, None, "and no other one");
}

/// Rule: HOOK-28
#[tokio::test]
async fn stream_has_the_chosen_types_since_a_time() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    workspace(&ann, "other").await;
    let worker = worker(&service);
    let kept = key(&ann, "before").await;
    worker.spread().await.unwrap();
    service.wait(time::Duration::minutes(8));
    let since = service.clock.now() - time::Duration::minutes(4);
    let since = since.format(&time::format_description::well_known::Rfc3339);
    let since = since.unwrap();
    let second = key(&ann, "after").await;
    let path = format!("/workspaces/acme/api-keys/{kept}");
    let revoked = ann.call(Method::DELETE, &path, None).await;
    assert!(revoked.status.is_success(), "{}", revoked.text);
    worker.spread().await.unwrap();
    let open = async |query: &str| Events::open(&ann, &format!("{LIVE}?{query}"), None, None).await;
    let kind = |event: &Value| event["message"]["type"].as_str().unwrap().to_owned();
    let mut all = open(&format!("since={since}")).await;
    let first = all.next().await.unwrap();
    assert_eq!(kind(&first), "key.created", "the one of before is older");
    assert_eq!(first["message"]["data"]["key"], second);
    assert!(first["id"].as_str().unwrap().starts_with("evt_"));
    assert_eq!(kind(&all.next().await.unwrap()), "key.revoked");
    let begin = all.last;
    let mut some = open(&format!("since={since}&events=server.*,%20key.revoked")).await;
    assert_eq!(kind(&some.next().await.unwrap()), "key.revoked");
    let mut none = open("events=*").await;
    // A message for one endpoint alone is no event of the workspace.
    let (id, _) = endpoint(&ann, &receiver, &["server.published"]).await;
    let path = format!("/workspaces/acme/webhooks/{id}/test");
    let queued = ann.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(queued.status, StatusCode::ACCEPTED, "{}", queued.text);
    run(&worker).await;
    assert_eq!(receiver.one().json()["type"], "endpoint.test");
    assert_eq!(none.next().await, None);

    for (query, wrong) in [
        ("events=", "events_invalid"),
        ("events=nothing.*", "events_invalid"),
        ("events=key.created,key", "events_invalid"),
        ("events=key*", "events_invalid"),
        ("since=yesterday", "since_invalid"),
        ("since=2000-01-01T00:00:00Z", "since_invalid"),
        ("since=2999-01-01T00:00:00Z", "since_invalid"),
    ] {
        let answer = refused(&ann, &format!("{LIVE}?{query}"), None).await;
        assert_eq!(code(&answer), wrong, "{query}");
    }
    // The place of another workspace's stream, and one that was changed.
    for last in [begin.as_str(), "nonsense", "ä"] {
        let request = request("/workspaces/other/events/live", None, Some(last));
        let answer = ann.send(request).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(code(&answer), "invalid_cursor", "{last}");
    }
}

/// Rule: HOOK-29
#[tokio::test]
async fn admins_and_tokens_of_the_scope_alone_may_listen() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let dev = member(&service, &ann, "dev@acme.example", "developer").await;
    assert_eq!(code(&refused(&dev, LIVE, None).await), "forbidden");
    let stranger = service.person("eve@example.com").await;
    assert_eq!(code(&refused(&stranger, LIVE, None).await), "not_found");
    let program = service.browser();
    assert_eq!(
        refused(&program, LIVE, None).await.status,
        StatusCode::UNAUTHORIZED
    );
    for (role, scope, wrong) in [
        (Role::Admin, "registry:write", "insufficient_scope"),
        (Role::Developer, "workspace:read", "forbidden"),
    ] {
        let (_, secret) = token(&ann, role, scope).await;
        let answer = refused(&program, LIVE, Some(&secret)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert_eq!(code(&answer), wrong);
    }
    let (_, secret) = token(&ann, Role::Admin, "workspace:read").await;
    Events::open(&program, LIVE, Some(&secret), None).await;
}

/// Id and secret of a token of the workspace.
async fn token(ann: &Browser<'_>, role: Role, scope: &str) -> (String, String) {
    let body = json!({"name": "Laptop", "role": role, "scopes": [scope], "days": 1});
    let path = "/workspaces/acme/access-tokens";
    let made = ann.call(Method::POST, path, Some(body)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let made = made.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["token"]["id"]), text(&made["secret"]))
}

/// Rule: HOOK-31
#[tokio::test]
async fn stream_ends_before_an_event_that_the_caller_may_not_read() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let bob = member(&service, &ann, "bob@acme.example", "admin").await;
    let (tenant, user) = ids(&service, &bob, "acme").await;
    let worker = worker(&service);
    worker.spread().await.unwrap();
    let (id, secret) = token(&ann, Role::Admin, "workspace:read").await;
    let program = service.browser();
    let mut of_token = Events::open(&program, LIVE, Some(&secret), None).await;
    let mut of_bob = Events::open(&bob, LIVE, None, None).await;
    let mut of_ann = Events::open(&ann, LIVE, None, None).await;
    write(&service, tenant, "first")
        .await
        .commit()
        .await
        .unwrap();
    worker.spread().await.unwrap();
    for stream in [&mut of_token, &mut of_bob, &mut of_ann] {
        assert_eq!(stream.name().await, "first");
    }
    let path = format!("/workspaces/acme/access-tokens/{id}");
    let revoked = ann.call(Method::DELETE, &path, None).await;
    assert!(revoked.status.is_success(), "{}", revoked.text);
    let path = format!("/workspaces/acme/members/{user}");
    let role = Some(json!({"role": "developer"}));
    let changed = ann.call(Method::PATCH, &path, role).await;
    assert!(changed.status.is_success(), "{}", changed.text);
    write(&service, tenant, "second")
        .await
        .commit()
        .await
        .unwrap();
    worker.spread().await.unwrap();
    assert_eq!(of_token.next().await, None, "the token is revoked");
    assert_eq!(of_bob.next().await, None, "the role is lost");
    let role = of_ann.next().await.unwrap();
    assert_eq!(role["message"]["type"], "member.role_changed");
    assert_eq!(of_ann.name().await, "second");
    let answer = refused(&program, LIVE, Some(&secret)).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(code(&refused(&bob, LIVE, None).await), "forbidden");
}

/// Waits for the end of a stream that has no event. Its usual end is seconds later.
async fn ends_soon(stream: &mut Events, why: &str) {
    let end = timeout(Duration::from_secs(8), stream.next()).await;
    assert_eq!(end.expect(why), None, "{why}");
}

/// Rule: HOOK-31
#[tokio::test]
async fn stream_ends_soon_after_its_credential_without_an_event() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let bob = member(&service, &ann, "bob@acme.example", "admin").await;
    let dan = member(&service, &ann, "dan@acme.example", "admin").await;
    let (tenant, user) = ids(&service, &dan, "acme").await;
    let (revoked, secret) = token(&ann, Role::Admin, "workspace:read").await;
    let (_, expired) = token(&ann, Role::Admin, "workspace:read").await;
    let worker = worker(&service);
    worker.spread().await.unwrap();
    let program = service.browser();
    let mut of_ann = Events::open(&ann, LIVE, None, None).await;
    let mut of_bob = Events::open(&bob, LIVE, None, None).await;
    let mut of_dan = Events::open(&dan, LIVE, None, None).await;
    let mut of_revoked = Events::open(&program, LIVE, Some(&secret), None).await;
    let mut of_expired = Events::open(&program, LIVE, Some(&expired), None).await;
    write(&service, tenant, "first")
        .await
        .commit()
        .await
        .unwrap();
    worker.spread().await.unwrap();
    let open = [
        &mut of_ann,
        &mut of_bob,
        &mut of_dan,
        &mut of_revoked,
        &mut of_expired,
    ];
    for stream in open {
        assert_eq!(stream.name().await, "first");
    }
    // No worker numbers the events of these changes: the streams have nothing to send.
    let out = bob.post("/logout", &[]).await;
    assert_eq!(out.status, StatusCode::SEE_OTHER, "{}", out.text);
    ends_soon(&mut of_bob, "the session is signed out").await;
    for (path, stream) in [
        (
            format!("/workspaces/acme/access-tokens/{revoked}"),
            &mut of_revoked,
        ),
        (format!("/workspaces/acme/members/{user}"), &mut of_dan),
    ] {
        let ended = ann.call(Method::DELETE, &path, None).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text);
        ends_soon(stream, &path).await;
    }
    service.wait(time::Duration::days(1));
    ends_soon(&mut of_expired, "the token expired").await;
    assert_eq!(
        service.state.listeners().count(),
        1,
        "places are free again"
    );
    // The one whose session lives goes on.
    write(&service, tenant, "second")
        .await
        .commit()
        .await
        .unwrap();
    worker.spread().await.unwrap();
    while let Some(event) = of_ann.next().await {
        if event["message"]["data"]["name"] == "second" {
            return;
        }
    }
    panic!("the stream of a live session ended");
}

/// Rule: HOOK-29
#[tokio::test]
async fn streams_beyond_the_bound_are_refused_and_take_no_place() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(Events::open(&ann, LIVE, None, None).await);
    }
    let answer = refused(&ann, LIVE, None).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(code(&answer), "too_many_listeners");
    assert_eq!(answer.headers["retry-after"], "20");
    assert_eq!(
        service.state.watchers().count(),
        0,
        "live views have their own"
    );
    open.pop();
    Events::open(&ann, LIVE, None, None).await;
    drop(open);
    assert_eq!(service.state.listeners().count(), 0);
}
