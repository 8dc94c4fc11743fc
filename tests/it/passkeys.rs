//! Passkeys through the pages, with an authenticator of software (AUTH-L13, AUTH-S2; CASE-156).

use anyhow::{Context, Result};
use portolan_tests::{
    authenticator::{Authenticator, Fields, Manner, PRESENT, SYNCED, VERIFIED},
    browser::{Browser, Page},
    person::Person,
    sql::Sql,
    stack::Stack,
};
use reqwest::{Method, StatusCode, header};
use serde_json::Value;

/// A service that is reached by a name: passkeys are bound to one.
fn stack() -> Result<Stack> {
    Stack::builder()
        .setting("public_url", "http://localhost")
        .start()
}

fn honest(stack: &Stack) -> Manner {
    Manner::honest(&stack.url().origin().ascii_serialization())
}

/// The options that the script of the page requests, before the form `marked` by one of its fields
/// is sent.
async fn options(browser: &Browser, page: &Page, marked: &str, path: &str) -> Result<Value> {
    let form = page.form_with(marked)?;
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(&form.fields)
        .finish();
    let answer = browser
        .fetch(Method::POST, path)?
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body)
        .send()
        .await?;
    let status = answer.status();
    let text = answer.text().await?;
    anyhow::ensure!(status == StatusCode::OK, "{path}: {status} {text}");
    Ok(serde_json::from_str(&text)?)
}

async fn send(browser: &Browser, page: &Page, marked: &str, fields: Fields) -> Result<Page> {
    let mut form = page.form_with(marked)?;
    for (name, value) in fields {
        form = form.fill(name, &value);
    }
    browser.submit(form).await
}

const ACCOUNT: &str = "/account/passkeys";

/// Adds a passkey as the page does.
async fn add(person: &Person, name: &str, manner: &Manner) -> Result<(Authenticator, Page)> {
    let page = person.browser.open(ACCOUNT).await?;
    let asked = options(
        &person.browser,
        &page,
        "attestation",
        "/account/passkeys/options",
    )
    .await?;
    let (made, mut fields) = Authenticator::create(&asked, manner)?;
    fields.push(("name", name.to_owned()));
    let page = send(&person.browser, &page, "attestation", fields).await?;
    Ok((made, page))
}

/// Opens the sign-in page in this browser and answers it with a passkey.
async fn sign_in(browser: &Browser, passkey: &mut Authenticator, manner: &Manner) -> Result<Page> {
    let page = browser.open("/login").await?;
    let asked = options(browser, &page, "credential", "/login/passkey/options").await?;
    assert_eq!(
        asked["userVerification"], "required",
        "it is the only factor"
    );
    assert_eq!(
        asked["allowCredentials"],
        serde_json::json!([]),
        "AUTH-L5: nothing tells who has which"
    );
    let fields = passkey.sign(&asked, manner)?;
    send(browser, &page, "credential", fields).await
}

async fn is_signed_in(browser: &Browser) -> Result<bool> {
    let answer = browser.fetch(Method::GET, "/api/v1/me")?.send().await?;
    Ok(answer.status() == StatusCode::OK)
}

async fn mails_to(person: &Person) -> Result<String> {
    Ok(person.browser.open("/dev/mail").await?.text())
}

async fn database(stack: &Stack) -> Result<Sql> {
    let socket = stack.data().join("postgres/socket");
    Sql::connect(&socket, "portolan_dev", "portolan").await
}

/// How the newest session of a person was proved.
async fn amr(stack: &Stack, person: &Person) -> Result<String> {
    let question = format!(
        "select array_to_string(s.amr, ' ') from browser_sessions s join user_emails e on e.user_id = s.user_id
         where e.address = '{}' and s.ended_at is null order by s.created_at desc limit 1",
        person.email
    );
    let rows = database(stack).await?.ask(&question).await?;
    Ok(rows.first().context("a session")?[0].clone())
}

