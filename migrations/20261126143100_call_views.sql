-- Saved views of the log of calls (CAPTURE-10).
create table call_views (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  user_id uuid not null references users on delete cascade,
  name text not null check (length(name) between 1 and 100),
  filter jsonb not null check (jsonb_typeof(filter) = 'object'),
  is_shared boolean not null,
  created_at timestamptz not null,
  changed_at timestamptz not null,
  primary key (tenant_id, id),
  constraint call_views_name unique (tenant_id, user_id, name)
);
comment on table call_views is 'Filters of the log of calls that people keep by name.';
comment on column call_views.user_id is 'The person who saved it. A shared view is seen by all members, and changed by this person alone.';
comment on column call_views.filter is 'The parameters of the address of the page.';

alter table call_views enable row level security;
alter table call_views force row level security;
create policy core on call_views to portolan_core using (true) with check (true);
create policy own on call_views to portolan_tenant
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on call_views to portolan_core, portolan_tenant;
