-- Arguments and answers of calls, by a policy of each server (CAPTURE-1 to CAPTURE-7).
alter table servers
  add column capture text not null default 'metadata' check (capture in ('metadata', 'errors', 'sample', 'all')),
  add column capture_percent smallint check (capture_percent between 1 and 99),
  add column capture_days smallint not null default 7 check (capture_days between 1 and 30),
  add constraint servers_capture_percent check ((capture = 'sample') = (capture_percent is not null));
comment on column servers.capture is 'The calls whose arguments and answers are kept. metadata: none.';
comment on column servers.capture_percent is 'The share of a sample.';
comment on column servers.capture_days is 'For how many days content is kept.';

create table call_log_contents (
  ends_at timestamptz not null,
  tenant_id uuid not null,
  call_id uuid not null,
  at timestamptz not null,
  server_id uuid not null,
  dek_id uuid not null,
  sealed bytea not null
) partition by range (ends_at);
create index call_log_contents_call on call_log_contents (tenant_id, call_id);
comment on table call_log_contents is 'Arguments and answers of calls, masked and sealed. Partitions of the day (UTC) on which they end, so that each server has its own number of days and retention drops partitions.';
comment on column call_log_contents.ends_at is 'From then on it is not shown. The partition is dropped when its day is over.';
comment on column call_log_contents.dek_id is 'The data key of the tenant. Without it the row is unreadable.';
comment on column call_log_contents.sealed is 'metering::CallContent as JSON, under the data key; associated data binds tenant and call.';

alter table call_log_contents enable row level security;
alter table call_log_contents force row level security;
create policy core on call_log_contents to portolan_core using (true) with check (true);
create policy keeper on call_log_contents to portolan_keeper using (true) with check (true);
create policy own on call_log_contents to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
-- Nodes write for all their tenants at once, and read nothing.
create policy record on call_log_contents for insert to portolan_edge with check (true);
grant select, insert, delete on call_log_contents to portolan_core;
grant select, delete on call_log_contents to portolan_tenant;
grant insert on call_log_contents to portolan_edge;

grant create on schema public to portolan_keeper;
alter table call_log_contents owner to portolan_keeper;
revoke create on schema public from portolan_keeper;

-- Until the first process makes its own.
set local role portolan_keeper;
select make_partition('call_log_contents', 'call_log_contents_' || to_char(lower at time zone 'UTC', 'YYYYMMDD'), lower, lower + interval '1 day')
  from generate_series(date_trunc('day', now(), 'UTC'), now() + interval '33 days', '1 day') lower;
reset role;
