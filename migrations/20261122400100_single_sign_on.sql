-- Sign-in of a tenant's people with the tenant's own OpenID provider (auth.md F7).

create table tenant_domains (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  domain text not null,
  txt_token text not null,
  verified_at timestamptz,
  checked_at timestamptz,
  next_check_at timestamptz,
  missing_since timestamptz,
  created_at timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, domain)
);
create unique index tenant_domains_verified on tenant_domains (domain) where verified_at is not null;
create index tenant_domains_due on tenant_domains (next_check_at) where verified_at is not null;
comment on table tenant_domains is 'Mail domains that a tenant says are its own. A domain is proved by a TXT record, by one tenant at a time, and looked at again every week.';
comment on column tenant_domains.checked_at is 'When the name servers last said something.';
comment on column tenant_domains.missing_since is 'The record was not there the last time; given up after three days.';

create table identity_providers (
  tenant_id uuid primary key references tenants on delete cascade,
  id uuid not null unique,
  name text not null,
  issuer text not null,
  client_id text not null,
  secret_sealed bytea,
  dek_id uuid,
  version int not null default 1,
  enforced_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  foreign key (tenant_id, dek_id) references tenant_deks (tenant_id, id),
  check ((secret_sealed is null) = (dek_id is null))
);
comment on table identity_providers is 'One OpenID provider a tenant. Those of the platform are settings. Another issuer or client is another provider, with another id: what the former one said is not believed any more.';
comment on column identity_providers.secret_sealed is 'Under the data key, bound to tenant, id and version.';
comment on column identity_providers.enforced_at is 'Since then members have to come this way; owners with a passkey excepted.';

alter table browser_sessions add column only_tenant uuid references tenants on delete cascade;
comment on column browser_sessions.only_tenant is 'Begun on the word of this tenant''s provider: it opens that tenant and nothing else of the person.';

create table session_steps (
  session_id uuid not null references browser_sessions on delete cascade,
  tenant_id uuid not null references tenants on delete cascade,
  provider_id uuid not null,
  at timestamptz not null,
  primary key (session_id, tenant_id)
);
comment on table session_steps is 'Sessions whose person was proved by the provider of a tenant.';

alter table grants add column sso_provider uuid, add column sso_confined boolean not null default false;
comment on column grants.sso_confined is 'Allowed in a session that opens this tenant alone: the provider asked for all that the tenant wants asked.';
comment on column grants.sso_provider is 'The provider of the tenant that had proved the person who allowed it.';

alter table tenant_domains enable row level security;
alter table tenant_domains force row level security;
create policy core on tenant_domains to portolan_core using (true) with check (true);
create policy own on tenant_domains to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
alter table identity_providers enable row level security;
alter table identity_providers force row level security;
create policy core on identity_providers to portolan_core using (true) with check (true);
create policy own on identity_providers to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
alter table session_steps enable row level security;
alter table session_steps force row level security;
create policy core on session_steps to portolan_core using (true) with check (true);

grant select, insert, update, delete on tenant_domains, identity_providers to portolan_core, portolan_tenant;
grant select, insert, update, delete on session_steps to portolan_core;
