//! One-time proofs at row level: two connections at once (AUTH-L7).

use portolan_model::{Digest, email::EmailAddress, id::VerificationId};
use portolan_storage::{
    Reason,
    accounts::{
        users,
        verifications::{self, MAX_ATTEMPTS, NewVerification},
    },
};

use crate::{races, test_service::TestService};

const BROWSER: Digest = Digest::from_bytes([5; 32]);

async fn open(service: &TestService) -> VerificationId {
    let now = service.clock.now();
    let address = EmailAddress::parse("ann@acme.example").unwrap();
    let mut tx = service.store.system(Reason::SignIn).await.unwrap();
    let user = users::create_unverified(&mut tx, "Ann", &address, "phc", now)
        .await
        .unwrap();
    let id = VerificationId::generate();
    let new = NewVerification {
        id,
        user,
        address_norm: address.normalised(),
        code_mac: &[9; 32],
        browser: &BROWSER,
        continue_request: None,
        continue_invitation: None,
        continue_target: None,
    };
    verifications::open(&mut tx, &new, now).await.unwrap();
    tx.commit().await.unwrap();
    id
}

#[tokio::test]
async fn l7_of_many_redemptions_at_once_exactly_one_succeeds() {
    let service = TestService::open().await;
    for round in races::rounds("l7_of_many_redemptions_at_once_exactly_one_succeeds") {
        let id = open(&service).await;
        let redeem = async || {
            let now = service.clock.now();
            let mut tx = service.store.system(Reason::SignIn).await.unwrap();
            let mut won = false;
            if verifications::count_attempt(&mut tx, id, &BROWSER, now)
                .await
                .unwrap()
                .is_some()
            {
                won = verifications::consume(&mut tx, id, now).await.unwrap();
            }
            tx.commit().await.unwrap();
            won
        };
        let (a, b, c, d) = tokio::join!(redeem(), redeem(), redeem(), redeem());
        let won = [a, b, c, d].iter().filter(|won| **won).count();
        assert_eq!(won, 1, "round {round}");
    }
}

#[tokio::test]
async fn l7_tries_at_once_are_counted_one_by_one() {
    let service = TestService::open().await;
    for round in races::rounds("l7_tries_at_once_are_counted_one_by_one") {
        let id = open(&service).await;
        let attempt = async || {
            let mut tx = service.store.system(Reason::SignIn).await.unwrap();
            let mac = verifications::count_attempt(&mut tx, id, &BROWSER, service.clock.now())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            mac.is_some()
        };
        let (a, b, c, d, e, f) = tokio::join!(
            attempt(),
            attempt(),
            attempt(),
            attempt(),
            attempt(),
            attempt()
        );
        let more = attempt().await;
        let passed = [a, b, c, d, e, f, more]
            .iter()
            .filter(|passed| **passed)
            .count();
        assert_eq!(
            i32::try_from(passed).unwrap(),
            MAX_ATTEMPTS,
            "round {round}"
        );
    }
}

#[tokio::test]
async fn l7_another_browser_cannot_even_try() {
    let service = TestService::open().await;
    let id = open(&service).await;
    let mut tx = service.store.system(Reason::SignIn).await.unwrap();
    let other = Digest::from_bytes([6; 32]);
    assert!(
        verifications::count_attempt(&mut tx, id, &other, service.clock.now())
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        verifications::find_open(&mut tx, &other, service.clock.now())
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        !verifications::renew(&mut tx, id, &other, &[1; 32], service.clock.now())
            .await
            .unwrap()
    );
}
