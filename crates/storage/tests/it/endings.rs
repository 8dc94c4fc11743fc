//! AUTH-M6: suspension and deletion of tenants.

use std::collections::BTreeMap;

use portolan_model::{Timestamp, id::TenantId};
use portolan_storage::{
    accounts::{
        endings::{self, Ending, GRACE},
        members,
    },
    oauth::{grants, revocations},
    platform::{operators, tenants},
    registry::registry_news::{News, NewsListener},
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use time::Duration;
use uuid::Uuid;

use crate::{
    database::Database,
    scene::{Scene, now, system},
};

async fn apply(
    store: &portolan_storage::Store,
    scene: &Scene,
    ending: Ending<'_>,
    at: Timestamp,
) -> bool {
    let mut tx = system(store).await;
    let done = endings::apply(&mut tx, scene.tenant, ending, at)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    done
}

#[tokio::test]
async fn m6_a_suspended_tenant_is_nowhere_and_its_old_tokens_stay_dead_when_it_is_back() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    let before = grants::standing(&mut system(&store).await, scene.tenant, scene.user)
        .await
        .unwrap()
        .unwrap();
    assert!(apply(&store, &scene, Ending::Suspend("unpaid"), now()).await);
    assert!(
        !apply(&store, &scene, Ending::Suspend("again"), now()).await,
        "only once"
    );
    let mut tx = system(&store).await;
    let standing = grants::standing(&mut tx, scene.tenant, scene.user)
        .await
        .unwrap()
        .unwrap();
    assert!(!standing.is_active, "AUTH-K16");
    assert!(tenants::by_slug(&mut tx, "acme").await.unwrap().is_none());
    assert!(
        members::workspaces_of(&mut tx, scene.user)
            .await
            .unwrap()
            .is_empty()
    );
    let told = revocations::live(&mut tx, None, now())
        .await
        .unwrap()
        .entries;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].epoch, Some(before.tenant_epoch + 1));
    let listed = operators::tenants(&mut tx, Some(scene.tenant), None, None, 1)
        .await
        .unwrap();
    assert_eq!(listed[0].status, "suspended");
    assert_eq!(listed[0].suspend_reason.as_deref(), Some("unpaid"));
    drop(tx);

    assert!(apply(&store, &scene, Ending::Resume, now()).await);
    let after = grants::standing(&mut system(&store).await, scene.tenant, scene.user)
        .await
        .unwrap()
        .unwrap();
    assert!(after.is_active);
    assert!(after.tenant_epoch > before.tenant_epoch + 1);
}

#[tokio::test]
async fn m6_an_operator_deletes_also_what_its_owner_deleted_and_then_no_owner_takes_it_back() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    assert!(apply(&store, &scene, Ending::Delete, now()).await);
    assert!(apply(&store, &scene, Ending::TakeBack, now()).await);
    assert!(apply(&store, &scene, Ending::Delete, now()).await);
    let later = now() + Duration::DAY;
    assert!(apply(&store, &scene, Ending::Evict, later).await);
    assert!(!apply(&store, &scene, Ending::Evict, later).await, "once");
    assert!(!apply(&store, &scene, Ending::TakeBack, later).await);
    let listed = operators::tenants(&mut system(&store).await, Some(scene.tenant), None, None, 1)
        .await
        .unwrap();
    assert_eq!(listed[0].suspended_at, Some(later));
    assert_eq!(listed[0].delete_after, Some(now() + GRACE), "not put off");
    assert!(apply(&store, &scene, Ending::Restore, later).await);
    assert!(apply(&store, &scene, Ending::Suspend(""), later).await);
    assert!(apply(&store, &scene, Ending::Evict, later).await);
    assert!(!apply(&store, &scene, Ending::TakeBack, later).await);
}

