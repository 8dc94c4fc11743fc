//! Logs of request streams: writes, fences, numbers, messages, ends (STREAM-7, STREAM-11).

use bytes::Bytes;
use portolan_cluster::store::{
    Append, Appended, Bounds, Class, Create, Epoch, Event, INLINE, MOST_SEQ, NewEvent, NodeMessage,
    Read, ReadWanted, Registered, StreamState,
};

use crate::fixture::{Ground, names::*};

super::cases![
    events_are_numbered_densely_from_one,
    open_is_no_way_to_end,
    a_stream_is_made_only_when_told,
    a_repeated_append_is_recognised_and_not_applied,
    a_writer_that_knows_more_than_the_store_learns_what_the_store_has,
    a_lost_stream_is_made_again_from_the_ring,
    a_foreign_writer_is_fenced,
    an_ended_stream_takes_nothing_more,
    closing_removes_the_running_request_and_the_open_stream,
    payloads_and_names_hold_any_bytes,
    the_attached_node_is_rung_and_the_writer_is_not,
    large_and_many_events_ring_without_payload,
    a_closed_log_is_kept_for_its_time with short_lives,
    an_open_log_outlives_its_deadline_by_the_grace with short_lives,
    a_read_tells_what_changed_and_no_more,
    a_read_of_a_superseded_connection_holds_no_events,
    numbers_are_exact_up_to_the_highest,
    streams_of_other_sessions_and_names_stay_apart,
];

fn short_lives() -> Bounds {
    Bounds {
        closed_for: ms(1000),
        open_grace: ms(1000),
        ..Bounds::default()
    }
}

async fn events_are_numbered_densely_from_one(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 2).await;
    let more = vec![note("3"), event(Class::Answer, "4"), note("5")];
    assert_eq!(
        store.append(key, &append(2, more)).await,
        Ok(done(5, Some(A), 1))
    );
    assert_eq!(
        store.append(key, &append(5, Vec::new())).await,
        Ok(done(5, Some(A), 1)),
        "nothing is something"
    );
    let view = look(store, key).await;
    let payloads: Vec<_> = view.events.iter().map(|event| &event.payload[..]).collect();
    assert_eq!(payloads, [b"1", b"2", b"3", b"4", b"5"]);
    assert_eq!(seqs(&view.events), [1, 2, 3, 4, 5]);
    assert_eq!((view.tail, view.dropped, view.more), (5, 0, false));
    assert_eq!((view.owner, view.epoch), (Some(A), Epoch::FIRST));
    assert!(view.epochs.is_empty());
    assert!(view.deadline_in <= MINUTE && view.deadline_in > MINUTE / 2);
}

async fn open_is_no_way_to_end(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let not_closing = Append {
        close: Some(StreamState::Open),
        ..opening(vec![note("1")])
    };
    assert_eq!(
        store.append(key, &not_closing).await,
        Ok(done(1, Some(A), 1))
    );
    assert_eq!(store.owned_by(S.partition(), Some(A)).await, Ok(vec![key]));
    let more = store.append(key, &append(1, vec![note("2")])).await;
    assert_eq!(more, Ok(done(2, Some(A), 1)));
}

async fn a_stream_is_made_only_when_told(ground: &Ground) {
    let store = &*ground.store;
    assert_eq!(
        store.append(stream(1), &append(0, vec![note("1")])).await,
        Ok(Appended::Gone)
    );
    open(store, stream(1), 0).await;
    assert_eq!(
        store.append(stream(1), &opening(vec![note("1")])).await,
        Ok(done(1, Some(A), 1)),
        "made again is not made twice"
    );
}

/// STREAM-7: `TAIL t == expect + n`.
async fn a_repeated_append_is_recognised_and_not_applied(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let first = opening(vec![note("1"), note("2")]);
    store.append(key, &first).await.expect("written");
    let tail = |tail, state| Ok(Appended::Tail { tail, state });
    assert_eq!(store.append(key, &first).await, tail(2, StreamState::Open));
    let last = closing(2, vec![event(Class::Final, "3")]);
    store.append(key, &last).await.expect("written");
    assert_eq!(store.append(key, &last).await, tail(3, StreamState::Closed));
    let bare = closing(3, Vec::new());
    assert_eq!(
        store.append(key, &bare).await,
        Ok(Appended::Closed {
            state: StreamState::Closed,
            tail: 3
        })
    );
    assert_eq!(seqs(&look(store, key).await.events), [1, 2, 3]);
}

