-- Attached servers: upstream servers that a program outside offers over connections that it opens
-- (ADR 39).

create table attachments (
  tenant_id uuid not null,
  source_id uuid not null,
  name text not null check (name ~ '^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$'),
  key_digest bytea not null unique check (octet_length(key_digest) = 32),
  key_hint text not null,
  key_created_at timestamptz not null,
  key_created_by uuid references users on delete set null,
  primary key (tenant_id, source_id),
  unique (tenant_id, name),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
comment on table attachments is 'One row an attached server. Its source has the address https://NAME.attached.invalid/mcp.';
comment on column attachments.key_digest is 'SHA-256 of the key with which a program may offer this one server. The key opens nothing else.';

alter table attachments enable row level security;
alter table attachments force row level security;
create policy core on attachments to portolan_core using (true) with check (true);
create policy own on attachments to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy own_node on attachments for select to portolan_node using (tenant_id = app_tenant());
create policy presented on attachments for select to portolan_edge using (key_digest = app_presented());
grant select, insert, update, delete on attachments to portolan_core, portolan_tenant;
grant select on attachments to portolan_node;
grant select (tenant_id, key_digest) on attachments to portolan_edge;

create table attachment_tunnels (
  tenant_id uuid not null,
  source_id uuid not null,
  node text not null,
  instance text not null check (length(instance) <= 40),
  version text not null check (length(version) <= 80),
  is_ready boolean not null default false,
  error text check (length(error) <= 500),
  since timestamptz not null,
  seen_at timestamptz not null,
  primary key (tenant_id, source_id, node, instance),
  foreign key (tenant_id, source_id) references attachments (tenant_id, source_id) on delete cascade
) with (fillfactor = 80);
comment on table attachment_tunnels is 'One row a connection of a program to a node. The node writes it every few seconds; an old row is of a dead node.';

alter table attachment_tunnels enable row level security;
alter table attachment_tunnels force row level security;
create policy core on attachment_tunnels to portolan_core using (true) with check (true);
create policy own on attachment_tunnels to portolan_tenant, portolan_node
  using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on attachment_tunnels to portolan_core, portolan_node;
grant select, delete on attachment_tunnels to portolan_tenant;

create table attachment_nodes (
  node text primary key check (length(node) <= 40),
  seen_at timestamptz not null
);
comment on table attachment_nodes is 'One row a node with the console alone. A program that offers a server connects to each, so that each can read the lists of the server.';

alter table attachment_nodes enable row level security;
alter table attachment_nodes force row level security;
create policy core on attachment_nodes to portolan_core using (true) with check (true);
grant select, insert, update, delete on attachment_nodes to portolan_core;
