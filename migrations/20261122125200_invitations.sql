create table invitations (
  id uuid primary key,
  tenant_id uuid not null references tenants on delete cascade,
  address text not null,
  address_norm text not null,
  role text not null check (role in ('owner', 'admin', 'developer', 'member', 'viewer')),
  digest bytea not null unique check (octet_length(digest) = 32),
  inviter_id uuid not null references users on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  accepted_at timestamptz,
  accepted_by uuid references users on delete set null,
  revoked_at timestamptz
);
create unique index invitations_open on invitations (tenant_id, address_norm) where accepted_at is null and revoked_at is null;
create index invitations_recent on invitations (tenant_id, created_at);
create index invitations_expiry on invitations (expires_at);
comment on table invitations is 'M5: bound to an address, used once; a newer one for the same address revokes the older.';

alter table invitations enable row level security;
alter table invitations force row level security;
create policy core on invitations to portolan_core using (true) with check (true);
create policy own on invitations to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on invitations to portolan_core;
grant select on invitations to portolan_tenant;