#[tokio::test]
async fn l13_a_passkey_is_added_renamed_signs_in_alone_and_is_removed() -> Result<()> {
    let stack = stack()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let page = ann.browser.open(ACCOUNT).await?;
    assert!(
        page.text().contains("You have no passkeys yet"),
        "{}",
        page.text()
    );
    let second = Browser::new(stack.url())?;
    let elsewhere = Person {
        email: ann.email.clone(),
        password: ann.password.clone(),
        browser: second,
    };
    let login = elsewhere.browser.open("/login").await?;
    elsewhere.sign_in(login).await?;
    assert!(is_signed_in(&elsewhere.browser).await?);

    let (mut key, page) = add(&ann, "Blue key", &honest(&stack)).await?;
    assert!(page.text().contains("Blue key"), "{}", page.text());
    assert!(page.text().contains("Never used"));
    assert!(
        page.text().contains("Add a second passkey"),
        "two are encouraged"
    );
    assert!(is_signed_in(&ann.browser).await?);
    assert!(
        !is_signed_in(&elsewhere.browser).await?,
        "AUTH-S4: other browsers are out"
    );
    assert_eq!(
        amr(&stack, &ann).await?,
        "pwd hwk user mfa",
        "AUTH-S3: elevated"
    );
    assert!(
        mails_to(&ann)
            .await?
            .contains("A passkey of your Portolan account was added"),
        "AUTH-L16"
    );

    let browser = Browser::new(stack.url())?;
    sign_in(&browser, &mut key, &honest(&stack)).await?;
    assert!(is_signed_in(&browser).await?);
    assert_eq!(amr(&stack, &ann).await?, "hwk user mfa", "RFC 8176");
    let back = Person {
        browser,
        email: ann.email.clone(),
        password: ann.password.clone(),
    };
    let page = back.browser.open(ACCOUNT).await?;
    assert!(page.text().contains("Last used"), "{}", page.text());
    let rename = page.form_with("passkey")?;
    let page = back
        .browser
        .submit(rename.fill("name", "Green key").press("what", "rename"))
        .await?;
    assert!(page.text().contains("Green key") && !page.text().contains("Blue key"));

    let remove = page
        .forms()
        .into_iter()
        .find(|form| form.buttons.iter().any(|(_, value, _)| value == "remove"))
        .context("a button")?;
    let page = back.browser.submit(remove.press("what", "remove")).await?;
    assert!(
        page.text().contains("You have no passkeys yet"),
        "{}",
        page.text()
    );
    assert!(
        mails_to(&ann)
            .await?
            .contains("A passkey of your Portolan account was removed"),
        "AUTH-L16"
    );
    let late = Browser::new(stack.url())?;
    let page = sign_in(&late, &mut key, &honest(&stack)).await?;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(!is_signed_in(&late).await?);
    let rows = database(&stack)
        .await?
        .ask("select action from audit_events where action like 'passkey.%' order by at, id")
        .await?;
    let actions: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        actions,
        ["passkey.added", "passkey.renamed", "passkey.removed"]
    );
    Ok(())
}

#[tokio::test]
async fn bug_29_passkeys_that_are_given_no_name_get_distinct_ones() -> Result<()> {
    let stack = stack()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    add(&ann, "", &honest(&stack)).await?;
    let (_, page) = add(&ann, "", &honest(&stack)).await?;
    let names: Vec<String> = page
        .forms()
        .into_iter()
        .filter(|form| form.buttons.iter().any(|(_, value, _)| value == "rename"))
        .filter_map(|form| form.fields.into_iter().find(|(name, _)| name == "name"))
        .map(|(_, value)| value)
        .collect();
    assert_eq!(names.len(), 2, "{}", page.text());
    assert_ne!(names[0], names[1]);
    Ok(())
}

