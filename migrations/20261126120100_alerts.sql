-- Alerts: what stands, the settings of each rule, and what a person has read (HOOK-20). New tables
-- only: legal while the previous release runs.

create table alerts (
  tenant_id uuid not null references tenants on delete cascade,
  id uuid not null,
  rule text not null check (length(rule) between 3 and 60),
  subject text not null check (length(subject) <= 200),
  severity text not null check (severity in ('info', 'warning', 'critical')),
  text text not null check (length(text) <= 1000),
  page text not null check (length(page) <= 300),
  state text not null default 'firing' check (state in ('firing', 'resolved')),
  count int not null default 1,
  fired_at timestamptz not null,
  last_at timestamptz not null,
  notified_at timestamptz not null,
  quiet_at timestamptz,
  resolved_at timestamptz,
  primary key (tenant_id, id)
);
create unique index alerts_standing on alerts (tenant_id, rule, subject) where state = 'firing';
create index alerts_recent on alerts (tenant_id, fired_at desc);
create index alerts_quiet on alerts (quiet_at) where state = 'firing' and quiet_at is not null;
create index alerts_again on alerts (notified_at) where state = 'firing';
create index alerts_over on alerts (resolved_at) where state = 'resolved';
comment on table alerts is 'One row from the first event to the end. Kept 30 days after that.';
comment on column alerts.page is 'Path of the console below the workspace, for the item that it concerns.';
comment on column alerts.quiet_at is 'Resolved by itself then, unless it fires again before.';

create table alert_settings (
  tenant_id uuid not null references tenants on delete cascade,
  rule text not null check (length(rule) between 3 and 60),
  enabled boolean not null,
  mail boolean not null,
  muted_until timestamptz,
  updated_at timestamptz not null,
  primary key (tenant_id, rule)
);
comment on table alert_settings is 'Without a row a rule is on, with mail to admins and owners.';

create table alert_reads (
  tenant_id uuid not null,
  user_id uuid not null references users on delete cascade,
  alert_id uuid not null,
  read_at timestamptz not null,
  primary key (tenant_id, user_id, alert_id),
  foreign key (tenant_id, alert_id) references alerts (tenant_id, id) on delete cascade
);
comment on table alert_reads is 'An alert is unread again when it notifies again.';

do $$
declare
  t text;
begin
  foreach t in array array['alerts', 'alert_settings', 'alert_reads'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
    execute format('create policy own on %I to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
    execute format('grant select, insert, update, delete on %I to portolan_core, portolan_tenant', t);
  end loop;
end $$;
