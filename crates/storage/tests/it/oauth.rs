//! Codes, refresh tokens, registrations, decisions: one winner each (AUTH-T3, AUTH-T5,
//! AUTH-K8 to AUTH-K11, AUTH-C10, AUTH-N5).

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use portolan_model::{
    Digest,
    factor::SecondFactor,
    id::{ApiKeyId, IdentityProviderId},
    subject::Subject,
    token_family::{PresentedFrom, Verdict},
};
use portolan_storage::{
    Store, SystemTx,
    accounts::single_sign_on::{self, Provider},
    oauth::{
        api_keys::{self, NewApiKey},
        authorization_requests, clients,
        connected_apps::{self, Ended, Which},
        factor_rules, grant_state, grants,
        refresh_tokens::{self, PresentedToken, Rotation},
        revocations, signing_keys,
    },
};
use sqlx::{Connection, PgConnection};
use time::{Duration, OffsetDateTime};
use tokio::{sync::Barrier, task::JoinSet};
use uuid::Uuid;

use crate::{
    database::Database,
    races,
    scene::{Scene, digest, now, register, system},
};

#[tokio::test]
async fn t3_of_two_redemptions_at_the_same_instant_one_wins() {
    let database = Database::new().await;
    let (one, two) = (database.store(2).await, database.store(2).await);
    let scene = Scene::new(&one).await;
    for round in races::rounds("t3_of_two_redemptions_at_the_same_instant_one_wins") {
        let mut tx = system(&one).await;
        let (code, _) = scene.code(&mut tx).await;
        tx.commit().await.unwrap();
        let barrier = Arc::new(Barrier::new(2));
        let mut attempts = JoinSet::new();
        for store in [&one, &two] {
            let (store, barrier): (Store, _) = (store.clone(), Arc::clone(&barrier));
            attempts.spawn(async move {
                let mut tx = system(&store).await;
                barrier.wait().await;
                let won = grants::redeem_code(&mut tx, &code, Uuid::now_v7(), now())
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
                won
            });
        }
        let winners = attempts
            .join_all()
            .await
            .into_iter()
            .filter(|won| *won)
            .count();
        assert_eq!(winners, 1, "round {round}");
    }
}

#[tokio::test]
async fn t5_failures_are_counted_and_the_fifth_kills_the_code() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let (code, _) = scene.code(&mut tx).await;
    for _ in 0..4 {
        grants::count_code_failure(&mut tx, &code).await.unwrap();
    }
    assert_eq!(
        grants::find_code(&mut tx, &code)
            .await
            .unwrap()
            .unwrap()
            .attempts,
        4
    );
    grants::count_code_failure(&mut tx, &code).await.unwrap();
    assert!(
        !grants::redeem_code(&mut tx, &code, Uuid::now_v7(), now())
            .await
            .unwrap()
    );
    let (code, _) = scene.code(&mut tx).await;
    assert!(
        !grants::redeem_code(
            &mut tx,
            &code,
            Uuid::now_v7(),
            now() + Duration::seconds(120)
        )
        .await
        .unwrap(),
        "AUTH-T2"
    );
    let attempt = Uuid::now_v7();
    assert!(
        grants::redeem_code(&mut tx, &code, attempt, now())
            .await
            .unwrap()
    );
    assert!(
        grants::was_redeemed_by(&mut tx, &code, attempt)
            .await
            .unwrap()
    );
    assert!(
        !grants::was_redeemed_by(&mut tx, &code, Uuid::now_v7())
            .await
            .unwrap()
    );
}

fn network() -> Digest {
    Digest::from_bytes([9; 32])
}

/// The successor is as if sealed under the presented token.
fn rotation(seen: &PresentedToken, presented: &Digest, successor: &Digest) -> Rotation {
    let sealed = successor.as_bytes().to_vec();
    Rotation::new(seen, presented, successor, sealed, network(), now())
}

