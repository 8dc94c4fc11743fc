//! Sign-in with accounts of other services (AUTH-F1 to AUTH-F8; CASE-157 to CASE-160).

use http::{Method, StatusCode};
use portolan_keys::{SecretToken, TokenForm};
use portolan_storage::{Reason, accounts::browser_sessions};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    provider::{Provider, leave, link, service},
    test_service::{Browser, PASSWORD, TestService},
};

const ANN: &str = "ann@acme.example";

fn verified(email: &str) -> Value {
    json!({"email": email, "email_verified": true, "name": "Ann \u{202e}Smith"})
}

fn github_user(id: u64, login: &str) -> Value {
    json!({"id": id, "login": login, "name": "Ann Smith"})
}

fn github_mail(email: &str, verified: bool) -> Value {
    json!([
        {"email": "other@elsewhere.example", "primary": false, "verified": true},
        {"email": email, "primary": true, "verified": verified},
    ])
}

async fn openid() -> (TestService, Provider) {
    let works = Provider::start("works").await;
    (service(vec![works.openid()], &[&works]).await, works)
}

async fn github() -> (TestService, Provider) {
    let github = Provider::start("github").await;
    (service(vec![github.github()], &[&github]).await, github)
}

async fn me(browser: &Browser<'_>) -> Value {
    browser.call(Method::GET, "/me", None).await.json()["user"].clone()
}

/// The sign-in methods of this browser's session.
async fn amr(service: &TestService, browser: &Browser<'_>) -> Vec<String> {
    let cookie = browser.cookie("__Host-sid").unwrap();
    let token = SecretToken::parse(TokenForm::Session, &cookie).unwrap();
    let mut tx = service.store.system(Reason::SignIn).await.unwrap();
    let session = browser_sessions::find_live(&mut tx, &token.digest(), service.clock.now()).await;
    session.unwrap().unwrap().amr
}

#[tokio::test]
async fn f1_f2_a_proved_person_with_a_proved_address_has_an_account_at_once() {
    let (service, works) = openid().await;
    works.say(verified(ANN));
    let ann = service.browser();
    // AUTH-S8: the redirect leads to the original target.
    let done = works
        .sign_in(&service, &ann, "/signup?request=account.sessions")
        .await;
    assert_eq!(
        (done.status, done.location()),
        (StatusCode::SEE_OTHER, "/account/sessions"),
        "{}",
        done.text
    );
    let first = me(&ann).await;
    assert_eq!(
        (first["email"].as_str(), first["display_name"].as_str()),
        (Some(ANN), Some("Ann Smith")),
        "nothing invisible is in the name"
    );
    assert_eq!(amr(&service, &ann).await, ["fed"]);
    // Another browser, another day, another address there: the same person (AUTH-F3).
    service.wait(Duration::DAY);
    works.say(verified("ann.married@acme.example"));
    let other = service.browser();
    works.sign_in(&service, &other, "/login").await;
    assert_eq!(me(&other).await["id"], first["id"]);
    assert_eq!(works.key_reads(), 2, "keys are read once an hour at most");
    // Another subject with her address is another person, and needs another proof (AUTH-F4).
    works.say(json!({"sub": "somebody-else", "email": ANN, "email_verified": true}));
    let stranger = service.browser();
    let refused = works.sign_in(&service, &stranger, "/login").await;
    assert!(
        refused.location().starts_with("/login/connect/"),
        "{}",
        refused.location()
    );
    assert!(!stranger.is_signed_in().await);
}