#[tokio::test]
async fn case_156_another_origin_host_challenge_person_or_no_verification_is_refused() -> Result<()>
{
    let stack = stack()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let bob = Person::sign_up(&stack, "bob").await?;
    let good = honest(&stack);
    let (mut key, _) = add(&ann, "Ann's", &good).await?;
    let (bobs, _) = add(&bob, "Bob's", &good).await?;

    let wrong = [
        (
            "origin",
            Manner {
                origin: "https://evil.example".to_owned(),
                ..good.clone()
            },
        ),
        (
            "origin of another port",
            Manner {
                origin: "http://localhost:1".to_owned(),
                ..good.clone()
            },
        ),
        (
            "relying party",
            Manner {
                host: Some("evil.example".to_owned()),
                ..good.clone()
            },
        ),
        (
            "challenge",
            Manner {
                challenge: Some("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned()),
                ..good.clone()
            },
        ),
        (
            "no verification",
            Manner {
                flags: PRESENT,
                ..good.clone()
            },
        ),
        (
            "nobody present",
            Manner {
                flags: VERIFIED,
                ..good.clone()
            },
        ),
        (
            "says it is Bob's",
            Manner {
                user_handle: Some(bobs.user_handle().to_owned()),
                ..good.clone()
            },
        ),
        (
            "says nobody's",
            Manner {
                user_handle: Some(String::new()),
                ..good.clone()
            },
        ),
        (
            "backed up all at once",
            Manner {
                flags: PRESENT | VERIFIED | SYNCED,
                ..good.clone()
            },
        ),
    ];
    for (what, manner) in wrong {
        let browser = Browser::new(stack.url())?;
        let page = sign_in(&browser, &mut key, &manner).await?;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{what}");
        assert!(!is_signed_in(&browser).await?, "{what}");
    }

    // Replayed: the same answer, in the same browser, after it was good; and in the browser of a thief.
    let browser = Browser::new(stack.url())?;
    let page = browser.open("/login").await?;
    let asked = options(&browser, &page, "credential", "/login/passkey/options").await?;
    let fields = key.sign(&asked, &good)?;
    let thief = Browser::new(stack.url())?;
    let theirs = thief.open("/login").await?;
    let refused = send(&thief, &theirs, "credential", fields.clone()).await?;
    assert_eq!(
        refused.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "of another browser"
    );
    send(&browser, &page, "credential", fields.clone()).await?;
    assert!(is_signed_in(&browser).await?);
    let page = browser.open("/login?again=1").await?;
    let again = send(&browser, &page, "credential", fields).await?;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "used up");

    // A challenge of another purpose, and another person's passkey, for a proof.
    let confirm = ann.browser.open("/account/confirm").await?;
    let path = "/account/confirm/options";
    let asked = options(&ann.browser, &confirm, "credential", path).await?;
    let named = asked["allowCredentials"].as_array().context("a list")?;
    assert_eq!(named.len(), 1);
    assert_eq!(named[0]["id"], key.id().as_str());
    let mut bobs = bobs;
    let fields = bobs.sign(&asked, &good)?;
    let refused = send(&ann.browser, &confirm, "credential", fields).await?;
    assert_eq!(
        refused.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "Bob's passkey"
    );
    let login = ann.browser.open("/login?again=1").await?;
    let asked = options(&ann.browser, &login, "credential", "/login/passkey/options").await?;
    let fields = key.sign(&asked, &good)?;
    let refused = send(&ann.browser, &confirm, "credential", fields).await?;
    assert_eq!(
        refused.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "asked for a sign-in"
    );
    let asked = options(&ann.browser, &confirm, "credential", path).await?;
    let fields = key.sign(&asked, &good)?;
    let page = send(&ann.browser, &confirm, "credential", fields).await?;
    assert_eq!(page.url.path(), "/", "AUTH-S2: it proves again who she is");

    // A passkey that did not verify its person is not taken to begin with, nor one that is known.
    let (_, page) = add(
        &bob,
        "weak",
        &Manner {
            flags: PRESENT,
            ..good.clone()
        },
    )
    .await?;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(!page.text().contains("weak"));
    Ok(())
}

#[tokio::test]
async fn l13_a_count_that_does_not_grow_is_refused_and_its_person_is_told() -> Result<()> {
    let stack = stack()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let good = honest(&stack);
    let (mut key, _) = add(&ann, "Blue key", &good).await?;
    key.count = 7;
    let browser = Browser::new(stack.url())?;
    sign_in(&browser, &mut key, &good).await?;
    assert!(is_signed_in(&browser).await?);
    // The copy was made when the count was 5.
    key.count = 5;
    for _ in 0..2 {
        let thief = Browser::new(stack.url())?;
        let page = sign_in(&thief, &mut key, &good).await?;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            page.text().contains("may have been copied"),
            "{}",
            page.text()
        );
        assert!(!is_signed_in(&thief).await?);
    }
    assert!(
        mails_to(&ann)
            .await?
            .contains("Your passkey may have been copied")
    );
    let rows = database(&stack)
        .await?
        .ask("select count(*) from audit_events where action = 'passkey.copied'")
        .await?;
    assert_eq!(rows[0][0], "2");
    let page = ann.browser.open(ACCOUNT).await?;
    assert!(page.text().contains("Possibly copied"), "{}", page.text());
    // The one that counted on goes on.
    key.count = 8;
    let browser = Browser::new(stack.url())?;
    sign_in(&browser, &mut key, &good).await?;
    assert!(is_signed_in(&browser).await?);

    // A passkey without a counter always reports 0.
    let synced = Manner {
        flags: PRESENT | VERIFIED | SYNCED,
        ..good.clone()
    };
    let bob = Person::sign_up(&stack, "bob").await?;
    let (mut key, _) = add(&bob, "Synced", &synced).await?;
    key.counts = false;
    for _ in 0..3 {
        let browser = Browser::new(stack.url())?;
        sign_in(&browser, &mut key, &synced).await?;
        assert!(is_signed_in(&browser).await?);
    }
    assert_eq!(amr(&stack, &bob).await?, "swk user mfa");
    Ok(())
}

