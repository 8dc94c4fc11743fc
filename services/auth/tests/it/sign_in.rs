//! Sign-in, its throttle, and forms of other sites
//! (AUTH-L5, AUTH-L6, AUTH-S5, AUTH-S8; CASE-28, CASE-29, CASE-43, CASE-44, CASE-143 to CASE-145).

use axum::body::Body;
use http::{Request, StatusCode, header};
use time::Duration;

use crate::test_service::{PASSWORD, TestService};

#[tokio::test]
async fn case_143_an_unknown_address_and_a_wrong_password_look_the_same() {
    let service = TestService::open().await;
    service.person("ann@acme.example").await;
    let (one, two) = (service.browser(), service.browser());
    let wrong = one
        .sign_in("ann@acme.example", "not the password at all")
        .await;
    let unknown = two
        .sign_in("eve@acme.example", "not the password at all")
        .await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(wrong.status, unknown.status);
    let blank = |answer: &crate::test_service::Answer, email: &str| {
        answer
            .text
            .replace(email, "")
            .replace(&answer.field("form_token"), "")
    };
    assert_eq!(
        blank(&wrong, "ann@acme.example"),
        blank(&unknown, "eve@acme.example")
    );
    let names = |answer: &crate::test_service::Answer| {
        answer
            .headers
            .keys()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&wrong), names(&unknown));
}

#[tokio::test]
async fn case_144_an_attacker_is_throttled_and_the_owners_browser_is_not() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    // A sign-in with the password sets the cookie of a known browser.
    assert_eq!(
        ann.sign_in("ann@acme.example", PASSWORD).await.status,
        StatusCode::SEE_OTHER
    );
    for n in 0..10 {
        let attacker = service.browser_at(&format!("198.51.100.{n}"));
        assert_eq!(
            attacker
                .sign_in("ann@acme.example", "wrong wrong wrong")
                .await
                .status,
            StatusCode::UNPROCESSABLE_ENTITY
        );
    }
    let attacker = service.browser_at("198.51.100.99");
    let eleventh = attacker.sign_in("ann@acme.example", PASSWORD).await;
    assert_eq!(
        eleventh.status,
        StatusCode::TOO_MANY_REQUESTS,
        "even the right password waits"
    );
    assert!(eleventh.headers.contains_key(header::RETRY_AFTER));
    assert_eq!(
        ann.sign_in("ann@acme.example", PASSWORD).await.status,
        StatusCode::SEE_OTHER,
        "her own browser has its own budget"
    );

    // The cookie of one account has no effect for another one.
    service.person("bob@acme.example").await;
    let mark = ann.cookie("__Host-dev").unwrap();
    attacker.set_cookie("__Host-dev", &mark);
    service.wait(Duration::minutes(1));
    assert_eq!(
        attacker
            .sign_in("bob@acme.example", "wrong wrong wrong")
            .await
            .status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

#[tokio::test]
async fn l6_after_several_misses_the_owner_hears_of_it_once() {
    let service = TestService::open().await;
    service.person("ann@acme.example").await;
    let before = service.mail_count("ann@acme.example").await;
    for n in 0..9 {
        service
            .browser_at(&format!("198.51.100.{n}"))
            .sign_in("ann@acme.example", "wrong wrong wrong")
            .await;
        service
            .browser_at(&format!("198.51.100.{n}"))
            .sign_in("nobody@acme.example", "wrong wrong wrong")
            .await;
    }
    assert_eq!(service.mail_count("ann@acme.example").await, before + 1);
    assert_eq!(
        service.newest_mail("ann@acme.example").await.subject,
        "Failed sign-ins to your Portolan account"
    );
    assert_eq!(service.mail_count("nobody@acme.example").await, 0);
}

#[tokio::test]
async fn case_28_and_29_forms_of_other_sites_are_refused() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let token = ann.get("/login?again=1").await.field("form_token");
    let body = format!("form_token={token}&email=ann%40acme.example&password=x");
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[
            ("sec-fetch-site", "same-site"),
            ("origin", "https://portolan.test"),
        ],
    ] {
        for path in [
            "/login",
            "/signup",
            "/verify",
            "/verify/resend",
            "/logout",
            "/workspaces/new",
            "/api/v1/workspaces",
        ] {
            let mut request = Request::post(path)
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let answer = ann
                .send(request.body(Body::from(body.clone())).unwrap())
                .await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {headers:?}");
        }
    }
    assert!(ann.is_signed_in().await, "nobody was signed out");
}

