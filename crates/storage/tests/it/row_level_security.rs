//! AUTH-M2: tenants are isolated by the database, whatever a query forgets.

use portolan_model::{
    Digest,
    id::{SourceId, TenantId},
};
use portolan_storage::{Needs, Reason, Tx, oauth::refresh_tokens, registry::sources};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::database::Database;

/// Every table that holds rows of tenants: those with a `tenant_id`, and the tenants themselves.
const TENANT_TABLES: &str =
    "select c.oid, c.relname::text as name, c.relrowsecurity, c.relforcerowsecurity
    from pg_class c
    where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace
      and (c.relname = 'tenants' or exists (select 1 from pg_attribute a
             where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped))
    order by c.relname";

#[tokio::test]
async fn every_table_with_a_tenant_forces_row_level_security_and_has_its_policies() {
    let database = Database::new().await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let tables = sqlx::query(TENANT_TABLES)
        .fetch_all(&mut owner)
        .await
        .unwrap();
    assert!(
        tables.len() >= 15,
        "the query finds the tables: {}",
        tables.len()
    );
    for table in tables {
        let name: String = table.get("name");
        assert!(
            table.get::<bool, _>("relrowsecurity"),
            "{name}: enable row level security"
        );
        assert!(
            table.get::<bool, _>("relforcerowsecurity"),
            "{name}: force row level security"
        );
        for role in ["portolan_core", "portolan_tenant", "portolan_node"] {
            let granted: bool = sqlx::query_scalar(
                "select has_table_privilege($1, $2, 'select, insert, update, delete')",
            )
            .bind(role)
            .bind(&name)
            .fetch_one(&mut owner)
            .await
            .unwrap();
            let policies: Vec<String> = sqlx::query_scalar(
                "select coalesce(qual, '') || ' ' || coalesce(with_check, '') from pg_policies
                 where schemaname = 'public' and tablename = $1 and $2 = any(roles)",
            )
            .bind(&name)
            .bind(role)
            .fetch_all(&mut owner)
            .await
            .unwrap();
            assert!(
                !granted || !policies.is_empty(),
                "{name}: {role} may use it, but has no policy"
            );
            if role != "portolan_core" {
                assert!(
                    policies
                        .iter()
                        .all(|policy| policy.contains("app_tenant()")),
                    "{name}: a policy of {role} does not look at the tenant"
                );
            }
        }
    }
}

/// A scope's settings begin and end with its transaction, so that the connection can be reused for
/// any tenant.
#[tokio::test]
async fn role_and_tenant_of_a_scope_end_with_its_transaction() {
    // All scopes get the same connection.
    let store = Database::new().await.store(1).await;
    let tenant = TenantId::generate();
    let own = tenant.uuid().to_string();
    for is_kept in [false, true] {
        let mut tx = store.node(tenant).await.unwrap();
        assert_eq!(set_in(&mut tx).await, ["portolan_node", own.as_str()]);
        if is_kept {
            tx.commit().await.unwrap();
        } else {
            drop(tx);
        }
        let mut tx = store.system(Reason::Operator).await.unwrap();
        assert_eq!(set_in(&mut tx).await, ["portolan_core", ""]);
        drop(tx);
        let mut tx = store.tenant(tenant).await.unwrap();
        assert_eq!(set_in(&mut tx).await, ["portolan_tenant", own.as_str()]);
    }
}

/// ADR 31: a function that opens a scope itself also closes it, and opens none inside of
/// another.
#[tokio::test]
async fn a_function_opens_a_scope_for_itself_alone() {
    let database = Database::new().await;
    let store = database.store(1).await;
    let digest = Digest::from_bytes([7; 32]);
    let seen = refresh_tokens::look(&store, "cli_nobody", &digest).await;
    assert!(seen.unwrap().is_none(), "it may look, and finds nothing");

    let mut login = PgConnection::connect(&database.login_url()).await.unwrap();
    let who = "select current_user::text";
    let own: String = sqlx::query_scalar(who).fetch_one(&mut login).await.unwrap();
    let tenant = TenantId::generate();
    for call in [
        "select grant_states(array[null::uuid], array[decode(repeat('07', 32), 'hex')], array[null::text])",
        "select rotate_refresh_tokens(array[gen_random_uuid()], array[0], array[''::bytea], array[''::bytea], array[''::bytea], array[now()], array[now()], array[''::bytea])",
    ] {
        sqlx::query(call).execute(&mut login).await.unwrap();
        let after: String = sqlx::query_scalar(who).fetch_one(&mut login).await.unwrap();
        assert_eq!(after, own, "{call}: the role is gone with the statement");

        let mut tx = store.system(Reason::Operator).await.unwrap();
        sqlx::query(call).execute(tx.raw()).await.unwrap();
        drop(tx);
        for is_node in [false, true] {
            let mut tx = if is_node {
                store.node(tenant).await.unwrap()
            } else {
                store.tenant(tenant).await.unwrap()
            };
            let refused = sqlx::query(call).execute(tx.raw()).await.unwrap_err();
            let refused = refused.into_database_error().unwrap();
            assert_eq!(
                refused.code().as_deref(),
                Some("42501"),
                "{call} in a tenant's scope"
            );
        }
    }
}

