//! Number of session records per principal (STREAM-10).

use portolan_cluster::store::{Begin, Bounds, FORGET_AT_ONCE, SessionKey};

use crate::fixture::{Ground, names::*};

super::cases![
    the_oldest_are_named_until_they_are_gone,
    who_comes_again_is_the_newest,
    an_idle_record_goes_and_one_in_use_stays with short_idle,
    nobody_forgets_what_is_not_theirs_or_what_was_ended,
];

fn short_idle() -> Bounds {
    Bounds {
        idle: ms(4_000),
        ..Bounds::default()
    }
}

fn session(number: u8) -> SessionKey {
    SessionKey([number; 16])
}

/// Added one after the other, at different times of the store's clock.
async fn note(ground: &Ground, number: u8, most: usize) -> Vec<SessionKey> {
    ground.pass(ms(2)).await;
    let noted = ground.store.remember(session(number), ME, most, &[]);
    noted.await.expect("noted")
}

async fn the_oldest_are_named_until_they_are_gone(ground: &Ground) {
    for number in 1..=3 {
        assert_eq!(note(ground, number, 3).await, []);
    }
    assert_eq!(note(ground, 4, 3).await, [session(1)]);
    assert_eq!(note(ground, 5, 3).await, [session(1), session(2)]);
    let gone = [session(1), session(2)];
    let strike = ground.store.remember(session(5), ME, 3, &gone).await;
    assert_eq!(strike, Ok(Vec::new()));
    assert_eq!(note(ground, 6, 2).await, [session(3), session(4)]);
    let other = ground.store.remember(session(7), OTHER, 1, &[]).await;
    assert_eq!(
        other,
        Ok(Vec::new()),
        "another principal's are counted apart"
    );
    for number in 10..=40 {
        note(ground, number, 100).await;
    }
    assert_eq!(note(ground, 41, 1).await.len(), FORGET_AT_ONCE);
}

async fn who_comes_again_is_the_newest(ground: &Ground) {
    for number in [1, 2, 1] {
        assert_eq!(note(ground, number, 2).await, []);
    }
    assert_eq!(note(ground, 3, 2).await, [session(2)]);
}

async fn an_idle_record_goes_and_one_in_use_stays(ground: &Ground) {
    let store = &*ground.store;
    begun(store).await;
    assert_eq!(
        store.remove(S, ME, Remove::Unused(ms(1_000))).await,
        Ok(false),
        "in use"
    );
    ground.pass(ms(1_500)).await;
    assert_eq!(
        store.remove(S, ME, Remove::Unused(ms(2_500))).await,
        Ok(false),
        "too soon"
    );
    assert_eq!(
        store.remove(S, ME, Remove::Unused(ms(1_000))).await,
        Ok(true)
    );
    assert_eq!(
        store.remove(S, ME, Remove::Unused(ms(1_000))).await,
        Ok(true),
        "again"
    );
    let again = store.begin(S, ME, None, &fresh("anew")).await;
    assert!(matches!(again, Ok(Begin::Rebuilt { .. })), "{again:?}");
}

async fn nobody_forgets_what_is_not_theirs_or_what_was_ended(ground: &Ground) {
    let store = &*ground.store;
    begun(store).await;
    assert_eq!(
        store.remove(S, OTHER, Remove::Unused(ms(0))).await,
        Ok(false)
    );
    store
        .remove(S, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    assert_eq!(store.remove(S, ME, Remove::Unused(ms(0))).await, Ok(false));
    let again = store.begin(S, ME, None, &fresh("anew")).await;
    assert_eq!(again, Ok(Begin::Unknown), "it stays ended");
}
