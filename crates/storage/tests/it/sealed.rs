//! AUTH-J5: what is sealed under the master secret is found in pages and put back where it was
//! read.

use portolan_storage::{
    accounts::second_factors,
    platform::sealed::{self, SealedColumn},
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{
    database::Database,
    scene::{Scene, now, system},
};

#[tokio::test]
async fn j5_every_data_key_is_found_once_and_one_that_changed_meanwhile_is_left_as_it_is() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let scene = Scene::new(&store).await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!(
        "insert into tenant_deks (tenant_id, id, wrapped, created_at)
         select '{}', gen_random_uuid(), n::text::bytea, now() from generate_series(1, 5) n",
        scene.tenant.uuid()
    )))
    .execute(&mut owner)
    .await
    .unwrap();
    let mut tx = system(&store).await;
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = sealed::data_keys(&mut tx, after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        let SealedColumn::DataKey(tenant, id) = &last.place else {
            panic!("{last:?}")
        };
        after = Some((*tenant, *id));
        for key in page {
            assert!(sealed::put(&mut tx, &key, b"new").await.unwrap());
            assert!(
                !sealed::put(&mut tx, &key, b"newer").await.unwrap(),
                "it is not what was read any more"
            );
            found.push(key.bytes);
        }
    }
    found.sort();
    assert_eq!(found, [b"1", b"2", b"3", b"4", b"5"]);
    let now_there = sealed::data_keys(&mut tx, None, 10).await.unwrap();
    assert!(now_there.iter().all(|key| key.bytes == b"new"));

    assert!(
        second_factors::begin(&mut tx, scene.user, b"old", now())
            .await
            .unwrap()
    );
    let factors = sealed::second_factors(&mut tx, None, 10).await.unwrap();
    assert_eq!(factors.len(), 1);
    assert_eq!(factors[0].place, SealedColumn::SecondFactor(scene.user));
    assert!(sealed::put(&mut tx, &factors[0], b"new").await.unwrap());
    let behind = sealed::second_factors(&mut tx, Some(scene.user), 10).await;
    assert!(behind.unwrap().is_empty());
}
