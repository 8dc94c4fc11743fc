//! AUTH-3.4: the audit log is append only and a chain of hashes for each tenant.

use std::collections::HashMap;

use portolan_model::{
    audit::{Actor, Event, Outcome},
    audit_chain::{ChainFault, Walk},
    id::TenantId,
};
use portolan_storage::{
    Store, SystemTx,
    platform::{
        audit::{self, Origin},
        audit_chain, tenants,
    },
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{
    database::Database,
    scene::{Scene, now, system},
};

async fn write(store: &Store, tenant: Option<TenantId>, what: &str) {
    write_all(store, &[tenant], what).await;
}

/// The same in several logs, in one transaction.
async fn write_all(store: &Store, logs: &[Option<TenantId>], what: &str) {
    let mut tx = system(store).await;
    for tenant in logs {
        record(&mut tx, *tenant, what).await;
    }
    tx.commit().await.unwrap();
}

async fn record(tx: &mut SystemTx, tenant: Option<TenantId>, what: &str) {
    let event = Event {
        tenant,
        actor: Actor::Operator,
        action: "thing.done",
        target_kind: "thing",
        target_id: what.to_owned(),
        outcome: Outcome::Ok,
        // What JSON writers like to write in different ways.
        detail: json!({"b": [1, 2.50, null], "a": "ü \" \\ \n \u{1} \u{7f} 𝄞", "c": {}}),
    };
    audit::record(tx, &event, &Origin::default(), now())
        .await
        .unwrap();
}

/// Walks the chain and returns its faults. SHA-256 is Postgres': this crate has none of its own.
async fn faults(
    store: &Store,
    owner: &mut PgConnection,
    tenant: Option<TenantId>,
) -> Vec<ChainFault> {
    let links = audit_chain::links(&mut system(store).await, tenant, 0, 1000)
        .await
        .unwrap();
    let mut hashes = HashMap::new();
    for bytes in links
        .iter()
        .filter_map(portolan_model::audit_chain::Link::preimage)
    {
        let hash: Vec<u8> = sqlx::query_scalar("select sha256($1)")
            .bind(&bytes)
            .fetch_one(&mut *owner)
            .await
            .unwrap();
        hashes.insert(bytes, <[u8; 32]>::try_from(hash.as_slice()).unwrap());
    }
    let mut walk = Walk::new(None);
    links
        .iter()
        .flat_map(|link| walk.step(link, |bytes| hashes[bytes]))
        .collect()
}

async fn owner_does(owner: &mut PgConnection, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
        .execute(owner)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_entry_that_was_edited_removed_or_moved_is_found_even_by_the_owner_of_the_tables() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let tenant = Some(scene.tenant);
    for number in 1..=6 {
        write(&store, tenant, &number.to_string()).await;
    }
    write(&store, None, "platform").await;
    assert_eq!(faults(&store, &mut owner, tenant).await, []);
    assert_eq!(faults(&store, &mut owner, None).await, []);
    let at = |seq: i64| {
        format!("(select event_id from audit_chain where tenant_id is not null and seq = {seq})")
    };

    // Row-level security and missing grants do not stop who owns the server.
    owner_does(
        &mut owner,
        &format!(
            "update audit_events set target_id = 'else' where id = {}",
            at(2)
        ),
    )
    .await;
    let found = faults(&store, &mut owner, tenant).await;
    assert!(
        matches!(found[..], [ChainFault::Changed { seq: 2, .. }]),
        "{found:?}"
    );
    owner_does(
        &mut owner,
        &format!(
            "update audit_events set target_id = '2' where id = {}",
            at(2)
        ),
    )
    .await;
    assert_eq!(faults(&store, &mut owner, tenant).await, []);

    // Two entries change places.
    owner_does(
        &mut owner,
        "alter table audit_chain drop constraint audit_chain_event_id_key;
         update audit_chain c set event_id = o.event_id from audit_chain o
          where c.tenant_id is not null and o.tenant_id = c.tenant_id and (c.seq, o.seq) in ((4, 5), (5, 4))",
    )
    .await;
    let found = faults(&store, &mut owner, tenant).await;
    assert!(
        matches!(
            found[..],
            [
                ChainFault::Changed { seq: 4, .. },
                ChainFault::Changed { seq: 5, .. }
            ]
        ),
        "{found:?}"
    );
    owner_does(
        &mut owner,
        "update audit_chain c set event_id = o.event_id from audit_chain o
          where c.tenant_id is not null and o.tenant_id = c.tenant_id and (c.seq, o.seq) in ((4, 5), (5, 4))",
    )
    .await;

    // One entry is removed with its place.
    owner_does(
        &mut owner,
        "with place as (delete from audit_chain where tenant_id is not null and seq = 3 returning event_id)
         delete from audit_events using place where id = place.event_id",
    )
    .await;
    let found = faults(&store, &mut owner, tenant).await;
    assert!(
        matches!(
            found[..],
            [
                ChainFault::Removed { from: 3, to: 3 },
                ChainFault::Unlinked { seq: 4, .. }
            ]
        ),
        "{found:?}"
    );
    // One is written around the chain.
    owner_does(
        &mut owner,
        "alter table audit_events disable trigger audit_events_chain;
         insert into audit_events (id, at, actor_kind, action, target_kind, target_id, outcome)
         values (gen_random_uuid(), now(), 'system', 'x', 'x', 'x', 'ok')",
    )
    .await;
    let around = audit_chain::unchained(&mut system(&store).await, None)
        .await
        .unwrap();
    assert_eq!(around, [(None, 1)]);
    assert_eq!(faults(&store, &mut owner, None).await, []);
}

#[tokio::test]
async fn no_role_of_the_service_can_change_or_delete_an_entry_or_its_place() {
    let database = Database::new().await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    for table in ["audit_events", "audit_chain"] {
        for role in ["portolan_core", "portolan_tenant", "portolan_node"] {
            for right in ["update", "delete", "truncate"] {
                let may: bool = sqlx::query_scalar("select has_table_privilege($1, $2, $3)")
                    .bind(role)
                    .bind(table)
                    .bind(right)
                    .fetch_one(&mut owner)
                    .await
                    .unwrap();
                assert!(!may, "{role} may {right} {table}");
            }
        }
    }
}

#[tokio::test]
async fn entries_of_many_writers_at_once_stand_in_one_chain_without_gaps() {
    let database = Database::new().await;
    let store = database.store(10).await;
    let scene = Scene::new(&store).await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let tenant = Some(scene.tenant);
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        async move {
            for number in 0..10 {
                write(&store, tenant, &format!("{writer}-{number}")).await;
            }
        }
    });
    futures_util::future::join_all(writers).await;
    assert_eq!(faults(&store, &mut owner, tenant).await, []);
    let chains = audit_chain::list(&mut system(&store).await, tenant)
        .await
        .unwrap();
    assert_eq!(chains[0].length, 80);
    assert_eq!(chains[0].slug.as_deref(), Some("acme"));
    // The database and this crate write the same text, and what is exported is what is hashed.
    let links = audit_chain::links(&mut system(&store).await, tenant, 0, 1000)
        .await
        .unwrap();
    let mut tx = store.tenant(scene.tenant).await.unwrap();
    for entry in audit::list(&mut tx, None, 1000).await.unwrap() {
        let place = entry.place.expect("each entry has a place");
        let link = links.iter().find(|link| link.event == entry.id).unwrap();
        assert_eq!(Some(place.entry), link.entry);
        assert_eq!((place.seq, place.hash), (link.seq, link.hash.clone()));
    }
}