/// Role and tenant of a transaction.
async fn set_in(tx: &mut impl Tx) -> [String; 2] {
    sqlx::query_as::<_, (String, String)>(
        "select current_user::text, coalesce(current_setting('app.tenant_id', true), '')",
    )
    .fetch_one(tx.raw())
    .await
    .unwrap()
    .into()
}

#[tokio::test]
async fn no_role_of_a_scope_bypasses_row_level_security_or_owns_a_table() {
    let database = Database::new().await;
    assert_eq!(
        database
            .store(1)
            .await
            .role_faults(Needs::AllScopes)
            .await
            .unwrap(),
        Vec::<&str>::new()
    );
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let bad: Vec<String> = sqlx::query_scalar(
        "select r.rolname::text from pg_roles r where r.rolname like 'portolan\\_%' and (r.rolsuper or r.rolbypassrls
           or exists (select 1 from pg_class c where c.relowner = r.oid and c.relnamespace = 'public'::regnamespace
                       and not (r.rolname = 'portolan_keeper' and c.relname ~ '^(usage_|call_log|flush_seq)')))",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    assert_eq!(bad, Vec::<String>::new());
}

/// CASE-105: without a tenant a scope shows nothing, a neighbour's rows never, and a foreign row
/// cannot be written.
#[tokio::test]
async fn a_scope_shows_its_own_tenant_and_no_other() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let now = portolan_model::Clock::system().now();
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let (acme, beta) = (TenantId::generate(), TenantId::generate());
    for (tenant, slug) in [(acme, "acme"), (beta, "beta-co")] {
        for statement in [
            format!(
                "insert into tenants (id, name, created_at) values ('{}', '{slug}', now())",
                tenant.uuid()
            ),
            format!(
                "insert into tenant_slugs (slug, tenant_id, state, since) values ('{slug}', '{}', 'primary', now())",
                tenant.uuid()
            ),
        ] {
            sqlx::query(AssertSqlSafe(statement))
                .execute(&mut owner)
                .await
                .unwrap();
        }
        let mut tx = store.tenant(tenant).await.unwrap();
        let new = sources::NewSource {
            id: SourceId::generate(),
            kind: portolan_model::registry::SourceKind::Http,
            name: slug,
            base_url: "https://api.example.com",
            document: None,
            security: &json!([]),
        };
        sources::insert(&mut tx, &new, now).await.unwrap();
        tx.commit().await.unwrap();
    }

    let mut tx = store.tenant(acme).await.unwrap();
    let seen: Vec<String> = sources::list(&mut tx)
        .await
        .unwrap()
        .into_iter()
        .map(|source| source.name)
        .collect();
    assert_eq!(seen, ["acme"], "the tenant's own rows are there");
    drop(tx);

    // Below the functions of this crate: what a query without any condition would see.
    let tables = sqlx::query(TENANT_TABLES)
        .fetch_all(&mut owner)
        .await
        .unwrap();
    for role in ["portolan_tenant", "portolan_node"] {
        for tenant in ["", &acme.uuid().to_string()] {
            let mut tx = owner.begin().await.unwrap();
            sqlx::query(
                "select set_config('role', $1, true), set_config('app.tenant_id', $2, true)",
            )
            .bind(role)
            .bind(tenant)
            .execute(&mut *tx)
            .await
            .unwrap();
            for table in &tables {
                let name: String = table.get("name");
                let column = if name == "tenants" { "id" } else { "tenant_id" };
                let may: bool = sqlx::query_scalar("select has_table_privilege($1, 'select')")
                    .bind(&name)
                    .fetch_one(&mut *tx)
                    .await
                    .unwrap();
                if !may {
                    continue;
                }
                let foreign: i64 = sqlx::query_scalar(AssertSqlSafe(format!(
                    "select count(*) from {name} where {column} is distinct from nullif(current_setting('app.tenant_id'), '')::uuid"
                )))
                .fetch_one(&mut *tx)
                .await
                .unwrap();
                assert_eq!(foreign, 0, "{role} sees rows of others in {name}");
            }
        }
    }

    let mut tx = owner.begin().await.unwrap();
    sqlx::query(
        "select set_config('role', 'portolan_tenant', true), set_config('app.tenant_id', $1, true)",
    )
    .bind(acme.uuid().to_string())
    .execute(&mut *tx)
    .await
    .unwrap();
    let foreign = sqlx::query(
        "insert into sources (tenant_id, id, kind, name, base_url, created_at, updated_at) values ($1, $2, 'http', 'x', 'https://x.example', now(), now())",
    )
    .bind(beta.uuid())
    .bind(SourceId::generate().uuid())
    .execute(&mut *tx)
    .await;
    let code = foreign
        .unwrap_err()
        .as_database_error()
        .and_then(|error| error.code().map(std::borrow::Cow::into_owned));
    assert_eq!(
        code.as_deref(),
        Some("42501"),
        "a row for another tenant is refused by its policy"
    );
}