/// Runs the usual path of the token endpoint, without the cryptography: rotate the head unless
/// another refresh is faster.
async fn refresh_at_once(store: &Store, scene: &Scene, presented: Digest) -> Option<Digest> {
    let (client, seen) = refresh_tokens::look(store, &scene.client.client_id, &presented)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (client.id, seen.state.grant.client),
        (scene.client.id, scene.client.id)
    );
    if seen
        .presented
        .verdict(now(), PresentedFrom::AnotherOrUnknown)
        != Verdict::Rotate
    {
        return None;
    }
    let successor = digest();
    let rotation = rotation(&seen, &presented, &successor);
    refresh_tokens::rotate_at_once(store, rotation)
        .await
        .unwrap()
        .then_some(successor)
}

/// Runs the other path: rotate the head under the lock, or return the present head.
async fn refresh(store: &Store, presented: Digest) -> Digest {
    let mut tx = system(store).await;
    let locked: PresentedToken = refresh_tokens::lock(&mut tx, &presented)
        .await
        .unwrap()
        .unwrap();
    let head = match locked
        .presented
        .verdict(now(), PresentedFrom::AnotherOrUnknown)
    {
        Verdict::Rotate => {
            let successor = digest();
            let rotation = rotation(&locked, &presented, &successor);
            assert!(refresh_tokens::rotate(&mut tx, &rotation).await.unwrap());
            successor
        }
        Verdict::ReplayInWindow => {
            let from = refresh_tokens::ReplayFrom::SameNetwork;
            refresh_tokens::note_replay(&mut tx, &locked, &presented, from, now())
                .await
                .unwrap();
            let mut sealed = locked.successor_sealed.clone().unwrap();
            loop {
                let next = Digest::from_slice(&sealed).unwrap();
                match refresh_tokens::successor_of(&mut tx, locked.family, &next)
                    .await
                    .unwrap()
                {
                    Some(further) => sealed = further,
                    None => break next,
                }
            }
        }
        other => panic!("{other:?}"),
    };
    tx.commit().await.unwrap();
    head
}

#[tokio::test]
async fn k9_fifty_refreshes_at_once_leave_one_live_branch() {
    let database = Database::new().await;
    let nodes = [database.store(8).await, database.store(8).await];
    let scene = Arc::new(Scene::new(&nodes[0]).await);
    for round in races::rounds("k9_fifty_refreshes_at_once_leave_one_live_branch") {
        let mut tx = system(&nodes[0]).await;
        let grant = scene.grant(&mut tx).await;
        let first = digest();
        let ends = now() + Duration::days(90);
        let family = refresh_tokens::create_family(&mut tx, grant, &first, ends, now())
            .await
            .unwrap();
        tx.commit().await.unwrap();

        let mut attempts = JoinSet::new();
        for at in 0..races::crowd(round, 50) {
            let (store, scene) = (nodes[at % 2].clone(), scene.clone());
            attempts.spawn(async move {
                // Some go straight to the lock, as clients do that are not served at once.
                if at % 5 != 0
                    && let Some(head) = refresh_at_once(&store, &scene, first).await
                {
                    return head;
                }
                refresh(&store, first).await
            });
        }
        let heads: BTreeSet<[u8; 32]> = attempts
            .join_all()
            .await
            .iter()
            .map(|head| *head.as_bytes())
            .collect();
        assert_eq!(heads.len(), 1, "everybody leaves with the same head");
        let mut tx = system(&nodes[0]).await;
        let live = refresh_tokens::live_tokens(&mut tx, family).await.unwrap();
        assert_eq!(live, 1, "round {round}");
        drop(tx);

        // The head moves on while others still come with the first one: they are led to wherever it
        // is.
        let head = Digest::from_bytes(*heads.first().unwrap());
        let second = refresh(&nodes[1], head).await;
        assert_eq!(refresh(&nodes[0], first).await, second);
    }
}

