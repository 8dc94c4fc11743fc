-- Calls of a server that people keep, with what their answers have to be (PLAY-6).
create table saved_calls (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  server_id uuid not null,
  name text not null check (length(name) between 1 and 100),
  method text not null check (method in ('tools/call', 'prompts/get', 'resources/read')),
  params jsonb not null check (jsonb_typeof(params) = 'object'),
  expect jsonb not null check (jsonb_typeof(expect) = 'object'),
  changed_by uuid references users on delete set null,
  created_at timestamptz not null,
  changed_at timestamptz not null,
  primary key (tenant_id, id),
  constraint saved_calls_name unique (tenant_id, server_id, name),
  foreign key (tenant_id, server_id) references servers (tenant_id, id) on delete cascade
);
comment on table saved_calls is 'Calls of a server that the playground keeps, with assertions on their answers.';
comment on column saved_calls.params is 'Parameters of the method, as a client sends them, without _meta.';
comment on column saved_calls.expect is 'Assertions (model::saved_call::Expectations).';
comment on column saved_calls.changed_by is 'Who saved it last; null when that person is gone.';

alter table saved_calls enable row level security;
alter table saved_calls force row level security;
create policy core on saved_calls to portolan_core using (true) with check (true);
create policy own on saved_calls to portolan_tenant
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on saved_calls to portolan_core, portolan_tenant;
