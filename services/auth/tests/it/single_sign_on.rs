//! Sign-in with the provider of a workspace (AUTH-F7, AUTH-R7, AUTH-K16; CASE-107).

use http::{Method, StatusCode};
use portolan_net::txt::TxtRecords;
use portolan_storage::{
    Reason,
    accounts::{
        passkeys::{self, New},
        users,
    },
};
use serde_json::{Value, json};
use std::sync::Arc;
use time::Duration;

use crate::{
    provider::{Provider, Zone, house_in, link},
    test_service::{Answer, Browser, TestService},
};

pub(crate) const SSO: &str = "/workspaces/acme/single-sign-on";
const OWNER: &str = "olga@owner.example";
const ANN: &str = "ann@acme.example";

pub(crate) struct Scene {
    pub(crate) service: TestService,
    pub(crate) idp: Provider,
    zone: Zone,
    /// The name of the workspace's provider in addresses.
    slug: String,
}

impl Scene {
    /// A workspace with a provider and a proved domain; its owner is signed in.
    pub(crate) async fn new() -> Self {
        let idp = Provider::start("acme-idp").await;
        let github = Provider::start("github").await;
        let zone = Zone::default();
        let records = TxtRecords::by(Arc::new(zone.clone()));
        let service = house_in(vec![github.github()], &[&idp, &github], records).await;
        let mut scene = Self {
            service,
            idp,
            zone,
            slug: String::new(),
        };
        let olga = scene.service.person(OWNER).await;
        let made = olga
            .call(
                Method::POST,
                "/workspaces",
                Some(json!({"name": "Acme", "slug": "acme"})),
            )
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        let set = olga
            .call(
                Method::PUT,
                &format!("{SSO}/provider"),
                Some(scene.provider()),
            )
            .await;
        assert_eq!(set.status, StatusCode::OK, "{}", set.text);
        assert!(!set.text.contains("planted"), "AUTH-X1");
        let callback = set.json()["provider"]["callback_url"]
            .as_str()
            .unwrap()
            .to_owned();
        scene.slug = callback.rsplit('/').next().unwrap().to_owned();
        assert!(scene.slug.starts_with("idp_"));
        scene.prove(&olga, "acme.example").await;
        drop(olga);
        scene
    }

    pub(crate) fn provider(&self) -> Value {
        json!({"name": "Acme Works", "issuer": self.idp.origin(), "client_id": "us", "client_secret": "planted-client-secret"})
    }

    async fn prove(&self, olga: &Browser<'_>, name: &str) -> String {
        let added = olga
            .call(
                Method::POST,
                &format!("{SSO}/domains"),
                Some(json!({ "domain": name })),
            )
            .await;
        assert_eq!(added.status, StatusCode::CREATED, "{}", added.text);
        let domain = domain(&added.json(), name);
        let path = format!("{SSO}/domains/{}/check", domain["id"].as_str().unwrap());
        let missing = olga.call(Method::POST, &path, None).await;
        assert_eq!(missing.status, StatusCode::CONFLICT, "{}", missing.text);
        self.zone.set(
            domain["record_name"].as_str().unwrap(),
            domain["record_text"].as_str(),
        );
        let proved = olga.call(Method::POST, &path, None).await;
        assert_eq!(proved.status, StatusCode::OK, "{}", proved.text);
        domain["record_name"].as_str().unwrap().to_owned()
    }

    /// Signs in with the workspace's provider, from a page that leads there.
    pub(crate) async fn sign_in(&self, browser: &Browser<'_>, page: &str) -> Answer {
        let back = self.visit(browser, page).await;
        browser.get(&back).await
    }

    /// The same, up to the path of the callback.
    pub(crate) async fn visit(&self, browser: &Browser<'_>, page: &str) -> String {
        let path = link(&browser.get(page).await, &self.slug);
        let location = browser.get(&path).await.location().to_owned();
        let (code, state) = self.idp.visit_for(&self.service, &location, &self.slug);
        format!("/login/callback/{}?code={code}&state={state}", self.slug)
    }

    async fn ann(&self) -> Browser<'_> {
        self.idp
            .say(json!({"sub": "ann-1", "email": ANN, "name": "Ann"}));
        let ann = self.service.browser();
        let done = self
            .sign_in(&ann, &format!("/login/company?email={ANN}"))
            .await;
        assert_eq!(
            (done.status, done.location()),
            (StatusCode::SEE_OTHER, "/"),
            "{}",
            done.text
        );
        ann
    }

    pub(crate) async fn olga(&self) -> Browser<'_> {
        let olga = self.service.browser();
        olga.sign_in(OWNER, crate::test_service::PASSWORD).await;
        olga
    }
}