/// AUTH-K8: what a rotation changes holds together or not at all.
#[tokio::test]
async fn k8_nothing_is_rotated_but_the_head_of_a_living_family() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let grant = scene.grant(&mut tx).await;
    let first = digest();
    let ends = now() + Duration::days(90);
    let family = refresh_tokens::create_family(&mut tx, grant, &first, ends, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let head = refresh(&store, first).await;

    for (case, presented, is_late, is_revoked) in [
        ("a superseded token", first, false, false),
        ("another generation", head, true, false),
        ("a revoked family", head, false, true),
    ] {
        let mut tx = system(&store).await;
        if is_revoked {
            assert!(grants::revoke(&mut tx, grant, "test", now()).await.unwrap());
        }
        let mut locked = refresh_tokens::lock(&mut tx, &presented)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (locked.family, locked.state.grant.id),
            (family, grant),
            "{case}"
        );
        locked.presented.head_generation += i32::from(is_late);
        let successor = digest();
        let rotation = rotation(&locked, &presented, &successor);
        let rotated = refresh_tokens::rotate(&mut tx, &rotation).await.unwrap();
        assert!(!rotated, "{case}");
        let made = refresh_tokens::grant_of(&mut tx, &successor).await.unwrap();
        assert_eq!(made, None, "{case}: no successor");
    }

    let mut tx = system(&store).await;
    let locked = refresh_tokens::lock(&mut tx, &head).await.unwrap().unwrap();
    assert_eq!(
        locked
            .presented
            .verdict(now(), PresentedFrom::AnotherOrUnknown),
        Verdict::Rotate
    );
}

/// AUTH-K8: a rotation without the lock changes nothing if the family has changed since it was
/// read.
#[tokio::test]
async fn k8_nothing_is_rotated_that_changed_since_it_was_seen() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let grant = scene.grant(&mut tx).await;
    let first = digest();
    let ends = now() + Duration::days(90);
    refresh_tokens::create_family(&mut tx, grant, &first, ends, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let mut head = first;
    for is_revoked in [false, true] {
        let (_, seen) = refresh_tokens::look(&store, &scene.client.client_id, &head)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            seen.presented
                .verdict(now(), PresentedFrom::AnotherOrUnknown),
            Verdict::Rotate
        );
        let other = if is_revoked {
            let mut tx = system(&store).await;
            assert!(grants::revoke(&mut tx, grant, "test", now()).await.unwrap());
            tx.commit().await.unwrap();
            None
        } else {
            refresh_at_once(&store, &scene, head).await
        };
        assert_eq!(other.is_none(), is_revoked, "somebody was faster");
        let late = digest();
        let rotation = rotation(&seen, &head, &late);
        let rotated = refresh_tokens::rotate_at_once(&store, rotation).await;
        assert!(!rotated.unwrap(), "revoked: {is_revoked}");
        let mut tx = system(&store).await;
        let made = refresh_tokens::grant_of(&mut tx, &late).await.unwrap();
        assert_eq!(made, None, "no successor");
        let family = refresh_tokens::lock(&mut tx, &head).await.unwrap().unwrap();
        let live = refresh_tokens::live_tokens(&mut tx, family.family).await;
        assert_eq!(live.unwrap(), 1);
        head = other.unwrap_or(head);
    }
}

