//! One node of the service in this process, with a clock that the test advances, and browsers with
//! cookie jars.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{Router, body::Body};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use portolan_cluster::revocations::Revocations;
use portolan_keys::{
    Keys, MasterSecret, PasswordCost, PasswordHasher, SecretToken, SigningKeys, TokenForm,
    Verifier, digest,
};
use portolan_model::{
    Clock, Timestamp,
    email::EmailAddress,
    id::{TenantId, UserId},
    member::Role,
    resource,
};
use portolan_net::{
    client_ip::{ProxyHeader, TrustedProxies},
    egress::{Egress, EgressPolicy, Network},
    layers::{AllowedHosts, Front},
    listen::Peer,
    resolve::{BoxFuture, Resolve},
    txt::TxtRecords,
};
use portolan_site::{
    breached::BreachedPasswords,
    config::{AuthConfig, ConsoleLimits, Site},
    identity_providers::SignInWith,
    mail::Mailer,
    oauth_parts::{OAuthConfig, OAuthParts},
    state::{AuthParts, AuthState},
    throttle::{Throttle, tries::Tries},
};
use portolan_storage::{
    Reason, Store,
    accounts::{
        browser_sessions::{self, NewSession},
        members, users,
    },
    platform::{recorder::Recorder, tenants},
};
use scraper::{Html, Selector};
use serde_json::{Value, json};
use time::Duration;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::instrument::WithSubscriber;

use crate::database::Database;

pub(crate) const ISSUER: &str = "https://mcp.example.com";
pub(crate) const CALLBACK: &str = "http://127.0.0.1:3333/callback";
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Answers every name with a private address, and counts the queries.
#[derive(Default)]
struct PrivateNames(Arc<AtomicUsize>);

impl Resolve for PrivateNames {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(vec![IpAddr::from([10, 0, 0, 1])]) })
    }
}

/// A response, fully read.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub(crate) fn header(&self, name: impl header::AsHeaderName) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Parameters of the redirect back to the client.
    pub(crate) fn back(&self) -> BTreeMap<String, String> {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.text);
        let location = self.header(header::LOCATION);
        assert!(!location.starts_with('/'), "still with us: {location}");
        let (_, query) = location.split_once('?').expect("a query");
        url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect()
    }

    /// Status and error code of an OAuth refusal.
    pub(crate) fn refusal(&self) -> (u16, String) {
        assert_eq!(self.header(header::CACHE_CONTROL), "no-store", "AUTH-T9");
        assert_eq!(
            self.header(header::ACCESS_CONTROL_ALLOW_ORIGIN),
            "*",
            "AUTH-E10"
        );
        let body = self.json();
        let description = body["error_description"].as_str().unwrap();
        assert!(
            description.is_ascii() && !description.contains(['"', '\\']),
            "AUTH-E11"
        );
        (
            self.status.as_u16(),
            body["error"].as_str().unwrap().to_owned(),
        )
    }

    /// Asserts that a refusal is a page and no redirect.
    pub(crate) fn assert_page(&self) {
        assert!(
            self.status.is_client_error(),
            "{} {}",
            self.status,
            self.text
        );
        assert!(self.headers.get(header::LOCATION).is_none());
        assert!(self.header(header::CONTENT_TYPE).starts_with("text/html"));
        assert_eq!(self.header("x-frame-options"), "DENY");
    }

    /// Value of a form field of the page.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let selector = Selector::parse(&format!("input[name={name}]")).unwrap();
        Html::parse_document(&self.text)
            .select(&selector)
            .next()?
            .value()
            .attr("value")
            .map(str::to_owned)
    }
}

#[derive(Clone)]
pub(crate) struct Node {
    app: Router,
    pub(crate) state: AuthState,
    pub(crate) clock: Clock,
    asked: Arc<AtomicUsize>,
}

impl Node {
    pub(crate) async fn new(database: &Database, clock: &Clock) -> Self {
        let names = PrivateNames::default();
        let asked = Arc::clone(&names.0);
        let network = Network {
            resolver: Arc::new(names),
            ..Network::system()
        };
        let egress = Egress::with_network(EgressPolicy::default(), network).unwrap();
        Self {
            asked,
            ..Self::reaching(database, clock, egress).await
        }
    }