/// STREAM-7, and found in an earlier draft (1): the audit after a roll-back relies on this reply.
async fn a_writer_that_knows_more_than_the_store_learns_what_the_store_has(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 3).await;
    assert_eq!(
        store.append(key, &append(7, vec![note("8")])).await,
        Ok(Appended::Tail {
            tail: 3,
            state: StreamState::Open
        })
    );
    let again: Vec<_> = (4..=8).map(|n| note(&n.to_string())).collect();
    assert_eq!(
        store.append(key, &append(3, again)).await,
        Ok(done(8, Some(A), 1))
    );
}

async fn a_lost_stream_is_made_again_from_the_ring(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let again = Append {
        epoch: epoch(3, 0xbeef),
        create: Some(Create {
            start: 40,
            ..create()
        }),
        ..append(40, vec![note("41"), note("42")])
    };
    assert_eq!(store.append(key, &again).await, Ok(done(42, Some(A), 1)));
    let view = look(store, key).await;
    assert_eq!(seqs(&view.events), [41, 42]);
    assert_eq!(view.dropped, 40, "what lies below is a hole, and says so");
    assert_eq!(view.epoch, epoch(3, 0xbeef));
    assert_eq!(view.epochs, [(40, epoch(3, 0xbeef))]);
}

/// Found in an earlier draft (6): the name alone does not fence a node that takes over twice.
async fn a_foreign_writer_is_fenced(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 1).await;
    let mine = append(1, vec![note("2")]);
    let cases = [
        ("another node", B, Epoch::FIRST),
        ("another number", A, epoch(2, 0)),
        ("another nonce", A, epoch(1, 1)),
    ];
    for (case, owner, epoch) in cases {
        let foreign = Append {
            owner,
            epoch,
            close: Some(StreamState::Closed),
            ..mine.clone()
        };
        assert_eq!(
            store.append(key, &foreign).await,
            Ok(Appended::Fenced),
            "{case}"
        );
        let making = Append {
            create: Some(create()),
            ..foreign
        };
        assert_eq!(
            store.append(key, &making).await,
            Ok(Appended::Fenced),
            "{case}"
        );
    }
    assert_eq!(look(store, key).await.tail, 1);
    let (_, second) = taken_over(store, &take_over(key, Some(A), Some(A), 7)).await;
    assert_eq!(
        store.append(key, &mine).await,
        Ok(Appended::Fenced),
        "its former self"
    );
    let now = Append {
        epoch: second,
        ..mine
    };
    assert_eq!(store.append(key, &now).await, Ok(done(2, Some(A), 1)));
}

async fn an_ended_stream_takes_nothing_more(ground: &Ground) {
    let store = &*ground.store;
    for (n, state) in [(1, StreamState::Closed), (2, StreamState::Cancelled)] {
        let key = stream(n);
        open(store, key, 1).await;
        let close = Append {
            close: Some(state),
            ..append(1, Vec::new())
        };
        assert_eq!(store.append(key, &close).await, Ok(done(1, Some(A), 1)));
        let over = Ok(Appended::Closed { state, tail: 1 });
        assert_eq!(store.append(key, &append(1, vec![note("2")])).await, over);
        assert_eq!(
            store.append(key, &append(0, vec![note("2")])).await,
            Ok(Appended::Tail { tail: 1, state })
        );
        assert_eq!(look(store, key).await.state, state);
    }
}

async fn closing_removes_the_running_request_and_the_open_stream(ground: &Ground) {
    let store = &*ground.store;
    let bounds = Bounds::default();
    let key = stream(1);
    open(store, key, 0).await;
    for n in 0..bounds.running {
        let rpc = format!("i:{}", n + 1);
        let registered = store.register(S, &rpc, A, Some(key.nonce), MINUTE).await;
        assert_eq!(registered, Ok(Registered::Done));
    }
    let full = store.register(S, "i:999", A, None, MINUTE).await;
    assert_eq!(full, Ok(Registered::Full));
    assert_eq!(store.owned_by(S.partition(), Some(A)).await, Ok(vec![key]));
    store
        .append(key, &closing(0, vec![event(Class::Final, "f")]))
        .await
        .expect("closed");
    assert_eq!(store.owned_by(S.partition(), Some(A)).await, Ok(Vec::new()));
    let room = store.register(S, "i:999", A, None, MINUTE).await;
    assert_eq!(
        room,
        Ok(Registered::Done),
        "the entry i:1 went with the stream"
    );
}

