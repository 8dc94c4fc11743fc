-- Events have a number in the order in which they became deliveries, so that a stream of them can be continued without a gap (HOOK-27).
-- New column, sequence and trigger only: legal while the previous release runs, whose rows the trigger numbers.
create sequence event_numbers;
comment on sequence event_numbers is 'Numbers of events. One process takes them at a time: of two transactions, the one that commits first has the smaller ones.';
grant usage on sequence event_numbers to portolan_core;

alter table events add column number bigint;
comment on column events.number is 'Set with spread_at, under the lock of that step: no event becomes visible below the largest number that is visible. Null until then, and of messages for one endpoint alone.';

-- The release before sets spread_at alone.
create function number_event() returns trigger language plpgsql as $$
begin
  new.number := nextval('event_numbers');
  return new;
end $$;
create trigger events_numbered before update of spread_at on events
  for each row when (old.spread_at is null and new.spread_at is not null and new.number is null)
  execute function number_event();

-- Those of before, in the order of that step. The owner of the table is no more than a tenant while row-level security is forced.
alter table events no force row level security;
update events e set number = o.number
  from (select s.tenant_id, s.id, nextval('event_numbers') as number
          from (select tenant_id, id from events where spread_at is not null and type <> 'endpoint.test' order by spread_at, id) s) o
 where e.tenant_id = o.tenant_id and e.id = o.id;
alter table events force row level security;
create index events_numbered on events (tenant_id, number) where number is not null;
