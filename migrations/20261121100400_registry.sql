create table sources (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  kind text not null check (kind in ('openapi', 'http')),
  name text not null,
  base_url text not null,
  document bytea,
  document_digest bytea check (octet_length(document_digest) = 32),
  document_url text,
  spec_title text,
  spec_version text,
  security jsonb not null default '[]',
  settings jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  primary key (tenant_id, id)
);
comment on table sources is 'Where tools come from: an OpenAPI document, or an HTTP API described by hand.';
comment on column sources.deleted_at is 'Deleting can be undone for 10 minutes; then the janitor removes the row.';

create table tools (
  tenant_id uuid not null,
  id uuid not null,
  source_id uuid not null,
  operation_key text not null,
  name text not null,
  title text not null,
  description text not null,
  name_override text,
  title_override text,
  description_override text,
  enabled boolean not null,
  state text not null default 'active' check (state in ('active', 'removed')),
  input_schema jsonb not null,
  output_schema jsonb,
  annotations jsonb not null default '{}',
  plan jsonb not null,
  definition jsonb,
  warnings jsonb not null default '[]',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, source_id, operation_key),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
comment on column tools.operation_key is 'METHOD and path template: what stays the same when a document is imported again.';
comment on column tools.plan is 'How arguments become a request (http_tools::RequestPlan).';
comment on column tools.definition is 'The form a person filled in, for hand-made tools.';

create table servers (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  slug text not null check (slug ~ '^[a-z0-9](?:[a-z0-9-]{1,38}[a-z0-9])$'),
  name text not null,
  description text,
  instructions text,
  status text not null default 'draft' check (status in ('draft', 'published', 'paused')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  published_at timestamptz,
  deleted_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, slug)
);

create table server_tools (
  tenant_id uuid not null,
  server_id uuid not null,
  tool_id uuid not null,
  published_name text not null check (length(published_name) between 1 and 128),
  primary key (tenant_id, server_id, tool_id),
  constraint server_tools_name unique (tenant_id, server_id, published_name),
  foreign key (tenant_id, server_id) references servers (tenant_id, id) on delete cascade,
  foreign key (tenant_id, tool_id) references tools (tenant_id, id) on delete cascade
);

create table tenant_deks (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  wrapped bytea not null,
  created_at timestamptz not null,
  primary key (tenant_id, id)
);
comment on table tenant_deks is 'Data keys of a tenant, wrapped by the key-encryption key: destroying them shreds every credential (auth.md 3.5).';

create table source_credentials (
  tenant_id uuid not null,
  source_id uuid not null,
  kind text not null check (kind in ('api_key', 'bearer', 'basic', 'headers', 'oauth_client_credentials')),
  sealed bytea not null,
  dek_id uuid not null,
  hint text not null,
  version int not null default 1,
  updated_at timestamptz not null,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade,
  foreign key (tenant_id, dek_id) references tenant_deks (tenant_id, id) on delete restrict
);
comment on column source_credentials.sealed is 'AES-256-GCM under the data key; associated data binds tenant, source and version.';

create table tool_calls (
  id bigint generated always as identity,
  tenant_id uuid not null references tenants on delete cascade,
  at timestamptz not null,
  server_id uuid,
  server_slug text,
  tool_name text not null,
  client_name text,
  user_id uuid,
  outcome text not null check (outcome in ('ok', 'tool_error', 'invalid_arguments', 'upstream_error', 'internal')),
  status int,
  duration_ms int not null,
  primary key (tenant_id, id)
);
create index tool_calls_recent on tool_calls (tenant_id, at desc);
create index tool_calls_server on tool_calls (tenant_id, server_id, at desc);
comment on table tool_calls is 'One row a call, without arguments or results. Kept 30 days.';

do $$
declare
  t text;
begin
  foreach t in array array['sources', 'tools', 'servers', 'server_tools', 'tenant_deks', 'source_credentials', 'tool_calls'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
    execute format('create policy own on %I to portolan_tenant, portolan_node using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
  end loop;
end $$;

grant select, insert, update, delete on sources, tools, servers, server_tools, tenant_deks, source_credentials, tool_calls
  to portolan_core, portolan_tenant;
grant select on sources, tools, servers, server_tools, tenant_deks, source_credentials to portolan_node;
grant insert on tool_calls to portolan_node;