async fn payloads_and_names_hold_any_bytes(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut messages = store.subscribe(B).await.expect("heard");
    open(store, key, 0).await;
    attach(store, key, START, B).await;
    let payloads: [&[u8]; 6] = [
        b"",
        b"\0",
        b"1|N|2",
        b"\r\n$5\r\n*1\r\n",
        b"\xff\xfe\x80",
        b"id: 1\n\ndata: \xe2\x80\xa8",
    ];
    for (n, payload) in payloads.into_iter().enumerate() {
        let one = NewEvent {
            class: Class::Question,
            question: Some(format!("q|\0-=:{n}é\n")),
            payload: Bytes::from_static(payload),
        };
        let written = store.append(key, &append(n as u64, vec![one])).await;
        assert_eq!(written, Ok(done(n as u64 + 1, Some(B), 2)));
        let NodeMessage::Appended { event, .. } = heard(&mut messages).await else {
            panic!("another doorbell")
        };
        assert_eq!(
            event.map(|event| event.payload),
            Some(Bytes::from_static(payload))
        );
    }
    let every: Bytes = (0..=255).cycle().take(300_000).collect::<Vec<u8>>().into();
    let one = vec![event(Class::Final, every.clone())];
    store.append(key, &append(6, one)).await.expect("written");
    let view = look(store, key).await;
    for (event, payload) in view.events.iter().zip(payloads) {
        assert_eq!(event.payload, payload, "{}", event.seq);
    }
    assert_eq!(view.events[6].payload, every);
    assert_eq!(view.events[6].class, Class::Final);
}

async fn the_attached_node_is_rung_and_the_writer_is_not(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut writer = store.subscribe(A).await.expect("heard");
    let mut reader = store.subscribe(B).await.expect("heard");
    open(store, key, 1).await;
    attach(store, key, START, B).await;
    assert_eq!(
        heard(&mut writer).await,
        NodeMessage::Superseded {
            stream: key,
            generation: 1
        }
    );
    store
        .append(key, &closing(1, vec![event(Class::Final, "f")]))
        .await
        .expect("written");
    assert_eq!(
        heard(&mut reader).await,
        NodeMessage::Appended {
            stream: key,
            generation: 2,
            epoch: Epoch::FIRST,
            tail: 2,
            state: StreamState::Closed,
            event: Some(Event {
                seq: 2,
                class: Class::Final,
                payload: Bytes::from_static(b"f"),
            }),
        }
    );
    nothing_else(store, &mut writer, A).await;
    nothing_else(store, &mut reader, B).await;
}

async fn large_and_many_events_ring_without_payload(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut reader = store.subscribe(B).await.expect("heard");
    open(store, key, 0).await;
    attach(store, key, START, B).await;
    let cases = [
        ("just fits", vec![note(&"x".repeat(INLINE))], 1, true),
        ("too large", vec![note(&"x".repeat(INLINE + 1))], 2, false),
        ("two", vec![note("a"), note("b")], 4, false),
        ("none", Vec::new(), 4, false),
    ];
    let mut expect = 0;
    for (case, events, tail, inlined) in cases {
        store
            .append(key, &append(expect, events))
            .await
            .expect("written");
        expect = tail;
        let NodeMessage::Appended {
            event, tail: told, ..
        } = heard(&mut reader).await
        else {
            panic!("{case}")
        };
        assert_eq!((event.is_some(), told), (inlined, tail), "{case}");
    }
}

async fn a_closed_log_is_kept_for_its_time(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 1).await;
    store
        .append(key, &closing(1, vec![event(Class::Final, "f")]))
        .await
        .expect("closed");
    ground.pass(ms(100)).await;
    assert_eq!(seqs(&look(store, key).await.events), [1, 2]);
    ground.pass(ms(1000)).await;
    let gone = store.append(key, &append(2, vec![note("3")])).await;
    assert_eq!(gone, Ok(Appended::Gone));
}

async fn an_open_log_outlives_its_deadline_by_the_grace(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut first = opening(vec![note("1")]);
    first.create.as_mut().expect("some").deadline_in = ms(200);
    store.append(key, &first).await.expect("made");
    ground.pass(ms(300)).await;
    let view = look(store, key).await;
    assert_eq!((view.deadline_in, view.state), (ms(0), StreamState::Open));
    assert_eq!(seqs(&view.events), [1]);
    assert_eq!(
        store.append(key, &append(1, vec![note("2")])).await,
        Ok(done(2, Some(A), 1)),
        "an append does not prolong it"
    );
    ground.pass(ms(1000)).await;
    let gone = store.append(key, &append(2, vec![note("3")])).await;
    assert_eq!(gone, Ok(Appended::Gone));
    assert_eq!(store.owned_by(S.partition(), Some(A)).await, Ok(Vec::new()));
}