#[tokio::test]
async fn l13_the_last_way_in_cannot_be_removed() -> Result<()> {
    let stack = stack()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let good = honest(&stack);
    add(&ann, "One", &good).await?;
    // As if she had come with an account elsewhere, and disconnected it.
    database(&stack)
        .await?
        .ask("delete from user_passwords")
        .await?;
    let remove = async || -> Result<Page> {
        let page = ann.browser.open(ACCOUNT).await?;
        let form = page
            .forms()
            .into_iter()
            .find(|form| form.buttons.iter().any(|(_, value, _)| value == "remove"))
            .context("a button")?;
        ann.browser.submit(form.press("what", "remove")).await
    };
    let page = remove().await?;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(
        page.text().contains("your only way to sign in"),
        "{}",
        page.text()
    );
    add(&ann, "Two", &good).await?;
    let page = remove().await?;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        !page.text().contains("One") && page.text().contains("Two"),
        "{}",
        page.text()
    );
    assert_eq!(remove().await?.status, StatusCode::CONFLICT);
    Ok(())
}

#[tokio::test]
async fn l13_where_the_host_is_an_address_passkeys_are_not_offered() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let page = ann.browser.open(ACCOUNT).await?;
    assert!(page.text().contains("need a host name"), "{}", page.text());
    assert!(page.form_with("attestation").is_err());
    let login = Browser::new(stack.url())?.open("/login").await?;
    assert!(login.form_with("credential").is_err());
    assert!(!login.body.contains("<script"));
    Ok(())
}

#[tokio::test]
async fn l14_who_has_a_factor_proves_it_before_another_is_added_or_it_is_removed() -> Result<()> {
    let stack = stack()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let good = honest(&stack);
    let (mut key, _) = add(&ann, "Blue key", &good).await?;
    // A thief who knows the password, and has signed in with it just now.
    let thief = Person {
        email: ann.email.clone(),
        password: ann.password.clone(),
        browser: Browser::new(stack.url())?,
    };
    let login = thief.browser.open("/login").await?;
    thief.sign_in(login).await?;
    assert!(is_signed_in(&thief.browser).await?);
    let sessions = thief.browser.open("/account/sessions").await?;
    let token = sessions
        .form_with("session")?
        .fields
        .into_iter()
        .find(|(name, _)| name == "form_token")
        .context("a token")?
        .1;
    for (path, what, page) in [
        ("/account/passkeys/options", "", "passkeys"),
        (ACCOUNT, "add", "passkeys"),
        (ACCOUNT, "rename", "passkeys"),
        (ACCOUNT, "remove", "passkeys"),
        ("/account/two-factor", "begin", "two-factor"),
        ("/account/two-factor", "confirm", "two-factor"),
        ("/account/two-factor", "codes", "two-factor"),
        ("/account/two-factor", "remove", "two-factor"),
    ] {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("form_token", token.as_str()), ("what", what)])
            .finish();
        let answer = thief
            .browser
            .fetch(Method::POST, path)?
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body)
            .send()
            .await?;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{path} {what}");
        assert_eq!(
            answer.headers()[header::LOCATION],
            format!("/account/confirm?request=account.{page}&for=required").as_str(),
            "{path} {what}"
        );
    }
    // Looking needs no proof (REVIEW-UX-BUG-28); what changes something led here.
    let proof = "/account/confirm?request=account.passkeys&for=required";
    let page = thief.browser.open(proof).await?;
    assert_eq!(page.url.path(), "/account/confirm");
    assert!(
        page.form_with("password").is_err(),
        "the password is what a thief has"
    );
    // Its owner has the passkey, on whichever browser.
    let path = "/account/confirm/options";
    let asked = options(&thief.browser, &page, "credential", path).await?;
    let fields = key.sign(&asked, &good)?;
    let page = send(&thief.browser, &page, "credential", fields).await?;
    assert_eq!(page.url.path(), ACCOUNT);
    assert!(page.text().contains("Blue key"), "{}", page.text());
    Ok(())
}

#[tokio::test]
async fn l13_passkeys_of_a_former_host_count_for_nothing() -> Result<()> {
    let stack = stack()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let good = honest(&stack);
    let (mut key, _) = add(&ann, "Blue key", &good).await?;
    // As if the service had been reached by another name when it was made.
    database(&stack)
        .await?
        .ask("update webauthn_credentials set rp_id = 'former.example'")
        .await?;
    let page = ann.browser.open(ACCOUNT).await?;
    assert!(
        page.text().contains("You have no passkeys yet"),
        "{}",
        page.text()
    );
    let confirm = ann.browser.open("/account/confirm").await?;
    assert!(
        confirm.form_with("credential").is_err(),
        "it is not asked for"
    );
    let browser = Browser::new(stack.url())?;
    sign_in(&browser, &mut key, &good).await?;
    assert!(!is_signed_in(&browser).await?);
    Ok(())
}
