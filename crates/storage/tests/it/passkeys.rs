//! Passkeys (AUTH-L13): what is once, and what only grows, on several nodes at the same instant.

use portolan_model::{factor::SecondFactor, id::PasskeyId};
use portolan_storage::{
    accounts::{
        passkeys::{self, CHALLENGE_LIFE, ChallengeOf, KNOWN, New, PasskeyPurpose},
        ways_in,
    },
    oauth::{factor_rules, revocations},
    platform::tenants,
};
use time::Duration;

use crate::{
    database::Database,
    races,
    scene::{Scene, digest, now, system},
};

/// What passkeys are bound to.
const HOST: &str = "portolan.test";

fn new(scene: &Scene, credential_id: &'static [u8]) -> New<'static> {
    New {
        user: scene.user,
        credential_id,
        public_key: b"key",
        host: HOST,
        name: "Blue key",
        aaguid: [0; 16],
        is_backup_eligible: false,
        is_backed_up: false,
        sign_count: 0,
    }
}

#[tokio::test]
async fn case_156_a_challenge_is_good_once_for_what_and_whom_it_was_made_and_for_five_minutes() {
    let store = Database::new().await.store(8).await;
    let scene = Scene::new(&store).await;
    let (browser, other) = (digest(), digest());
    let asked = ChallengeOf {
        purpose: PasskeyPurpose::Confirm,
        browser: &browser,
        user: Some(scene.user),
    };
    let mut challenge = digest();
    let mut tx = system(&store).await;
    passkeys::ask(&mut tx, &challenge, asked, now())
        .await
        .unwrap();
    let sign_in = ChallengeOf {
        purpose: PasskeyPurpose::SignIn,
        user: None,
        ..asked
    };
    for wrong in [
        ChallengeOf {
            browser: &other,
            ..asked
        },
        ChallengeOf {
            purpose: PasskeyPurpose::SecondFactor,
            ..asked
        },
        sign_in,
        ChallengeOf {
            user: Some(portolan_model::id::UserId::generate()),
            ..asked
        },
    ] {
        assert!(
            !passkeys::use_challenge(&mut tx, &challenge, wrong, now())
                .await
                .unwrap()
        );
    }
    let late = now() + CHALLENGE_LIFE;
    assert!(
        !passkeys::use_challenge(&mut tx, &challenge, asked, late)
            .await
            .unwrap()
    );
    assert!(
        !passkeys::use_challenge(&mut tx, &digest(), asked, now())
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();

    let late = late - Duration::SECOND;
    for round in races::rounds(
        "case_156_a_challenge_is_good_once_for_what_and_whom_it_was_made_and_for_five_minutes",
    ) {
        let tries = (0..8).map(|_| async {
            let mut tx = system(&store).await;
            let won = passkeys::use_challenge(&mut tx, &challenge, asked, late)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            won
        });
        let won = futures_util::future::join_all(tries).await;
        assert_eq!(
            won.into_iter().filter(|won| *won).count(),
            1,
            "round {round}"
        );
        challenge = digest();
        let mut tx = system(&store).await;
        passkeys::ask(&mut tx, &challenge, asked, now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn l13_of_equal_counts_at_the_same_instant_one_counts() {
    let store = Database::new().await.store(8).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let id = passkeys::add(&mut tx, &new(&scene, b"one"), now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let count = async |id: PasskeyId, count: u32| {
        let mut tx = system(&store).await;
        let counted = passkeys::used(&mut tx, id, count, false, now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        counted
    };
    assert!(
        count(id, 0).await && count(id, 0).await,
        "it does not count at all"
    );
    let mut next = 4;
    for round in races::rounds("l13_of_equal_counts_at_the_same_instant_one_counts") {
        let won = futures_util::future::join_all((0..8).map(|_| count(id, next))).await;
        assert_eq!(
            won.into_iter().filter(|won| *won).count(),
            1,
            "round {round}"
        );
        assert!(!count(id, next - 1).await && !count(id, 0).await);
        next += 1;
    }
    assert!(count(id, next).await);
}

#[tokio::test]
async fn l13_a_credential_has_one_person_and_counts_as_a_way_in() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let id = passkeys::add(&mut tx, &new(&scene, b"one"), now())
        .await
        .unwrap();
    assert_eq!(
        ways_in::of(&mut tx, scene.user, HOST)
            .await
            .unwrap()
            .passkeys,
        1
    );
    tx.commit().await.unwrap();
    let mut tx = system(&store).await;
    let again = passkeys::add(&mut tx, &new(&scene, b"one"), now()).await;
    assert!(again.unwrap_err().is_conflict_on(KNOWN));
    drop(tx);
    let mut tx = system(&store).await;
    let stranger = portolan_model::id::UserId::generate();
    assert_eq!(passkeys::remove(&mut tx, stranger, id).await.unwrap(), None);
    assert!(
        !passkeys::rename(&mut tx, stranger, id, "Mine")
            .await
            .unwrap()
    );
    let removed = passkeys::remove(&mut tx, scene.user, id).await.unwrap();
    assert_eq!(removed.as_deref(), Some("Blue key"));
}

#[tokio::test]
async fn l14_a_stricter_rule_raises_the_epoch_and_keeps_what_else_the_policy_says() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let mut steps = Vec::new();
    for rule in [
        SecondFactor::Required,
        SecondFactor::Required,
        SecondFactor::Passkey,
        SecondFactor::Off,
    ] {
        let before = factor_rules::set(&mut tx, scene.tenant, rule, now())
            .await
            .unwrap();
        assert_eq!(factor_rules::of(&mut tx, scene.tenant).await.unwrap(), rule);
        let tenant = tenants::find(&mut tx, scene.tenant).await.unwrap().unwrap();
        steps.push((before, tenant.epoch));
    }
    assert_eq!(
        steps,
        [
            (SecondFactor::Off, 1),
            (SecondFactor::Required, 1),
            (SecondFactor::Required, 2),
            (SecondFactor::Passkey, 2),
        ]
    );
    let told = revocations::live(&mut tx, None, now())
        .await
        .unwrap()
        .entries;
    assert_eq!(told.len(), 2, "the nodes hear of each stricter one");
    let ready = factor_rules::readiness(&mut tx, scene.tenant, HOST)
        .await
        .unwrap();
    assert_eq!(
        (ready.members, ready.with_any, ready.with_passkey),
        (1, 0, 0)
    );
    passkeys::add(&mut tx, &new(&scene, b"one"), now())
        .await
        .unwrap();
    let ready = factor_rules::readiness(&mut tx, scene.tenant, HOST)
        .await
        .unwrap();
    assert_eq!(
        (ready.members, ready.with_any, ready.with_passkey),
        (1, 1, 1)
    );
    for rule in [SecondFactor::Required, SecondFactor::Passkey] {
        assert!(
            factor_rules::can_meet(&mut tx, scene.user, rule, HOST)
                .await
                .unwrap()
        );
    }
}
