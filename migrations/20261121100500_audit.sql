create table audit_events (
  id uuid primary key,
  at timestamptz not null,
  tenant_id uuid references tenants on delete cascade,
  actor_kind text not null check (actor_kind in ('user', 'anonymous', 'system')),
  actor_id uuid,
  action text not null,
  target_kind text not null,
  target_id text not null,
  outcome text not null check (outcome in ('ok', 'refused')),
  request_id text,
  ip_block text,
  detail jsonb not null default '{}'
);
create index audit_events_tenant on audit_events (tenant_id, at desc, id desc);
comment on table audit_events is 'Append only: no role may change or delete a row.';

alter table audit_events enable row level security;
alter table audit_events force row level security;
create policy core_read on audit_events for select to portolan_core using (true);
create policy core_write on audit_events for insert to portolan_core with check (true);
create policy own_read on audit_events for select to portolan_tenant using (tenant_id = app_tenant());
create policy own_write on audit_events for insert to portolan_tenant, portolan_node with check (tenant_id = app_tenant());
grant select, insert on audit_events to portolan_core, portolan_tenant;
grant insert on audit_events to portolan_node;
