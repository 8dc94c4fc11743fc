create table tenant_limits (
  tenant_id uuid not null references tenants on delete cascade,
  name text not null check (name in ('tenant_calls', 'client_requests', 'tool_calls', 'running_calls', 'open_streams')),
  value int not null check (value > 0),
  updated_at timestamptz not null,
  primary key (tenant_id, name)
);
comment on table tenant_limits is 'Limits that a tenant has set; where there is no row, the default of the platform holds.';
comment on column tenant_limits.value is 'A minute for calls and requests, at once for running_calls and open_streams.';

create table limit_refusals (
  tenant_id uuid not null references tenants on delete cascade,
  minute timestamptz not null,
  name text not null,
  refused bigint not null,
  primary key (tenant_id, minute, name)
);
comment on table limit_refusals is 'How many requests each limit refused in a minute, over all nodes. Kept 30 days.';

do $$
declare
  t text;
begin
  foreach t in array array['tenant_limits', 'limit_refusals'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
    execute format('create policy own on %I to portolan_tenant, portolan_node using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
  end loop;
end $$;

grant select, insert, update, delete on tenant_limits, limit_refusals to portolan_core;
grant select, insert, update, delete on tenant_limits to portolan_tenant;
grant select on tenant_limits to portolan_node;
grant select on limit_refusals to portolan_tenant;
grant select, insert, update on limit_refusals to portolan_node;
