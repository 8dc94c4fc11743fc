alter table sources drop constraint sources_kind_check;
alter table sources add constraint sources_kind_check check (kind in ('openapi', 'http', 'mcp'));

create table upstreams (
  tenant_id uuid not null,
  source_id uuid not null,
  prefix text not null default '' check (length(prefix) <= 32),
  hold_changes boolean not null default false,
  revision text,
  server_name text,
  server_version text,
  instructions text,
  capabilities jsonb not null default '{}',
  skipped jsonb not null default '[]',
  pending jsonb,
  last_error text,
  failures int not null default 0,
  checked_at timestamptz,
  synced_at timestamptz,
  next_check_at timestamptz not null,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
create index upstreams_due on upstreams (next_check_at);
comment on table upstreams is 'What is known of sources of kind mcp: what the server says of itself, and when its lists were last looked at.';
comment on column upstreams.prefix is 'Stands before the names of its tools and prompts; mostly empty.';
comment on column upstreams.hold_changes is 'What changes at the server waits here until somebody agrees.';
comment on column upstreams.pending is 'Changes that wait: when they were found, a digest of the lists, what they are.';
comment on column upstreams.next_check_at is 'Whoever moves it on looks at the server: one node at a time.';

alter table upstreams enable row level security;
alter table upstreams force row level security;
create policy core on upstreams to portolan_core using (true) with check (true);
create policy own on upstreams to portolan_tenant, portolan_node using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());

grant select, insert, update, delete on upstreams to portolan_core, portolan_tenant;
grant select on upstreams to portolan_node;
-- A node that hears of a change asks for a look.
grant update (next_check_at) on upstreams to portolan_node;
