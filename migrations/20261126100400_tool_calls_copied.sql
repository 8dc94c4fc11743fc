-- Copies tool_calls into the log of calls and into the counts. Rows stay where they are for the console of the previous release; a later release drops
-- the table. Their durations are whole milliseconds, and go into no histogram. Caller and era are not known: 4 is "unknown".
alter table call_log no force row level security;
alter table usage_minute no force row level security;
alter table usage_hour no force row level security;
alter table usage_day no force row level security;

create temporary table wanted on commit drop as
  with calls as (select at from tool_calls where id <= (select upto from tool_calls_carried)),
       upto as (select max(upto) filter (where level = 'hour') as hour, max(upto) filter (where level = 'day') as day from usage_folds)
  select distinct 'call_log' as parent, 'YYYYMMDD' as form, date_trunc('day', at, 'UTC') as lower, interval '1 day' as width from calls
  union select 'usage_minute', 'YYYYMMDD_HH24', date_trunc('hour', at, 'UTC'), '1 hour' from calls, upto where at >= upto.hour - interval '48 hours'
  union select 'usage_hour', 'YYYYMMDD', date_trunc('day', at, 'UTC'), '1 day' from calls, upto where at < upto.hour
  union select 'usage_day', 'YYYYMM', date_trunc('month', at, 'UTC'), '1 month' from calls, upto where at < upto.day;
grant select on wanted to portolan_keeper;
set local role portolan_keeper;
select make_partition(parent, parent || '_' || to_char(lower at time zone 'UTC', form), lower, (lower at time zone 'UTC' + width) at time zone 'UTC')
  from wanted;
reset role;

create temporary table carried on commit drop as
  select c.*, case c.outcome when 'ok' then 0 when 'tool_error' then 1 when 'invalid_arguments' then 2 when 'upstream_error' then 3 else 4 end as code,
         case when server_id is null then 3 else 4 end as kind, case when server_id is null then 2 else 4 end as era
    from tool_calls c where id <= (select upto from tool_calls_carried);

insert into call_log (at, tenant_id, id, server_id, server_slug, item, client, caller, user_id, era, outcome, status,
                      took_us, wait_us, backend_us, bytes_in, bytes_out, weight)
  select at, tenant_id, carried_call_id(at, id), server_id, server_slug, tool_name, client_name, kind, user_id, era, code, status,
         duration_ms::bigint * 1000, 0, 0, 0, 0, 1
    from carried;
insert into usage_minute (minute, tenant_id, server_id, item, client, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations)
  select date_trunc('minute', at, 'UTC'), tenant_id, server_id, tool_name, client_name, kind, code, era, count(*), 0, 0, sum(duration_ms::bigint * 1000), 0, ''
    from carried where at >= (select upto from usage_folds where level = 'hour') - interval '48 hours' group by 1, 2, 3, 4, 5, 6, 7, 8;
insert into usage_hour (minute, tenant_id, server_id, item, client, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations)
  select date_trunc('hour', at, 'UTC'), tenant_id, server_id, tool_name, client_name, kind, code, era, count(*), 0, 0, sum(duration_ms::bigint * 1000), 0, ''
    from carried where at < (select upto from usage_folds where level = 'hour') group by 1, 2, 3, 4, 5, 6, 7, 8;
insert into usage_day (minute, tenant_id, server_id, item, client, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations)
  select date_trunc('day', at, 'UTC'), tenant_id, server_id, tool_name, client_name, kind, code, era, count(*), 0, 0, sum(duration_ms::bigint * 1000), 0, ''
    from carried where at < (select upto from usage_folds where level = 'day') group by 1, 2, 3, 4, 5, 6, 7, 8;

alter table call_log force row level security;
alter table usage_minute force row level security;
alter table usage_hour force row level security;
alter table usage_day force row level security;
-- Last, because it waits for writers and stops them: nodes of the previous release write while the copy runs.
alter table tool_calls force row level security;
