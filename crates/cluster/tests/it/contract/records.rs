//! Records: created once, changed by compare and swap, bounded, and expired in time (MCP-TK-15,
//! MCP-TK-16, MCP-TX-5).

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::store::{
    Nonce, PutRecord, Record, RecordBounds, RecordPut, SessionKey, Store, StreamKey, Version,
};

use crate::fixture::{Ground, names::*};

super::cases![
    a_thing_is_made_once_and_found_with_its_rest,
    a_change_is_a_compare_and_swap,
    the_same_bytes_once_more_are_the_same,
    a_shelf_lists_its_own_things_and_no_others,
    a_shelf_holds_so_many_things_and_so_many_bytes,
    heads_and_rests_hold_any_bytes,
    what_is_over_is_gone_and_makes_room_in_time,
    a_change_does_not_prolong_a_life,
];

const ROOM: RecordBounds = RecordBounds {
    items: 3,
    bytes: 1000,
};

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn make(head: &str, rest: &str) -> PutRecord {
    PutRecord {
        expect: None,
        life: MINUTE,
        head: bytes(head),
        rest: Some(bytes(rest)),
        room: ROOM,
    }
}

fn change(expect: Version, head: &str, rest: Option<&str>) -> PutRecord {
    PutRecord {
        expect: Some(expect),
        rest: rest.map(bytes),
        ..make(head, "")
    }
}

async fn done(store: &dyn Store, item: StreamKey, put_record: &PutRecord) -> Version {
    match store.put_record(item, put_record).await {
        Ok(RecordPut::Done(version)) => version,
        other => panic!("not done: {other:?}"),
    }
}

async fn found(store: &dyn Store, item: StreamKey) -> (Version, Bytes, Bytes) {
    let kept = store.records(item.session, Some(item.nonce)).await;
    let [kept] = &kept.expect("answered")[..] else {
        panic!("not one record")
    };
    assert_eq!(kept.nonce, item.nonce);
    assert!(kept.left > ms(0) && kept.left <= MINUTE, "{kept:?}");
    (kept.version, kept.head.clone(), kept.rest.clone())
}

async fn is_missing(store: &dyn Store, item: StreamKey) {
    let kept = store.records(item.session, Some(item.nonce)).await;
    assert_eq!(kept, Ok(Vec::new()));
}

async fn listed(store: &dyn Store, shelf: SessionKey) -> Vec<(Nonce, Bytes)> {
    let items = store.records(shelf, None).await.expect("answered");
    assert!(items.iter().all(|item| item.left > ms(0)));
    let mut items: Vec<_> = items
        .into_iter()
        .map(|item| (item.nonce, item.head))
        .collect();
    items.sort_by_key(|(nonce, _)| nonce.0);
    items
}

async fn a_thing_is_made_once_and_found_with_its_rest(ground: &Ground) {
    let store = &*ground.store;
    is_missing(store, stream(1)).await;
    let version = done(store, stream(1), &make("head", "rest")).await;
    assert_eq!(
        found(store, stream(1)).await,
        (version, bytes("head"), bytes("rest"))
    );
    let other = store.put_record(stream(1), &make("other", "")).await;
    assert!(
        matches!(&other, Ok(RecordPut::Conflict(Record { head, rest, .. })) if head == "head" && rest == "rest"),
        "what is there is not replaced: {other:?}"
    );
    is_missing(store, stream(2)).await;
}

async fn a_change_is_a_compare_and_swap(ground: &Ground) {
    let store = &*ground.store;
    assert_eq!(
        store
            .put_record(stream(1), &change(Version(7), "x", None))
            .await,
        Ok(RecordPut::Unknown)
    );
    let first = done(store, stream(1), &make("one", "rest")).await;
    let second = done(store, stream(1), &change(first, "two", None)).await;
    assert_eq!(
        found(store, stream(1)).await,
        (second, bytes("two"), bytes("rest")),
        "the rest stays as it is"
    );
    let late = store
        .put_record(stream(1), &change(first, "late", Some("late")))
        .await;
    assert!(
        matches!(&late, Ok(RecordPut::Conflict(kept)) if kept.version == second && kept.head == "two" && kept.rest == "rest"),
        "{late:?}"
    );
    let third = done(store, stream(1), &change(second, "three", Some("more"))).await;
    assert_eq!(
        found(store, stream(1)).await,
        (third, bytes("three"), bytes("more"))
    );
}