/// TEST-S5: with a row of two tenants in every table, a tenant's scopes neither show, change, remove
/// nor make one of the other, and show none without a tenant.
#[tokio::test]
async fn s5_no_scope_reaches_a_row_of_another_tenant_in_any_table() {
    let database = Database::new().await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    // So that a row can be a tenant and nothing else: what a policy looks at is neither a
    // constraint nor a trigger.
    sqlx::raw_sql(
        "do $$ declare one record; begin
           for one in select conrelid::regclass as name, conname from pg_constraint
               where connamespace = 'public'::regnamespace and contype in ('f', 'c', 'x', 'u', 'p') and conrelid <> 0 and conparentid = 0
               order by array_position(array['f', 'c', 'x', 'u', 'p'], contype::text) loop
             execute format('alter table %s drop constraint %I', one.name, one.conname);
           end loop;
           for one in select i.indexrelid::regclass as name from pg_index i join pg_class c on c.oid = i.indexrelid
               where i.indisunique and c.relnamespace = 'public'::regnamespace loop
             execute format('drop index %s', one.name);
           end loop;
           for one in select a.attrelid::regclass as name, a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
               where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace and a.attnum > 0 and a.attnotnull and a.attidentity = '' loop
             execute format('alter table %s alter column %I drop not null', one.name, one.attname);
           end loop;
           for one in select c.oid::regclass as name from pg_class c
               where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace loop
             execute format('alter table %s disable trigger user', one.name);
           end loop;
         end $$",
    )
    .execute(&mut owner)
    .await
    .unwrap();
    let (acme, beta) = (TenantId::generate().uuid(), TenantId::generate().uuid());
    let mut tables: Vec<(String, &str)> = Vec::new();
    for (table, width) in [
        ("usage_minute", "hour"),
        ("usage_hour", "day"),
        ("usage_day", "month"),
    ] {
        sqlx::query(AssertSqlSafe(format!(
            "select make_partition('{table}', '{table}_now', date_trunc('{width}', now()), date_trunc('{width}', now()) + interval '1 {width}')"
        )))
        .execute(&mut owner)
        .await
        .unwrap();
    }
    for table in sqlx::query(TENANT_TABLES)
        .fetch_all(&mut owner)
        .await
        .unwrap()
    {
        let name: String = table.get("name");
        let column = if name == "tenants" { "id" } else { "tenant_id" };
        let when = partition_key(&mut owner, &name).await;
        sqlx::query(AssertSqlSafe(match &when {
            Some(when) => {
                format!("insert into {name} ({column}, {when}) values ($1, now()), ($2, now())")
            }
            None => format!("insert into {name} ({column}) values ($1), ($2)"),
        }))
        .bind(acme)
        .bind(beta)
        .execute(&mut owner)
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
        tables.push((name, column));
    }

    let mut shown = 0;
    for role in ["portolan_tenant", "portolan_node"] {
        for tenant in [None, Some(acme)] {
            for (name, column) in &tables {
                let foreign = format!("{role} of {tenant:?}, {name}");
                let mut tx = owner.begin().await.unwrap();
                let set = tenant.map(|tenant| tenant.to_string()).unwrap_or_default();
                sqlx::query(
                    "select set_config('role', $1, true), set_config('app.tenant_id', $2, true)",
                )
                .bind(role)
                .bind(set)
                .execute(&mut *tx)
                .await
                .unwrap();
                let may: Vec<(String, bool)> = sqlx::query_as(
                    "select way, has_column_privilege($1, $2, way) or way = 'delete' and has_table_privilege($1, way)
                     from unnest(array['select', 'update', 'insert']) way
                     union all select 'delete', has_table_privilege($1, 'delete')",
                )
                .bind(name)
                .bind(column)
                .fetch_all(&mut *tx)
                .await
                .unwrap();
                let may = |way: &str| may.iter().any(|(other, may)| other == way && *may);
                if may("select") {
                    let seen: Vec<Option<uuid::Uuid>> =
                        sqlx::query_scalar(AssertSqlSafe(format!("select {column} from {name}")))
                            .fetch_all(&mut *tx)
                            .await
                            .unwrap();
                    assert!(
                        seen.iter().all(|seen| *seen == tenant),
                        "{foreign}: {seen:?}"
                    );
                    shown += seen.len();
                }
                for (way, statement) in [
                    ("update", format!("update {name} set {column} = $1")),
                    ("delete", format!("delete from {name}")),
                ] {
                    if may(way) {
                        let statement = format!("{statement} where $1 is not null");
                        let changed = sqlx::query(AssertSqlSafe(statement))
                            .bind(acme)
                            .execute(&mut *tx)
                            .await
                            .unwrap_or_else(|error| panic!("{foreign}: {way}: {error}"))
                            .rows_affected();
                        let most = u64::from(tenant.is_some());
                        assert!(changed <= most, "{foreign}: {way} of {changed} rows");
                    }
                }
                if may("insert") {
                    // Postgres refuses a row without a partition before it checks the policy.
                    let statement = match partition_key(&mut tx, name).await {
                        Some(when) => {
                            format!("insert into {name} ({column}, {when}) values ($1, now())")
                        }
                        None => format!("insert into {name} ({column}) values ($1)"),
                    };
                    let refused = sqlx::query(AssertSqlSafe(statement))
                        .bind(beta)
                        .execute(&mut *tx)
                        .await
                        .unwrap_err();
                    let code = refused
                        .as_database_error()
                        .and_then(sqlx::error::DatabaseError::code);
                    assert_eq!(code.as_deref(), Some("42501"), "{foreign}: insert");
                }
            }
        }
    }
    assert!(
        shown >= tables.len(),
        "{shown} rows of its own in {} tables",
        tables.len()
    );
}