#[tokio::test]
async fn case_158_an_answer_that_is_not_right_in_every_part_signs_nobody_in() {
    let (service, works) = openid().await;
    let now = service.clock.now().unix_timestamp();
    for wrong in [
        json!({"iss": "https://evil.example"}),
        json!({"iss": null}),
        json!({"aud": "somebody-else"}),
        json!({"aud": ["us", "somebody-else"]}),
        json!({"aud": null}),
        json!({"azp": "somebody-else"}),
        json!({"nonce": null}),
        json!({"nonce": "another"}),
        json!({"exp": now - 120}),
        json!({"exp": null}),
        json!({"iat": now - 3600}),
        json!({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
        json!({"sub": null}),
    ] {
        let mut claims = verified(ANN);
        for (name, value) in wrong.as_object().unwrap() {
            claims[name] = value.clone();
        }
        works.say(claims);
        let browser = service.browser();
        let refused = works.sign_in(&service, &browser, "/login").await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
        assert!(
            !browser.is_signed_in().await && browser.cookie("__Host-sid").is_none(),
            "{wrong}"
        );
    }
    works.say(verified(ANN));
    for header in [
        json!({"alg": "none"}),
        json!({"alg": "HS256"}),
        json!({"alg": "RS256"}),
        json!({"kid": "another"}),
        json!({"typ": "at+jwt"}),
        json!({"jku": "https://evil.example/jwks"}),
    ] {
        works.head(header.clone());
        let browser = service.browser();
        let refused = works.sign_in(&service, &browser, "/login").await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{header}");
        assert!(!browser.is_signed_in().await, "{header}");
    }
    works.head(json!({}));
    works.change_key(false);
    let browser = service.browser();
    let refused = works.sign_in(&service, &browser, "/login").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "a foreign key");
    // Rotated: the new key is fetched, at most once a minute.
    works.change_key(true);
    service.wait(Duration::minutes(2));
    let done = works.sign_in(&service, &browser, "/login").await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn case_158_a_way_back_is_of_one_browser_one_provider_and_one_time() {
    let (works, others) = (
        Provider::start("works").await,
        Provider::start("others").await,
    );
    let service = service(vec![works.openid(), others.openid()], &[&works, &others]).await;
    works.say(verified(ANN));
    others.say(verified(ANN));
    let (ann, thief) = (service.browser(), service.browser());
    thief.get("/login").await;

    let back = works.visit(&service, &leave(&ann, "/login", "works").await);
    let path = works.callback(&back);
    let refused = async |browser: &Browser<'_>, path: &str, why: &str| {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{why}");
        assert!(!browser.is_signed_in().await, "{why}");
    };
    refused(&thief, &path, "of another browser").await;
    refused(
        &service.browser(),
        &path,
        "of a browser that never was here",
    )
    .await;
    refused(
        &ann,
        &path.replace("/works?", "/others?"),
        "of another provider",
    )
    .await;
    refused(&ann, &format!("{path}x"), "another state").await;
    let request = http::Request::head(&path).body(axum::body::Body::empty());
    let head = ann.send(request.unwrap()).await;
    assert_eq!(
        head.status,
        StatusCode::METHOD_NOT_ALLOWED,
        "a scanner uses nothing up"
    );
    let done = ann.get(&path).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert!(ann.is_signed_in().await);
    let twice = service.browser();
    twice.set_cookie("__Host-bid", &ann.cookie("__Host-bid").unwrap());
    refused(&twice, &path, "twice").await;

    // The answering issuer is the requested one (RFC 9207).
    let late = service.browser();
    let back = works.visit(&service, &leave(&late, "/login", "works").await);
    let mixed_up = format!("{}&iss={}", works.callback(&back), others.origin());
    refused(&late, &mixed_up, "of another issuer").await;
    let back = works.visit(&service, &leave(&late, "/login", "works").await);
    service.wait(Duration::minutes(11));
    refused(&late, &works.callback(&back), "too late").await;
    let back = works.visit(&service, &leave(&late, "/login", "works").await);
    let error = format!("/login/callback/works?error=access_denied&state={}", back.1);
    let denied = late.get(&error).await;
    assert_eq!(denied.status, StatusCode::FORBIDDEN);
    assert!(!late.is_signed_in().await);

    // No other site can begin a sign-in: the link carries the browser's token.
    let path = link(&late.get("/login").await, "works");
    assert_eq!(
        thief.get(&path).await.status,
        StatusCode::FORBIDDEN,
        "AUTH-S5"
    );
    // Several at once in one browser.
    let first = works.visit(&service, &leave(&late, "/login", "works").await);
    let second = others.visit(&service, &leave(&late, "/login", "others").await);
    assert_eq!(
        late.get(&works.callback(&first)).await.status,
        StatusCode::SEE_OTHER
    );
    assert!(
        late.get(&others.callback(&second))
            .await
            .location()
            .starts_with("/login/connect/")
    );
}

#[tokio::test]
async fn case_159_a_github_account_with_anns_address_is_not_ann_until_she_signs_in() {
    let (service, github) = github().await;
    let ann = service.person(ANN).await;
    let id = me(&ann).await["id"].clone();
    github.tell(github_user(7, "ann-on-github"), github_mail(ANN, true));
    let other = service.browser();
    let page = github
        .sign_in(&service, &other, "/login?request=account.apps")
        .await
        .location()
        .to_owned();
    assert!(page.starts_with("/login/connect/"), "{page}");
    assert!(!other.is_signed_in().await);
    let shown = other.get(&page).await;
    assert!(
        shown.text.contains("You already have an account") && shown.text.contains(ANN),
        "{}",
        shown.text
    );
    // The link alone is not enough, nor is a post without a session.
    assert_eq!(
        service.browser().get(&page).await.status,
        StatusCode::NOT_FOUND
    );
    let token = other.get("/login").await.field("form_token");
    let early = other.post(&page, &[("form_token", &token)]).await;
    assert!(early.location().starts_with("/login?request=ido_"));

    // AUTH-F4: she signs in with her former method, and then confirms.
    let login = link_to_login(&shown.text);
    let form = other.get(&login).await;
    let fields = [
        ("form_token", form.field("form_token")),
        ("request", form.field("request")),
        ("email", ANN.to_owned()),
        ("password", PASSWORD.to_owned()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let signed_in = other.post("/login", &fields).await;
    assert_eq!(signed_in.location(), page, "{}", signed_in.text);
    let asked = other.get(&page).await;
    assert!(asked.text.contains("ann-on-github"), "{}", asked.text);
    let done = other.fill(&page, &[]).await;
    assert_eq!(done.location(), "/account/apps", "{}", done.text);
    assert_eq!(
        service.newest_mail(ANN).await.subject,
        "A sign-in method was added to your Portolan account",
        "AUTH-L16"
    );
    // The number identifies the account, not the name (AUTH-F3).
    github.tell(
        github_user(7, "renamed"),
        github_mail("new@acme.example", true),
    );
    let third = service.browser();
    github.sign_in(&service, &third, "/login").await;
    assert_eq!(me(&third).await["id"], id);
    github.tell(github_user(8, "ann-on-github"), github_mail(ANN, true));
    let thief = service.browser();
    github.sign_in(&service, &thief, "/login").await;
    assert!(!thief.is_signed_in().await);
}

fn link_to_login(page: &str) -> String {
    let at = page.find("href=\"/login?request=ido_").unwrap() + 6;
    page[at..]
        .split('"')
        .next()
        .unwrap()
        .replace("&#38;", "&")
        .replace("&amp;", "&")
}

#[tokio::test]
async fn case_160_what_others_began_with_an_address_is_gone_when_its_owner_comes_by_a_provider() {
    let (service, github) = github().await;
    let attacker = service.browser();
    attacker.sign_up(ANN, PASSWORD).await;
    let code = service.code_for(ANN).await;
    github.tell(github_user(7, "ann"), github_mail(ANN, true));
    let ann = service.browser();
    github.sign_in(&service, &ann, "/login").await;
    assert!(
        ann.is_signed_in().await,
        "AUTH-F5: nothing stood in her way"
    );
    // Not even with the code, which he cannot have.
    let token = attacker.get("/login").await.field("form_token");
    let late = attacker
        .post("/verify", &[("form_token", &token), ("code", &code)])
        .await;
    assert_eq!(late.status, StatusCode::NOT_FOUND, "{}", late.text);
    attacker.sign_in(ANN, PASSWORD).await;
    assert!(!attacker.is_signed_in().await);

    // The same for a person who signs up by mail.
    let bob = "bob@acme.example";
    attacker.sign_up(bob, PASSWORD).await;
    let stolen = service.code_for(bob).await;
    let owner = service.browser();
    owner.sign_up(bob, "another tram lantern seventy").await;
    owner.verify(&service.code_for(bob).await).await;
    assert!(owner.is_signed_in().await);
    let token = attacker.get("/login").await.field("form_token");
    let late = attacker
        .post("/verify", &[("form_token", &token), ("code", &stolen)])
        .await;
    assert_eq!(late.status, StatusCode::NOT_FOUND);
    attacker.sign_in(bob, PASSWORD).await;
    assert!(!attacker.is_signed_in().await);
}

#[tokio::test]
async fn f4_an_address_that_nobody_vouches_for_is_proved_by_mail() {
    let (service, github) = github().await;
    service.person("known@acme.example").await;
    github.tell(
        github_user(7, "ann"),
        github_mail("known@acme.example", false),
    );
    let ann = service.browser();
    let page = github.sign_in(&service, &ann, "/login").await;
    let page = page.location().to_owned();
    assert!(
        page.starts_with("/login/address/"),
        "AUTH-L5: it does not tell that this address has an account: {page}"
    );
    let sent = ann
        .fill(&page, &[("name", "Ann"), ("email", "known@acme.example")])
        .await;
    assert_eq!(sent.location(), "/verify");
    assert_eq!(
        service.newest_mail("known@acme.example").await.subject,
        "You already have a Portolan account",
        "AUTH-L5"
    );
    let sent = ann.fill(&page, &[("name", "Ann"), ("email", ANN)]).await;
    assert_eq!(sent.location(), "/verify", "{}", sent.text);
    assert!(!ann.is_signed_in().await);
    let done = ann.verify(&service.code_for(ANN).await).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(me(&ann).await["email"], ANN);
    assert_eq!(amr(&service, &ann).await, ["fed"]);
    let other = service.browser();
    github.sign_in(&service, &other, "/login").await;
    assert_eq!(me(&other).await["email"], ANN, "it signs in from now on");
}

#[tokio::test]
async fn f6_ways_in_are_added_and_removed_after_a_recent_proof_and_one_is_left() {
    const PAGE: &str = "/account/sign-in";
    let (service, github) = github().await;
    github.tell(github_user(7, "ann"), github_mail(ANN, true));
    let ann = service.browser();
    github.sign_in(&service, &ann, "/login").await;
    let identity = |page: &str| {
        let at = page.find("name=\"identity\" value=\"").unwrap() + 23;
        page[at..].split('"').next().unwrap().to_owned()
    };
    let mine = identity(&ann.get(PAGE).await.text);
    let only = ann.fill(PAGE, &[("identity", &mine)]).await;
    assert_eq!(
        only.status,
        StatusCode::CONFLICT,
        "the only way in stays: {}",
        only.text
    );

    // She sets a password by mail, because she has none to change.
    assert_eq!(ann.get("/account/password").await.location(), "/reset");
    ann.fill("/reset", &[("email", ANN)]).await;
    let mail = service.newest_mail(ANN).await.body;
    let at = mail.find("/reset/choose?token=").unwrap();
    let choose = mail[at..].split_whitespace().next().unwrap();
    let form = ann.get(choose).await;
    let fields = [
        ("form_token", form.field("form_token")),
        ("token", form.field("token")),
        ("password", PASSWORD.to_owned()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let set = ann.post("/reset/choose", &fields).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text);
    // REVIEW-S-4, the same kind: a new password does not remove other sign-in methods.
    assert!(
        set.text.contains("connected accounts still sign in"),
        "{}",
        set.text
    );
    ann.sign_in(ANN, PASSWORD).await;
    assert!(ann.is_signed_in().await);

    // CASE-157: refused after ten minutes; a confirmation with the provider helps.
    let form = ann.get(PAGE).await;
    service.wait(Duration::minutes(11));
    let stale = [
        ("form_token", form.field("form_token")),
        ("identity", mine.clone()),
    ];
    let stale = stale
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let asked = ann.post(PAGE, &stale).await;
    assert_eq!(asked.location(), "/account/confirm?request=account.sign-in");
    let add = link(&ann.get(PAGE).await, "github");
    assert_eq!(
        ann.get(&add).await.location(),
        "/account/confirm?request=account.sign-in"
    );
    let confirmed = github
        .sign_in(&service, &ann, "/account/confirm?request=account.sign-in")
        .await;
    assert_eq!(confirmed.location(), PAGE, "{}", confirmed.text);
    // Another person's account there is no proof for Ann.
    service.wait(Duration::minutes(11));
    github.tell(github_user(9, "bob"), github_mail("bob@acme.example", true));
    let wrong = github
        .sign_in(&service, &ann, "/account/confirm?request=account.sign-in")
        .await;
    assert_eq!(wrong.status, StatusCode::FORBIDDEN);
    github.tell(github_user(7, "ann"), github_mail(ANN, true));
    github
        .sign_in(&service, &ann, "/account/confirm?request=account.sign-in")
        .await;

    let other = service.browser();
    other.sign_in(ANN, PASSWORD).await;
    let removed = ann.fill(PAGE, &[("identity", &mine)]).await;
    assert_eq!(
        removed.location(),
        "/account/sign-in?done=removed",
        "{}",
        removed.text
    );
    assert!(!other.is_signed_in().await, "AUTH-S4");
    let again = service.browser();
    github.sign_in(&service, &again, "/login").await;
    assert!(!again.is_signed_in().await, "it does not sign in any more");

    // Connected again. One account there cannot belong to two people here.
    let added = github.sign_in(&service, &ann, PAGE).await;
    assert_eq!(
        added.location(),
        "/account/sign-in?done=added",
        "{}",
        added.text
    );
    let bob = service.person("bob@acme.example").await;
    let taken = github.sign_in(&service, &bob, PAGE).await;
    assert_eq!(taken.status, StatusCode::CONFLICT);
    // A redirect that one session began does not end in another.
    let location = leave(&bob, PAGE, "github").await;
    let back = github.visit(&service, &location);
    bob.sign_in("bob@acme.example", PASSWORD).await;
    let refused = bob.get(&github.callback(&back)).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn l14_a_second_factor_is_asked_for_behind_a_provider_too() {
    let (service, github) = github().await;
    github.tell(github_user(7, "ann"), github_mail(ANN, true));
    let ann = service.browser();
    github.sign_in(&service, &ann, "/login").await;
    let (app, _) = crate::second_factor::enrol(&service, &ann).await;
    let other = service.browser();
    let page = github
        .sign_in(&service, &other, "/login?request=account.apps")
        .await;
    assert_eq!(page.status, StatusCode::OK);
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.contains("script-src 'self'"),
        "AUTH-L13: a passkey can stand in for the code here too: {policy}"
    );
    assert!(!other.is_signed_in().await);
    let fields = [
        ("form_token", page.field("form_token")),
        ("request", page.field("request")),
        ("ticket", page.field("ticket")),
        ("code", app.code(&service)),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let done = other.post("/login/code", &fields).await;
    assert_eq!(done.location(), "/account/apps", "{}", done.text);
    assert_eq!(amr(&service, &other).await, ["fed", "otp", "mfa"]);
}

#[tokio::test]
async fn f2_what_the_id_token_does_not_say_the_userinfo_does_and_for_nobody_else() {
    let (service, works) = openid().await;
    works.tell(
        json!({"sub": "somebody-else", "email": "bob@acme.example", "email_verified": true}),
        json!([]),
    );
    let page = works.sign_in(&service, &service.browser(), "/login").await;
    assert!(
        page.location().starts_with("/login/address/"),
        "what is about somebody else is not believed"
    );
    works.tell(
        json!({"sub": "anns-subject", "email": ANN, "email_verified": "true", "name": "Ann"}),
        json!([]),
    );
    let ann = service.browser();
    works.sign_in(&service, &ann, "/login").await;
    assert_eq!(me(&ann).await["email"], ANN);
}

#[tokio::test]
async fn a_provider_that_does_not_answer_is_said_so_and_the_password_goes_on_working() {
    let works = Provider::start("works").await;
    // The egress policy does not allow it.
    let service = service(vec![works.openid()], &[]).await;
    service.person(ANN).await;
    let browser = service.browser();
    let path = link(&browser.get("/login").await, "works");
    let answer = browser.get(&path).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(
        answer.text.contains("WORKS does not answer"),
        "{}",
        answer.text
    );
    browser.sign_in(ANN, PASSWORD).await;
    assert!(browser.is_signed_in().await);
}
