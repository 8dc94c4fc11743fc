-- What the workspace's own URL serves (auth.md 5.1), and whether a token for it opens every server (5.4, node rule (c)).
alter table tenants
  add column default_server uuid,
  add column workspace_tokens boolean not null default true,
  add constraint tenants_default_server foreign key (id, default_server) references servers (tenant_id, id)
    on delete set null (default_server);
comment on column tenants.default_server is 'What …/t/<slug>/mcp serves while it is published; null: nothing. A column here, so that there is one at most.';
comment on column tenants.workspace_tokens is 'Whether a token that names no server opens all of them; if not, it opens the default one.';

-- As if the rule had always been there: the first that was published is the default. The owner of the tables is no more than a tenant while
-- row-level security is forced.
alter table tenants no force row level security;
alter table servers no force row level security;
update tenants t
   set default_server = (select v.id from servers v
                          where v.tenant_id = t.id and v.published_at is not null and v.deleted_at is null
                          order by v.published_at, v.id limit 1)
 where t.status <> 'deleted';
alter table tenants force row level security;
alter table servers force row level security;
