//! Clients that loop, and what a page of the flight recorder reads (AUTH-X2).

use futures_util::future::join_all;
use portolan_model::{
    Timestamp,
    id::{GrantId, RequestId},
};
use portolan_storage::platform::{
    connect_events::{self, NewEvent, RecordedStep, Repeat, Step, StepOutcome, StepTenant, Which},
    recorder::bare,
};
use time::Duration;

use crate::{
    database::Database,
    scene::{Scene, now, system},
};

fn at(second: i64) -> Timestamp {
    now() + Duration::seconds(second)
}

fn step(scene: &Scene, second: i64, step: Step) -> NewEvent {
    let block = "192.0.2.0/24".to_owned();
    let mut event = bare(at(second), step, "1", block, Some("app/1"));
    event.place = StepTenant::Tenant(scene.tenant);
    event
}

#[tokio::test]
async fn x2_a_refusal_that_a_client_repeats_is_one_step_with_a_count() {
    let database = Database::new().await;
    let store = database.store(8).await;
    let scene = Scene::new(&store).await;
    let grant = GrantId::generate();
    let refused = |second: i64, fault: &str| {
        let mut event = step(&scene, second, Step::Refresh);
        event.outcome = StepOutcome::Refused;
        event.rule = Some("K9");
        event.fault = Some(fault.to_owned());
        event.grant = Some(grant);
        event
    };
    // Several processes at once, three rounds in each batch.
    let (store, refused) = (&store, &refused);
    join_all((0..10).map(|process| async move {
        let batch: Vec<NewEvent> = (0..3)
            .map(|round| refused(process * 10 + round, "the token was revoked"))
            .collect();
        let mut tx = system(store).await;
        connect_events::insert_many(&mut tx, &batch).await.unwrap();
        tx.commit().await.unwrap();
    }))
    .await;
    let mut tx = system(store).await;
    let batch = [
        refused(200, "the person was locked"),
        refused(201, "the token was revoked"),
    ];
    connect_events::insert_many(&mut tx, &batch).await.unwrap();
    let counts = |events: &[RecordedStep]| -> Vec<(Option<String>, i32, Option<Timestamp>)> {
        let mut all: Vec<_> = events
            .iter()
            .map(|event| (event.fault.clone(), event.repeats, event.last_at))
            .collect();
        all.sort();
        all
    };
    let fault = |text: &str| Some(text.to_owned());
    let read = connect_events::list(&mut tx, Which::default(), 100)
        .await
        .unwrap();
    assert_eq!(
        counts(&read.events),
        [
            (fault("the person was locked"), 0, None),
            (fault("the token was revoked"), 30, Some(at(201))),
        ]
    );

    // Repeats counted only in memory are added; a repeat without a recorded step is returned.
    let mut again = Repeat::of(&refused(300, "the token was revoked")).unwrap();
    again.add(4, at(290));
    let unheard = Repeat::of(&refused(300, "unheard")).unwrap();
    let gone = connect_events::repeated(&mut tx, &[again, unheard.clone()])
        .await
        .unwrap();
    assert_eq!(gone, [unheard]);
    let read = connect_events::list(&mut tx, Which::default(), 100)
        .await
        .unwrap();
    assert_eq!(
        counts(&read.events)[1],
        (fault("the token was revoked"), 35, Some(at(300)))
    );
}

#[tokio::test]
async fn x2_a_page_has_every_step_of_what_it_shows_and_says_from_when_on_it_has_all() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let scene = Scene::new(&store).await;
    let (request, grant) = (RequestId::generate(), GrantId::generate());
    let mut events: Vec<NewEvent> = (100..110)
        .map(|second| step(&scene, second, Step::Challenge))
        .collect();
    for (second, kind) in [
        (0, Step::Authorize),
        (1, Step::Consent),
        (2, Step::Token),
        (5_000, Step::Refresh),
    ] {
        let mut event = step(&scene, second, kind);
        event.authorization = (second < 2).then_some(request);
        event.grant = (second > 0).then_some(grant);
        events.push(event);
    }
    let mut tx = system(&store).await;
    connect_events::insert_many(&mut tx, &events).await.unwrap();
    for tenant in [Some(scene.tenant), None] {
        let mut read = async |before: Option<i64>, limit: i64| {
            let which = Which {
                tenant,
                before: before.map(at),
                ..Which::default()
            };
            let read = connect_events::list(&mut tx, which, limit).await.unwrap();
            let seconds: Vec<i64> = read
                .events
                .iter()
                .map(|event| (event.at - now()).whole_seconds())
                .collect();
            (seconds, read.since)
        };
        assert_eq!(
            read(None, 5).await,
            (vec![0, 1, 2, 106, 107, 108, 109, 5_000], Some(at(105)))
        );
        // With the beginning of what came after it: an attempt may go on.
        assert_eq!(
            read(Some(104), 3).await,
            ((102..=107).collect(), Some(at(101)))
        );
        assert_eq!(
            read(Some(2), 3).await,
            (vec![0, 1, 2, 100, 101, 102, 5_000], None)
        );
    }
}