#[tokio::test]
async fn m6_nodes_hear_in_the_news_of_the_registry_that_a_tenant_stopped() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    let mut news = NewsListener::new(&store);
    assert_eq!(news.next().await, News::Everything);
    assert!(apply(&store, &scene, Ending::Delete, now()).await);
    assert_eq!(news.next().await, News::Changed(scene.tenant));
    let mut tx = system(&store).await;
    endings::shred(&mut tx, scene.tenant).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(news.next().await, News::Changed(scene.tenant));
    let mut tx = system(&store).await;
    endings::purge(&mut tx, scene.tenant).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(news.next().await, News::Changed(scene.tenant));
}

#[tokio::test]
async fn m6_a_deleted_tenant_can_be_restored_for_a_month() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    assert!(apply(&store, &scene, Ending::Delete, now()).await);
    let later = now() + GRACE;
    let overdue = async |but: &[TenantId], at| {
        endings::overdue(&mut system(&store).await, but, at)
            .await
            .unwrap()
    };
    assert_eq!(overdue(&[], later - Duration::SECOND).await, None);
    assert!(apply(&store, &scene, Ending::TakeBack, later - Duration::SECOND).await);
    assert!(apply(&store, &scene, Ending::Delete, now()).await);
    for ending in [Ending::TakeBack, Ending::Evict, Ending::Restore] {
        assert!(!apply(&store, &scene, ending, later).await, "too late");
    }
    assert_eq!(overdue(&[], later).await, Some(scene.tenant));
    assert_eq!(
        overdue(&[scene.tenant], later).await,
        None,
        "one that cannot go keeps no other one here"
    );
}

/// A row in each table that knows tenants and has none of this one yet. `{t}`: the tenant, `{u}`: a
/// member, `{g}`: a grant, `{x}`: ids.
const ROWS: &str = "
select make_partition('usage_minute', 'usage_minute_now', date_trunc('hour', now()), date_trunc('hour', now()) + interval '1 hour');
select make_partition('usage_hour', 'usage_hour_now', date_trunc('day', now()), date_trunc('day', now()) + interval '1 day');
select make_partition('usage_day', 'usage_day_now', date_trunc('month', now()), date_trunc('month', now()) + interval '1 month');
insert into usage_flush (at, minute, tenant_id, item, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations)
  values (now(), now(), '{t}', 'get', 0, 0, 0, 1, 0, 0, 0, 0, '');
insert into usage_minute (minute, tenant_id, item, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations)
  values (now(), '{t}', 'get', 0, 0, 0, 1, 0, 0, 0, 0, '');
insert into usage_hour select * from usage_minute where tenant_id = '{t}';
insert into usage_day select * from usage_minute where tenant_id = '{t}';
insert into call_log (at, tenant_id, id, item, caller, era, outcome, took_us, wait_us, backend_us, bytes_in, bytes_out, weight)
  values (now(), '{t}', '{x}', 'get', 0, 0, 0, 1, 0, 0, 0, 0, 1);
insert into call_log_contents (ends_at, tenant_id, call_id, at, server_id, dek_id, sealed) values (now(), '{t}', '{x}', now(), '{x}', '{x}', 'sealed');
insert into call_views (tenant_id, id, user_id, name, filter, is_shared, created_at, changed_at)
  values ('{t}', '{x}', '{u}', 'view', '{}', false, now(), now());
insert into oauth_clients (id, client_id, kind, tenant_id, name, metadata, metadata_digest, auth_method, application_type, grant_types, created_at)
  values ('{x}', 'svc-{x}', 'service', '{t}', 'robot', '{}', sha256('{x}'::bytea), 'client_secret_basic', 'web', '{client_credentials}', now());
insert into client_decisions (tenant_id, client_ref, decision, decided_at) values ('{t}', '{x}', 'allowed', now());
insert into client_requests (tenant_id, client_ref, user_id, asked_at) values ('{t}', '{x}', '{u}', now());
insert into connect_events (at, tenant_id, step, outcome) values (now(), '{t}', 'consent', 'ok');
insert into service_accounts (tenant_id, id, client_ref, created_at) values ('{t}', '{x}', '{x}', now());
insert into api_access (tenant_id, account_id, role, scopes, changed_at) values ('{t}', '{x}', 'viewer', '{registry:read}', now());
insert into api_keys (tenant_id, id, service_account_id, name, digest, hint, created_at, expires_at)
  values ('{t}', '{x}', '{x}', 'key', sha256('{x}'::bytea), 'abcd', now(), now());
