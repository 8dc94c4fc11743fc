-- Trusted pipelines: jobs of CI systems that get a token of the management API (API-16 to API-21). New tables and a column
-- that may be null: legal while the previous release runs, which lists such tokens among the others.

create table trusted_pipelines (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  name text not null check (length(name) between 1 and 80),
  issuer text not null check (length(issuer) between 1 and 2000),
  audience text not null check (length(audience) between 1 and 255),
  subject text not null check (length(subject) between 1 and 255),
  claims jsonb not null check (jsonb_typeof(claims) = 'object'),
  role text not null check (role in ('admin', 'developer', 'member', 'viewer')),
  scopes text[] not null check (cardinality(scopes) between 1 and 32),
  minutes int not null check (minutes between 1 and 60),
  created_at timestamptz not null,
  changed_at timestamptz not null,
  last_used_at timestamptz,
  primary key (tenant_id, id)
);
create index trusted_pipelines_issuer on trusted_pipelines (tenant_id, issuer);
comment on table trusted_pipelines is 'API-16: which JWTs of which issuer a workspace exchanges for a token, and what that token may do.';
comment on column trusted_pipelines.subject is 'Pattern of sub (API-17).';
comment on column trusted_pipelines.claims is 'Further claims by name, each with its exact value as text.';
comment on column trusted_pipelines.minutes is 'Life of a token.';
comment on column trusted_pipelines.changed_at is 'A change is a new row under the same id: tokens and refusals of the former one go with it.';

alter table trusted_pipelines enable row level security;
alter table trusted_pipelines force row level security;
create policy core on trusted_pipelines to portolan_core using (true) with check (true);
create policy own on trusted_pipelines to portolan_tenant
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on trusted_pipelines to portolan_core;
grant select, insert, delete on trusted_pipelines to portolan_tenant;

create table pipeline_refusals (
  tenant_id uuid not null,
  pipeline_id uuid not null,
  reason text not null check (length(reason) between 1 and 20),
  seen text not null check (length(seen) <= 600),
  times bigint not null,
  last_at timestamptz not null,
  primary key (tenant_id, pipeline_id, reason),
  foreign key (tenant_id, pipeline_id) references trusted_pipelines (tenant_id, id) on delete cascade
);
comment on table pipeline_refusals is 'API-20: why jobs got no token, one row for each reason. No row: not refused so.';
comment on column pipeline_refusals.seen is 'The claim of the last job that did not fit; empty if its signature was not verified.';

alter table pipeline_refusals enable row level security;
alter table pipeline_refusals force row level security;
create policy core on pipeline_refusals to portolan_core using (true) with check (true);
create policy own on pipeline_refusals to portolan_tenant
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on pipeline_refusals to portolan_core;
grant select on pipeline_refusals to portolan_tenant;

create table pipeline_jwts (
  tenant_id uuid not null references tenants on delete cascade,
  digest bytea not null check (octet_length(digest) = 32),
  expires_at timestamptz not null,
  primary key (tenant_id, digest)
);
create index pipeline_jwts_expiry on pipeline_jwts (expires_at);
comment on table pipeline_jwts is 'API-19: JWTs that were exchanged, by the SHA-256 of header and claims. Each is exchanged once.';

alter table pipeline_jwts enable row level security;
alter table pipeline_jwts force row level security;
create policy core on pipeline_jwts to portolan_core using (true) with check (true);
grant select, insert, update, delete on pipeline_jwts to portolan_core;

alter table access_tokens
  add column pipeline_id uuid,
  add constraint access_tokens_pipeline foreign key (tenant_id, pipeline_id)
    references trusted_pipelines (tenant_id, id) on delete cascade;
create index access_tokens_pipeline on access_tokens (tenant_id, pipeline_id) where pipeline_id is not null;
comment on column access_tokens.pipeline_id is 'The trust by which a job got the token; the token ends with it (API-21).';
