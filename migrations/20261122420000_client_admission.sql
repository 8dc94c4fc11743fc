-- Which AI clients may connect to a workspace (auth.md M7, C15). The rule stands in tenants.policy under "clients": any, verified, list or
-- approval; absent is any. What was decided about single clients, and who waits for a decision, stands here.
create table client_decisions (
  tenant_id uuid not null references tenants on delete cascade,
  client_ref uuid not null references oauth_clients on delete cascade,
  decision text not null check (decision in ('allowed', 'blocked')),
  decided_by uuid references users on delete set null,
  decided_at timestamptz not null,
  primary key (tenant_id, client_ref)
);
create index client_decisions_of_client on client_decisions (client_ref);
comment on table client_decisions is 'M7: what administrators of a workspace decided about one client. It counts more than the rule.';

create table client_requests (
  tenant_id uuid not null references tenants on delete cascade,
  client_ref uuid not null references oauth_clients on delete cascade,
  user_id uuid not null references users on delete cascade,
  asked_at timestamptz not null,
  primary key (tenant_id, client_ref, user_id)
);
create index client_requests_of_client on client_requests (client_ref);
create index client_requests_of_user on client_requests (user_id);
comment on table client_requests is 'M7: who asked for a client that an administrator has to allow first. Gone with the decision.';

-- C16: a client that a workspace registered and deleted stays as long as grants name it, and is unknown to everybody who asks.
alter table oauth_clients drop constraint oauth_clients_status_check,
  add constraint oauth_clients_status_check check (status in ('active', 'blocked', 'deleted'));
create index oauth_clients_of_tenant on oauth_clients (tenant_id) where tenant_id is not null;

do $$
declare
  t text;
begin
  foreach t in array array['client_decisions', 'client_requests'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
  end loop;
end $$;
grant select, insert, update, delete on client_decisions, client_requests to portolan_core;
