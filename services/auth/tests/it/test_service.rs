//! A service with its own database, and browsers that use it.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Mutex,
};

use axum::{
    Router,
    body::{Body, HttpBody},
};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use portolan_cluster::Revocations;
use portolan_keys::{Keys, MasterSecret, PasswordCost, PasswordHasher, SigningKeys, Verifier};
use portolan_model::{
    clock::Clock,
    id::TenantId,
    live_session::{FromNodes, LiveSession, SessionMoment},
    resource::Site as ResourceSite,
};
use portolan_net::{
    client_ip::TrustedProxies,
    egress::{Egress, EgressPolicy},
    layers::{AllowedHosts, Front},
    listen::Peer,
    txt::TxtRecords,
};
use portolan_site::{
    breached::BreachedPasswords,
    config::{AuthConfig, Site},
    identity_providers::SignInWith,
    live_sessions::{AskNodes, Asking, LiveSessions},
    mail::Mailer,
    oauth_parts::{OAuthConfig, OAuthParts},
    state::{AuthParts, AuthState},
    throttle::{Throttle, tries::Tries},
};
use portolan_storage::{Reason, Store, platform::mails};
use serde_json::Value;
use time::{Duration, OffsetDateTime};
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use url::Url;

use crate::database::Database;

/// A password that meets the rules.
pub(crate) const PASSWORD: &str = "anchovy tram lantern sixty";

/// The service.
pub(crate) struct TestService {
    pub(crate) state: AuthState,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    master: MasterSecret,
    router: Router,
}

impl TestService {
    /// Opens it like `portolan dev`, with a database of its own.
    pub(crate) async fn open() -> Self {
        Self::open_with(EgressPolicy::default()).await
    }

    /// The same, with another policy for outgoing requests.
    pub(crate) async fn open_with(policy: EgressPolicy) -> Self {
        Self::build(policy, Mailer::Page, BreachedPasswords::default()).await
    }

    /// The same, with a list of stolen passwords.
    pub(crate) async fn open_knowing(policy: EgressPolicy, breached: BreachedPasswords) -> Self {
        Self::build(policy, Mailer::Page, breached).await
    }

    /// The same, with identity providers.
    pub(crate) async fn open_beside(
        policy: EgressPolicy,
        sign_in_with: SignInWith,
        domain_records: TxtRecords,
    ) -> Self {
        let store = Database::new().await.store(6).await;
        let clock = Clock::test(OffsetDateTime::now_utc());
        let master = MasterSecret::generate().unwrap();
        let keys = Keys::new(&master, &[]).unwrap();
        let (mailer, breached) = (Mailer::Page, BreachedPasswords::default());
        Self::over(
            store,
            clock,
            (master, keys),
            policy,
            mailer,
            (breached, sign_in_with, domain_records),
        )
    }

    /// Opens it like `portolan serve`.
    pub(crate) async fn in_production() -> Self {
        Self::build(
            EgressPolicy::default(),
            Mailer::Queue,
            BreachedPasswords::default(),
        )
        .await
    }

    async fn build(policy: EgressPolicy, mailer: Mailer, breached: BreachedPasswords) -> Self {
        let store = Database::new().await.store(6).await;
        let clock = Clock::test(OffsetDateTime::now_utc());
        let master = MasterSecret::generate().unwrap();
        let keys = Keys::new(&master, &[]).unwrap();
        let known = (breached, SignInWith::default(), TxtRecords::default());
        Self::over(store, clock, (master, keys), policy, mailer, known)
    }

    /// The same service after a change of its master secret; the former one is known as such.
    pub(crate) fn with_another_master_secret(&self) -> Self {
        let master = MasterSecret::generate().unwrap();
        let keys = Keys::new(&master, std::slice::from_ref(&self.master)).unwrap();
        Self::over(
            self.store.clone(),
            self.clock.clone(),
            (master, keys),
            EgressPolicy::default(),
            Mailer::Page,
            (
                BreachedPasswords::default(),
                SignInWith::default(),
                TxtRecords::default(),
            ),
        )
    }

