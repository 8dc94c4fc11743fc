-- Group roles are cluster-wide, so several databases of one server (tests) share them.
do $$
declare
  wanted text;
begin
  foreach wanted in array array['portolan_core', 'portolan_tenant', 'portolan_node'] loop
    begin
      execute format('create role %I nologin noinherit nobypassrls', wanted);
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
  begin
    create role portolan_app nologin noinherit nobypassrls;
  exception when duplicate_object or unique_violation then null;
  end;
  begin
    grant portolan_core, portolan_tenant, portolan_node to portolan_app;
  exception when unique_violation then null;
  end;
end $$;

grant usage on schema public to portolan_core, portolan_tenant, portolan_node, portolan_app;
-- A node checks at start that the schema is the one it was built for.
grant select on _sqlx_migrations to portolan_app, portolan_core;

-- The tenant of the transaction; unset gives null, and null matches no row: forgetting shows nothing.
create function app_tenant() returns uuid language sql stable
  as $$ select nullif(current_setting('app.tenant_id', true), '')::uuid $$;