/// AUTH-K8, ADR 31: each of those that are rotated in one message is rotated as if it were alone.
/// One thread, so that all have asked before the first message goes out.
#[tokio::test]
async fn k8_what_is_rotated_together_is_rotated_each_by_itself() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let (mut heads, mut grants) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let (grant, head) = (scene.grant(&mut tx).await, digest());
        let ends = now() + Duration::days(90);
        refresh_tokens::create_family(&mut tx, grant, &head, ends, now())
            .await
            .unwrap();
        heads.push(head);
        grants.push(grant);
    }
    tx.commit().await.unwrap();
    let client = &scene.client.client_id;
    let looks = heads
        .iter()
        .map(|head| refresh_tokens::look(&store, client, head));
    let mut seen: Vec<PresentedToken> = join_all(looks)
        .await
        .into_iter()
        .map(|seen| seen.unwrap().unwrap().1)
        .collect();
    let seen_grants: Vec<_> = seen.iter().map(|seen| seen.state.grant.id).collect();
    assert_eq!(seen_grants, grants, "each hears of its own");

    // The second comes twice, another transaction locks the third, and the fourth was revoked. The
    // fifth was seen in another generation.
    heads.push(heads[1]);
    seen.push(seen[1].clone());
    let mut tx = system(&store).await;
    grants::revoke(&mut tx, grants[3], "test", now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    seen[4].presented.head_generation += 1;
    let mut holder = system(&store).await;
    refresh_tokens::lock(&mut holder, &heads[2]).await.unwrap();
    let successors: Vec<Digest> = heads.iter().map(|_| digest()).collect();
    let rotations = (0..heads.len()).map(|at| {
        let rotation = rotation(&seen[at], &heads[at], &successors[at]);
        refresh_tokens::rotate_at_once(&store, rotation)
    });
    let rotated: Vec<bool> = join_all(rotations)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    drop(holder);

    for (at, rotated) in rotated.into_iter().enumerate() {
        assert_eq!(rotated, ![2, 3, 4, 40].contains(&at), "{at}");
        let mut tx = system(&store).await;
        let made = refresh_tokens::grant_of(&mut tx, &successors[at])
            .await
            .unwrap();
        assert_eq!(made, rotated.then(|| grants[at]), "{at}: its successor");
        let locked = refresh_tokens::lock(&mut tx, &heads[at]).await.unwrap();
        let presented = locked.unwrap().presented;
        let is_head = presented.generation == presented.head_generation;
        assert_eq!(is_head, [2, 3, 4].contains(&at), "{at}: its head");
        assert_eq!(presented.superseded_at.is_none(), is_head, "{at}");
    }
}

/// ADR 31: what the database cannot be asked spoils nothing for those who ask in the same moment.
#[tokio::test]
async fn who_names_an_impossible_client_is_alone_with_it() {
    let store = Database::new().await.store(4).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let (grant, head) = (scene.grant(&mut tx).await, digest());
    let ends = now() + Duration::days(90);
    refresh_tokens::create_family(&mut tx, grant, &head, ends, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let impossible = "cli_\0";
    let clients = [scene.client.client_id.as_str(), impossible, "cli_nobody"];
    let looks = clients.map(|client| refresh_tokens::look(&store, client, &head));
    let [good, refused, nobody] = join_all(looks).await.try_into().unwrap();
    assert_eq!(good.unwrap().unwrap().1.state.grant.id, grant);
    assert!(!refused.unwrap_err().is_unavailable());
    assert!(nobody.unwrap().is_none());
}

#[tokio::test]
async fn k11_a_revoked_grant_takes_its_family_and_tells_the_nodes_once() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let grant = scene.grant(&mut tx).await;
    let head = digest();
    refresh_tokens::create_family(&mut tx, grant, &head, now() + Duration::days(90), now())
        .await
        .unwrap();
    assert!(grants::revoke(&mut tx, grant, "test", now()).await.unwrap());
    assert!(
        !grants::revoke(&mut tx, grant, "test", now()).await.unwrap(),
        "once"
    );
    let locked = refresh_tokens::lock(&mut tx, &head).await.unwrap().unwrap();
    assert_eq!(
        locked
            .presented
            .verdict(now(), PresentedFrom::AnotherOrUnknown),
        Verdict::Ended
    );
    let news = revocations::live(&mut tx, None, now())
        .await
        .unwrap()
        .entries;
    assert_eq!(news.len(), 1);
    assert_eq!(
        (news[0].kind, news[0].reference.as_str()),
        (
            revocations::RevocationKind::Grant,
            grant.to_string().as_str()
        )
    );
    assert!(
        revocations::live(&mut tx, Some(news[0].created_at), now())
            .await
            .unwrap()
            .entries
            .is_empty(),
        "nothing after it"
    );
    assert!(
        revocations::live(&mut tx, None, now() + Duration::days(1))
            .await
            .unwrap()
            .entries
            .is_empty(),
        "no token lives that long"
    );
}

