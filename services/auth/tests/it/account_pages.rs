//! Account pages in a person's browser (REVIEW-UX-3b 2, 3 and 17; REVIEW-UX-BUG-6,
//! REVIEW-UX-BUG-21, REVIEW-UX-BUG-28).

use http::StatusCode;
use time::Duration;

use crate::{
    invitations, second_factor,
    test_service::{PASSWORD, TestService},
};

const PAGES: [&str; 8] = [
    "/account",
    "/account/sign-in",
    "/account/passkeys",
    "/account/two-factor",
    "/account/sessions",
    "/account/apps",
    "/account/linked",
    "/account/password",
];

#[tokio::test]
async fn s3b_3_every_page_leads_to_every_other_and_back_to_the_console() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    for page in PAGES {
        let shown = ann.get(page).await;
        assert_eq!(shown.status, StatusCode::OK, "{page}: {}", shown.text);
        for other in PAGES.iter().take(7).chain(&["/"]) {
            assert!(
                shown.text.contains(&format!("<a href=\"{other}\"")),
                "{page} to {other}: {}",
                shown.text
            );
        }
        let here = if page == "/account/password" {
            "/account"
        } else {
            page
        };
        assert_eq!(shown.text.matches("aria-current=\"page\"").count(), 1);
        assert!(
            shown
                .text
                .contains(&format!("<a href=\"{here}\" aria-current=\"page\"")),
            "{page}"
        );
    }
}

#[tokio::test]
async fn s3b_3_times_are_readable_without_script_and_exact_for_it() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let shown = ann.get("/account/sessions").await.text;
    let time = shown.split("<time datetime=\"").nth(1).unwrap();
    let (exact, rest) = time.split_once("\">").unwrap();
    let format = &time::format_description::well_known::Rfc3339;
    assert!(
        time::OffsetDateTime::parse(exact, format).is_ok(),
        "{exact}"
    );
    let words = rest.split('<').next().unwrap();
    assert!(
        words.ends_with(" UTC") && !words.starts_with("20"),
        "{words}"
    );
}

#[tokio::test]
async fn s3b_3_a_person_changes_their_name() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    service.wait(Duration::minutes(11));
    let done = ann.fill("/account", &[("name", "  Ann Q. Smith ")]).await;
    assert_eq!(done.location(), "/account?done=name", "{}", done.text);
    let me = ann.call(http::Method::GET, "/me", None).await.json();
    assert_eq!(me["user"]["display_name"], "Ann Q. Smith");
    let refused = ann.fill("/account", &[("name", " ")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("Enter your name"), "{}", refused.text);
    let forged = ann
        .post("/account", &[("form_token", "x"), ("name", "Eve")])
        .await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    let me = ann.call(http::Method::GET, "/me", None).await.json();
    assert_eq!(me["user"]["display_name"], "Ann Q. Smith");
}

#[tokio::test]
async fn bug_21_the_theme_of_the_console_reaches_every_page_without_script() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let guest = service.browser();
    assert!(
        guest
            .get("/login")
            .await
            .text
            .contains("data-theme=\"auto\"")
    );
    // As the console writes it.
    guest.set_cookie("theme", "dark");
    for page in [
        "/login",
        "/signup",
        "/reset",
        "/welcome",
        "/dev/mail",
        "/login?request=req_0",
    ] {
        let shown = guest.get(page).await.text;
        assert!(shown.contains("data-theme=\"dark\""), "{page}: {shown}");
        assert!(
            shown.contains("name=\"color-scheme\" content=\"dark\""),
            "{page}"
        );
    }
    guest.set_cookie("theme", "\"><script>");
    assert!(
        guest
            .get("/login")
            .await
            .text
            .contains("data-theme=\"auto\"")
    );
    // As the account page writes it, for the console.
    let token = ann.get("/account").await.field("form_token");
    let choose = async |theme: &str| {
        let fields = [("form_token", token.as_str()), ("theme", theme)];
        ann.post("/account/theme", &fields).await
    };
    let done = choose("light").await;
    assert_eq!(done.location(), "/account?done=theme", "{}", done.text);
    assert_eq!(ann.cookie("theme").as_deref(), Some("light"));
    assert!(
        ann.get("/account")
            .await
            .text
            .contains("data-theme=\"light\"")
    );
    assert_eq!(choose("pink").await.status, StatusCode::BAD_REQUEST);
    // Sign-out clears every cookie but this one.
    let out = ann.post("/logout", &[]).await;
    assert_eq!(out.location(), "/login?done=signed-out&theme=light");
    let elsewhere = service.browser();
    elsewhere.get(out.location()).await;
    assert_eq!(elsewhere.cookie("theme").as_deref(), Some("light"));
}