    fn over(
        store: Store,
        clock: Clock,
        (master, keys): (MasterSecret, Keys),
        policy: EgressPolicy,
        mailer: Mailer,
        (breached, sign_in_with, domain_records): (BreachedPasswords, SignInWith, TxtRecords),
    ) -> Self {
        let public_url: Url = "https://portolan.test".parse().unwrap();
        let state = AuthState::new(AuthParts {
            store: store.clone(),
            clock: clock.clone(),
            keys,
            signing_keys: SigningKeys::default(),
            passwords: PasswordHasher::new(PasswordCost::Test, 2).unwrap(),
            egress: Egress::new(policy).unwrap(),
            site: Site::new(&public_url),
            throttle: Throttle::new(true, &Tries::alone()),
            mailer,
            later: TaskTracker::new(),
            oauth: OAuthParts::new(
                OAuthConfig::default(),
                ResourceSite::new("https://portolan.test").unwrap(),
                Verifier::new("https://portolan.test"),
                Revocations::default(),
            ),
            config: AuthConfig {
                loopback_is_unthrottled: true,
                demo_api: None,
                limits: crate::limits::limits(),
                breached,
                sign_in_with,
                domain_records,
                live_sessions: no_nodes(),
            },
        });
        let front = Front::new(
            AllowedHosts::new(["portolan.test"]),
            TrustedProxies::default(),
            None,
        );
        Self {
            store,
            clock,
            master,
            router: portolan_auth::router(&state).layer(front),
            state,
        }
    }

    /// Advances the clock.
    pub(crate) fn wait(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// A browser on this machine.
    pub(crate) fn browser(&self) -> Browser<'_> {
        self.browser_at("127.0.0.1")
    }

    /// A browser at this address.
    pub(crate) fn browser_at(&self, ip: &str) -> Browser<'_> {
        Browser {
            service: self,
            ip: ip.parse().unwrap(),
            cookies: Mutex::default(),
        }
    }

    /// The same service with another list of stolen passwords.
    pub(crate) fn knowing(&self, breached: BreachedPasswords) -> Self {
        let keys = Keys::new(&self.master, &[]).unwrap();
        Self::over(
            self.store.clone(),
            self.clock.clone(),
            (self.master.clone(), keys),
            EgressPolicy::default(),
            Mailer::Page,
            (breached, SignInWith::default(), TxtRecords::default()),
        )
    }

    /// A person who has signed up and is signed in.
    pub(crate) async fn person(&self, email: &str) -> Browser<'_> {
        self.person_with(email, PASSWORD).await
    }

    /// The same, with a password of their own.
    pub(crate) async fn person_with(&self, email: &str, password: &str) -> Browser<'_> {
        let browser = self.browser();
        browser.sign_up(email, password).await;
        let answer = browser.verify(&self.code_for(email).await).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        browser
    }

    /// Waits for tasks that continue after their response.
    pub(crate) async fn settle(&self) {
        self.state.later.close();
        self.state.later.wait().await;
        self.state.later.reopen();
    }

    /// The newest message to an address.
    pub(crate) async fn newest_mail(&self, email: &str) -> mails::Mail {
        self.settle().await;
        let mut tx = self.store.system(Reason::SignIn).await.unwrap();
        let all = mails::newest(&mut tx, 50).await.unwrap();
        all.into_iter()
            .find(|mail| mail.to == email)
            .unwrap_or_else(|| panic!("no mail to {email}"))
    }

    /// The number of messages to an address.
    pub(crate) async fn mail_count(&self, email: &str) -> usize {
        self.settle().await;
        let mut tx = self.store.system(Reason::SignIn).await.unwrap();
        mails::newest(&mut tx, 50)
            .await
            .unwrap()
            .iter()
            .filter(|mail| mail.to == email)
            .count()
    }

    /// The code in the newest message to an address.
    pub(crate) async fn code_for(&self, email: &str) -> String {
        let mail = self.newest_mail(email).await;
        mail.subject
            .split(' ')
            .next()
            .filter(|code| code.len() == 8)
            .unwrap_or_else(|| panic!("no code in {}", mail.subject))
            .to_owned()
    }
}

/// A browser: it keeps cookies, and sends the headers of a browser.
pub(crate) struct Browser<'a> {
    service: &'a TestService,
    ip: IpAddr,
    cookies: Mutex<BTreeMap<String, String>>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The location of its redirect.
    pub(crate) fn location(&self) -> &str {
        self.headers[header::LOCATION].to_str().unwrap()
    }

    /// Its body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// Value of a hidden field.
    pub(crate) fn field(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let at = self
            .text
            .find(&mark)
            .unwrap_or_else(|| panic!("no field {name} in {}", self.text))
            + mark.len();
        self.text[at..].split('"').next().unwrap().to_owned()
    }
}