async fn a_read_tells_what_changed_and_no_more(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 3).await;
    let partition = S.partition();
    let wanted = |stream, position, seen| ReadWanted {
        stream,
        generation: 1,
        position,
        seen,
    };
    let seen = (Some(A), Epoch::FIRST);
    let answers = store
        .read(
            partition,
            &[
                wanted(key, 3, seen),
                wanted(stream(2), 0, seen),
                wanted(key, 1, seen),
                wanted(key, 3, (Some(B), Epoch::FIRST)),
                wanted(key, 3, (None, Epoch::FIRST)),
                wanted(key, 3, (Some(A), epoch(1, 1))),
                wanted(key, 9, seen),
            ],
        )
        .await
        .expect("read");
    assert_eq!(answers.len(), 7);
    assert_eq!(answers[0], Read::Unchanged);
    assert_eq!(answers[1], Read::Gone);
    let Read::View(view, attached) = &answers[2] else {
        panic!("{:?}", answers[2])
    };
    assert_eq!((seqs(&view.events), *attached), (vec![2, 3], Some(A)));
    for (n, answer) in answers.iter().enumerate().skip(3) {
        let Read::View(view, _) = answer else {
            panic!("{n}: {answer:?}")
        };
        assert_eq!((view.tail, view.events.len()), (3, 0), "{n}");
    }
    store
        .append(key, &closing(3, Vec::new()))
        .await
        .expect("closed");
    let answers = store
        .read(partition, &[wanted(key, 3, seen)])
        .await
        .expect("read");
    assert!(
        matches!(&answers[..], [Read::View(view, _)] if view.state == StreamState::Closed),
        "an end is a change"
    );
    assert_eq!(store.read(partition, &[]).await, Ok(Vec::new()));
}

/// STREAM-11 *Across connections*: only the newest generation receives events.
async fn a_read_of_a_superseded_connection_holds_no_events(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 3).await;
    attach(store, key, START, B).await;
    for generation in [1, 3] {
        let wanted = ReadWanted {
            stream: key,
            generation,
            position: 0,
            seen: (Some(A), Epoch::FIRST),
        };
        let answers = store.read(S.partition(), &[wanted]).await.expect("read");
        assert!(
            matches!(&answers[..], [Read::View(view, Some(B))] if view.events.is_empty() && view.generation == 2),
            "{generation}: {answers:?}"
        );
    }
}

async fn numbers_are_exact_up_to_the_highest(ground: &Ground) {
    let store = &*ground.store;
    for (n, start) in [(1, 99_999_999_999_999), (2, MOST_SEQ - 3)] {
        let key = stream(n);
        let high = Append {
            create: Some(Create { start, ..create() }),
            ..append(start, vec![note("a"), note("b")])
        };
        assert_eq!(
            store.append(key, &high).await,
            Ok(done(start + 2, Some(A), 1))
        );
        let (view, position, _) = attach(store, key, cursor(start + 1, Epoch::FIRST), A).await;
        assert_eq!((seqs(&view.events), position), (vec![start + 2], start + 1));
        let (view, position, _) = attach(store, key, cursor(u64::MAX, Epoch::FIRST), A).await;
        assert_eq!(
            (view.events.len(), position),
            (0, MOST_SEQ),
            "absurd cursors do no harm"
        );
        assert_eq!(look(store, key).await.dropped, start);
    }
}

/// TEST-C1, TEST-S3: streams are isolated from each other.
async fn streams_of_other_sessions_and_names_stay_apart(ground: &Ground) {
    let store = &*ground.store;
    let mut other = stream(1);
    other.session.0[15] ^= 1;
    let keys = [stream(1), stream(2), other];
    for (n, key) in keys.iter().enumerate() {
        store
            .append(*key, &opening(vec![note(&format!("of {n}"))]))
            .await
            .expect("made");
    }
    for (n, key) in keys.iter().enumerate() {
        let view = look(store, *key).await;
        assert_eq!(view.events.len(), 1);
        assert_eq!(view.events[0].payload, format!("of {n}"));
    }
    store
        .remove(other.session, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    assert_eq!(look(store, stream(1)).await.tail, 1);
}
