-- Thresholds of alert rules, and the state of rules over counts of calls (HOOK-23 to HOOK-25). New columns and
-- tables only: legal while the previous release runs, which leaves the columns as they are.
alter table alert_settings
  add column percent int check (percent between 1 and 100),
  add column minutes int check (minutes between 5 and 60),
  add column min_calls int check (min_calls between 1 and 1000000),
  add column days int check (days between 1 and 28);
comment on column alert_settings.percent is 'Share of failed calls, or of a limit, from which on the rule fires. Null, here and below: the default.';
comment on column alert_settings.minutes is 'The last minutes whose calls the rule counts.';
comment on column alert_settings.min_calls is 'Fewer calls fire nothing.';
comment on column alert_settings.days is 'Days before the end of a credential; fewer than those for which events are kept.';

create table error_rates (
  tenant_id uuid not null,
  server_id uuid not null,
  since timestamptz not null,
  above_at timestamptz not null,
  primary key (tenant_id, server_id),
  foreign key (tenant_id, server_id) references servers (tenant_id, id) on delete cascade
);
comment on table error_rates is 'Servers whose share of failed calls is above the threshold (HOOK-24). No row: below.';
comment on column error_rates.since is 'When the share was first seen above it: the event error_rate.exceeded.';
comment on column error_rates.above_at is 'When it was last seen above. The row goes after the minutes of the rule, with error_rate.recovered.';

alter table error_rates enable row level security;
alter table error_rates force row level security;
create policy core on error_rates to portolan_core using (true) with check (true);
create policy own on error_rates to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on error_rates to portolan_core;
grant select, delete on error_rates to portolan_tenant;

create table alert_evaluations (
  rule text primary key check (length(rule) between 3 and 60),
  evaluated_at timestamptz not null
);
comment on table alert_evaluations is 'When a rule over counts of calls was last evaluated. The row is the lock: one process does so each minute.';
insert into alert_evaluations values ('error_rate', 'epoch'), ('quota_near', 'epoch');
grant select, update on alert_evaluations to portolan_core;