insert into access_tokens (id, tenant_id, role, name, digest, hint, scopes, created_at, expires_at)
  values ('{x}', '{t}', 'viewer', 'token', sha256('{x}'::bytea), 'abcd', '{registry:read}', now(), now());
insert into trusted_pipelines (tenant_id, id, name, issuer, audience, subject, claims, role, scopes, minutes, created_at, changed_at)
  values ('{t}', '{x}', 'Deploy', 'https://ci.example', 'us', 'repo:acme/web:*', '{}', 'viewer', '{registry:read}', 15, now(), now());
insert into pipeline_refusals (tenant_id, pipeline_id, reason, seen, times, last_at) values ('{t}', '{x}', 'time', '', 1, now());
insert into pipeline_jwts (tenant_id, digest, expires_at) values ('{t}', sha256('{x}'::bytea), now());
insert into refresh_families (id, tenant_id, grant_id, generation, head_digest, idle_expires_at, expires_at)
  values ('{x}', '{t}', '{g}', 1, sha256('{x}'::bytea), now(), now());
insert into grant_uses (tenant_id, grant_id, used_at) values ('{t}', '{g}', now());
insert into workspace_hints (client_ref, user_id, tenant_id, seen_at) values ('{x}', '{u}', '{t}', now());
insert into invitations (id, tenant_id, address, address_norm, role, digest, inviter_id, created_at, expires_at)
  values ('{x}', '{t}', 'bob@acme.example', 'bob@acme.example', 'member', sha256('{x}'::bytea), '{u}', now(), now());
insert into tenant_deks (tenant_id, id, wrapped, created_at) values ('{t}', '{x}', 'wrapped', now());
insert into sources (tenant_id, id, kind, name, base_url, created_at, updated_at)
  values ('{t}', '{x}', 'mcp', 'source', 'https://api.example', now(), now());
insert into source_credentials (tenant_id, source_id, kind, sealed, dek_id, hint, updated_at)
  values ('{t}', '{x}', 'bearer', 'sealed', '{x}', 'abcd', now());
insert into credential_states (tenant_id, source_id, version, state, at) values ('{t}', '{x}', 1, 'works', now());
insert into tenant_domains (tenant_id, id, domain, txt_token, verified_at, created_at) values ('{t}', '{x}', '{x}.example', '1', now(), now());
insert into identity_providers (tenant_id, id, name, issuer, client_id, secret_sealed, dek_id, created_at, updated_at)
  values ('{t}', '{x}', 'Acme', 'https://id.example', 'us', 'sealed', '{x}', now(), now());
insert into identity_links (id, user_id, tenant_id, provider, issuer, subject, label, created_at)
  values ('{x}', '{u}', '{t}', 'idp', 'https://id.example', 'subject', 'label', now());
insert into identity_offers (id, browser_digest, tenant_id, provider, issuer, subject, label, display_name, target, created_at, expires_at)
  values ('{x}', sha256('{x}'::bytea), '{t}', 'idp', 'https://id.example', 'subject', 'label', 'name', '', now(), now());
insert into session_steps (session_id, tenant_id, provider_id, at)
  select id, '{t}', '{x}', now() from browser_sessions where user_id = '{u}' limit 1;
insert into login_attempts (state_digest, provider, tenant_id, purpose, browser_digest, target, server, sealed, created_at, expires_at)
  values (sha256('{x}'::bytea), 'idp', '{t}', 'sign_in', sha256('{x}'::bytea), '', '{}', 'sealed', now(), now());
insert into upstreams (tenant_id, source_id, next_check_at) values ('{t}', '{x}', now());
insert into attachments (tenant_id, source_id, name, key_digest, key_hint, key_created_at)
  values ('{t}', '{x}', 'office', sha256('{x}'::bytea), 'abcd', now());