fn domain(seen: &Value, name: &str) -> Value {
    let all = seen["domains"].as_array().unwrap();
    all.iter()
        .find(|one| one["domain"] == name)
        .unwrap()
        .clone()
}

/// Acts as if the person with this address had enrolled a passkey.
async fn give_passkey(service: &TestService, email: &str) {
    let mut tx = service.store.system(Reason::SignIn).await.unwrap();
    let user = users::find_login(&mut tx, email).await.unwrap().unwrap();
    let new = New {
        user: user.user,
        credential_id: b"one",
        public_key: b"key",
        host: "portolan.test",
        name: "Blue key",
        aaguid: [0; 16],
        is_backup_eligible: false,
        is_backed_up: false,
        sign_count: 0,
    };
    passkeys::add(&mut tx, &new, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

pub(crate) async fn workspaces(browser: &Browser<'_>) -> Vec<String> {
    let me = browser.call(Method::GET, "/me", None).await.json();
    let all = me["workspaces"].as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|one| one["slug"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn f7_people_of_a_proved_domain_are_members_at_once_and_of_no_other() {
    let scene = Scene::new().await;
    let ann = scene.ann().await;
    assert_eq!(workspaces(&ann).await, ["acme"]);
    let members = scene
        .olga()
        .await
        .call(Method::GET, "/workspaces/acme/members", None)
        .await
        .json();
    let hers = members["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["email"] == ANN)
        .unwrap()
        .clone();
    assert_eq!(hers["role"], "member");
    // A domain that is not proved makes no members, whatever the provider claims.
    scene
        .idp
        .say(json!({"sub": "bob-1", "email": "bob@other.example", "email_verified": true}));
    let bob = scene.service.browser();
    let offered = scene
        .sign_in(&bob, &format!("/login/company?email={ANN}"))
        .await;
    assert!(offered.location().starts_with("/login/connect/"));
    assert!(!bob.is_signed_in().await);
    // A removed member does not return by the provider.
    let removed = scene
        .olga()
        .await
        .call(
            Method::DELETE,
            &format!(
                "/workspaces/acme/members/{}",
                hers["user_id"].as_str().unwrap()
            ),
            None,
        )
        .await;
    assert!(removed.status.is_success(), "{}", removed.text);
    scene.idp.say(json!({"sub": "ann-1", "email": ANN}));
    let again = scene.service.browser();
    let refused = scene
        .sign_in(&again, &format!("/login/company?email={ANN}"))
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(!again.is_signed_in().await);
    // The response reveals nothing about an unproved domain.
    let unknown = again.get("/login/company?email=x@other.example").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn case_107_a_hostile_provider_of_a_workspace_reaches_nobody_outside_of_it() {
    let scene = Scene::new().await;
    let service = &scene.service;
    // Bob has an account and a workspace of his own, and is no member of acme.
    let bob = service.person("bob@beta.example").await;
    let made = bob
        .call(
            Method::POST,
            "/workspaces",
            Some(json!({"name": "Beta", "slug": "beta"})),
        )
        .await;
    assert_eq!(made.status, StatusCode::CREATED);

    // His address is of a domain that acme cannot prove.
    scene
        .idp
        .say(json!({"sub": "evil", "email": "bob@beta.example", "email_verified": true}));
    let evil = service.browser();
    let page = format!("/login/company?email={ANN}");
    let offered = scene.sign_in(&evil, &page).await;
    assert!(offered.location().starts_with("/login/connect/"));
    assert!(!evil.is_signed_in().await);
    // Even Bob himself cannot enter acme by it, and the provider gets no access to his account.
    let path = {
        let path = link(&bob.get(&page).await, &scene.slug);
        let location = bob.get(&path).await.location().to_owned();
        let (code, state) = scene.idp.visit_for(service, &location, &scene.slug);
        let back = format!("/login/callback/{}?code={code}&state={state}", scene.slug);
        bob.get(&back).await.location().to_owned()
    };
    let refused = bob.fill(&path, &[]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);

    // The issuer and subject of a platform provider's person are only claims there.
    scene
        .idp
        .say(json!({"sub": "7", "iss": "https://github.com", "email": ANN}));
    let refused = scene.sign_in(&evil, &page).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);

    // Ann joined by the provider, then set a password and made a workspace of her own. The provider
    // opens acme, and nothing of hers.
    let ann = scene.ann().await;
    assert_eq!(
        ann.get("/account").await.location(),
        "/login?request=account",
        "her account is her own"
    );
    let created = ann
        .call(
            Method::POST,
            "/workspaces",
            Some(json!({"name": "Ann's", "slug": "anns"})),
        )
        .await;
    assert_eq!(created.status, StatusCode::UNAUTHORIZED);
    ann.fill("/reset", &[("email", ANN)]).await;
    let mail = service.newest_mail(ANN).await.body;
    let at = mail.find("/reset/choose?token=").unwrap();
    let choose = mail[at..].split_whitespace().next().unwrap();
    let form = ann.get(choose).await;
    let fields = [
        ("form_token", form.field("form_token")),
        ("token", form.field("token")),
        ("password", crate::test_service::PASSWORD.to_owned()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    ann.post("/reset/choose", &fields).await;
    ann.sign_in(ANN, crate::test_service::PASSWORD).await;
    let made = ann
        .call(
            Method::POST,
            "/workspaces",
            Some(json!({"name": "Ann's", "slug": "anns"})),
        )
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_eq!(workspaces(&ann).await, ["acme", "anns"]);
    let impersonator = scene.ann().await;
    assert_eq!(workspaces(&impersonator).await, ["acme"]);
    let hers = impersonator
        .call(Method::GET, "/workspaces/anns", None)
        .await;
    let unknown = impersonator
        .call(Method::GET, "/workspaces/doesnotexist", None)
        .await;
    assert_eq!(
        (hers.status, hers.text),
        (StatusCode::NOT_FOUND, unknown.text),
        "AUTH-M2"
    );
    let page = impersonator.get("/login/company/anns").await;
    assert!(!page.text.contains("Ann"), "{}", page.text);
    for page in [
        "/account/email",
        "/account/password",
        "/account/sign-in",
        "/account/apps",
        "/account/sessions",
        "/account/linked",
        "/account/two-factor",
        "/workspaces/new",
    ] {
        let answer = impersonator.get(page).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{page}");
        assert!(answer.location().starts_with("/login"), "{page}");
    }
}

#[tokio::test]
async fn f7_where_it_is_the_only_way_all_others_are_refused() {
    let scene = Scene::new().await;
    let olga = scene.olga().await;
    // An earlier member, who signs in with a password.
    let carl = scene.service.person("carl@home.example").await;
    let invited = olga
        .call(
            Method::POST,
            "/workspaces/acme/invitations",
            Some(json!({"email": "carl@home.example", "role": "developer"})),
        )
        .await;
    assert_eq!(invited.status, StatusCode::CREATED, "{}", invited.text);
    let mail = scene.service.newest_mail("carl@home.example").await.body;
    let at = mail.find("/invitations?token=").unwrap();
    let opened = carl
        .get(mail[at..].split_whitespace().next().unwrap())
        .await;
    carl.fill(opened.location(), &[]).await;
    assert_eq!(workspaces(&carl).await, ["acme"]);

    let ann = scene.ann().await;
    let enforce = async |who: &Browser<'_>, on: bool| {
        let path = format!("{SSO}/enforcement");
        who.call(Method::PUT, &path, Some(json!({ "enforced": on })))
            .await
    };
    let early = enforce(&olga, true).await;
    assert_eq!(
        (early.status, early.json()["error"]["code"].as_str()),
        (StatusCode::CONFLICT, Some("company_sign_in_first")),
        "nobody locks themselves out: {}",
        early.text
    );
    // The owner signs in with the provider herself: it is connected with her account, and her
    // session records the proof.
    let way = early.json()["error"]["details"]["path"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(way, "/login/company/acme?request=w.single-sign-on.acme");
    scene.idp.say(json!({"sub": "olga-1", "email": OWNER}));
    let offered = scene.sign_in(&olga, &way).await.location().to_owned();
    let connected = olga.fill(&offered, &[]).await;
    assert_eq!(
        connected.location(),
        "/w/acme/single-sign-on",
        "{}",
        connected.text
    );
    let early = enforce(&olga, true).await;
    assert_eq!(
        early.json()["error"]["code"],
        "passkey_first",
        "{}",
        early.text
    );
    give_passkey(&scene.service, OWNER).await;
    let on = enforce(&olga, true).await;
    assert_eq!(on.status, StatusCode::OK, "{}", on.text);
    assert_eq!(on.json()["provider"]["enforced"], true);

    // Carl's password does not open acme any more, and the refusal names the page to visit.
    let refused = carl.call(Method::GET, "/workspaces/acme", None).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(
        refused.json()["error"]["details"]["path"],
        "/login/company/acme?request=w.overview.acme"
    );
    scene
        .idp
        .say(json!({"sub": "carl-1", "email": "carl@home.example"}));
    let offered = scene
        .sign_in(&carl, "/login/company/acme?request=w.overview.acme")
        .await
        .location()
        .to_owned();
    let connected = carl.fill(&offered, &[]).await;
    assert_eq!(
        connected.status,
        StatusCode::SEE_OTHER,
        "{}",
        connected.text
    );
    let open = carl.call(Method::GET, "/workspaces/acme", None).await;
    assert_eq!(open.status, StatusCode::OK, "{}", open.text);
    // The address of that page reveals nothing about the workspace to strangers.
    let stranger = scene.service.person("eve@home.example").await;
    let page = stranger.get("/login/company/acme").await;
    assert!(!page.text.contains("Acme"), "{}", page.text);

    // AUTH-S2: a confirmation ten minutes later does not lose the proof.
    scene.service.wait(Duration::minutes(11));
    let stale = enforce(&olga, true).await;
    assert_eq!(
        stale.json()["error"]["code"],
        "confirm_first",
        "{}",
        stale.text
    );
    let confirm = "/account/confirm?request=w.single-sign-on.acme";
    let form = olga.get(confirm).await;
    let fields = [
        ("form_token", form.field("form_token")),
        ("request", form.field("request")),
        ("for", "change".to_owned()),
        ("password", crate::test_service::PASSWORD.to_owned()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let confirmed = olga.post("/account/confirm", &fields).await;
    assert_eq!(
        confirmed.status,
        StatusCode::SEE_OTHER,
        "{}",
        confirmed.text
    );
    let again = enforce(&olga, true).await;
    assert_eq!(again.status, StatusCode::OK, "{}", again.text);

    // Another client at the provider is another provider: members connect again (and the
    // requirement is set again).
    let mut other = scene.provider();
    other["client_id"] = json!("us-2");
    let changed = olga
        .call(Method::PUT, &format!("{SSO}/provider"), Some(other))
        .await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    assert_eq!(changed.json()["provider"]["enforced"], false);
    assert!(
        !ann.is_signed_in().await,
        "who was here on the word of the former one is not any more"
    );
}

#[tokio::test]
async fn s2_a_session_of_the_provider_is_confirmed_by_the_provider_and_by_the_same_person() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let olga = scene.olga().await;
    let ann = scene.ann().await;
    let members = olga
        .call(Method::GET, "/workspaces/acme/members", None)
        .await
        .json();
    let mut all = members["items"].as_array().unwrap().iter();
    let her = all.rfind(|one| one["email"] == ANN).unwrap();
    let path = format!(
        "/workspaces/acme/members/{}",
        her["user_id"].as_str().unwrap()
    );
    let promoted = olga
        .call(Method::PATCH, &path, Some(json!({"role": "admin"})))
        .await;
    assert!(promoted.status.is_success(), "{}", promoted.text);
    let add = async || {
        let domain = Some(json!({"domain": "more.example"}));
        ann.call(Method::POST, &format!("{SSO}/domains"), domain)
            .await
    };
    service.wait(Duration::minutes(11));
    let stale = add().await;
    let way = stale.json()["error"]["details"]["path"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(way, "/login/company/acme?request=w.single-sign-on.acme");
    let go = async || {
        let path = link(&ann.get(&way).await, &scene.slug);
        let location = ann.get(&path).await.location().to_owned();
        assert!(location.contains("max_age=0"), "AUTH-S2: {location}");
        let (code, state) = scene.idp.visit_for(service, &location, &scene.slug);
        ann.get(&format!(
            "/login/callback/{}?code={code}&state={state}",
            scene.slug
        ))
        .await
    };
    let now = service.clock.now().unix_timestamp();
    // An hour-old sign-in at the provider is no proof of now.
    scene
        .idp
        .say(json!({"sub": "ann-1", "email": ANN, "auth_time": now - 3600}));
    assert_eq!(go().await.status, StatusCode::BAD_REQUEST);
    // Another person of the company.
    scene
        .idp
        .say(json!({"sub": "bea-1", "email": "bea@acme.example", "auth_time": now}));
    assert_eq!(go().await.status, StatusCode::FORBIDDEN);
    assert_eq!(add().await.status, StatusCode::FORBIDDEN);
    scene
        .idp
        .say(json!({"sub": "ann-1", "email": ANN, "auth_time": now}));
    let done = go().await;
    assert_eq!(done.location(), "/w/acme/single-sign-on", "{}", done.text);
    assert_eq!(add().await.status, StatusCode::CREATED);
    // An ordinary sign-in includes its age.
    scene
        .idp
        .say(json!({"sub": "ann-1", "email": ANN, "auth_time": now - 3600}));
    let old = service.browser();
    scene
        .sign_in(&old, &format!("/login/company?email={ANN}"))
        .await;
    let domain = Some(json!({"domain": "yet.example"}));
    let refused = old
        .call(Method::POST, &format!("{SSO}/domains"), domain)
        .await;
    assert_eq!(refused.json()["error"]["code"], "confirm_first");
}

#[tokio::test]
async fn f7_a_newcomer_who_comes_from_a_client_goes_on_to_its_consent_page() {
    let scene = Scene::new().await;
    scene
        .idp
        .say(json!({"sub": "ann-1", "email": ANN, "name": "Ann"}));
    let ann = scene.service.browser();
    let begun = crate::continuations::begin(&ann).await;
    let id = crate::continuations::request_id(&begun);
    let done = scene
        .sign_in(&ann, &format!("/login/company?email={ANN}&request={id}"))
        .await;
    assert_eq!(
        done.location(),
        format!("/oauth/consent/{id}"),
        "{}",
        done.text
    );
    let page = ann.get(done.location()).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("Acme"), "{}", page.text);
}

#[tokio::test]
async fn f7_an_address_that_the_provider_denies_makes_nobody_a_member() {
    let scene = Scene::new().await;
    scene
        .idp
        .say(json!({"sub": "x-1", "email": ANN, "email_verified": false}));
    let somebody = scene.service.browser();
    let offered = scene
        .sign_in(&somebody, &format!("/login/company?email={ANN}"))
        .await
        .location()
        .to_owned();
    assert!(offered.starts_with("/login/connect/"), "{offered}");
    // The page for platform providers does not accept such an offer (a code by mail would make it
    // an account).
    let address = offered.replace("/login/connect/", "/login/address/");
    assert_eq!(somebody.get(&address).await.status, StatusCode::NOT_FOUND);
    let shown = somebody.get(&offered).await;
    assert!(
        !shown.text.contains(ANN) && !shown.text.contains("already have an account"),
        "AUTH-L5: it is not told who has an account: {}",
        shown.text
    );
}

#[tokio::test]
async fn f7_a_domain_is_looked_at_again_and_given_up_when_its_record_is_gone() {
    let scene = Scene::new().await;
    let (service, zone) = (&scene.service, &scene.zone);
    let record = "_portolan.acme.example";
    let proved = async || {
        let olga = scene.olga().await;
        let seen = olga.call(Method::GET, SSO, None).await.json();
        domain(&seen, "acme.example")
    };
    let first = proved().await;
    zone.set(record, None);
    portolan_accounts::domains::look_again(&service.state)
        .await
        .unwrap();
    assert!(proved().await["missing_since"].is_null(), "not due yet");
    service.wait(Duration::days(8));
    zone.away(true);
    portolan_accounts::domains::look_again(&service.state)
        .await
        .unwrap();
    zone.away(false);
    let unknown = proved().await;
    assert!(
        unknown["missing_since"].is_null() && unknown["verified_at"].is_string(),
        "no answer says nothing: {unknown}"
    );
    service.wait(Duration::days(8));
    portolan_accounts::domains::look_again(&service.state)
        .await
        .unwrap();
    let missing = proved().await;
    assert!(missing["missing_since"].is_string() && missing["verified_at"].is_string());
    // The mistake is corrected.
    zone.set(record, first["record_text"].as_str());
    service.wait(Duration::days(2));
    portolan_accounts::domains::look_again(&service.state)
        .await
        .unwrap();
    assert!(proved().await["missing_since"].is_null());
    zone.set(record, None);
    service.wait(Duration::days(8));
    portolan_accounts::domains::look_again(&service.state)
        .await
        .unwrap();
    service.wait(Duration::days(4));
    portolan_accounts::domains::look_again(&service.state)
        .await
        .unwrap();
    assert!(proved().await["verified_at"].is_null());
    let page = service
        .browser()
        .get(&format!("/login/company?email={ANN}"))
        .await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
}
