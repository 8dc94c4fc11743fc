-- The log of calls, by day: partitions are dropped when their time is over. It takes the place of tool_calls, which the previous release still writes.
create table call_log (
  at timestamptz not null,
  tenant_id uuid not null,
  id uuid not null,
  server_id uuid,
  server_slug text,
  item text not null,
  client text,
  client_version text,
  client_id text,
  caller smallint not null,
  user_id uuid,
  grant_id uuid,
  revision text,
  era smallint not null,
  outcome smallint not null,
  status int,
  took_us bigint not null,
  wait_us bigint not null,
  backend_us bigint not null,
  bytes_in bigint not null,
  bytes_out bigint not null,
  error text,
  session text,
  trace_id bytea check (octet_length(trace_id) = 16),
  node text,
  weight int not null
) partition by range (at);
create index call_log_at on call_log using brin (at);
create index call_log_tenant on call_log (tenant_id, at desc);
comment on table call_log is 'Calls, without arguments and results (METER-7). Partitions of a day (UTC).';
comment on column call_log.id is 'UUIDv7 of the time of the call; clients find it in _meta of the answer.';
comment on column call_log.item is 'Name of the tool, as called.';
comment on column call_log.client_id is 'OAuth client, as it calls itself on the wire.';
comment on column call_log.session is 'The beginning of the digest of the session id: names a session and opens none.';
comment on column call_log.error is 'What the client was told, up to 500 characters.';
comment on column call_log.wait_us is 'From the request to the begin of the work: limits and queues.';
comment on column call_log.weight is 'How many calls the row stands for: 1, or more in a sample.';

alter table call_log enable row level security;
alter table call_log force row level security;
create policy core on call_log to portolan_core using (true) with check (true);
create policy keeper on call_log to portolan_keeper using (true) with check (true);
create policy own on call_log to portolan_tenant using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy record on call_log for insert to portolan_edge with check (true);
grant select, insert, delete on call_log to portolan_core;
grant select, insert on call_log to portolan_tenant;
grant insert on call_log to portolan_edge;

create function carried_call_id(at timestamptz, id bigint) returns uuid language sql immutable
  set search_path = pg_catalog as $$
  select (substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7000-8' || substr(i, 2, 3) || '-' || substr(i, 5, 12))::uuid
    from (select lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') as h, lpad(to_hex(id), 16, '0') as i) parts
$$;
comment on function carried_call_id is 'The id in call_log of a row of tool_calls.';

-- Rows of tool_calls up to here are carried over; later ones are of nodes of the previous release, and readers see them in their place.
create table tool_calls_carried (
  upto bigint not null
);
comment on table tool_calls_carried is 'One row: the last id of tool_calls that is in call_log and in the counts.';
grant select on tool_calls_carried to portolan_core, portolan_tenant;

grant create on schema public to portolan_keeper;
alter table call_log owner to portolan_keeper;
revoke create on schema public from portolan_keeper;

set local role portolan_keeper;
select make_partition('call_log', 'call_log_' || to_char(lower at time zone 'UTC', 'YYYYMMDD'), lower, lower + interval '1 day')
  from generate_series(date_trunc('day', now(), 'UTC'), now() + interval '2 days', '1 day') lower;
reset role;