insert into attachment_tunnels (tenant_id, source_id, node, instance, version, since, seen_at)
  values ('{t}', '{x}', 'n', 'i', '1', now(), now());
insert into upstream_sign_ins (tenant_id, source_id, sharing, client_kind, client_sealed, dek_id, updated_at)
  values ('{t}', '{x}', 'person', 'entered', 'sealed', '{x}', now());
insert into upstream_connections (tenant_id, id, source_id, owner_id, connected_by, issuer, server, address, renewable, sealed, dek_id, expires_at, connected_at)
  values ('{t}', '{x}', '{x}', '{u}', '{u}', 'https://as.example', '{}', 'https://api.example', true, 'sealed', '{x}', now(), now());
insert into upstream_attempts (state_digest, tenant_id, source_id, user_id, session_id, server, address, redirect_uri, back, sealed, created_at, expires_at)
  values (sha256('{x}'::bytea), '{t}', '{x}', '{u}', '{x}', '{}', 'https://api.example', 'https://portolan.example', 'page', 'sealed', now(), now());
insert into tools (tenant_id, id, source_id, operation_key, name, title, description, enabled, input_schema, plan, created_at, updated_at)
  values ('{t}', '{x}', '{x}', 'get', 'get', 'Get', '', true, '{}', '{}', now(), now());
insert into prompts (tenant_id, id, name, created_at, updated_at) values ('{t}', '{x}', 'prompt', now(), now());
insert into resources (tenant_id, id, kind, uri, name, body, content, created_at, updated_at)
  values ('{t}', '{x}', 'resource', 'note:one', 'one', 'text', 'text', now(), now());
insert into servers (tenant_id, id, slug, name, created_at, updated_at) values ('{t}', '{x}', 'tools', 'Tools', now(), now());
update tenants set default_server = '{x}' where id = '{t}';
insert into server_tools (tenant_id, server_id, tool_id, published_name) values ('{t}', '{x}', '{x}', 'get');
insert into server_prompts (tenant_id, server_id, prompt_id, published_name) values ('{t}', '{x}', '{x}', 'prompt');
insert into server_resources (tenant_id, server_id, resource_id, published_uri) values ('{t}', '{x}', '{x}', 'note:one');
insert into configuration_plans (tenant_id, id, owner, base_revision, changes_digest, sealed, created_at, expires_at)
  values ('{t}', '{x}', 'acme', 0, decode(repeat('00', 32), 'hex'), '', now(), now());
insert into saved_calls (tenant_id, id, server_id, name, method, params, expect, created_at, changed_at)
  values ('{t}', '{x}', '{x}', 'one', 'tools/call', '{}', '{}', now(), now());
insert into tool_calls (tenant_id, at, tool_name, outcome, duration_ms) values ('{t}', now(), 'get', 'ok', 1);
insert into tenant_limits (tenant_id, name, value, updated_at) values ('{t}', 'tool_calls', 1, now());
insert into limit_refusals (tenant_id, minute, name, refused) values ('{t}', now(), 'tool_calls', 1);
insert into events (tenant_id, id, at, type, data) values ('{t}', '{x}', now(), 'server.paused', '{}');
insert into webhook_endpoints (tenant_id, id, kind, url, event_types, dek_id, sealed, created_at, updated_at)
  values ('{t}', '{x}', 'standard', 'https://hook.example', '{server.paused}', '{x}', 'sealed', now(), now());
insert into webhook_deliveries (tenant_id, event_id, endpoint_id, next_at, created_at) values ('{t}', '{x}', '{x}', now(), now());
insert into webhook_attempts (tenant_id, endpoint_id, event_id, number, at, millis) values ('{t}', '{x}', '{x}', 1, now(), 1);
insert into alerts (tenant_id, id, rule, subject, severity, text, page, fired_at, last_at, notified_at)
  values ('{t}', '{x}', 'upstream_down', '{x}', 'info', 'text', '/', now(), now(), now());
