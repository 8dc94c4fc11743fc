create table upstream_sign_ins (
  tenant_id uuid not null,
  source_id uuid not null,
  sharing text not null check (sharing in ('workspace', 'person')),
  method text not null default 'code' check (method in ('code', 'client_credentials')),
  scope text,
  client_issuer text,
  client_id text,
  client_kind text check (client_kind in ('document', 'registered', 'entered')),
  client_sealed bytea,
  dek_id uuid,
  version int not null default 1,
  updated_at timestamptz not null,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade,
  foreign key (tenant_id, dek_id) references tenant_deks (tenant_id, id),
  check ((client_sealed is null) = (dek_id is null)),
  check ((client_kind is null) = (client_sealed is null))
);
comment on table upstream_sign_ins is 'Sources that are signed in to by OAuth, and the client that the tenant is at their authorization servers.';
comment on column upstream_sign_ins.sharing is 'workspace: one account for all calls; person: calls use the account of who makes them, the one of the workspace only looks at lists.';
comment on column upstream_sign_ins.client_issuer is 'A client is nobody at another issuer (AU-7). Null for one that was entered and not used yet.';
comment on column upstream_sign_ins.client_sealed is 'Under the data key, bound to tenant, source and version.';

create table upstream_connections (
  tenant_id uuid not null,
  id uuid not null,
  source_id uuid not null,
  owner_id uuid references users on delete cascade,
  connected_by uuid not null references users on delete cascade,
  issuer text not null,
  server jsonb not null,
  address text not null,
  resource text,
  scope text,
  wanted_scope text,
  status text not null default 'ok' check (status in ('ok', 'needs_sign_in')),
  reason text,
  renewable boolean not null,
  sealed bytea not null,
  dek_id uuid not null,
  version int not null default 1,
  expires_at timestamptz not null,
  refreshing_until timestamptz,
  connected_at timestamptz not null,
  refreshed_at timestamptz,
  primary key (tenant_id, id),
  unique nulls not distinct (tenant_id, source_id, owner_id),
  foreign key (tenant_id, source_id) references upstream_sign_ins (tenant_id, source_id) on delete cascade,
  foreign key (tenant_id, dek_id) references tenant_deks (tenant_id, id)
);
create index upstream_connections_owner on upstream_connections (owner_id) where owner_id is not null;
comment on table upstream_connections is 'Accounts at upstream servers: of the workspace (no owner), or of a person.';
comment on column upstream_connections.address is 'Where the tokens may be sent: the address of the source when the way to them began.';
comment on column upstream_connections.sealed is 'Tokens and the client that they belong to, under the data key, bound to tenant, connection and version.';
comment on column upstream_connections.refreshing_until is 'Whoever sets it renews the tokens: one node at a time, the others wait for the version to move.';
comment on column upstream_connections.wanted_scope is 'What the server asked for beyond what was granted (403 insufficient_scope).';

create table upstream_attempts (
  state_digest bytea primary key,
  tenant_id uuid not null,
  source_id uuid not null,
  user_id uuid not null references users on delete cascade,
  session_id uuid not null,
  owner_id uuid references users on delete cascade,
  server jsonb not null,
  address text not null,
  resource text,
  scope text,
  redirect_uri text not null,
  back text not null check (back in ('console', 'page')),
  sealed bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  foreign key (tenant_id, source_id) references upstream_sign_ins (tenant_id, source_id) on delete cascade
);
create index upstream_attempts_expiry on upstream_attempts (expires_at);
comment on table upstream_attempts is 'Ways to authorization servers of others that browsers are on: used once, by the browser session that began it (AU-10).';
comment on column upstream_attempts.sealed is 'PKCE verifier and client, under the state itself: the database alone opens nothing.';

create function app_person() returns uuid language sql stable
  as $$ select nullif(current_setting('app.person', true), '')::uuid $$;

alter table upstream_sign_ins enable row level security;
alter table upstream_sign_ins force row level security;
create policy core on upstream_sign_ins to portolan_core using (true) with check (true);
create policy own on upstream_sign_ins to portolan_tenant, portolan_node using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());

alter table upstream_connections enable row level security;
alter table upstream_connections force row level security;
create policy core on upstream_connections to portolan_core using (true) with check (true);
-- A person's account is there only in that person's name, inside the tenant too.
create policy own on upstream_connections to portolan_tenant, portolan_node
  using (tenant_id = app_tenant() and (owner_id is null or owner_id = app_person()))
  with check (tenant_id = app_tenant() and (owner_id is null or owner_id = app_person()));

alter table upstream_attempts enable row level security;
alter table upstream_attempts force row level security;
create policy core on upstream_attempts to portolan_core using (true) with check (true);
create policy own on upstream_attempts to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());

grant select, insert, update, delete on upstream_sign_ins, upstream_connections, upstream_attempts to portolan_core, portolan_tenant;
grant select on upstream_sign_ins, upstream_connections to portolan_node;
-- A node renews tokens, and says when that is over.
grant update (sealed, dek_id, version, expires_at, refreshing_until, refreshed_at, scope, wanted_scope, status, reason, renewable)
  on upstream_connections to portolan_node;
