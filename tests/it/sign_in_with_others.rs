//! Sign-in with an account elsewhere: a provider made with oidc-provider, which Portolan knows by
//! its standard only (AUTH-F1 to AUTH-F5; CASE-158 and CASE-160).

use anyhow::{Context, Result};
use portolan_tests::{
    browser::Browser,
    console::Console,
    oauth::{OAuthClient, Pkce, query, tokens},
    people::People,
    person::Person,
    stack::Stack,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn scene() -> Result<(People, Stack)> {
    let people = People::start()?;
    let stack = Stack::builder()
        .allow_egress(people.address())
        .setting("login_providers", people.setting())
        .start()?;
    people.know(stack.url()).await?;
    Ok((people, stack))
}

async fn me(browser: &Browser) -> Result<(StatusCode, Value)> {
    let answer = browser.fetch(Method::GET, "/api/v1/me")?.send().await?;
    let status = answer.status();
    Ok((status, answer.json::<Value>().await?["user"].clone()))
}

#[tokio::test]
async fn f1_f2_a_newcomer_of_a_real_provider_has_an_account_and_connects_an_app_in_one_go()
-> Result<()> {
    let (people, stack) = scene().await?;
    let browser = Browser::new(stack.url())?;
    let page = people.sign_in(&browser, "/signup").await?;
    assert!(page.status.is_success(), "{} {}", page.status, page.text());
    let (status, person) = me(&browser).await?;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        (person["email"].as_str(), person["display_name"].as_str()),
        (Some("somebody@example.com"), Some("Some Body"))
    );

    // AUTH-S8: a client's request is gone on with, in a browser that was not signed in.
    Console::new(&browser).create_workspace("harbour").await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let pkce = Pkce::new()?;
    let asked = client.authorize_url(&client.parameters(None, &pkce))?;
    let somebody = Person {
        email: "somebody@example.com".to_owned(),
        password: String::new(),
        browser: Browser::new(stack.url())?,
    };
    let login = somebody.browser.open(&asked).await?;
    assert_eq!(login.url.path(), "/login");
    let path = format!("/login?{}", login.url.query().context("a request")?);
    let consent = people.sign_in(&somebody.browser, &path).await?;
    let back = somebody.decide(consent, true).await?;
    let code = query(&back, "code").context("a code")?;
    let tokens = tokens(client.redeem(&code, &pkce.verifier).await?).await?;
    assert!(!tokens.access.is_empty());
    Ok(())
}

#[tokio::test]
async fn case_158_id_tokens_that_were_altered_on_their_way_sign_nobody_in() -> Result<()> {
    let (people, stack) = scene().await?;
    for tamper in ["payload", "none", "stranger"] {
        people.set(json!({ "tamper": tamper })).await?;
        let browser = Browser::new(stack.url())?;
        let page = people.sign_in(&browser, "/login").await?;
        assert_eq!(page.status, StatusCode::BAD_REQUEST, "{tamper}");
        assert_eq!(me(&browser).await?.0, StatusCode::UNAUTHORIZED, "{tamper}");
    }
    people.set(json!({ "tamper": "", "deny": true })).await?;
    let browser = Browser::new(stack.url())?;
    let page = people.sign_in(&browser, "/login").await?;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    people.set(json!({ "deny": false })).await?;
    // The way back of one browser is none of another, nor good twice.
    let back = people.go(&browser, "/login").await?;
    let other = Browser::new(stack.url())?;
    other.open("/login").await?;
    let stolen = other.open(back.as_str()).await?;
    assert_eq!(stolen.status, StatusCode::BAD_REQUEST);
    assert_eq!(me(&other).await?.0, StatusCode::UNAUTHORIZED);
    let done = browser.open(back.as_str()).await?;
    assert!(done.status.is_success(), "{}", done.text());
    assert_eq!(
        browser.open(back.as_str()).await?.status,
        StatusCode::BAD_REQUEST
    );
    // AUTH-X1: neither codes nor state are in the log.
    let log = stack.log();
    for (name, value) in back.query_pairs() {
        assert!(
            !matches!(name.as_ref(), "code" | "state") || !log.contains(value.as_ref()),
            "{name} is in the log"
        );
    }
    Ok(())
}

#[tokio::test]
async fn case_160_f4_an_address_is_no_proof_until_mail_or_its_account_says_so() -> Result<()> {
    let (people, stack) = scene().await?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let who = |sub: &str, verified: bool| json!({"who": {"sub": sub, "email": ann.email, "email_verified": verified, "name": "Ann"}});
    people.set(who("one", true)).await?;
    let browser = Browser::new(stack.url())?;
    let page = people.sign_in(&browser, "/login").await?;
    assert!(
        page.url.path().starts_with("/login/connect/"),
        "{}",
        page.url
    );
    assert_eq!(me(&browser).await?.0, StatusCode::UNAUTHORIZED);
    people.set(who("two", false)).await?;
    let browser = Browser::new(stack.url())?;
    let page = people.sign_in(&browser, "/login").await?;
    assert!(
        page.url.path().starts_with("/login/address/"),
        "{}",
        page.url
    );
    assert_eq!(me(&browser).await?.0, StatusCode::UNAUTHORIZED);
    assert_eq!(people.count("codes").await?, 2);
    // Ann connects it from her own page, and is Ann from then on.
    people.set(who("one", true)).await?;
    let done = people.sign_in(&ann.browser, "/account/sign-in").await?;
    assert!(done.text().contains("Connected."), "{}", done.text());
    let browser = Browser::new(stack.url())?;
    people.sign_in(&browser, "/login").await?;
    assert_eq!(me(&browser).await?.1["email"], ann.email.as_str());
    Ok(())
}