insert into alert_settings (tenant_id, rule, enabled, mail, updated_at) values ('{t}', 'upstream_down', true, true, now());
insert into error_rates (tenant_id, server_id, since, above_at) values ('{t}', '{x}', now(), now());
insert into alert_reads (tenant_id, user_id, alert_id, read_at) values ('{t}', '{u}', '{x}', now());
insert into revocations (kind, ref, tenant_id, expires_at, created_at) values ('grant', '{x}', '{t}', now(), now());
insert into audit_events (id, at, tenant_id, actor_kind, action, target_kind, target_id, outcome)
  values ('{x}', now(), '{t}', 'system', 'thing.done', 'thing', '1', 'ok');
";

/// Rows of a tenant in each table that knows tenants.
async fn rows(owner: &mut PgConnection, tenant: TenantId) -> BTreeMap<String, i64> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
          where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace order by 1",
    )
    .fetch_all(&mut *owner)
    .await
    .unwrap();
    let mut all = BTreeMap::new();
    for table in tables {
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(format!(
            "select count(*) from {table} where tenant_id = '{}'",
            tenant.uuid()
        )))
        .fetch_one(&mut *owner)
        .await
        .unwrap();
        all.insert(table, count);
    }
    all
}

#[tokio::test]
async fn m6_a_purged_tenant_leaves_a_tombstone_and_its_log_and_no_other_tenant_loses_anything() {
    const STAY: [&str; 4] = ["audit_chain", "audit_events", "revocations", "tenant_slugs"];
    let database = Database::new().await;
    let store = database.store(4).await;
    let mut scene = Scene::new(&store).await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let doomed = scene.tenant;
    let mut tx = system(&store).await;
    let other = tenants::create(&mut tx, "Beta", &"beta".parse().unwrap(), scene.user, now())
        .await
        .unwrap()
        .id;
    tx.commit().await.unwrap();
    for tenant in [other, doomed] {
        scene.tenant = tenant;
        let mut tx = system(&store).await;
        let (_, grant) = scene.code(&mut tx).await;
        tx.commit().await.unwrap();
        let statements = ROWS
            .replace("{t}", &tenant.uuid().to_string())
            .replace("{u}", &scene.user.uuid().to_string())
            .replace("{g}", &grant.uuid().to_string())
            .replace("{x}", &Uuid::now_v7().to_string());
        sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(&mut owner)
            .await
            .unwrap();
        for (table, count) in rows(&mut owner, tenant).await {
            assert!(count > 0, "a new table: give ROWS a row of {table}");
        }
    }
    let untouched = rows(&mut owner, other).await;

    assert!(apply(&store, &scene, Ending::Delete, now()).await);
    let mut tx = system(&store).await;
    endings::shred(&mut tx, doomed).await.unwrap();
    tx.commit().await.unwrap();
    let left = rows(&mut owner, doomed).await;
    for table in [
        "tenant_deks",
        "source_credentials",
        "upstream_connections",
        "identity_providers",
    ] {
        assert_eq!(left[table], 0, "{table}");
    }
    assert!(left["sources"] > 0, "the rest is for the purge");
    let mut tx = system(&store).await;
    endings::purge(&mut tx, doomed).await.unwrap();
    tx.commit().await.unwrap();

    assert_eq!(rows(&mut owner, other).await, untouched);
    for (table, count) in rows(&mut owner, doomed).await {
        assert_eq!(
            count > 0,
            STAY.contains(&table.as_str()),
            "{table}: {count}"
        );
        // Tables that come later must be purged, too: the role needs the right to.
        let may: bool =
            sqlx::query_scalar("select has_table_privilege('portolan_core', $1, 'delete')")
                .bind(&table)
                .fetch_one(&mut owner)
                .await
                .unwrap();
        assert!(
            may || STAY.contains(&table.as_str()),
            "portolan_core may not delete from {table}"
        );
    }
    let mut tx = system(&store).await;
    let taken = tenants::create(
        &mut tx,
        "Thief",
        &"acme".parse().unwrap(),
        scene.user,
        now(),
    )
    .await;
    assert!(
        taken.unwrap_err().is_conflict_on(tenants::SLUG_TAKEN),
        "AUTH-M3: the slug is never given away"
    );
}
