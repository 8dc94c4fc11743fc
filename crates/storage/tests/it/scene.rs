//! A person with a workspace, a client, and what they agree on.

use portolan_model::{
    Digest, Timestamp,
    client::{AuthMethod, ClientKind},
    email::EmailAddress,
    id::{ClientId, GrantId, RequestId, SessionId, TenantId, UserId},
    scope::ScopeSet,
};
use portolan_storage::{
    Reason, Store, SystemTx,
    accounts::{
        browser_sessions::{self, NewSession},
        users,
    },
    oauth::{
        authorization_requests::{self, AuthorizationRequest, Status},
        clients::{self, Client, NewClient},
        grants::{self, Code, Grant, NewGrant},
    },
    platform::tenants,
};
use serde_json::json;
use time::Duration;

pub(crate) fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::days(20_000)
}

/// A digest that no other call gave.
pub(crate) fn digest() -> Digest {
    let (a, b) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(a.as_bytes());
    bytes[16..].copy_from_slice(b.as_bytes());
    Digest::from_bytes(bytes)
}

pub(crate) async fn system(store: &Store) -> SystemTx {
    store.system(Reason::OAuth).await.expect("a transaction")
}

pub(crate) struct Scene {
    pub(crate) user: UserId,
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) client: Client,
}

impl Scene {
    pub(crate) async fn new(store: &Store) -> Self {
        let mut tx = system(store).await;
        let address = EmailAddress::parse("ann@acme.example").unwrap();
        let user = users::create_unverified(&mut tx, "Ann", &address, "phc", now())
            .await
            .unwrap();
        users::verify_address(&mut tx, user, address.normalised(), now())
            .await
            .unwrap();
        let tenant = tenants::create(&mut tx, "Acme", &"acme".parse().unwrap(), user, now())
            .await
            .unwrap()
            .id;
        let new = NewSession {
            user,
            token: &digest(),
            amr: &["pwd".to_owned()],
            ip_block: None,
            ua_label: None,
        };
        let session = browser_sessions::start(&mut tx, &new, now()).await.unwrap();
        let client = register(&mut tx, digest()).await;
        tx.commit().await.unwrap();
        Self {
            user,
            tenant,
            session,
            client,
        }
    }

    /// A pending request, last shown to the person.
    pub(crate) async fn request(&self, tx: &mut SystemTx) -> RequestId {
        let request = AuthorizationRequest {
            id: RequestId::generate(),
            client: self.client.id,
            redirect_uri: "http://127.0.0.1/cb".to_owned(),
            code_challenge: "x".repeat(43),
            state: None,
            scopes_asked: vec!["mcp".to_owned()],
            resource_asked: None,
            prompt: None,
            max_age: None,
            login_hint: None,
            browser: digest(),
            user: None,
            session: None,
            status: Status::Pending,
            shown_at: None,
            decided_at: None,
            outcome_sealed: None,
            created_at: now(),
            expires_at: now() + Duration::HOUR,
        };
        authorization_requests::create(tx, &request).await.unwrap();
        authorization_requests::note_shown(tx, request.id, self.user, self.session, now())
            .await
            .unwrap();
        request.id
    }

    pub(crate) async fn grant(&self, tx: &mut SystemTx) -> GrantId {
        let grant = Grant {
            id: GrantId::generate(),
            tenant: self.tenant,
            user: self.user,
            client: self.client.id,
            scopes: ScopeSet::default_grant(),
            resource: "https://mcp.example.com/t/acme/mcp".to_owned(),
            auth_time: now(),
            expires_at: now() + Duration::days(90),
            is_revoked: false,
            is_key_bound: false,
        };
        let new = NewGrant {
            grant: &grant,
            client_snapshot: &json!({}),
            session: self.session,
            amr: &[],
            ip_block: None,
            ua_label: None,
        };
        grants::create(tx, &new, now()).await.unwrap();
        grant.id
    }

    pub(crate) async fn code(&self, tx: &mut SystemTx) -> (Digest, GrantId) {
        let request = self.request(tx).await;
        let grant = self.grant(tx).await;
        let code = Code {
            grant,
            client: self.client.id,
            tenant: self.tenant,
            redirect_uri: "http://127.0.0.1/cb".to_owned(),
            code_challenge: "x".repeat(43),
            resource: "https://mcp.example.com/t/acme/mcp".to_owned(),
            resource_given: true,
            attempts: 0,
            expires_at: now() + Duration::minutes(2),
            redeemed_at: None,
        };
        let digest = digest();
        grants::create_code(tx, &digest, request, &code)
            .await
            .unwrap();
        (digest, grant)
    }
}

/// Registers a public client whose metadata have this digest.
pub(crate) async fn register(tx: &mut SystemTx, metadata_digest: Digest) -> Client {
    register_at(tx, metadata_digest, now()).await
}

/// The same at another time.
pub(crate) async fn register_at(
    tx: &mut SystemTx,
    metadata_digest: Digest,
    at: Timestamp,
) -> Client {
    let id = ClientId::generate();
    let new = NewClient {
        id,
        client_id: &id.to_string(),
        kind: ClientKind::Dynamic,
        tenant: None,
        name: "Client",
        metadata: &json!({}),
        metadata_digest,
        auth_method: AuthMethod::None,
        application_type: "native",
        grant_types: &["authorization_code".to_owned(), "refresh_token".to_owned()],
        redirect_uris: &["http://127.0.0.1/cb".to_owned()],
        secret: None,
        ip_block: Some("127.0.0.0/24"),
    };
    clients::register(tx, &new, at).await.unwrap()
}
