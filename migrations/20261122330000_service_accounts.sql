-- What proves itself by a key or acts without a person: service accounts, and API keys (auth.md C13, C17, T12).
alter table oauth_clients drop constraint oauth_clients_kind_check,
  add constraint oauth_clients_kind_check check (kind in ('dynamic', 'cimd', 'static', 'service'));
alter table oauth_clients drop constraint oauth_clients_auth_method_check,
  add constraint oauth_clients_auth_method_check
    check (auth_method in ('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'));
alter table oauth_clients add constraint oauth_clients_of_a_tenant check (kind <> 'service' or tenant_id is not null);
alter table revocations drop constraint revocations_kind_check,
  add constraint revocations_kind_check check (kind in ('jti', 'grant', 'user', 'tenant', 'member', 'client', 'kid', 'service'));

alter table oauth_client_secrets add column hint text not null default '';

create table service_accounts (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null unique,
  client_ref uuid not null unique references oauth_clients on delete cascade,
  resource text,
  epoch int not null default 0,
  created_by uuid references users on delete set null,
  created_at timestamptz not null,
  disabled_at timestamptz,
  last_used_at timestamptz,
  primary key (tenant_id, id)
);
comment on column service_accounts.resource is 'The one server that the account may use, as a canonical resource; null is the whole workspace.';
comment on column service_accounts.epoch is 'Carried by its tokens; raised when the account is disabled or one of its secrets is revoked (auth.md 4.2).';

create table api_keys (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null unique,
  user_id uuid references users on delete cascade,
  service_account_id uuid,
  name text not null,
  digest bytea not null unique check (octet_length(digest) = 32),
  hint text not null,
  resource text,
  networks cidr[] not null default '{}',
  created_by uuid references users on delete set null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, service_account_id) references service_accounts (tenant_id, id) on delete cascade,
  constraint api_keys_one_holder check (num_nonnulls(user_id, service_account_id) = 1)
);
create index api_keys_user on api_keys (user_id) where revoked_at is null;
create index api_keys_expiry on api_keys (expires_at);
comment on table api_keys is 'C17: known by digest only. A node looks a key up at most once in five minutes and refuses it within a second of its revocation.';
comment on column api_keys.hint is 'The beginning of the key, by which people tell theirs apart.';

create table assertion_ids (
  client_ref uuid not null references oauth_clients on delete cascade,
  digest bytea not null check (octet_length(digest) = 32),
  expires_at timestamptz not null,
  primary key (client_ref, digest)
);
create index assertion_ids_expiry on assertion_ids (expires_at);
comment on table assertion_ids is 'C13: the jti of a client assertion is good once.';

create table client_keys (
  client_ref uuid primary key references oauth_clients on delete cascade,
  uri text not null,
  jwks jsonb not null,
  fetched_at timestamptz not null,
  asked_at timestamptz not null
);
comment on table client_keys is 'What stood at a client''s jwks_uri, and is good for that address only. asked_at guards the fetch that an unknown key id forces: one a minute in the cluster (C13).';

do $$
declare
  t text;
begin
  foreach t in array array['service_accounts', 'api_keys'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
  end loop;
end $$;
grant select, insert, update, delete on service_accounts, api_keys, assertion_ids, client_keys to portolan_core;