/// A reply may be lost.
async fn the_same_bytes_once_more_are_the_same(ground: &Ground) {
    let store = &*ground.store;
    let first = done(store, stream(1), &make("one", "")).await;
    assert_eq!(done(store, stream(1), &make("one", "")).await, first);
    let second = done(store, stream(1), &change(first, "two", Some("r"))).await;
    assert_eq!(
        done(store, stream(1), &change(first, "two", Some("r"))).await,
        second
    );
}

async fn a_shelf_lists_its_own_things_and_no_others(ground: &Ground) {
    let store = &*ground.store;
    assert_eq!(listed(store, S).await, []);
    done(store, stream(1), &make("one", "rest")).await;
    done(store, stream(2), &make("two", "rest")).await;
    let elsewhere = StreamKey {
        session: SessionKey(*b"\x5ea-neighbour-her"),
        nonce: Nonce([1; 8]),
    };
    done(store, elsewhere, &make("theirs", "")).await;
    assert_eq!(
        listed(store, S).await,
        [(Nonce([1; 8]), bytes("one")), (Nonce([2; 8]), bytes("two"))]
    );
}

/// MCP-TK-16: a list has a maximum number of records and of bytes.
async fn a_shelf_holds_so_many_things_and_so_many_bytes(ground: &Ground) {
    let store = &*ground.store;
    let first = done(store, stream(1), &make("1", "")).await;
    done(store, stream(2), &make("2", &"r".repeat(600))).await;
    assert_eq!(
        store
            .put_record(stream(3), &make("3", &"r".repeat(600)))
            .await,
        Ok(RecordPut::Full),
        "of bytes"
    );
    done(store, stream(3), &make("3", &"r".repeat(100))).await;
    assert_eq!(
        store.put_record(stream(4), &make("4", "")).await,
        Ok(RecordPut::Full),
        "of things"
    );
    let large = "r".repeat(500);
    assert_eq!(
        store
            .put_record(stream(1), &change(first, "1", Some(&large)))
            .await,
        Ok(RecordPut::Full),
        "a change counts too"
    );
    assert_eq!(
        found(store, stream(1)).await,
        (first, bytes("1"), bytes(""))
    );
    done(store, stream(1), &change(first, "1 ended", None)).await;
}

async fn heads_and_rests_hold_any_bytes(ground: &Ground) {
    let store = &*ground.store;
    let any: Bytes = (0..=255).collect::<Vec<u8>>().into();
    let put_record = PutRecord {
        head: any.clone(),
        rest: Some(any.clone()),
        ..make("", "")
    };
    let version = done(store, stream(1), &put_record).await;
    assert_eq!(
        found(store, stream(1)).await,
        (version, any.clone(), any.clone())
    );
    assert_eq!(listed(store, S).await, [(stream(1).nonce, any)]);
}

/// MCP-TK-15: an expired record is gone, and frees its space.
async fn what_is_over_is_gone_and_makes_room_in_time(ground: &Ground) {
    let store = &*ground.store;
    let short = PutRecord {
        life: ms(900),
        ..make("short", "rest")
    };
    let version = done(store, stream(1), &short).await;
    done(store, stream(2), &make("2", "")).await;
    done(store, stream(3), &make("3", "")).await;
    ground.pass(Duration::from_secs(1)).await;
    is_missing(store, stream(1)).await;
    assert_eq!(listed(store, S).await.len(), 2);
    assert_eq!(
        store
            .put_record(stream(1), &change(version, "late", None))
            .await,
        Ok(RecordPut::Unknown)
    );
    done(store, stream(4), &make("4", "")).await;
}

async fn a_change_does_not_prolong_a_life(ground: &Ground) {
    let store = &*ground.store;
    let short = PutRecord {
        life: ms(900),
        ..make("short", "")
    };
    let version = done(store, stream(1), &short).await;
    done(store, stream(1), &change(version, "changed", Some("x"))).await;
    ground.pass(Duration::from_secs(1)).await;
    is_missing(store, stream(1)).await;
}
