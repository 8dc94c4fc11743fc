//! An identity provider with its own key, whose claims a test sets; and the used part of GitHub.
//! Both listen on a port of this machine.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
    time::Duration as StdDuration,
};

use axum::{
    Json, Router,
    extract::{Form, State},
    routing::{get, post},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::HeaderMap;
use portolan_keys::{Secret, digest, ring::NewKeyPair};
use portolan_net::{
    egress::{AllowedDestination, EgressPolicy},
    resolve::BoxFuture,
    txt::{LookUp, TxtRecords},
};
use portolan_site::identity_providers::{
    Github, LoginProvider, OpenId, ProviderClient, ProviderKind, SignInWith,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use url::Url;

use crate::test_service::{Answer, Browser, TestService};

/// The access token for the userinfo endpoint.
pub(crate) const ACCESS: &str = "planted-access-token";
const SECRET: &str = "planted-client-secret";

/// The data of an issued code.
struct Given {
    nonce: Option<String>,
    challenge: String,
    redirect_uri: String,
}

struct Says {
    /// Overrides of the correct claims; `null` removes one.
    claims: Value,
    /// Overrides of the header.
    header: Value,
    /// The response of the userinfo endpoint, or of GitHub's API.
    user: Value,
    emails: Value,
    /// The key that signs, and the published one.
    key: Arc<NewKeyPair>,
    published: Arc<NewKeyPair>,
    now: i64,
    given: HashMap<String, Given>,
    key_reads: u32,
    held: Option<Arc<Held>>,
}

/// Code exchanges that wait.
#[derive(Default)]
pub(crate) struct Held {
    arrived: Notify,
    release: Notify,
}

impl Held {
    /// Waits until one exchange has arrived.
    pub(crate) async fn arrived(&self) {
        let arrived = tokio::time::timeout(StdDuration::from_secs(20), self.arrived.notified());
        arrived.await.expect("nobody came");
    }

    /// Lets one exchange continue.
    pub(crate) fn release(&self) {
        self.release.notify_one();
    }
}

/// A running provider, for the life of the test.
#[derive(Clone)]
pub(crate) struct Provider {
    slug: &'static str,
    origin: String,
    says: Arc<Mutex<Says>>,
}

impl Provider {
    /// Starts one under this name.
    pub(crate) async fn start(slug: &'static str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let key = Arc::new(NewKeyPair::generate().unwrap());
        let provider = Self {
            slug,
            origin: format!("http://{}", listener.local_addr().unwrap()),
            says: Arc::new(Mutex::new(Says {
                claims: json!({}),
                header: json!({}),
                user: json!({}),
                emails: json!([]),
                published: Arc::clone(&key),
                key,
                now: 0,
                given: HashMap::new(),
                key_reads: 0,
                held: None,
            })),
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/jwks", get(jwks))
            .route("/token", post(token))
            .route("/login/oauth/access_token", post(token))
            .route("/userinfo", get(user))
            .route("/api/user", get(user))
            .route("/api/user/emails", get(emails))
            .with_state(provider.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    /// Its settings as an OpenID provider.
    pub(crate) fn openid(&self) -> LoginProvider {
        self.setting(ProviderKind::OpenId(OpenId::new(self.origin.clone())))
    }

    /// Its settings as GitHub.
    pub(crate) fn github(&self) -> LoginProvider {
        self.setting(ProviderKind::Github(Github {
            base: self.origin.clone(),
            api: format!("{}/api", self.origin),
        }))
    }

    fn setting(&self, kind: ProviderKind) -> LoginProvider {
        LoginProvider {
            slug: self.slug.to_owned(),
            name: self.slug.to_uppercase(),
            tenant: None,
            kind,
            client: ProviderClient {
                id: "us".to_owned(),
                secret: Some(Secret::new(SECRET.to_owned())),
            },
        }
    }

    /// Its origin, which is also its issuer.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Changes the claims of ID tokens.
    pub(crate) fn say(&self, claims: Value) {
        self.says.lock().unwrap().claims = claims;
    }

    /// Changes the headers of ID tokens.
    pub(crate) fn head(&self, header: Value) {
        self.says.lock().unwrap().header = header;
    }

    /// Changes the response of the API or the userinfo endpoint.
    pub(crate) fn tell(&self, user: Value, emails: Value) {
        let mut says = self.says.lock().unwrap();
        says.user = user;
        says.emails = emails;
    }

    /// Signs with a new key, and publishes it or not.
    pub(crate) fn change_key(&self, publish: bool) {
        let mut says = self.says.lock().unwrap();
        says.key = Arc::new(NewKeyPair::generate().unwrap());
        if publish {
            says.published = Arc::clone(&says.key);
        }
    }

    /// Makes code exchanges wait from now on.
    pub(crate) fn hold(&self) -> Arc<Held> {
        let held = Arc::default();
        self.says.lock().unwrap().held = Some(Arc::clone(&held));
        held
    }

    /// The number of requests for its keys.
    pub(crate) fn key_reads(&self) -> u32 {
        self.says.lock().unwrap().key_reads
    }

    /// Handles the redirect of a person's browser, and returns code and state.
    pub(crate) fn visit(&self, service: &TestService, location: &str) -> (String, String) {
        self.visit_for(service, location, self.slug)
    }

    /// The same with the name of a tenant's provider.
    pub(crate) fn visit_for(
        &self,
        service: &TestService,
        location: &str,
        slug: &str,
    ) -> (String, String) {
        let url = Url::parse(location).unwrap();
        assert!(location.starts_with(&self.origin), "{location}");
        let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!(query["response_type"], "code");
        assert_eq!(query["client_id"], "us");
        assert_eq!(query["code_challenge_method"], "S256", "AUTH-F1");
        let expected = format!("https://portolan.test/login/callback/{slug}");
        assert_eq!(
            query["redirect_uri"], expected,
            "AUTH-F1: one callback for each provider"
        );
        let state = query["state"].clone();
        assert!(state.len() >= 40, "AUTH-F1");
        let given = Given {
            nonce: query.get("nonce").cloned(),
            challenge: query["code_challenge"].clone(),
            redirect_uri: query["redirect_uri"].clone(),
        };
        let mut says = self.says.lock().unwrap();
        let code = format!("code-{}", says.given.len());
        says.given.insert(code.clone(), given);
        says.now = service.clock.now().unix_timestamp();
        (code, state)
    }

    /// The path of the callback.
    pub(crate) fn callback(&self, (code, state): &(String, String)) -> String {
        format!("/login/callback/{}?code={code}&state={state}", self.slug)
    }

    /// Goes from a page of the service to this provider, and back.
    pub(crate) async fn sign_in(
        &self,
        service: &TestService,
        browser: &Browser<'_>,
        page: &str,
    ) -> Answer {
        let location = leave(browser, page, self.slug).await;
        let back = self.visit(service, &location);
        browser.get(&self.callback(&back)).await
    }
}

/// A service with these providers, which its egress policy allows.
pub(crate) async fn service(providers: Vec<LoginProvider>, all: &[&Provider]) -> TestService {
    house_in(providers, all, TxtRecords::by(Arc::new(Zone::default()))).await
}

/// The DNS records that tests use.
#[derive(Clone, Default)]
pub(crate) struct Zone(Arc<Mutex<Records>>);

#[derive(Default)]
struct Records {
    records: HashMap<String, Vec<String>>,
    is_away: bool,
}

impl Zone {
    /// Publishes a record, or removes all of a name.
    pub(crate) fn set(&self, name: &str, text: Option<&str>) {
        let texts = text.map(str::to_owned).into_iter().collect();
        let mut says = self.0.lock().unwrap();
        says.records.insert(name.to_owned(), texts);
    }

    /// Makes all name servers fail, or answer again.
    pub(crate) fn away(&self, is_away: bool) {
        self.0.lock().unwrap().is_away = is_away;
    }
}

impl LookUp for Zone {
    fn look_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<String>>> {
        let says = self.0.lock().unwrap();
        let answer = if says.is_away {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(says.records.get(name).cloned().unwrap_or_default())
        };
        Box::pin(async move { answer })
    }
}

/// The same, with domains.
pub(crate) async fn house_in(
    providers: Vec<LoginProvider>,
    all: &[&Provider],
    records: TxtRecords,
) -> TestService {
    let allow = all
        .iter()
        .map(|provider| {
            let url = Url::parse(&provider.origin).unwrap();
            AllowedDestination::address([127, 0, 0, 1].into(), url.port().unwrap())
        })
        .collect();
    let policy = EgressPolicy {
        allow,
        ..EgressPolicy::default()
    };
    TestService::open_beside(policy, SignInWith::new(providers), records).await
}

/// The link of a page to a provider.
pub(crate) fn link(page: &Answer, slug: &str) -> String {
    let found = page.text.split("href=\"").skip(1).find_map(|rest| {
        let path = rest.split('"').next().unwrap();
        let bare = path.split('?').next().unwrap();
        (bare.ends_with(&format!("/{slug}"))).then(|| path.to_owned())
    });
    found
        .unwrap_or_else(|| panic!("no link to {slug} in {}", page.text))
        .replace("&#38;", "&")
        .replace("&amp;", "&")
}

/// Follows that link, and returns the location of the redirect.
pub(crate) async fn leave(browser: &Browser<'_>, page: &str, slug: &str) -> String {
    let path = link(&browser.get(page).await, slug);
    let answer = browser.get(&path).await;
    assert_eq!(
        answer.status,
        http::StatusCode::SEE_OTHER,
        "{}",
        answer.text
    );
    answer.location().to_owned()
}

async fn metadata(State(provider): State<Provider>) -> Json<Value> {
    let at = |path: &str| format!("{}{path}", provider.origin);
    Json(json!({
        "issuer": provider.origin,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "jwks_uri": at("/jwks"),
        "userinfo_endpoint": at("/userinfo"),
        "id_token_signing_alg_values_supported": ["ES256", "none", "HS256"],
    }))
}

async fn jwks(State(provider): State<Provider>) -> Json<Value> {
    let mut says = provider.says.lock().unwrap();
    says.key_reads += 1;
    Json(json!({ "keys": [says.published.public] }))
}

async fn token(
    State(provider): State<Provider>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Json<Value> {
    let held = provider.says.lock().unwrap().held.clone();
    if let Some(held) = held {
        held.arrived.notify_one();
        held.release.notified().await;
    }
    let mut says = provider.says.lock().unwrap();
    let is_us = form.get("client_secret").is_some_and(|one| one == SECRET)
        || headers.contains_key("authorization");
    let Some(given) = says.given.remove(&form["code"]).filter(|_| is_us) else {
        return Json(json!({ "error": "invalid_grant" }));
    };
    let challenge = digest(form["code_verifier"].as_bytes());
    let is_proved = given.challenge == URL_SAFE_NO_PAD.encode(challenge.as_bytes());
    if !is_proved || given.redirect_uri != form["redirect_uri"] {
        return Json(json!({ "error": "invalid_grant" }));
    }
    let mut claims = json!({
        "iss": provider.origin, "sub": "anns-subject", "aud": "us", "nonce": given.nonce,
        "iat": says.now, "exp": says.now + 300,
    });
    change(&mut claims, &says.claims);
    let signed = says.key.sign_assertion(&claims).unwrap().expose().clone();
    let (head, rest) = signed.split_once('.').unwrap();
    let mut header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(head).unwrap()).unwrap();
    let id_token = if says.header == json!({}) {
        signed
    } else {
        change(&mut header, &says.header);
        format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()))
    };
    Json(json!({ "access_token": ACCESS, "token_type": "bearer", "id_token": id_token }))
}

fn change(claims: &mut Value, by: &Value) {
    for (name, value) in by.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
}

async fn user(State(provider): State<Provider>, headers: HeaderMap) -> Json<Value> {
    assert_eq!(headers["authorization"], format!("Bearer {ACCESS}"));
    Json(provider.says.lock().unwrap().user.clone())
}

async fn emails(State(provider): State<Provider>) -> Json<Value> {
    Json(provider.says.lock().unwrap().emails.clone())
}