/// The column by which a table is partitioned.
async fn partition_key(connection: &mut PgConnection, table: &str) -> Option<String> {
    sqlx::query_scalar(
        "select a.attname::text from pg_partitioned_table p join pg_attribute a on a.attrelid = p.partrelid and a.attnum = p.partattrs[0]
          where p.partrelid = $1::text::regclass",
    )
    .bind(table)
    .fetch_optional(connection)
    .await
    .unwrap()
}

/// Rule: METER-11. Rows of partitions are reached by their table, whose policies hold.
#[tokio::test]
async fn a_partition_forces_row_level_security_and_opens_to_nobody() {
    let database = Database::new().await;
    let store = database.store(1).await;
    let now = portolan_model::Clock::system().now();
    assert!(
        portolan_storage::platform::usage::folds::prepare(&store, now)
            .await
            .unwrap()
    );
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let partitions: Vec<(String, String, bool, bool)> = sqlx::query_as(
        "select c.oid::regclass::text, n.nspname::text, c.relrowsecurity and c.relforcerowsecurity,
                exists (select 1 from unnest(array['portolan_core', 'portolan_tenant', 'portolan_node', 'portolan_edge', 'portolan_app', 'portolan_mcp']) role
                         where has_table_privilege(role, c.oid, 'select, insert, update, delete, truncate'))
           from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relispartition and c.relkind = 'r'",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    assert!(
        partitions.len() > 30,
        "the query finds partitions: {}",
        partitions.len()
    );
    for (name, schema, forces, opens) in partitions {
        assert_eq!(schema, "partitions", "{name}");
        assert!(forces, "{name}: force row level security");
        assert!(!opens, "{name}: a role of a scope has rights");
    }
}

/// TEST-S5: what runs with its owner's rights, and not the caller's, sees past the policies.
#[tokio::test]
async fn s5_no_function_and_no_view_looks_with_the_rights_of_its_owner() {
    let database = Database::new().await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let functions: Vec<(String, bool)> = sqlx::query_as(
        "select proname::text, prosecdef from pg_proc where pronamespace = 'public'::regnamespace",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    assert!(
        functions.iter().any(|(name, _)| name == "app_tenant"),
        "the query finds functions: {functions:?}"
    );
    let raised: Vec<_> = functions.iter().filter(|(_, raised)| *raised).collect();
    assert!(raised.is_empty(), "security definer: {raised:?}");
    let views: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class where relkind in ('v', 'm') and relnamespace = 'public'::regnamespace",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    assert!(views.is_empty(), "views: {views:?}");
}
