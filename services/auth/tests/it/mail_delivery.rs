//! Delivery of mail: the outbox and a real mail server.

use portolan_accounts::mail::{config::Security, outbox::deliver_due, smtp::Smtp};
use portolan_storage::{Reason, platform::mails};
use time::Duration;

use crate::{
    mail_server::MailServer,
    test_service::{PASSWORD, TestService},
};

const OWN_HOST: &str = "portolan.test";

async fn queue(service: &TestService, to: &str) {
    let mut tx = service.store.system(Reason::Mail).await.unwrap();
    mails::queue(
        &mut tx,
        to,
        "Subject",
        "Text",
        "<p>Text</p>",
        service.clock.now(),
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

async fn waiting(service: &TestService) -> i64 {
    let mut tx = service.store.system(Reason::Mail).await.unwrap();
    mails::backlog(&mut tx).await.unwrap().0
}

#[tokio::test]
async fn l7_a_code_arrives_by_starttls_in_both_forms_and_its_text_does_not_stay() {
    let service = TestService::in_production().await;
    let server = MailServer::start(Security::StartTls);
    let smtp = Smtp::new(&server.config(), OWN_HOST).unwrap();
    let ann = service.browser();
    ann.sign_up("ann@acme.example", PASSWORD).await;
    let code = service.code_for("ann@acme.example").await;
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 1);
    let took = server.took();
    assert_eq!(took.len(), 1);
    let mail = &took[0];
    assert_eq!(mail["secure"], true);
    assert_eq!(mail["to"][0], "ann@acme.example");
    assert_eq!(mail["headers"]["from"], "Portolan <no-reply@portolan.test>");
    assert_eq!(
        mail["headers"]["subject"],
        format!("{code} is your Portolan code")
    );
    assert_eq!(mail["headers"]["auto-submitted"], "auto-generated");
    let id = mail["headers"]["message-id"].as_str().unwrap();
    assert!(
        id.starts_with("<mai_") && id.ends_with("@portolan.test>"),
        "{id}"
    );
    for form in ["text", "html"] {
        let body = mail[form].as_str().unwrap();
        assert!(body.contains(&code), "{form}: {body}");
        assert!(body.contains(&format!("https://portolan.test/verify?code={code}")));
    }
    let row = service.newest_mail("ann@acme.example").await;
    assert_eq!(
        (row.subject.as_str(), row.body.as_str(), row.html.as_str()),
        ("", "", ""),
        "codes do not stay in the database"
    );
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 0, "once");
}

#[tokio::test]
async fn what_is_refused_for_now_comes_again_after_longer_pauses_and_what_is_refused_for_good_does_not()
 {
    let service = TestService::in_production().await;
    let server = MailServer::start(Security::None);
    let smtp = Smtp::new(&server.config(), OWN_HOST).unwrap();
    queue(&service, "later-2@acme.example").await;
    queue(&service, "never@acme.example").await;
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 2);
    assert_eq!(waiting(&service).await, 1, "never@ is given up");
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 0);
    service.wait(Duration::seconds(5));
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 1);
    service.wait(Duration::seconds(9));
    assert_eq!(
        deliver_due(&service.state, &smtp).await.unwrap(),
        0,
        "the second pause is 10 s"
    );
    service.wait(Duration::seconds(1));
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 1);
    assert_eq!((server.refusals(), server.took().len()), (2, 1));
    assert_eq!(waiting(&service).await, 0);
}

#[tokio::test]
async fn a_mail_server_that_is_away_delays_nobody_and_loses_nothing() {
    let service = TestService::in_production().await;
    let gone = MailServer::start(Security::None).config();
    let smtp = Smtp::new(&gone, OWN_HOST).unwrap();
    // The request is answered although no mail server accepts the message.
    service
        .browser()
        .sign_up("ann@acme.example", PASSWORD)
        .await;
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 1);
    assert_eq!(waiting(&service).await, 1);
    let server = MailServer::start(Security::Tls);
    let smtp = Smtp::new(&server.config(), OWN_HOST).unwrap();
    service.wait(Duration::minutes(1));
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 1);
    assert_eq!(server.took().len(), 1, "TLS from the first byte");
    // A message that is a day old is dropped.
    queue(&service, "ann@acme.example").await;
    service.wait(Duration::hours(25));
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 1);
    assert_eq!((server.took().len(), waiting(&service).await), (1, 0));
}

#[tokio::test]
async fn nothing_goes_out_without_the_protection_that_was_asked_for() {
    let service = TestService::in_production().await;
    queue(&service, "ann@acme.example").await;
    let open = MailServer::start(Security::None);
    let sealed = MailServer::start(Security::StartTls);
    let mut stripped = open.config();
    stripped.security = Security::StartTls;
    let mut unknown = sealed.config();
    unknown.ca = None;
    let mut unsigned = sealed.config();
    (unsigned.user, unsigned.password) = (None, None);
    for config in [stripped, unknown, unsigned] {
        let smtp = Smtp::new(&config, OWN_HOST).unwrap();
        assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 1);
        assert_eq!(waiting(&service).await, 1, "kept for when it is mended");
        service.wait(Duration::hours(1));
    }
    assert!(open.took().is_empty() && sealed.took().is_empty());
}

#[tokio::test]
async fn several_senders_hand_each_message_over_once_and_a_dead_one_loses_it_to_the_next() {
    let service = TestService::in_production().await;
    let server = MailServer::start(Security::None);
    let smtp = Smtp::new(&server.config(), OWN_HOST).unwrap();
    for n in 0..50 {
        queue(&service, &format!("person{n}@acme.example")).await;
    }
    // A node takes the message and dies.
    let mut tx = service.store.system(Reason::Mail).await.unwrap();
    let lost = mails::take_due(&mut tx, 1, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let senders = (0..4).map(|_| deliver_due(&service.state, &smtp));
    let taken: u64 = futures_util::future::join_all(senders)
        .await
        .into_iter()
        .map(Result::unwrap)
        .sum();
    assert_eq!(taken, 49);
    service.wait(mails::HOLD);
    assert_eq!(deliver_due(&service.state, &smtp).await.unwrap(), 1);
    let mut tx = service.store.system(Reason::Mail).await.unwrap();
    let late = mails::report(
        &mut tx,
        lost[0].mail.id,
        lost[0].attempt,
        mails::MailOutcome::Failed,
        service.clock.now(),
    )
    .await
    .unwrap();
    assert!(!late, "the word of who lost it does not count");
    let mut to: Vec<String> = server
        .took()
        .iter()
        .map(|mail| mail["to"][0].as_str().unwrap().to_owned())
        .collect();
    to.sort();
    to.dedup();
    assert_eq!((to.len(), server.took().len()), (50, 50));
}
