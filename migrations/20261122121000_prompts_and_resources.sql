create table prompts (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  source_id uuid,
  name text not null check (length(name) between 1 and 256),
  title text not null default '',
  description text not null default '',
  arguments jsonb not null default '[]',
  messages jsonb not null default '[]',
  upstream_name text,
  upstream jsonb,
  version bigint not null default 1,
  enabled boolean not null default true,
  state text not null default 'active' check (state in ('active', 'removed')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, source_id, upstream_name),
  check ((source_id is null) = (upstream_name is null)),
  check ((source_id is null) = (upstream is null)),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
create unique index prompts_own_name on prompts (tenant_id, name) where source_id is null and deleted_at is null;
comment on table prompts is 'Prompts: written in the console (no source), or synced from an upstream MCP server (its source).';
comment on column prompts.arguments is 'Declared arguments (model::prompt::Argument), suggested values included.';
comment on column prompts.messages is 'Messages with placeholders (model::prompt::Message); empty for those of an upstream.';
comment on column prompts.upstream is 'The definition of the upstream, as it came.';
comment on column prompts.version is 'Raised by every change: what a node keeps of the messages is kept under it.';

create table resources (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  source_id uuid,
  kind text not null check (kind in ('resource', 'template')),
  uri text not null check (length(uri) between 1 and 2048),
  name text not null check (length(name) between 1 and 256),
  title text not null default '',
  description text not null default '',
  mime_type text,
  annotations jsonb not null default '{}',
  variables jsonb not null default '[]',
  body text not null check (body in ('text', 'file', 'http', 'upstream')),
  content bytea,
  http_source_id uuid,
  http_path text,
  plan jsonb,
  upstream_uri text,
  upstream jsonb,
  version bigint not null default 1,
  enabled boolean not null default true,
  state text not null default 'active' check (state in ('active', 'removed')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, source_id, kind, upstream_uri),
  check ((source_id is null) = (upstream_uri is null)),
  check ((source_id is null) = (upstream is null)),
  check ((source_id is not null) = (body = 'upstream')),
  check ((content is not null) = (body in ('text', 'file'))),
  check ((plan is not null) = (body = 'http')),
  check ((http_path is not null) = (body = 'http')),
  check ((http_source_id is not null) = (body = 'http')),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade,
  foreign key (tenant_id, http_source_id) references sources (tenant_id, id) on delete cascade
);
create unique index resources_own_uri on resources (tenant_id, uri) where source_id is null and deleted_at is null;
comment on table resources is 'Resources and templates of resources: written in the console (no source), or synced from an upstream MCP server (its source).';
comment on column resources.uri is 'URI, or URI template (RFC 6570, levels 1 and 2).';
comment on column resources.variables is 'Declared variables of a template (model::prompt::Argument), suggested values included.';
comment on column resources.content is 'Bytes of a text (UTF-8, with placeholders if it is a template) or of a file.';
comment on column resources.http_source_id is 'The source whose API answers reads, with its credential.';
comment on column resources.plan is 'How variables become a request (http_tools::RequestPlan).';
comment on column resources.upstream is 'The definition of the upstream, as it came.';
comment on column resources.version is 'Raised by every change that a reader sees: who subscribed is told.';

create table server_prompts (
  tenant_id uuid not null,
  server_id uuid not null,
  prompt_id uuid not null,
  published_name text not null check (length(published_name) between 1 and 256),
  primary key (tenant_id, server_id, prompt_id),
  constraint server_prompts_name unique (tenant_id, server_id, published_name),
  foreign key (tenant_id, server_id) references servers (tenant_id, id) on delete cascade,
  foreign key (tenant_id, prompt_id) references prompts (tenant_id, id) on delete cascade
);
comment on table server_prompts is 'Which prompts a server offers, and under which names.';

create table server_resources (
  tenant_id uuid not null,
  server_id uuid not null,
  resource_id uuid not null,
  published_uri text not null check (length(published_uri) between 1 and 2048),
  primary key (tenant_id, server_id, resource_id),
  constraint server_resources_uri unique (tenant_id, server_id, published_uri),
  foreign key (tenant_id, server_id) references servers (tenant_id, id) on delete cascade,
  foreign key (tenant_id, resource_id) references resources (tenant_id, id) on delete cascade
);
comment on table server_resources is 'Which resources and templates a server offers, and under which URIs.';

do $$
declare
  t text;
begin
  foreach t in array array['prompts', 'resources', 'server_prompts', 'server_resources'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
    execute format('create policy own on %I to portolan_tenant, portolan_node using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
  end loop;
end $$;

grant select, insert, update, delete on prompts, resources, server_prompts, server_resources to portolan_core, portolan_tenant;
grant select on prompts, resources, server_prompts, server_resources to portolan_node;