#[tokio::test]
async fn bug_28_to_look_at_passkeys_takes_no_recent_proof_and_to_change_them_does() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    service.wait(Duration::minutes(11));
    for (page, word) in [
        ("/account/passkeys", "passkeys"),
        ("/account/two-factor", "two-factor"),
    ] {
        let shown = ann.get(page).await;
        assert_eq!(shown.status, StatusCode::OK, "{page}");
        let way = format!("href=\"/account/confirm?request=account.{word}\"");
        assert!(shown.text.contains(&way), "{}", shown.text);
        assert!(
            !shown.text.contains("<form"),
            "nothing to change: {}",
            shown.text
        );
    }
    // A secret that is not yet confirmed needs a recent sign-in.
    ann.sign_in("ann@acme.example", PASSWORD).await;
    ann.fill("/account/two-factor", &[("what", "begin")]).await;
    service.wait(Duration::minutes(11));
    assert_eq!(
        ann.get("/account/two-factor").await.location(),
        "/account/confirm?request=account.two-factor"
    );
}

#[tokio::test]
async fn s3b_17_recovery_codes_are_copied_and_downloaded() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let (_, codes) = second_factor::enrol(&service, &ann).await;
    assert_eq!(codes.len(), 10);
    let made = ann.fill("/account/two-factor", &[("what", "codes")]).await;
    let shown: Vec<&str> = made
        .text
        .split("<span class=\"mono\">")
        .skip(1)
        .filter_map(|rest| rest.split('<').next())
        .collect();
    assert_eq!(shown.len(), 10, "{}", made.text);
    let file = format!("data:text/plain;charset=utf-8,{}%0A", shown.join("%0A"));
    assert!(made.text.contains(&file), "{}", made.text);
    let copied = format!("data-copy=\"{}&#10;\"", shown.join("&#10;"));
    assert!(made.text.contains(&copied), "{}", made.text);
    assert!(made.text.contains("data-print"));
    assert_eq!(
        service.newest_mail("ann@acme.example").await.subject,
        "Your recovery codes were replaced"
    );
}

#[tokio::test]
async fn bug_6_a_fault_stands_at_its_field_which_has_the_focus_and_names_it() {
    let service = TestService::open().await;
    service.person("ann@acme.example").await;
    let guest = service.browser();
    let refused = guest.sign_in("ann@acme.example", "wrong wrong wrong").await;
    let signup = guest.sign_up("no address", PASSWORD).await;
    let reset = guest.fill("/reset", &[("email", "no address")]).await;
    guest.sign_up("bob@acme.example", PASSWORD).await;
    let code = guest.verify("12345678").await;
    for (page, field, fault) in [
        (&refused, "password", "fault"),
        (&signup, "email", "email-fault"),
        (&reset, "email", "fault"),
        (&code, "code", "fault"),
    ] {
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        let document = scraper::Html::parse_document(&page.text);
        let one = |selector: &str| {
            let selector = scraper::Selector::parse(selector).unwrap();
            let mut found = document.select(&selector);
            let first = found
                .next()
                .unwrap_or_else(|| panic!("{selector:?}: {}", page.text));
            assert!(found.next().is_none(), "one {selector:?}");
            first
        };
        assert_eq!(one("[autofocus]").attr("id"), Some(field));
        let input = one(&format!("#{field}"));
        assert_eq!(input.attr("aria-invalid"), Some("true"));
        let described = input.attr("aria-describedby").unwrap();
        assert!(described.split(' ').any(|id| id == fault), "{described}");
        assert_eq!(one(&format!("#{fault}")).attr("role"), Some("alert"));
    }
}