    /// A node with this client for outgoing requests.
    pub(crate) async fn reaching(database: &Database, clock: &Clock, egress: Egress) -> Self {
        let keys = Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap();
        let public_url: url::Url = ISSUER.parse().unwrap();
        let store = database.store(10).await;
        let (recorder, writer) = Recorder::new(store.clone());
        // The recorder's statements do not belong to the responses that a test examines.
        let quiet = tracing::subscriber::NoSubscriber::default();
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(writer.run(std::future::pending()).with_subscriber(quiet));
        let mut oauth = OAuthParts::new(
            OAuthConfig::default(),
            resource::Site::new(ISSUER).unwrap(),
            Verifier::new(ISSUER),
            Revocations::default(),
        );
        oauth.recorder = recorder;
        let state = AuthState::new(AuthParts {
            store,
            clock: clock.clone(),
            keys,
            signing_keys: SigningKeys::default(),
            passwords: PasswordHasher::new(PasswordCost::Test, 1).unwrap(),
            egress,
            site: Site::new(&public_url),
            throttle: Throttle::new(false, &Tries::alone()),
            mailer: Mailer::Queue,
            oauth,
            later: TaskTracker::new(),
            config: AuthConfig {
                loopback_is_unthrottled: false,
                demo_api: None,
                limits: ConsoleLimits::default(),
                breached: BreachedPasswords::default(),
                sign_in_with: SignInWith::default(),
                domain_records: TxtRecords::default(),
                live_sessions: portolan_site::live_sessions::LiveSessions::default(),
            },
        });
        portolan_oauth::jwks::rotate(&state).await.unwrap();
        let front = Front::new(
            AllowedHosts::new(["mcp.example.com"]),
            TrustedProxies::new(Vec::new(), ProxyHeader::XForwardedFor),
            None,
        );
        Self {
            app: portolan_auth::router(&state).layer(front),
            state,
            clock: clock.clone(),
            asked: Arc::default(),
        }
    }

    /// The number of attempts to contact another server, which never succeed here.
    pub(crate) fn fetches(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) async fn send(&self, mut request: Request<Body>) -> Reply {
        request
            .headers_mut()
            .insert(header::HOST, "mcp.example.com".parse().unwrap());
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Reply {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path).body(Body::empty()).unwrap())
            .await
    }

    /// Posts a form to an endpoint for programs.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.post_with(path, fields, None).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        authorization: Option<&str>,
    ) -> Reply {
        let mut request =
            Request::post(path).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        self.send(request.body(Body::from(encode(fields))).unwrap())
            .await
    }

    pub(crate) async fn register(&self, metadata: &Value) -> Reply {
        self.register_text(&metadata.to_string()).await
    }

    /// The same, byte for byte.
    pub(crate) async fn register_text(&self, metadata: &str) -> Reply {
        let request =
            Request::post("/oauth/register").header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from(metadata.to_owned())).unwrap())
            .await
    }

    /// A public client with a loopback callback.
    pub(crate) async fn client(&self, name: &str) -> String {
        let reply = self
            .register(&json!({"client_name": name, "redirect_uris": [CALLBACK]}))
            .await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
        reply.json()["client_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.state.store
    }

    /// A verified person, signed in here.
    pub(crate) async fn person(&self, name: &str) -> Browser {
        let mut tx = self.store().system(Reason::SignIn).await.unwrap();
        let address = EmailAddress::parse(&format!("{name}@example.com")).unwrap();
        let user = users::create_unverified(&mut tx, name, &address, "phc", self.clock.now())
            .await
            .unwrap();
        users::verify_address(&mut tx, user, address.normalised(), self.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let mut browser = Browser {
            node: self.clone(),
            cookies: BTreeMap::new(),
            user,
        };
        browser.sign_in(user).await;
        browser
    }

    pub(crate) async fn workspace(&self, owner: &Browser, slug: &str) -> TenantId {
        let mut tx = self.store().system(Reason::Workspaces).await.unwrap();
        let tenant = tenants::create(
            &mut tx,
            slug,
            &slug.parse().unwrap(),
            owner.user,
            self.clock.now(),
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        tenant.id
    }

    /// Makes a person a member of a workspace.
    pub(crate) async fn join(&self, person: &Browser, tenant: TenantId, role: Role) {
        let mut tx = self.store().system(Reason::Workspaces).await.unwrap();
        members::add(&mut tx, tenant, person.user, role, self.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn redeem(&self, client: &str, code: &str) -> Reply {
        self.post("/oauth/token", &code_request(client, code)).await
    }

    pub(crate) async fn refresh(&self, client: &str, token: &str) -> Reply {
        self.refresh_from("127.0.0.1", client, token).await
    }

    /// The same from an address.
    pub(crate) async fn refresh_from(&self, address: &str, client: &str, token: &str) -> Reply {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", token),
        ];
        let peer = SocketAddr::new(address.parse().unwrap(), 4711);
        let request = Request::post("/oauth/token")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .extension(Peer::from(peer));
        self.send(request.body(Body::from(encode(&fields))).unwrap())
            .await
    }
}

pub(crate) fn code_request<'a>(client: &'a str, code: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("redirect_uri", CALLBACK),
    ]
}

/// `parameters` with one of them replaced, added, or (with `None`) removed.
pub(crate) fn with<'a>(
    mut parameters: Vec<(&'a str, &'a str)>,
    name: &'a str,
    value: Option<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    parameters.retain(|(known, _)| *known != name);
    parameters.extend(value.map(|value| (name, value)));
    parameters
}

