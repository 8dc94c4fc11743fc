//! Sign-up, verification, sign-in and sign-out through the pages (AUTH-1.9, AUTH-1.10).

use anyhow::Result;
use portolan_tests::{person::Person, stack::Stack};
use reqwest::{Method, StatusCode, header};

#[tokio::test]
async fn a_newcomer_signs_up_verifies_signs_out_and_signs_in_again() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let me = ann.console().get("/me").await?;
    assert_eq!(me["user"]["email"], ann.email.as_str());
    let response = ann
        .browser
        .fetch(Method::POST, "/logout")?
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .send()
        .await?;
    assert!(
        response.status().is_redirection() || response.status().is_success(),
        "{}",
        response.status()
    );
    ann.browser.keep_cookies(response.headers());
    let (status, _) = ann.console().send(Method::GET, "/me", None).await?;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let page = ann.browser.open("/login").await?;
    ann.sign_in(page).await?;
    assert_eq!(
        ann.console().get("/me").await?["user"]["email"],
        ann.email.as_str()
    );
    Ok(())
}

#[tokio::test]
async fn l5_sign_up_and_sign_in_do_not_tell_who_has_an_account() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let mut stranger = Person::new(stack.url(), "stranger")?;
    let unknown = stranger.send_sign_up().await?;
    let stranger_address = std::mem::replace(&mut stranger.email, ann.email.clone());
    stranger.browser.forget();
    let known = stranger.send_sign_up().await?;
    assert_eq!(unknown.status, known.status);
    assert_eq!(
        unknown.text().replace(&stranger_address, ""),
        known.text().replace(&ann.email, "")
    );

    let wrong_password = Person {
        email: ann.email.clone(),
        password: "not her password at all".to_owned(),
        ..Person::new(stack.url(), "x")?
    };
    let page = wrong_password.browser.open("/login").await?;
    let known = wrong_password.sign_in(page).await?;
    let nobody = Person::new(stack.url(), "nobody")?;
    let page = nobody.browser.open("/login").await?;
    let unknown = nobody.sign_in(page).await?;
    assert_eq!(known.status, unknown.status);
    assert_eq!(known.text(), unknown.text());
    Ok(())
}

#[tokio::test]
async fn l7_a_code_dies_after_five_wrong_tries() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::new(stack.url(), "ann")?;
    let mut page = ann.send_sign_up().await?;
    let code = ann.mailed_code().await?;
    let wrong = if code.starts_with('9') {
        "10000000"
    } else {
        "99999999"
    };
    for _ in 0..5 {
        let Ok(form) = page.form_with("code") else {
            break;
        };
        page = ann.browser.submit(form.fill("code", wrong)).await?;
    }
    if let Ok(form) = page.form_with("code") {
        page = ann.browser.submit(form.fill("code", &code)).await?;
    }
    let (status, _) = ann.console().send(Method::GET, "/me", None).await?;
    assert_eq!(
        status,
        StatusCode::UNAUTHORIZED,
        "the right code is dead by now: {}",
        page.text()
    );
    Ok(())
}

#[tokio::test]
async fn s5_forms_from_other_sites_are_refused() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    for (name, value) in [
        ("origin", "https://attacker.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let mut request = ann
            .browser
            .fetch(Method::POST, "/api/v1/workspaces")?
            .build()?;
        request.headers_mut().remove("sec-fetch-site");
        request.headers_mut().insert(name, value.parse()?);
        request
            .headers_mut()
            .insert(header::CONTENT_TYPE, "application/json".parse()?);
        let response = reqwest::Client::builder().build()?.execute(request).await?;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{name}: {value}");
    }
    Ok(())
}

#[tokio::test]
async fn s6_pages_carry_a_strict_policy_and_no_script() -> Result<()> {
    let stack = Stack::start()?;
    let guest = Person::new(stack.url(), "guest")?;
    for path in ["/login", "/signup"] {
        let page = guest.browser.open(path).await?;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str()?;
        assert!(
            policy.contains("default-src 'none'")
                && policy.contains("frame-ancestors 'none'")
                && !policy.contains("unsafe-inline"),
            "{path}: {policy}"
        );
        assert_eq!(
            page.headers[header::X_CONTENT_TYPE_OPTIONS],
            "nosniff",
            "AUTH-S7"
        );
        assert_eq!(
            page.headers[header::REFERRER_POLICY],
            "no-referrer",
            "AUTH-S7"
        );
        assert!(
            page.headers[header::CACHE_CONTROL]
                .to_str()?
                .contains("no-store"),
            "AUTH-S7"
        );
    }
    Ok(())
}