#[tokio::test]
async fn s3b_3_an_account_is_deleted_by_its_person_and_no_workspace_is_left_without_an_owner() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let body = serde_json::json!({"name": "Acme GmbH", "slug": "acme"});
    let made = ann
        .call(http::Method::POST, "/workspaces", Some(body))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let bob = invitations::member(&service, &ann, "bob@acme.example", "admin").await;

    // The only owner sees the required action first.
    let blocked = ann.get("/account/delete").await;
    assert!(
        blocked.text.contains("Acme GmbH") && blocked.text.contains("href=\"/w/acme/members\""),
        "{}",
        blocked.text
    );
    let forced = ann
        .post(
            "/account/delete",
            &[
                ("form_token", &ann.get("/account").await.field("form_token")),
                ("email", "ann@acme.example"),
            ],
        )
        .await;
    assert_eq!(forced.status, StatusCode::CONFLICT, "{}", forced.text);
    assert!(ann.is_signed_in().await);

    let members = ann
        .call(http::Method::GET, "/workspaces/acme/members", None)
        .await
        .json();
    let id_of = |email: &str| {
        let all = members["items"].as_array().unwrap();
        let one = all.iter().find(|one| one["email"] == email).unwrap();
        one["user_id"].as_str().unwrap().to_owned()
    };
    let path = format!("/workspaces/acme/members/{}", id_of("bob@acme.example"));
    let body = serde_json::json!({"role": "owner"});
    let raised = ann.call(http::Method::PATCH, &path, Some(body)).await;
    assert_eq!(raised.status, StatusCode::OK, "{}", raised.text);

    // Neither a click nor an old session is enough.
    let typo = ann
        .fill("/account/delete", &[("email", "ann@acme.exampl")])
        .await;
    assert_eq!(typo.status, StatusCode::UNPROCESSABLE_ENTITY);
    let token = ann.get("/account").await.field("form_token");
    service.wait(Duration::minutes(11));
    let fields = [
        ("form_token", token.as_str()),
        ("email", "ann@acme.example"),
    ];
    assert_eq!(
        ann.post("/account/delete", &fields).await.location(),
        "/account/confirm?request=account.delete"
    );

    ann.sign_in("ann@acme.example", PASSWORD).await;
    let elsewhere = service.browser();
    elsewhere.sign_in("ann@acme.example", PASSWORD).await;
    let done = ann
        .fill("/account/delete", &[("email", "Ann@acme.example")])
        .await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    assert!(done.text.contains("Your account was deleted"));
    assert!(!ann.is_signed_in().await && !elsewhere.is_signed_in().await);
    assert_eq!(
        service.newest_mail("ann@acme.example").await.subject,
        "Your Portolan account was deleted"
    );
    let refused = service
        .browser()
        .sign_in("ann@acme.example", PASSWORD)
        .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    // The workspace continues, and does not name her.
    let left = bob
        .call(http::Method::GET, "/workspaces/acme/members", None)
        .await;
    assert_eq!(left.json()["items"].as_array().unwrap().len(), 1);
    assert!(!left.text.contains("ann@"), "{}", left.text);
    // The address is free, and its new owner is another person.
    let again = service.person("ann@acme.example").await;
    let me = again.call(http::Method::GET, "/me", None).await.json();
    assert_eq!(me["workspaces"], serde_json::json!([]));
    assert_ne!(
        me["user"]["id"],
        serde_json::json!(id_of("ann@acme.example"))
    );
}
