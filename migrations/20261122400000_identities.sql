-- Sign-in with accounts of other services (auth.md F1-F8).

-- Ways to a provider that browsers are on: used once, by the browser that began it (F1).
create table login_attempts (
  state_digest bytea primary key check (octet_length(state_digest) = 32),
  provider text not null,
  tenant_id uuid references tenants on delete cascade,
  purpose text not null check (purpose in ('sign_in', 'confirm', 'link')),
  browser_digest bytea not null check (octet_length(browser_digest) = 32),
  user_id uuid references users on delete cascade,
  session_id uuid references browser_sessions on delete cascade,
  target text not null,
  server jsonb not null,
  sealed bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  check ((purpose = 'sign_in') = (user_id is null)),
  check ((user_id is null) = (session_id is null))
);
create index login_attempts_expiry on login_attempts (expires_at);
comment on column login_attempts.provider is 'Name of a provider of the platform (a setting), or id of one of a tenant.';
comment on column login_attempts.tenant_id is 'Null: a provider of the platform.';
comment on column login_attempts.sealed is 'PKCE verifier and nonce, under the state itself: the database alone opens nothing.';

-- Whose account at a provider is whose account here. The key is never an address or a login name (F3).
create table identity_links (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  tenant_id uuid references tenants on delete cascade,
  provider text not null,
  issuer text not null,
  subject text not null,
  label text not null,
  email_seen text,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create unique index identity_links_key on identity_links (tenant_id, provider, issuer, subject) nulls not distinct;
create index identity_links_user on identity_links (user_id);
comment on column identity_links.tenant_id is 'A provider of a tenant asserts people of that tenant and nobody else (F7). Null: a provider of the platform.';
comment on column identity_links.label is 'How the person knows the account there: an address or a login name. Nothing is decided by it.';

-- Identities that were proved in a browser and belong to nobody yet: until their person signs in to the account they want them for (F4), or
-- proves an address.
create table identity_offers (
  id uuid primary key,
  browser_digest bytea not null check (octet_length(browser_digest) = 32),
  tenant_id uuid references tenants on delete cascade,
  provider text not null,
  issuer text not null,
  subject text not null,
  label text not null,
  display_name text not null,
  email text,
  user_id uuid references users on delete cascade,
  target text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index identity_offers_user on identity_offers (user_id) where user_id is not null;
create index identity_offers_expiry on identity_offers (expires_at);
comment on column identity_offers.user_id is 'The account that becomes its when the address of that account is proved.';

alter table login_attempts enable row level security;
alter table login_attempts force row level security;
create policy core on login_attempts to portolan_core using (true) with check (true);
alter table identity_links enable row level security;
alter table identity_links force row level security;
create policy core on identity_links to portolan_core using (true) with check (true);
alter table identity_offers enable row level security;
alter table identity_offers force row level security;
create policy core on identity_offers to portolan_core using (true) with check (true);

grant select, insert, update, delete on login_attempts, identity_links, identity_offers to portolan_core;