pub(crate) fn encode(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

/// A browser: a cookie jar that sends the headers of a browser.
#[derive(Clone)]
pub(crate) struct Browser {
    node: Node,
    cookies: BTreeMap<String, String>,
    pub(crate) user: UserId,
}

impl Browser {
    /// Starts a session like the sign-in page.
    pub(crate) async fn sign_in(&mut self, user: UserId) {
        self.sign_in_by(user, &["pwd"]).await;
    }

    /// The same with these sign-in methods.
    pub(crate) async fn sign_in_by(&mut self, user: UserId, amr: &[&str]) {
        let token = SecretToken::generate(TokenForm::Session).unwrap();
        let mut tx = self.node.store().system(Reason::SignIn).await.unwrap();
        let new = NewSession {
            user,
            token: &token.digest(),
            amr: &amr.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(),
            ip_block: None,
            ua_label: None,
        };
        browser_sessions::start(&mut tx, &new, self.node.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        self.user = user;
        self.cookies
            .insert("__Host-sid".to_owned(), token.expose().to_owned());
    }

    /// The same person with another browser: signed in, but without the cookie that binds requests.
    pub(crate) fn elsewhere(&self) -> Self {
        let mut other = self.clone();
        other.cookies.remove("__Host-bid");
        other
    }

    pub(crate) fn sign_out(&mut self) {
        self.cookies.remove("__Host-sid");
    }

    async fn send(&mut self, mut request: Request<Body>) -> Reply {
        let cookies = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join("; ");
        request
            .headers_mut()
            .insert(header::COOKIE, cookies.parse().unwrap());
        let reply = self.node.send(request).await;
        for cookie in reply.headers.get_all(header::SET_COOKIE) {
            let (pair, attributes) = cookie.to_str().unwrap().split_once(';').unwrap();
            assert!(
                attributes.contains("Secure") && attributes.contains("HttpOnly"),
                "AUTH-S1: {attributes}"
            );
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        reply
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.send(Request::get(path).body(Body::empty()).unwrap())
            .await
    }

    /// The same with these headers.
    pub(crate) async fn get_from(&mut self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.post_from(path, fields, &[("sec-fetch-site", "same-origin")])
            .await
    }

    pub(crate) async fn post_from(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request =
            Request::post(path).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(encode(fields))).unwrap())
            .await
    }

    /// A request to the console's API.
    pub(crate) async fn api(&mut self, method: Method, path: &str, body: Option<Value>) -> Reply {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1/workspaces{path}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header("sec-fetch-site", "same-origin");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.body(body).unwrap()).await
    }

    /// A server of acme without tools, in this state.
    pub(crate) async fn server(&mut self, slug: &str, status: &str) -> String {
        let body = json!({"slug": slug, "name": slug.to_uppercase()});
        let made = self.api(Method::POST, "/acme/servers", Some(body)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        let id = made.json()["id"].as_str().unwrap().to_owned();
        for next in [Some("publish"), (status == "paused").then_some("pause")] {
            if let (Some(next), true) = (next, status != "draft") {
                let path = format!("/acme/servers/{id}/{next}");
                let reply = self.api(Method::POST, &path, None).await;
                assert!(reply.status.is_success(), "{next}: {}", reply.text);
            }
        }
        id
    }

    /// A service account of acme: its id, and its secret if it has one.
    pub(crate) async fn service_account(&mut self, extra: Value) -> (String, String) {
        let mut body = json!({"name": "Nightly", "auth": "client_secret"});
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let reply = self
            .api(Method::POST, "/acme/service-accounts", Some(body))
            .await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
        let made = reply.json();
        (
            made["account"]["id"].as_str().unwrap().to_owned(),
            made["client_secret"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    }

    pub(crate) async fn authorize(&mut self, parameters: &[(&str, &str)]) -> Reply {
        self.get(&format!("/oauth/authorize?{}", encode(parameters)))
            .await
    }

    /// Begins a request and returns the path of its consent page.
    pub(crate) async fn begin(&mut self, parameters: &[(&str, &str)]) -> String {
        let reply = self.authorize(parameters).await;
        let location = reply.header(header::LOCATION).to_owned();
        assert!(
            location.starts_with("/oauth/consent/req_"),
            "{} {location} {}",
            reply.status,
            reply.text
        );
        location
    }

    /// Opens the consent page, waits for a second, and decides.
    pub(crate) async fn decide(&mut self, path: &str, decision: &str) -> Reply {
        let page = self.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        self.node.clock.advance(Duration::SECOND);
        let token = page.field("token").expect("a form");
        let workspace = page.field("workspace").unwrap_or_default();
        self.post(
            path,
            &[
                ("token", &token),
                ("workspace", &workspace),
                ("decision", decision),
            ],
        )
        .await
    }

    /// A code, through authorize and consent.
    pub(crate) async fn code(&mut self, parameters: &[(&str, &str)]) -> String {
        let path = self.begin(parameters).await;
        self.decide(&path, "approve").await.back()["code"].clone()
    }

    /// Tokens, through the whole flow.
    pub(crate) async fn tokens(&mut self, client: &str) -> Value {
        let code = self.code(&request(client)).await;
        let reply = self.node.redeem(client, &code).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        reply.json()
    }
}

/// A correct authorization request for the workspace acme.
pub(crate) fn request(client: &str) -> Vec<(&str, &str)> {
    vec![
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", CALLBACK),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "a state & more"),
        ("scope", "mcp"),
        ("resource", "https://mcp.example.com/t/acme/mcp"),
    ]
}

/// Claims of an access token, unverified.
pub(crate) fn claims(tokens: &Value) -> Value {
    let payload = tokens["access_token"]
        .as_str()
        .unwrap()
        .split('.')
        .nth(1)
        .unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

/// A node on a database of its own, and Ann with the workspace acme.
pub(crate) struct Scene {
    pub(crate) database: Database,
    pub(crate) node: Node,
    pub(crate) ann: Browser,
    pub(crate) acme: TenantId,
    pub(crate) client: String,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let database = Database::new().await;
        let clock = Clock::test(Timestamp::UNIX_EPOCH + Duration::days(20_000));
        let node = Node::new(&database, &clock).await;
        Self::on(database, node).await
    }

    /// A scene whose node has this client for outgoing requests.
    pub(crate) async fn reaching(egress: Egress) -> Self {
        let database = Database::new().await;
        let clock = Clock::test(Timestamp::UNIX_EPOCH + Duration::days(20_000));
        let node = Node::reaching(&database, &clock, egress).await;
        Self::on(database, node).await
    }

    async fn on(database: Database, node: Node) -> Self {
        let ann = node.person("ann").await;
        let acme = node.workspace(&ann, "acme").await;
        let client = node.client("Harness").await;
        assert_eq!(
            digest(VERIFIER.as_bytes()).as_bytes()[..],
            URL_SAFE_NO_PAD.decode(CHALLENGE).unwrap()
        );
        Self {
            database,
            node,
            ann,
            acme,
            client,
        }
    }

    pub(crate) async fn second_node(&self) -> Node {
        Node::new(&self.database, &self.node.clock).await
    }
}