impl Browser<'_> {
    /// Does the same, and returns the response when its body begins.
    pub(crate) async fn begin(&self, mut request: Request<Body>) -> Response<Body> {
        let cookies: Vec<String> = self
            .cookies
            .lock()
            .unwrap()
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let headers = request.headers_mut();
        headers.insert(header::HOST, "portolan.test".parse().unwrap());
        if !cookies.is_empty() {
            headers.insert(header::COOKIE, cookies.join("; ").parse().unwrap());
        }
        if !headers.contains_key("sec-fetch-site") {
            headers.insert("sec-fetch-site", "same-origin".parse().unwrap());
        }
        request
            .extensions_mut()
            .insert(Peer::from(SocketAddr::new(self.ip, 4711)));
        self.service.router.clone().oneshot(request).await.unwrap()
    }

    /// Any request, with this browser's cookies and headers.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.begin(request).await;
        self.whole(response).await
    }

    /// The same, but only the head of an event stream that goes on: the stream is left at once.
    pub(crate) async fn send_and_leave(&self, request: Request<Body>) -> Answer {
        let response = self.begin(request).await;
        if !goes_on(&response) {
            return self.whole(response).await;
        }
        let (head, _) = response.into_parts();
        Answer {
            status: head.status,
            headers: head.headers,
            text: String::new(),
        }
    }

    async fn whole(&self, response: Response<Body>) -> Answer {
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        for line in parts.headers.get_all(header::SET_COOKIE) {
            let line = line.to_str().unwrap();
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            let mut cookies = self.cookies.lock().unwrap();
            if line.contains("Max-Age=0") {
                cookies.remove(name);
            } else {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// Opens a page.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap())
            .await
    }

    /// Posts a form without opening its page.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let request =
            Request::post(path).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(request.body(body.into()).unwrap()).await
    }

    /// Opens a page, fills in its form and posts it.
    pub(crate) async fn fill(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.get(path).await.field("form_token");
        let mut all = vec![("form_token", token.as_str())];
        all.extend_from_slice(fields);
        self.post(path, &all).await
    }

    pub(crate) async fn sign_up(&self, email: &str, password: &str) -> Answer {
        self.fill(
            "/signup",
            &[
                ("name", "Ann Smith"),
                ("email", email),
                ("password", password),
            ],
        )
        .await
    }

    pub(crate) async fn verify(&self, code: &str) -> Answer {
        self.fill("/verify", &[("code", code)]).await
    }

    pub(crate) async fn sign_in(&self, email: &str, password: &str) -> Answer {
        let token = self.get("/login?again=1").await.field("form_token");
        self.post(
            "/login",
            &[
                ("form_token", &token),
                ("email", email),
                ("password", password),
            ],
        )
        .await
    }

    /// Calls the console's API.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        self.send(of_api(method, path, body)).await
    }

    /// The same, but only the head of an event stream that goes on: the stream is left at once.
    pub(crate) async fn call_and_leave(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        self.send_and_leave(of_api(method, path, body)).await
    }

    /// Returns true if the console finds a session.
    pub(crate) async fn is_signed_in(&self) -> bool {
        let answer = self.call(Method::GET, "/me", None).await;
        assert!(
            matches!(answer.status, StatusCode::OK | StatusCode::UNAUTHORIZED),
            "{}",
            answer.text
        );
        answer.status == StatusCode::OK
    }

    /// A cookie's value.
    pub(crate) fn cookie(&self, name: &str) -> Option<String> {
        self.cookies.lock().unwrap().get(name).cloned()
    }

    /// Sets a cookie.
    pub(crate) fn set_cookie(&self, name: &str, value: &str) {
        self.cookies
            .lock()
            .unwrap()
            .insert(name.to_owned(), value.to_owned());
    }
}

/// A request of the console's API.
fn of_api(method: Method, path: &str, body: Option<Value>) -> Request<Body> {
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"));
    let request = match body {
        Some(body) => request
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into()),
        None => request.body(Body::empty()),
    };
    request.unwrap()
}

/// Returns true for an event stream whose end is not known.
fn goes_on(response: &Response<Body>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind == "text/event-stream")
        && response.body().size_hint().exact().is_none()
}

/// An installation without MCP nodes: a question has no reply.
#[derive(Debug)]
struct NoNodes;

fn no_nodes() -> LiveSessions {
    let sessions = LiveSessions::default();
    sessions.set(Box::new(NoNodes));
    sessions
}

fn none<T: Default + Send + 'static>() -> Asking<T> {
    let (found, silent) = (T::default(), 0);
    Box::pin(async move { Some(FromNodes { found, silent }) })
}

impl AskNodes for NoNodes {
    fn list(&self, _: TenantId) -> Asking<Vec<LiveSession>> {
        none()
    }

    fn one(&self, _: TenantId, _: &str) -> Asking<Option<LiveSession>> {
        none()
    }

    fn moments(&self, _: TenantId, _: &str) -> Asking<Vec<SessionMoment>> {
        none()
    }

    fn end(&self, _: TenantId, _: &str) -> Asking<bool> {
        none()
    }
}