#[tokio::test]
async fn case_27_a_form_is_good_in_its_browser_only_and_in_all_its_tabs() {
    let service = TestService::open().await;
    let (ann, eve) = (service.browser(), service.browser());
    let foreign = eve.get("/login").await.field("form_token");
    let own = ann.get("/login").await.field("form_token");
    let second_tab = ann.get("/login").await.field("form_token");
    assert_eq!(own, second_tab, "stable");
    for token in [foreign.as_str(), "", "x"] {
        let answer = ann
            .post(
                "/login",
                &[
                    ("form_token", token),
                    ("email", "a@b.example"),
                    ("password", "x"),
                ],
            )
            .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert!(
            answer.text.contains("has expired"),
            "a page that says what to do"
        );
    }
    // Login CSRF: without the cookie a form is refused.
    let bare = service.browser();
    let answer = bare
        .post(
            "/login",
            &[
                ("form_token", &own),
                ("email", "a@b.example"),
                ("password", "x"),
            ],
        )
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn case_44_no_parameter_leads_anywhere_else() {
    let service = TestService::open().await;
    service.person("ann@acme.example").await;
    for target in [
        "next=//evil.example",
        "next=https:evil",
        "return_to=https://evil.example",
        "continue=/\\evil.example",
    ] {
        let browser = service.browser();
        let token = browser
            .get(&format!("/login?{target}"))
            .await
            .field("form_token");
        let fields = [
            ("form_token", token.as_str()),
            ("email", "ann@acme.example"),
            ("password", PASSWORD),
            ("next", "//evil.example"),
        ];
        let answer = browser.post(&format!("/login?{target}"), &fields).await;
        assert_eq!(
            (answer.status, answer.location()),
            (StatusCode::SEE_OTHER, "/"),
            "{target}"
        );
    }
    for request in [
        "req_0",
        "//evil.example",
        "req_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a",
    ] {
        let answer = service
            .browser()
            .get(&format!("/login?request={request}"))
            .await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "an unknown request and one of another browser are the same (CASE-30)"
        );
        assert!(answer.text.contains("Start again in your app"));
    }
}

#[tokio::test]
async fn s6_s7_n8_pages_carry_their_headers() {
    let service = TestService::open().await;
    let guest = service.browser();
    for path in [
        "/login",
        "/signup",
        "/login?request=req_0",
        "/verify",
        "/dev/mail",
    ] {
        let answer = guest.get(path).await;
        let header = |name: &str| {
            answer
                .headers
                .get(name)
                .unwrap_or_else(|| panic!("{path} has no {name}"))
                .to_str()
                .unwrap()
                .to_owned()
        };
        let csp = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "form-action 'self'",
        ] {
            assert!(csp.contains(part), "{path}: {csp}");
        }
        // Passkeys need script, and the mailbox uses some for comfort: one file of ours (AUTH-L13).
        // No other page here has any.
        let script = match path {
            "/dev/mail" => Some("page.js"),
            "/login" => Some("passkey.js"),
            _ => None,
        };
        assert!(!csp.contains("unsafe"), "{path}: {csp}");
        assert_eq!(
            csp.contains("script-src 'self'; connect-src 'self';"),
            path.starts_with("/login") || path == "/dev/mail",
            "{path}: {csp}"
        );
        assert!(csp.contains("font-src 'self'"), "{path}: {csp}");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(
            header("cross-origin-opener-policy"),
            "unsafe-none",
            "popup clients keep their opener"
        );
        assert!(header("strict-transport-security").starts_with("max-age=31536000"));
        let scripts = answer.text.matches("<script").count();
        assert_eq!(scripts, usize::from(script.is_some()), "{path}");
        if let Some(name) = script {
            let ours = format!("<script src=\"/auth-assets/{name}\" defer></script>");
            assert!(answer.text.contains(&ours), "{path}: nothing inline");
            let script = guest.get(&format!("/auth-assets/{name}")).await;
            assert_eq!(
                script.headers["content-type"],
                "text/javascript; charset=utf-8"
            );
            assert_eq!(script.headers["x-content-type-options"], "nosniff");
        }
        assert!(
            !answer.text.contains("style=\""),
            "{path}: inline style is blocked by the policy"
        );
    }
    let styles = guest.get("/auth-assets/pages.css").await;
    assert_eq!(
        styles.headers[header::CONTENT_TYPE],
        "text/css; charset=utf-8"
    );
}

#[tokio::test]
async fn case_25_what_a_visitor_types_is_escaped() {
    let service = TestService::open().await;
    let eve = service.browser();
    let answer = eve
        .fill(
            "/signup",
            &[
                ("name", "\"><script>alert(1)</script>"),
                ("email", "<script>"),
                ("password", "x"),
            ],
        )
        .await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(!answer.text.contains("<script>"), "{}", answer.text);
}
