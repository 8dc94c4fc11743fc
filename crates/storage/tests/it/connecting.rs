//! The records of connecting clients, and the claims on their documents (AUTH-X2, AUTH-C2,
//! CASE-85).

use std::time::Duration;

use futures_util::future::join_all;
use portolan_model::{
    Digest,
    id::{GrantId, RequestId},
};
use portolan_storage::{
    oauth::client_fetches,
    platform::{
        connect_events::{self, NewEvent, Step, StepOutcome, StepTenant, Which},
        recorder::bare,
    },
};
use uuid::Uuid;

use crate::{
    database::Database,
    races,
    scene::{Scene, now, system},
};

#[tokio::test]
async fn case_85_of_many_who_want_to_fetch_at_once_one_does_and_a_dead_one_is_replaced() {
    let database = Database::new().await;
    let store = database.store(8).await;
    let within = Duration::from_secs(30);
    let mut last = None;
    for round in races::rounds(
        "case_85_of_many_who_want_to_fetch_at_once_one_does_and_a_dead_one_is_replaced",
    ) {
        let url = format!("https://app.example/{round}.json");
        let tries = join_all((0..races::crowd(round, 20)).map(|_| async {
            let holder = Uuid::now_v7();
            let mut tx = system(&store).await;
            let is_ours = client_fetches::claim(&mut tx, &url, holder, within)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            (holder, is_ours)
        }))
        .await;
        let winners: Vec<Uuid> = tries
            .iter()
            .filter(|(_, is_ours)| *is_ours)
            .map(|(holder, _)| *holder)
            .collect();
        assert_eq!(winners.len(), 1, "round {round}");
        last = Some((url, winners[0]));
    }

    // A loser's release frees nothing; the winner's release does, and the next claim succeeds.
    let (url, winner) = last.unwrap();
    let url = url.as_str();
    let stranger = Uuid::now_v7();
    let mut tx = system(&store).await;
    client_fetches::release(&mut tx, url, stranger)
        .await
        .unwrap();
    assert!(
        !client_fetches::claim(&mut tx, url, stranger, within)
            .await
            .unwrap()
    );
    client_fetches::release(&mut tx, url, winner).await.unwrap();
    assert!(
        client_fetches::claim(&mut tx, url, stranger, Duration::ZERO)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    // Its time was over as soon as it began.
    let mut tx = system(&store).await;
    assert!(
        client_fetches::claim(&mut tx, url, Uuid::now_v7(), within)
            .await
            .unwrap()
    );
}

fn step(step: Step, agent: &str, place: StepTenant) -> NewEvent {
    let mut event = bare(now(), step, "1", "192.0.2.0/24".to_owned(), Some(agent));
    event.place = place;
    event
}

#[tokio::test]
async fn x2_steps_find_their_tenant_and_those_without_one_are_shown_only_if_they_cannot_be_anothers()
 {
    let database = Database::new().await;
    let store = database.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let beta = portolan_storage::platform::tenants::create(
        &mut tx,
        "Beta",
        &"beta".parse().unwrap(),
        scene.user,
        now(),
    )
    .await
    .unwrap()
    .id;
    let request = RequestId::generate();
    let mut nameless = step(Step::Authorize, "browser", StepTenant::Unknown);
    nameless.authorization = Some(request);
    let mut decided = step(Step::Consent, "browser", StepTenant::Tenant(scene.tenant));
    decided.authorization = Some(request);
    let mut late = step(Step::ServerMetadata, "hers/1", StepTenant::Unknown);
    late.at = now() - connect_events::TOGETHER - time::Duration::SECOND;
    let events = [
        step(
            Step::Challenge,
            "hers/1",
            StepTenant::Slug("acme".to_owned()),
        ),
        step(
            Step::Challenge,
            "x/1",
            StepTenant::Slug("nobodys".to_owned()),
        ),
        step(Step::ServerMetadata, "hers/1", StepTenant::Unknown),
        late,
        step(
            Step::Challenge,
            "shared/1",
            StepTenant::Slug("acme".to_owned()),
        ),
        step(
            Step::Challenge,
            "shared/1",
            StepTenant::Slug("beta".to_owned()),
        ),
        step(Step::Register, "shared/1", StepTenant::Unknown),
        step(Step::Register, "strange/1", StepTenant::Unknown),
        nameless,
        decided,
    ];
    connect_events::insert_many(&mut tx, &events).await.unwrap();
    let mut seen = async |tenant| -> Vec<(Step, Option<String>)> {
        let which = Which {
            tenant,
            ..Which::default()
        };
        let read = connect_events::list(&mut tx, which, 100).await.unwrap();
        read.events
            .into_iter()
            .map(|event| (event.step, event.agent))
            .collect()
    };
    let agent = |text: &str| Some(text.to_owned());
    let mut of_acme = seen(Some(scene.tenant)).await;
    of_acme.sort();
    assert_eq!(
        of_acme,
        [
            (Step::Challenge, agent("hers/1")),
            (Step::Challenge, agent("shared/1")),
            (Step::ServerMetadata, agent("hers/1")),
            (Step::Authorize, agent("browser")),
            (Step::Consent, agent("browser")),
        ]
    );
    assert_eq!(
        seen(Some(beta)).await,
        [(Step::Challenge, agent("shared/1"))]
    );
    assert_eq!(
        seen(None).await.len(),
        9,
        "operators see all, but for slugs of nobody"
    );
}

#[tokio::test]
async fn x2_what_a_client_did_before_it_named_a_workspace_is_shown_only_where_it_can_be_of_no_other()
 {
    let database = Database::new().await;
    let store = database.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let slug = "beta".parse().unwrap();
    let beta =
        portolan_storage::platform::tenants::create(&mut tx, "Beta", &slug, scene.user, now())
            .await
            .unwrap()
            .id;
    let of = |name: &str, mut event: NewEvent| {
        let mut bytes = [0; 32];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        event.client_name = Some(name.to_owned());
        event.of_client(name, Digest::from_bytes(bytes))
    };
    let asked = |name: &str, tenant| {
        let mut event = of(
            name,
            step(Step::Authorize, "browser/1", StepTenant::Tenant(tenant)),
        );
        event.authorization = Some(RequestId::generate());
        event
    };
    let mut fault = of(
        "lonely",
        step(Step::Authorize, "browser/1", StepTenant::Unknown),
    );
    fault.outcome = StepOutcome::Refused;
    let mut elsewhere = of(
        "lonely",
        step(Step::Register, "lonely/1", StepTenant::Unknown),
    );
    elsewhere.ip_block = "198.51.100.0/24".to_owned();
    let events = [
        of(
            "lonely",
            step(Step::Register, "lonely/1", StepTenant::Unknown),
        ),
        fault,
        elsewhere,
        asked("lonely", scene.tenant),
        of(
            "hosted",
            step(Step::Register, "hosted/1", StepTenant::Unknown),
        ),
        asked("hosted", scene.tenant),
        asked("hosted", beta),
        of(
            "stranger",
            step(Step::Register, "lonely/1", StepTenant::Unknown),
        ),
    ];
    connect_events::insert_many(&mut tx, &events).await.unwrap();
    let mut seen = async |tenant| -> Vec<(Step, Option<String>)> {
        let which = Which {
            tenant: Some(tenant),
            ..Which::default()
        };
        let read = connect_events::list(&mut tx, which, 100).await.unwrap();
        let mut all: Vec<_> = read
            .events
            .into_iter()
            .map(|event| (event.step, event.client_name))
            .collect();
        all.sort();
        all
    };
    let name = |text: &str| Some(text.to_owned());
    assert_eq!(
        seen(scene.tenant).await,
        [
            (Step::Register, name("lonely")),
            (Step::Authorize, name("hosted")),
            (Step::Authorize, name("lonely")),
            (Step::Authorize, name("lonely")),
        ],
        "one of them is the refused one"
    );
    assert_eq!(seen(beta).await, [(Step::Authorize, name("hosted"))]);
}

#[tokio::test]
async fn x2_the_first_request_of_a_grant_is_kept_once_whatever_nodes_report() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let mut first = step(Step::Request, "hers/1", StepTenant::Tenant(scene.tenant));
    first.grant = Some(GrantId::generate());
    let mut refused = first.clone();
    refused.outcome = StepOutcome::Refused;
    for _ in 0..3 {
        connect_events::insert_many(&mut tx, &[first.clone(), refused.clone()])
            .await
            .unwrap();
    }
    let events = connect_events::list(&mut tx, Which::default(), 100)
        .await
        .unwrap()
        .events;
    let good = events
        .iter()
        .filter(|event| event.outcome == StepOutcome::Ok)
        .count();
    assert_eq!((good, events.len()), (1, 4));
}
