-- The flight recorder (auth.md X2): what happened on the way of an AI client into a workspace, step by step. Never a secret (X1).
create table connect_events (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  tenant_id uuid references tenants on delete cascade,
  step text not null check (step in ('challenge', 'resource_metadata', 'server_metadata', 'register', 'client_document', 'authorize',
    'sign_in', 'consent', 'token', 'refresh', 'request')),
  outcome text not null check (outcome in ('ok', 'waiting', 'refused', 'failed')),
  request_id text,
  authorization_id uuid,
  grant_id uuid,
  user_id uuid references users on delete set null,
  client_digest bytea check (octet_length(client_digest) = 32),
  client_id text,
  client_name text,
  server_slug text,
  ip_block text,
  agent text,
  rule text,
  fault text,
  detail jsonb not null default '{}'
);
create index connect_events_of_tenant on connect_events (tenant_id, at desc) where tenant_id is not null;
create index connect_events_of_authorization on connect_events (authorization_id) where authorization_id is not null;
create index connect_events_of_grant on connect_events (grant_id) where grant_id is not null;
create index connect_events_of_peer on connect_events (ip_block, at);
create index connect_events_of_client on connect_events (client_digest, at desc) where client_digest is not null;
create index connect_events_by_request on connect_events (request_id);
create index connect_events_expiry on connect_events (at);
create index connect_events_of_user on connect_events (user_id) where user_id is not null;
create unique index connect_events_first_request on connect_events (grant_id) where step = 'request' and outcome = 'ok';
comment on column connect_events.tenant_id is 'Null until a step names the workspace. Such steps are shown to a workspace only if they cannot be another''s.';
comment on column connect_events.client_digest is 'SHA-256 of client_id: what belongs to one client is found by it.';
comment on column connect_events.detail is 'What the client sent, as far as it may be kept: redirect URI, scope, resource, PKCE method. Never codes, tokens, state.';

alter table connect_events enable row level security;
alter table connect_events force row level security;
create policy core on connect_events to portolan_core using (true) with check (true);
grant select, insert, update, delete on connect_events to portolan_core;
