-- When an app last did something, apart from when its token was last renewed: a client that runs idle renews its token for ever.

create table grant_uses (
  tenant_id uuid not null references tenants on delete cascade,
  grant_id uuid not null references grants on delete cascade,
  used_at timestamptz not null,
  primary key (tenant_id, grant_id)
) with (fillfactor = 80);
comment on table grant_uses is 'The last request of an app at an MCP endpoint, to the minute. A row of its own: nodes write it, and do not wait for whoever changes the grant.';

alter table grant_uses enable row level security;
alter table grant_uses force row level security;
create policy core on grant_uses to portolan_core using (true) with check (true);
create policy own on grant_uses to portolan_tenant, portolan_node using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on grant_uses to portolan_core;
grant select on grant_uses to portolan_tenant;
grant select, insert, update on grant_uses to portolan_node;

-- API keys and service accounts have no grant: a node writes a use only where there is one.
create policy own_node on grants for select to portolan_node using (tenant_id = app_tenant());
grant select (id, tenant_id) on grants to portolan_node;

-- The best that is known of those that are there. The owner of the tables is no more than a tenant while row-level security is forced.
alter table grants no force row level security;
alter table refresh_families no force row level security;
alter table grant_uses no force row level security;
insert into grant_uses (tenant_id, grant_id, used_at)
  select g.tenant_id, g.id, greatest(g.last_used_at, f.last_used_at)
  from grants g left join refresh_families f on f.grant_id = g.id
  where greatest(g.last_used_at, f.last_used_at) is not null and g.revoked_at is null;
alter table grants force row level security;
alter table refresh_families force row level security;
alter table grant_uses force row level security;
