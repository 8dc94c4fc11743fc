-- Whether the API accepts a source's credential, as the last request that carried it shows.

create table credential_states (
  tenant_id uuid not null,
  source_id uuid not null,
  version int not null,
  state text not null check (state in ('works', 'refused', 'inconclusive')),
  status int check (status between 100 and 599),
  reason text check (length(reason) <= 1000),
  at timestamptz not null,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references source_credentials (tenant_id, source_id) on delete cascade
) with (fillfactor = 80);
comment on table credential_states is 'One row a credential that was tried. MCP nodes and the console write it: a table of its own keeps the sealed credential read-only for nodes.';
comment on column credential_states.version is 'Version of the credential that was tried. The row counts for that version alone.';
comment on column credential_states.status is 'HTTP status of the API or of its token endpoint.';
comment on column credential_states.reason is 'Why a test showed nothing; a sentence for the console.';

alter table credential_states enable row level security;
alter table credential_states force row level security;
create policy core on credential_states to portolan_core using (true) with check (true);
create policy own on credential_states to portolan_tenant, portolan_node
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on credential_states to portolan_core, portolan_tenant;
grant select, insert, update on credential_states to portolan_node;
