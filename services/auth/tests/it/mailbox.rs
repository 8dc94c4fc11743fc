//! The page with the mail of a development server.

use http::StatusCode;

use crate::test_service::{PASSWORD, TestService};

#[tokio::test]
async fn a_development_server_shows_its_mail_newest_first() {
    let service = TestService::open().await;
    service
        .browser()
        .sign_up("ann@acme.example", PASSWORD)
        .await;
    service.wait(time::Duration::seconds(1));
    service
        .browser()
        .sign_up("bob@acme.example", PASSWORD)
        .await;
    let page = service.browser().get("/dev/mail").await;
    assert_eq!(page.status, StatusCode::OK);
    let code = service.code_for("bob@acme.example").await;
    assert!(
        page.text
            .contains(&format!("<p class=\"mail-code\">{code}</p>"))
    );
    assert!(
        page.text.find("bob@acme.example").unwrap() < page.text.find("ann@acme.example").unwrap()
    );
    // REVIEW-UX-FRICTION-3: addresses in the message are links, and a button copies its code.
    let link = format!("https://portolan.test/verify?code={code}");
    assert!(
        page.text
            .contains(&format!("<a href=\"{link}\">{link}</a>")),
        "{}",
        page.text
    );
    assert!(page.text.contains(&format!("data-copy=\"{code}\"")));
}

#[tokio::test]
async fn any_other_server_has_no_mailbox() {
    let service = TestService::in_production().await;
    assert_eq!(
        service.browser().get("/dev/mail").await.status,
        StatusCode::NOT_FOUND
    );
    let ann = service.person("ann@acme.example").await;
    let me = ann.call(http::Method::GET, "/me", None).await.json();
    assert!(me.get("dev_mailbox_url").is_none(), "{me}");
}
