-- Configuration as code: the file that owns an object (CONF-6), and plans (CONF-8).

alter table sources add column managed_by text check (length(managed_by) between 1 and 64);
alter table servers add column managed_by text check (length(managed_by) between 1 and 64);
alter table prompts add column managed_by text check (length(managed_by) between 1 and 64);
alter table resources add column managed_by text check (length(managed_by) between 1 and 64);
comment on column sources.managed_by is 'Name of the file that the source was applied from; null if none.';
comment on column servers.managed_by is 'Name of the file that the server was applied from; null if none.';
comment on column prompts.managed_by is 'Name of the file that the prompt was applied from; null if none.';
comment on column resources.managed_by is 'Name of the file that the resource was applied from; null if none.';

create table configuration_plans (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  owner text not null check (length(owner) between 1 and 64),
  base_revision bigint not null,
  changes_digest bytea not null check (octet_length(changes_digest) = 32),
  sealed bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  applied_at timestamptz,
  primary key (tenant_id, id)
);
create index configuration_plans_end on configuration_plans (expires_at);
comment on table configuration_plans is 'Changes of a workspace that were computed and can be applied once, until expires_at.';
comment on column configuration_plans.owner is 'Name of the file.';
comment on column configuration_plans.base_revision is 'Revision of the registry that the changes were computed on.';
comment on column configuration_plans.changes_digest is 'SHA-256 of the changes: others are not applied.';
comment on column configuration_plans.sealed is 'The file, fetched documents and secrets, sealed; empty once it was applied.';

alter table configuration_plans enable row level security;
alter table configuration_plans force row level security;
create policy core on configuration_plans to portolan_core using (true) with check (true);
create policy own on configuration_plans to portolan_tenant
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on configuration_plans to portolan_core, portolan_tenant;
