-- Tokens of the management API (API-1 to API-9).

create table access_tokens (
  id uuid primary key,
  tenant_id uuid references tenants on delete cascade,
  user_id uuid references users on delete cascade,
  role text check (role in ('admin', 'developer', 'member', 'viewer')),
  name text not null,
  digest bytea not null unique check (octet_length(digest) = 32),
  hint text not null,
  scopes text[] not null check (cardinality(scopes) between 1 and 32),
  amr text[] not null default '{}',
  created_by uuid references users on delete set null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz,
  constraint access_tokens_holder
    check (num_nonnulls(user_id, role) = 1 and (user_id is not null or tenant_id is not null)),
  constraint access_tokens_life check (expires_at <= created_at + interval '366 days')
);
create index access_tokens_tenant on access_tokens (tenant_id, created_at) where revoked_at is null;
create index access_tokens_user on access_tokens (user_id) where revoked_at is null;
create index access_tokens_expiry on access_tokens (expires_at);
comment on table access_tokens is 'API-1: known by digest only. A row has a person or a role: it acts as the person, or as the workspace with that role.';
comment on column access_tokens.tenant_id is 'The workspace of a workspace token; the one workspace that a personal token opens, or null for all of the person.';
comment on column access_tokens.amr is 'How the person of a personal token signed in when they made it (RFC 8176), for the rule of AUTH-L14.';
comment on column access_tokens.hint is 'The beginning of the token, by which people tell theirs apart.';

alter table access_tokens enable row level security;
alter table access_tokens force row level security;
create policy core on access_tokens to portolan_core using (true) with check (true);
grant select, insert, update, delete on access_tokens to portolan_core;

alter table memberships add column rejoined_at timestamptz;
comment on column memberships.rejoined_at is 'When a former member was let back in. Older personal tokens stay shut out (API-4).';

alter table audit_events drop constraint audit_events_actor_kind_check;
alter table audit_events add constraint audit_events_actor_kind_check
  check (actor_kind in ('user', 'anonymous', 'system', 'operator', 'service_account', 'api_key', 'access_token'));
