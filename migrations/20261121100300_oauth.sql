create table oauth_clients (
  id uuid primary key,
  client_id text not null unique,
  kind text not null check (kind in ('dynamic', 'cimd', 'static')),
  tenant_id uuid references tenants on delete cascade,
  name text not null,
  metadata jsonb not null,
  metadata_digest bytea not null check (octet_length(metadata_digest) = 32),
  auth_method text not null check (auth_method in ('none', 'client_secret_basic', 'client_secret_post')),
  application_type text not null check (application_type in ('web', 'native')),
  grant_types text[] not null,
  status text not null default 'active' check (status in ('active', 'blocked')),
  created_ip_block text,
  created_at timestamptz not null,
  last_used_at timestamptz,
  ever_granted boolean not null default false
);
create unique index oauth_clients_same on oauth_clients (metadata_digest) where kind = 'dynamic' and auth_method = 'none';
create index oauth_clients_unused on oauth_clients (created_at) where not ever_granted;
comment on index oauth_clients_same is 'C10: equal registrations of public clients get the same client_id.';

create table oauth_client_redirects (
  client_ref uuid not null references oauth_clients on delete cascade,
  uri text not null,
  primary key (client_ref, uri)
);

create table oauth_client_secrets (
  id uuid primary key,
  client_ref uuid not null references oauth_clients on delete cascade,
  digest bytea not null check (octet_length(digest) = 32),
  created_at timestamptz not null,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz
);
create index oauth_client_secrets_client on oauth_client_secrets (client_ref);

create table client_documents (
  url text primary key,
  client_ref uuid not null references oauth_clients on delete cascade,
  digest bytea not null check (octet_length(digest) = 32),
  fetched_at timestamptz not null,
  fresh_until timestamptz not null,
  stale_until timestamptz not null
);
comment on table client_documents is 'Client ID metadata documents, cached (C4). Errors are never cached.';

create table authorization_requests (
  id uuid primary key,
  client_ref uuid not null references oauth_clients on delete cascade,
  redirect_uri text not null,
  code_challenge text not null,
  state text,
  scopes_asked text[] not null,
  resource_asked text,
  prompt text,
  max_age int,
  login_hint text,
  browser_digest bytea not null check (octet_length(browser_digest) = 32),
  user_id uuid references users on delete cascade,
  session_id uuid references browser_sessions on delete set null,
  status text not null default 'pending' check (status in ('pending', 'approved', 'denied', 'expired')),
  shown_at timestamptz,
  decided_at timestamptz,
  outcome_sealed bytea,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index authorization_requests_expiry on authorization_requests (expires_at);
comment on column authorization_requests.shown_at is 'When the consent page was last shown: a POST sooner than 300 ms after it is refused (N6).';
comment on column authorization_requests.outcome_sealed is 'The redirect that was answered, sealed, so that a second POST gets the same one for 120 s (N5).';

create table grants (
  id uuid primary key,
  tenant_id uuid not null references tenants on delete cascade,
  user_id uuid not null references users on delete cascade,
  client_ref uuid not null references oauth_clients on delete restrict,
  client_snapshot jsonb not null,
  scopes text[] not null,
  resource text not null,
  session_id uuid references browser_sessions on delete set null,
  auth_time timestamptz not null,
  amr text[] not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  revoke_reason text,
  ip_block text,
  ua_label text
);
create index grants_person on grants (tenant_id, user_id) where revoked_at is null;
create index grants_client on grants (client_ref) where revoked_at is null;

create table authorization_codes (
  digest bytea primary key check (octet_length(digest) = 32),
  request_id uuid not null unique references authorization_requests on delete cascade,
  tenant_id uuid not null references tenants on delete cascade,
  grant_id uuid not null references grants on delete cascade,
  client_ref uuid not null references oauth_clients on delete cascade,
  redirect_uri text not null,
  code_challenge text not null,
  resource text not null,
  resource_given boolean not null,
  attempts int not null default 0,
  expires_at timestamptz not null,
  redeemed_at timestamptz,
  redeem_attempt uuid
);
create index authorization_codes_expiry on authorization_codes (expires_at);
comment on column authorization_codes.resource_given is 'False when the client named no resource and the workspace picker chose (auth.md 5.4).';

create table refresh_families (
  id uuid primary key,
  tenant_id uuid not null references tenants on delete cascade,
  grant_id uuid not null unique references grants on delete cascade,
  generation int not null,
  head_digest bytea not null check (octet_length(head_digest) = 32),
  idle_expires_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  revoke_reason text,
  replays int not null default 0
);
create index refresh_families_idle on refresh_families (idle_expires_at) where revoked_at is null;

create table refresh_tokens (
  digest bytea primary key check (octet_length(digest) = 32),
  family_id uuid not null references refresh_families on delete cascade,
  generation int not null,
  issued_at timestamptz not null,
  superseded_at timestamptz,
  successor_sealed bytea,
  presented_at timestamptz,
  replays int not null default 0,
  unique (family_id, generation)
);
comment on column refresh_tokens.successor_sealed is 'The next token, sealed under a key derived from this one: only its holder can read it (K9).';
comment on column refresh_tokens.presented_at is 'First time this token was presented at the token endpoint.';

create table revocations (
  seq bigint generated always as identity primary key,
  kind text not null check (kind in ('jti', 'grant', 'user', 'tenant', 'member', 'client', 'kid')),
  ref text not null,
  tenant_id uuid references tenants on delete cascade,
  epoch int,
  expires_at timestamptz not null,
  created_at timestamptz not null
);
create index revocations_expiry on revocations (expires_at);
create index revocations_recent on revocations (created_at);

create table signing_keys (
  kid text primary key,
  alg text not null check (alg in ('ES256')),
  public_jwk jsonb not null,
  private_sealed bytea not null,
  created_at timestamptz not null,
  publish_at timestamptz not null,
  sign_from timestamptz not null,
  sign_until timestamptz not null,
  gone_at timestamptz not null,
  denied_at timestamptz
);
comment on table signing_keys is 'The state of a key follows from its times, computed alike by every node (J2).';

create table workspace_hints (
  client_ref uuid not null references oauth_clients on delete cascade,
  user_id uuid not null references users on delete cascade,
  tenant_id uuid not null references tenants on delete cascade,
  seen_at timestamptz not null,
  primary key (client_ref, user_id)
);

do $$
declare
  t text;
begin
  foreach t in array array['oauth_clients', 'grants', 'authorization_codes', 'refresh_families', 'revocations', 'workspace_hints'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
  end loop;
end $$;
create policy own on grants to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());

grant select, insert, update, delete on oauth_clients, oauth_client_redirects, oauth_client_secrets, client_documents,
  authorization_requests, authorization_codes, grants, refresh_families, refresh_tokens, revocations, signing_keys, workspace_hints
  to portolan_core;
grant select, update on grants to portolan_tenant;
