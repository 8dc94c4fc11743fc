//! The issuer of a CI system on a port of this machine: its metadata, its keys, and the JWTs of
//! its jobs.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::State,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{StatusCode, header};
use portolan_keys::ring::NewKeyPair;
use portolan_net::egress::{AllowedDestination, EgressPolicy};
use serde_json::{Value, json};
use url::Url;

use crate::test_service::TestService;

/// A fault of the issuer's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The metadata names another issuer.
    OtherIssuer,
    /// The metadata moved to another origin.
    MetadataMoved(String),
    /// The keys moved to another origin.
    KeysMoved(String),
    /// The key set is larger than is read.
    HugeKeys,
    /// The key set holds a private key.
    PrivateKey,
    /// No algorithm that is served.
    Symmetric,
    /// Every answer is 503.
    Down,
}

struct Says {
    key: Arc<NewKeyPair>,
    published: Arc<NewKeyPair>,
    fault: Option<Fault>,
    key_reads: u32,
    jobs: u32,
}

/// A running issuer, for the life of the test.
#[derive(Clone)]
pub(crate) struct CiIssuer {
    origin: String,
    says: Arc<Mutex<Says>>,
}

impl CiIssuer {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let key = Arc::new(NewKeyPair::generate().unwrap());
        let issuer = Self {
            origin: format!("http://{}", listener.local_addr().unwrap()),
            says: Arc::new(Mutex::new(Says {
                published: Arc::clone(&key),
                key,
                fault: None,
                key_reads: 0,
                jobs: 0,
            })),
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/jwks", get(jwks))
            .with_state(issuer.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        issuer
    }

    /// A service whose outgoing requests reach these issuers.
    pub(crate) async fn service(all: &[&Self]) -> TestService {
        let allow = all.iter().map(|issuer| {
            let url = Url::parse(&issuer.origin).unwrap();
            AllowedDestination::address([127, 0, 0, 1].into(), url.port().unwrap())
        });
        let policy = EgressPolicy {
            allow: allow.collect(),
            ..EgressPolicy::default()
        };
        TestService::open_with(policy).await
    }

    /// Its origin, which is also the issuer.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        self.says.lock().unwrap().fault = fault;
    }

    /// Signs with a new key that is not published yet.
    pub(crate) fn change_key(&self) {
        self.says.lock().unwrap().key = Arc::new(NewKeyPair::generate().unwrap());
    }

    /// Publishes the key that signs.
    pub(crate) fn publish_key(&self) {
        let mut says = self.says.lock().unwrap();
        says.published = Arc::clone(&says.key);
    }

    /// The number of requests for its keys.
    pub(crate) fn key_reads(&self) -> u32 {
        self.says.lock().unwrap().key_reads
    }

    /// The JWT of a job as GitHub writes it, with changed claims; `null` removes one.
    pub(crate) fn github(&self, service: &TestService, change: &Value) -> String {
        self.job(
            service,
            change,
            &json!({
                "sub": "repo:acme/web:ref:refs/heads/main", "ref": "refs/heads/main", "ref_type": "branch",
                "sha": "6113728f27ae82c7b1a177c8d03f9e96e0adf246", "repository": "acme/web", "repository_id": "74",
                "repository_owner": "acme", "repository_owner_id": "65", "repository_visibility": "private",
                "run_id": "1234567890", "run_number": "10", "run_attempt": "2", "runner_environment": "github-hosted",
                "actor": "ann", "actor_id": "12", "workflow": "Deploy", "event_name": "push", "head_ref": "", "base_ref": "",
                "workflow_ref": "acme/web/.github/workflows/deploy.yml@refs/heads/main",
                "job_workflow_ref": "acme/web/.github/workflows/deploy.yml@refs/heads/main",
            }),
        )
    }

    /// The JWT of a job as GitLab writes it.
    pub(crate) fn gitlab(&self, service: &TestService, change: &Value) -> String {
        self.job(
            service,
            change,
            &json!({
                "sub": "project_path:acme/web:ref_type:branch:ref:main", "namespace_id": "72", "namespace_path": "acme",
                "project_id": "20", "project_path": "acme/web", "user_id": "1", "user_login": "ann",
                "user_email": "ann@acme.example", "user_access_level": "owner", "pipeline_id": "574",
                "pipeline_source": "push", "job_id": "302", "ref": "main", "ref_type": "branch",
                "ref_path": "refs/heads/main", "ref_protected": "true", "environment": "production",
                "environment_protected": "true", "deployment_tier": "production", "runner_id": 1,
                "runner_environment": "self-hosted", "sha": "714a629c0b401fdce83e847fc9589983fc6f46bc",
            }),
        )
    }

    fn job(&self, service: &TestService, change: &Value, own: &Value) -> String {
        let now = service.clock.now().unix_timestamp();
        let mut says = self.says.lock().unwrap();
        says.jobs += 1;
        let mut claims = json!({
            "iss": self.origin, "aud": "https://portolan.test", "jti": format!("job-{}", says.jobs),
            "iat": now, "nbf": now - 5, "exp": now + 300,
        });
        for (name, value) in [own, change]
            .into_iter()
            .flat_map(|more| more.as_object().unwrap())
        {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        says.key.sign_assertion(&claims).unwrap().expose().clone()
    }
}

async fn metadata(State(issuer): State<CiIssuer>) -> Response {
    let fault = issuer.says.lock().unwrap().fault.clone();
    let named = match &fault {
        Some(Fault::OtherIssuer) => "https://ci.example",
        _ => issuer.origin.as_str(),
    };
    let algorithm = match &fault {
        Some(Fault::Symmetric) => "HS256",
        _ => "ES256",
    };
    match &fault {
        Some(Fault::Down) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(Fault::MetadataMoved(to)) => {
            Redirect::temporary(&format!("{to}/.well-known/openid-configuration")).into_response()
        }
        // The members of GitHub: no other endpoint.
        _ => Json(json!({
            "issuer": named,
            "jwks_uri": format!("{}/jwks", issuer.origin),
            "subject_types_supported": ["public", "pairwise"],
            "response_types_supported": ["id_token"],
            "id_token_signing_alg_values_supported": [algorithm],
            "scopes_supported": ["openid"],
        }))
        .into_response(),
    }
}

async fn jwks(State(issuer): State<CiIssuer>) -> Response {
    let mut says = issuer.says.lock().unwrap();
    says.key_reads += 1;
    let mut key = serde_json::to_value(&says.published.public).unwrap();
    match &says.fault {
        Some(Fault::Down) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(Fault::KeysMoved(to)) => Redirect::temporary(&format!("{to}/jwks")).into_response(),
        Some(Fault::HugeKeys) => {
            let body = format!("{{\"keys\":[{key}],\"x\":\"{}\"}}", "x".repeat(64 * 1024));
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        fault => {
            if *fault == Some(Fault::PrivateKey) {
                key["d"] = json!("AAAA");
            }
            Json(json!({ "keys": [key] })).into_response()
        }
    }
}
