//! Callbacks of other authorization servers: the person must still be allowed to connect the
//! account.

use http::{Method, StatusCode};
use portolan_keys::digest;
use portolan_model::{
    id::{SourceId, TenantId, UserId},
    member::Role,
    registry::SourceKind,
};
use portolan_storage::{
    Reason,
    accounts::{browser_sessions, members},
    registry::{
        sources,
        upstream_oauth::{self as stored, NewAttempt},
    },
};
use serde_json::json;
use time::Duration;

use crate::{
    console::{ids, workspace},
    test_service::TestService,
};

async fn source(service: &TestService, tenant: TenantId) -> SourceId {
    let now = service.clock.now();
    let new = sources::NewSource {
        id: SourceId::generate(),
        kind: SourceKind::Mcp,
        name: "Theirs",
        base_url: "https://mcp.example/mcp",
        document: None,
        security: &json!([]),
    };
    let mut tx = service.store.tenant(tenant).await.unwrap();
    sources::insert(&mut tx, &new, now).await.unwrap();
    stored::set_sign_in(&mut tx, new.id, "person", "code", None, None, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    new.id
}

/// Stores an attempt of `user`'s browser to connect the account of `owner`.
async fn on_the_way(
    service: &TestService,
    (tenant, source): (TenantId, SourceId),
    user: UserId,
    owner: Option<UserId>,
    state: &str,
) {
    let now = service.clock.now();
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let sessions = browser_sessions::list(&mut tx, user, now).await.unwrap();
    drop(tx);
    let server = json!({
        "issuer": "https://as.example", "token_endpoint": "https://as.example/token",
    });
    let attempt = NewAttempt {
        state: &digest(state.as_bytes()),
        source,
        user,
        session: sessions[0].id,
        owner,
        server: &server,
        address: "https://mcp.example/mcp",
        resource: None,
        scope: None,
        redirect_uri: "https://portolan.example/connect/callback",
        back: "console",
        sealed: &[0],
        expires_at: now + Duration::minutes(10),
    };
    let mut tx = service.store.tenant(tenant).await.unwrap();
    stored::begin_attempt(&mut tx, &attempt, now).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn au_14_who_lost_the_role_on_the_way_connects_nothing() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let bob = service.person("bob@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let (_, user) = ids(&service, &bob, "acme").await;
    let place = (tenant, source(&service, tenant).await);
    for (role, owner, may) in [
        (Role::Developer, None, true),
        (Role::Member, None, false),
        (Role::Viewer, None, false),
        (Role::Member, Some(user), true),
        (Role::Viewer, Some(user), false),
    ] {
        let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
        members::add(&mut tx, tenant, user, role, service.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let state = format!("{role}-{}", owner.is_some());
        on_the_way(&service, place, user, owner, &state).await;
        // A permitted person sees the fault of the answer: its issuer is not the requested one.
        let path = format!(
            "/connect/callback/{}?state={state}&code=c&iss=https%3A%2F%2Fevil.example",
            place.1
        );
        let answer = bob.get(&path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        assert_eq!(
            answer.text.contains("another authorization server"),
            may,
            "{role} {owner:?}: {}",
            answer.text
        );
        assert_eq!(
            answer.text.contains("could not be completed"),
            !may,
            "{role}"
        );
    }
    let path = format!("/workspaces/acme/sources/{}/sign-in", place.1);
    let seen = ann.call(Method::GET, &path, None).await.json();
    assert_eq!(seen["connection"], json!(null));
    assert_eq!(seen["linked_persons"], 0);
}
