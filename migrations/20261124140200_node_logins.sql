-- What an MCP node needs beyond one tenant, as a role of its own (S-13): so its login role need not be able to become portolan_core. Whoever makes
-- a node run other SQL gets the registry of tenants, and no people, sessions, refresh tokens, mail or private keys.

do $$
declare
  wanted text;
begin
  foreach wanted in array array['portolan_edge', 'portolan_mcp'] loop
    begin
      execute format('create role %I nologin noinherit nobypassrls', wanted);
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
  begin
    grant portolan_edge to portolan_app;
    grant portolan_edge, portolan_node to portolan_mcp;
  exception when unique_violation then null;
  end;
end $$;
grant usage on schema public to portolan_edge, portolan_mcp;
grant select on _sqlx_migrations to portolan_edge;

-- The feed: what is revoked, and with which keys tokens are verified.
create policy feed on revocations for select to portolan_edge using (true);
grant select on revocations to portolan_edge;
grant select (kid, public_jwk, publish_at, sign_from, sign_until, gone_at, denied_at) on signing_keys to portolan_edge;

-- The flight recorder: steps are written, and those that come again are counted. What was written is not read again.
create policy slugs on tenant_slugs for select to portolan_edge using (true);
grant select (slug, tenant_id, state) on tenant_slugs to portolan_edge;
create policy record on connect_events for insert to portolan_edge with check (true);
create policy seen on connect_events for select to portolan_edge using (true);
create policy again on connect_events for update to portolan_edge using (true) with check (true);
grant insert on connect_events to portolan_edge;
grant select (id, grant_id, step, outcome, rule, fault, repeats, last_at), update (repeats, last_at) on connect_events to portolan_edge;

-- API keys: whose key it is says the one row whose digest is presented; the rest is looked up inside that tenant.
create function app_presented() returns bytea language sql stable
  as $$ select decode(nullif(current_setting('app.presented', true), ''), 'hex') $$;
comment on function app_presented is 'The digest of the API key that is presented in this transaction; unset gives null, and null matches no row.';
create policy presented on api_keys for select to portolan_edge using (digest = app_presented());
grant select (tenant_id, digest) on api_keys to portolan_edge;

create policy own_node on api_keys to portolan_node using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select (id, tenant_id, digest, user_id, service_account_id, resource, networks, expires_at, revoked_at), update (last_used_at)
  on api_keys to portolan_node;
create policy own_node on service_accounts for select to portolan_node using (tenant_id = app_tenant());
grant select (id, tenant_id, epoch, disabled_at) on service_accounts to portolan_node;
create policy own_node on memberships for select to portolan_node using (tenant_id = app_tenant());
grant select (tenant_id, user_id, role, status, epoch) on memberships to portolan_node;

-- Whether a member may act. Nothing else of a person, and nobody who is no member.
alter table users enable row level security;
alter table users force row level security;
create policy core on users to portolan_core using (true) with check (true);
create policy member on users for select to portolan_node
  using (exists (select 1 from memberships m where m.tenant_id = app_tenant() and m.user_id = users.id));
grant select (id, status, epoch, verified_at) on users to portolan_node;