#[tokio::test]
async fn c10_equal_registrations_at_once_are_one_client() {
    let database = Database::new().await;
    let store = database.store(8).await;
    for round in races::rounds("c10_equal_registrations_at_once_are_one_client") {
        let fingerprint = digest();
        let mut attempts = JoinSet::new();
        for _ in 0..races::crowd(round, 20) {
            let store = store.clone();
            attempts.spawn(async move {
                let mut tx = system(&store).await;
                let client = register(&mut tx, fingerprint).await;
                tx.commit().await.unwrap();
                client.client_id
            });
        }
        let ids: BTreeSet<String> = attempts.join_all().await.into_iter().collect();
        assert_eq!(ids.len(), 1, "round {round}");
        let mut tx = system(&store).await;
        let client = clients::find(&mut tx, ids.first().unwrap())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(client.redirect_uris, ["http://127.0.0.1/cb"]);
    }
}

#[tokio::test]
async fn n5_of_two_decisions_at_once_one_stands() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    for round in races::rounds("n5_of_two_decisions_at_once_one_stands") {
        let mut tx = system(&store).await;
        let request = scene.request(&mut tx).await;
        tx.commit().await.unwrap();
        let mut attempts = JoinSet::new();
        for approved in [true, false] {
            let (store, session) = (store.clone(), scene.session);
            attempts.spawn(async move {
                let mut tx = system(&store).await;
                let outcome = [u8::from(approved)];
                let first = authorization_requests::decide(
                    &mut tx,
                    request,
                    session,
                    if approved {
                        authorization_requests::ConsentDecision::Approved
                    } else {
                        authorization_requests::ConsentDecision::Denied
                    },
                    &outcome,
                    now(),
                )
                .await
                .unwrap();
                tx.commit().await.unwrap();
                first.then_some(approved)
            });
        }
        let decided: Vec<bool> = attempts.join_all().await.into_iter().flatten().collect();
        assert_eq!(decided.len(), 1, "round {round}");
        let mut tx = system(&store).await;
        let row = authorization_requests::find(&mut tx, request)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(row.outcome_sealed, Some(vec![u8::from(decided[0])]));
        assert_eq!(
            row.status == authorization_requests::Status::Approved,
            decided[0]
        );
    }
}

#[tokio::test]
async fn k16_standing_follows_user_tenant_and_membership() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let scene = Scene::new(&store).await;
    let standing = async || {
        let mut tx = system(&store).await;
        grants::standing(&mut tx, scene.tenant, scene.user)
            .await
            .unwrap()
            .unwrap()
    };
    assert!(standing().await.is_active);
    let mut tx = system(&store).await;
    let stranger = portolan_model::id::UserId::generate();
    assert_eq!(
        grants::standing(&mut tx, scene.tenant, stranger)
            .await
            .unwrap(),
        None
    );
    assert!(
        grants::names_tenant(&mut tx, "acme", scene.tenant)
            .await
            .unwrap()
    );
    assert!(
        !grants::names_tenant(&mut tx, "beta", scene.tenant)
            .await
            .unwrap()
    );
    drop(tx);

    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    for (change, undo) in [
        (
            "update users set status = 'locked'",
            "update users set status = 'active'",
        ),
        (
            "update users set verified_at = null",
            "update users set verified_at = now()",
        ),
        (
            "update tenants set status = 'suspended'",
            "update tenants set status = 'active'",
        ),
    ] {
        sqlx::query(change).execute(&mut owner).await.unwrap();
        assert!(!standing().await.is_active, "CASE-126: {change}");
        sqlx::query(undo).execute(&mut owner).await.unwrap();
        assert!(standing().await.is_active, "{undo}");
    }
    sqlx::query("update memberships set epoch = 7")
        .execute(&mut owner)
        .await
        .unwrap();
    assert_eq!(
        standing().await.member_epoch,
        7,
        "the next token carries it"
    );
}

