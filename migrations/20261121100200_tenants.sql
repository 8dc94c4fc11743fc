create table tenants (
  id uuid primary key,
  name text not null,
  status text not null default 'active' check (status in ('active', 'suspended', 'deleting', 'deleted')),
  epoch int not null default 0,
  registry_revision bigint not null default 1,
  policy jsonb not null default '{}',
  created_at timestamptz not null
);
comment on column tenants.registry_revision is 'Raised by every change of what the tenant publishes; nodes reload when it moves.';

create table tenant_slugs (
  slug text primary key check (slug ~ '^[a-z0-9](?:[a-z0-9-]{1,38}[a-z0-9])$'),
  tenant_id uuid not null references tenants on delete restrict,
  state text not null check (state in ('primary', 'alias', 'tombstone')),
  since timestamptz not null
);
create unique index tenant_slugs_primary on tenant_slugs (tenant_id) where state = 'primary';
comment on table tenant_slugs is 'Never deleted: a slug that once named a tenant never names another one (M3).';

create table memberships (
  tenant_id uuid not null references tenants on delete cascade,
  user_id uuid not null references users on delete cascade,
  role text not null check (role in ('owner', 'admin', 'developer', 'member', 'viewer')),
  status text not null default 'active' check (status in ('active', 'ended')),
  epoch int not null default 0,
  created_at timestamptz not null,
  ended_at timestamptz,
  primary key (tenant_id, user_id)
);
create index memberships_user on memberships (user_id) where status = 'active';

-- M1: a tenant keeps at least one active owner. Checked at commit, so that ownership can be handed over in one transaction. The lock
-- lets two owners who leave at the same moment take turns: the second one sees that the first is gone.
create function keep_an_owner() returns trigger language plpgsql as $$
begin
  perform 1 from tenants where id = old.tenant_id for no key update;
  if found
     and not exists (select 1 from memberships where tenant_id = old.tenant_id and role = 'owner' and status = 'active') then
    raise exception 'a tenant needs an owner' using errcode = 'check_violation', constraint = 'memberships_owner';
  end if;
  return null;
end $$;
create constraint trigger memberships_owner after update or delete on memberships
  deferrable initially deferred for each row execute function keep_an_owner();

alter table tenants enable row level security;
alter table tenants force row level security;
create policy core on tenants to portolan_core using (true) with check (true);
create policy own on tenants to portolan_tenant, portolan_node using (id = app_tenant()) with check (id = app_tenant());

alter table tenant_slugs enable row level security;
alter table tenant_slugs force row level security;
create policy core on tenant_slugs to portolan_core using (true) with check (true);
create policy own on tenant_slugs to portolan_tenant, portolan_node using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());

alter table memberships enable row level security;
alter table memberships force row level security;
create policy core on memberships to portolan_core using (true) with check (true);
create policy own on memberships to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());

grant select, insert, update, delete on tenants, memberships to portolan_core;
grant select, insert, update on tenant_slugs to portolan_core;
grant select, update on tenants to portolan_tenant;
grant select on tenant_slugs, memberships to portolan_tenant;
grant select on tenants, tenant_slugs to portolan_node;
