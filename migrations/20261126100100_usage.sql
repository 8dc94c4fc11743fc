-- Counts of calls (METER-1 to METER-6): nodes flush them every ten seconds, and one process folds them into minutes, hours and days. Rows are added
-- and partitions dropped; no row is changed. Numbers of caller, outcome and era: crates/metering/src/key.rs.

create table usage_flush (
  at timestamptz not null,
  minute timestamptz not null,
  tenant_id uuid not null,
  server_id uuid,
  item text not null,
  client text,
  caller smallint not null,
  outcome smallint not null,
  era smallint not null,
  calls bigint not null,
  bytes_in bigint not null,
  bytes_out bigint not null,
  took_us bigint not null,
  backend_us bigint not null,
  durations bytea not null
) partition by range (at);
comment on table usage_flush is 'What nodes flushed and is not yet folded. Partitions of 5 minutes, dropped by the fold.';
comment on column usage_flush.at is 'When it was flushed, by the clock of the node: decides the partition. A late flush is part of a later fold.';
comment on column usage_flush.server_id is 'Null in the console.';
comment on column usage_flush.durations is 'Histogram of microseconds (crates/metering/src/histogram.rs).';

create table usage_minute (like usage_flush including comments) partition by range (minute);
alter table usage_minute drop column at;
create index usage_minute_tenant on usage_minute (tenant_id, minute);
comment on table usage_minute is 'Counts by minute. Partitions of an hour. Rows of one key add up.';

create table usage_hour (like usage_minute including comments) partition by range (minute);
create index usage_hour_tenant on usage_hour (tenant_id, minute);
comment on table usage_hour is 'Counts by hour. Partitions of a day. Rows of one key add up.';
comment on column usage_hour.minute is 'The beginning of the hour.';

create table usage_day (like usage_minute including comments) partition by range (minute);
create index usage_day_tenant on usage_day (tenant_id, minute);
comment on table usage_day is 'Counts by day (UTC). Partitions of a month. Rows of one key add up.';
comment on column usage_day.minute is 'The beginning of the day.';

create table flush_seq (
  node_boot uuid primary key,
  seq bigint not null,
  at timestamptz not null
);
comment on table flush_seq is 'The last flush of each process: a flush that is tried again is written once (METER-6).';

create table usage_folds (
  level text primary key check (level in ('hour', 'day')),
  upto timestamptz not null
);
comment on table usage_folds is 'Up to when hours and days are folded. Later ones are read from the level below.';
insert into usage_folds values ('hour', date_trunc('hour', now(), 'UTC')), ('day', date_trunc('day', now(), 'UTC'));

do $$
declare
  t text;
begin
  foreach t in array array['usage_flush', 'usage_minute', 'usage_hour', 'usage_day'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy core on %I to portolan_core using (true) with check (true)', t);
    execute format('create policy keeper on %I to portolan_keeper using (true) with check (true)', t);
    execute format('create policy own on %I to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
    execute format('grant select, insert, delete on %I to portolan_core', t);
    execute format('grant select on %I to portolan_tenant', t);
  end loop;
end $$;
-- Nodes write for all their tenants at once, and read nothing.
create policy record on usage_flush for insert to portolan_edge with check (true);
grant insert on usage_flush to portolan_edge;
-- The console writes its own trials.
grant insert on usage_flush to portolan_tenant;
grant select, insert, update on flush_seq to portolan_edge;
grant select on usage_folds to portolan_core, portolan_tenant;

grant create on schema public to portolan_keeper;
alter table usage_flush owner to portolan_keeper;
alter table usage_minute owner to portolan_keeper;
alter table usage_hour owner to portolan_keeper;
alter table usage_day owner to portolan_keeper;
alter table flush_seq owner to portolan_keeper;
alter table usage_folds owner to portolan_keeper;
revoke create on schema public from portolan_keeper;

-- Until the first process makes its own.
set local role portolan_keeper;
select make_partition('usage_flush', 'usage_flush_' || to_char(lower at time zone 'UTC', 'YYYYMMDD_HH24MI'), lower, lower + interval '5 minutes')
  from generate_series(date_bin('5 minutes', now() - interval '5 minutes', timestamptz 'epoch'), now() + interval '30 minutes', '5 minutes') lower;
reset role;
