-- Events of a workspace, the endpoints that subscribe to them, deliveries and their attempts (HOOK-1).
-- New tables only: legal while the previous release runs.

create table events (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  at timestamptz not null,
  type text not null check (length(type) between 3 and 60),
  data jsonb not null check (octet_length(data::text) <= 16384),
  once text check (length(once) <= 200),
  spread_at timestamptz,
  primary key (tenant_id, id)
);
create unique index events_once on events (tenant_id, once) where once is not null;
create index events_waiting on events (at) where spread_at is null;
create index events_kept on events (at);
comment on table events is 'The outbox: written in the transaction of the change that an event reports. Kept 30 days.';
comment on column events.id is 'UUIDv7, minted once: the `webhook-id` of every delivery.';
comment on column events.once is 'Set where two nodes can see the same fact: one row a workspace.';
comment on column events.spread_at is 'When its deliveries and alerts were made; null until then.';

create table webhook_endpoints (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  kind text not null check (kind in ('standard', 'slack')),
  url text not null check (length(url) between 8 and 2000),
  description text not null default '' check (length(description) <= 200),
  event_types text[] not null check (cardinality(event_types) between 1 and 100),
  header_names text[] not null default '{}' check (cardinality(header_names) <= 10),
  dek_id uuid not null,
  sealed bytea not null,
  version int not null default 1,
  previous_secret_until timestamptz,
  state text not null default 'active' check (state in ('active', 'paused', 'disabled')),
  disabled_reason text check (disabled_reason in ('failing', 'gone')),
  failing_since timestamptz,
  created_by uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, dek_id) references tenant_deks (tenant_id, id) on delete cascade
);
comment on table webhook_endpoints is 'Receivers of events. At most 20 a workspace.';
comment on column webhook_endpoints.url is 'As shown. Of a slack endpoint the origin alone: its path is a secret, and sealed.';
comment on column webhook_endpoints.sealed is 'JSON of secrets, headers and the secret URL under the data key, bound to tenant, endpoint and version.';
comment on column webhook_endpoints.previous_secret_until is 'Until then deliveries carry the signature of the previous secret too.';
comment on column webhook_endpoints.failing_since is 'First failure since the last success.';

create table webhook_deliveries (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  tries int not null default 0,
  attempts int not null default 0,
  next_at timestamptz not null,
  held_until timestamptz,
  created_at timestamptz not null,
  done_at timestamptz,
  primary key (tenant_id, endpoint_id, event_id),
  foreign key (tenant_id, event_id) references events (tenant_id, id) on delete cascade,
  foreign key (tenant_id, endpoint_id) references webhook_endpoints (tenant_id, id) on delete cascade
);
create index webhook_deliveries_due on webhook_deliveries (next_at) where state = 'pending';
create index webhook_deliveries_held on webhook_deliveries (tenant_id, endpoint_id, held_until) where held_until is not null;
create index webhook_deliveries_event on webhook_deliveries (tenant_id, event_id);
comment on table webhook_deliveries is 'One event for one endpoint.';
comment on column webhook_deliveries.tries is 'Attempts of this round: the schedule counts them. A replay begins a new round.';
comment on column webhook_deliveries.attempts is 'All attempts; the number of the last one.';
comment on column webhook_deliveries.held_until is 'A worker sends it; afterwards another one may take it.';

create table webhook_attempts (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  number int not null,
  at timestamptz not null,
  millis int not null check (millis >= 0),
  status int check (status between 100 and 999),
  fault text check (length(fault) <= 500),
  response_head text check (octet_length(response_head) <= 4096),
  primary key (tenant_id, endpoint_id, event_id, number),
  foreign key (tenant_id, endpoint_id, event_id) references webhook_deliveries (tenant_id, endpoint_id, event_id) on delete cascade
);
comment on table webhook_attempts is 'One HTTP exchange of a delivery.';
comment on column webhook_attempts.fault is 'Why there is no status, as a sentence.';
comment on column webhook_attempts.response_head is 'The first KiB of the answer''s body.';

do $$
declare
  t text;
begin
  foreach t in array array['events', 'webhook_endpoints', 'webhook_deliveries', 'webhook_attempts'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
    execute format('grant select, insert, update, delete on %I to portolan_core, portolan_tenant', t);
  end loop;
end $$;
create policy own on events to portolan_tenant, portolan_node
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy own on webhook_endpoints to portolan_tenant
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy own on webhook_deliveries to portolan_tenant
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy own on webhook_attempts to portolan_tenant
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
-- Nodes write events (a refused credential, a limit), and read none.
grant insert on events to portolan_node;