/// AUTH-F7, AUTH-L14: a sign-in through a provider that an operator turned off counts as one
/// without a second factor.
#[tokio::test]
async fn k16_a_provider_that_is_off_speaks_for_no_grant() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let grant = scene.grant(&mut tx).await;
    factor_rules::set(&mut tx, scene.tenant, SecondFactor::Required, now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let provider = Provider {
        id: IdentityProviderId::generate(),
        name: "Acme".to_owned(),
        issuer: "https://id.acme.example".to_owned(),
        client_id: "portolan".to_owned(),
        secret: None,
        version: 1,
        is_enforced: false,
        is_off: false,
    };
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    assert!(
        single_sign_on::put(&mut tx, &provider, now())
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    sqlx::query("update grants set sso_provider = $1, sso_confined = true")
        .bind(provider.id.uuid())
        .execute(&mut owner)
        .await
        .unwrap();
    let is_met = async || {
        let mut tx = system(&store).await;
        let state = grant_state::find(&mut tx, grant).await.unwrap().unwrap();
        state.meets_second_factor().unwrap()
    };
    assert!(is_met().await, "it was asked there");
    let mut tx = system(&store).await;
    single_sign_on::turn_off(&mut tx, scene.tenant, now())
        .await
        .unwrap()
        .unwrap();
    tx.commit().await.unwrap();
    assert!(!is_met().await);
}

#[tokio::test]
async fn j2_the_rotation_lock_lets_one_node_make_the_keys() {
    let database = Database::new().await;
    let store = database.store(4).await;
    for round in races::rounds("j2_the_rotation_lock_lets_one_node_make_the_keys") {
        // The keys of the round before are gone.
        let at = now() + Duration::days(92) * i32::try_from(round).unwrap();
        let mut attempts = JoinSet::new();
        for _ in 0..4 {
            let store = store.clone();
            attempts.spawn(async move {
                let mut tx = system(&store).await;
                signing_keys::lock_rotation(&mut tx).await.unwrap();
                if signing_keys::list(&mut tx, at).await.unwrap().is_empty() {
                    let key = signing_keys::StoredKey {
                        kid: Uuid::now_v7().to_string(),
                        public_jwk: serde_json::json!({}),
                        private_sealed: vec![1],
                        publish_at: at,
                        sign_from: at,
                        sign_until: at + Duration::days(90),
                        gone_at: at + Duration::days(91),
                    };
                    signing_keys::insert(&mut tx, &key, at).await.unwrap();
                }
                tx.commit().await.unwrap();
            });
        }
        attempts.join_all().await;
        let mut tx = system(&store).await;
        let keys = signing_keys::list(&mut tx, at).await.unwrap();
        assert_eq!(keys.len(), 1, "round {round}");
        let later = at + Duration::days(92);
        assert!(signing_keys::list(&mut tx, later).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn case_139_what_is_committed_out_of_order_is_seen_by_the_reader_that_looks_back() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let write = async |tx: &mut SystemTx, reference: &str| {
        let new = revocations::New {
            kind: revocations::RevocationKind::Client,
            reference,
            tenant: None,
            epoch: None,
            expires_at: now() + Duration::HOUR,
        };
        revocations::insert(tx, &new).await.unwrap();
    };
    let (mut ten, mut eleven) = (system(&store).await, system(&store).await);
    write(&mut ten, "ten").await;
    write(&mut eleven, "eleven").await;
    eleven.commit().await.unwrap();
    let live = async |since| {
        let mut tx = system(&store).await;
        revocations::live(&mut tx, since, now())
            .await
            .unwrap()
            .entries
    };
    let seen = async |since| -> Vec<String> {
        live(since)
            .await
            .into_iter()
            .map(|one| one.reference)
            .collect()
    };
    let first = live(None).await;
    assert_eq!(seen(None).await, ["eleven"]);
    assert!(
        (first[0].created_at - OffsetDateTime::now_utc()).abs() < Duration::MINUTE,
        "the clock is the database's, whatever a writer takes for now"
    );
    ten.commit().await.unwrap();
    assert!(
        seen(Some(first[0].created_at)).await.is_empty(),
        "a reader that goes on from the last one it saw would miss it"
    );
    let overlap = first[0].created_at - Duration::MINUTE;
    assert_eq!(seen(Some(overlap)).await, ["ten", "eleven"]);
}

#[tokio::test]
async fn r9_a_revocation_of_a_kind_that_this_release_does_not_know_hides_no_other_one() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    sqlx::raw_sql(
        "alter table revocations drop constraint revocations_kind_check;
         insert into revocations (kind, ref, expires_at, created_at) values ('planet', 'x', '2100-01-01', now())",
    )
    .execute(&mut owner)
    .await
    .unwrap();
    let mut tx = system(&store).await;
    let known = revocations::New {
        kind: revocations::RevocationKind::Kid,
        reference: "known",
        tenant: None,
        epoch: None,
        expires_at: now() + Duration::HOUR,
    };
    revocations::insert(&mut tx, &known).await.unwrap();
    let live = revocations::live(&mut tx, None, now())
        .await
        .unwrap()
        .entries;
    assert_eq!(live.len(), 1);
    assert_eq!(live[0].reference, "known");
}

#[tokio::test]
async fn r5_the_api_keys_of_a_person_end_with_all_apps_and_not_with_one() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let (one, other) = (scene.grant(&mut tx).await, scene.grant(&mut tx).await);
    let key = NewApiKey {
        id: ApiKeyId::generate(),
        tenant: scene.tenant,
        holder: Subject::User(scene.user),
        name: "Laptop",
        digest: &digest(),
        hint: "mcpk_abcd",
        resource: None,
        networks: &[],
        created_by: scene.user,
        expires_at: now() + Duration::DAY,
    };
    api_keys::create(&mut tx, &key, now()).await.unwrap();
    let of_grant = Which {
        user: Some(scene.user),
        grant: Some(one),
        ..Which::default()
    };
    let ended = connected_apps::end(&mut tx, of_grant, "test", now())
        .await
        .unwrap();
    assert_eq!(ended.grants, [(one, scene.tenant)]);
    assert_eq!(ended.keys, []);
    let all = Which {
        user: Some(scene.user),
        ..Which::default()
    };
    let ended = connected_apps::end(&mut tx, all, "test", now())
        .await
        .unwrap();
    assert_eq!(ended.grants, [(other, scene.tenant)]);
    assert_eq!(ended.keys, [(key.id, scene.tenant)]);
    let told = revocations::live(&mut tx, None, now())
        .await
        .unwrap()
        .entries;
    assert_eq!(told.len(), 3);
}

#[tokio::test]
async fn r5_many_apps_end_in_several_transactions_each_with_its_tenant() {
    let store = Database::new().await.store(2).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    let mut grants = Vec::new();
    for _ in 0..501 {
        grants.push((scene.grant(&mut tx).await, scene.tenant));
    }
    grants.sort();
    let which = Which {
        client: Some(scene.client.id),
        ..Which::default()
    };
    let first = connected_apps::end_some(&mut tx, which, "test", now())
        .await
        .unwrap();
    assert_eq!(first.grants, grants[..500]);
    let second = connected_apps::end_some(&mut tx, which, "test", now())
        .await
        .unwrap();
    assert_eq!(second.grants, grants[500..]);
    let third = connected_apps::end_some(&mut tx, which, "test", now())
        .await
        .unwrap();
    assert_eq!(third, Ended::default());
    let told = revocations::live(&mut tx, None, now())
        .await
        .unwrap()
        .entries;
    assert_eq!(told.len(), 501);
}