#[tokio::test]
async fn who_writes_in_several_logs_at_once_in_the_order_of_tenants_waits_for_nobody_for_good() {
    let database = Database::new().await;
    let store = database.store(10).await;
    let scene = Scene::new(&store).await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let mut tx = system(&store).await;
    let other = tenants::create(&mut tx, "Beta", &"beta".parse().unwrap(), scene.user, now())
        .await
        .unwrap()
        .id;
    tx.commit().await.unwrap();
    let mut both = [Some(scene.tenant), Some(other)];
    both.sort();
    // Some write in one log, some in the other, some in both and in the platform's.
    let logs: [&[Option<TenantId>]; 3] = [&both[..1], &both[1..], &[both[0], both[1], None]];
    let writers = (0..9).map(|writer| {
        let (store, logs) = (store.clone(), logs[writer % 3]);
        async move {
            for number in 0..10 {
                write_all(&store, logs, &format!("{writer}-{number}")).await;
            }
        }
    });
    futures_util::future::join_all(writers).await;
    for (tenant, length) in [(both[0], 60), (both[1], 60), (None, 30)] {
        assert_eq!(faults(&store, &mut owner, tenant).await, []);
        let links = audit_chain::links(&mut system(&store).await, tenant, 0, 1000)
            .await
            .unwrap();
        assert_eq!(links.len(), length);
    }
}
