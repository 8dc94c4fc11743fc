-- The audit log of each tenant, and that of the platform, is a chain of hashes: every entry names the one before it, so that an entry
-- which was edited, removed or moved later is found (`portolan admin audit verify`). The hash is
-- sha256(previous || entry), where `entry` is the text that audit_entry_text makes; the first one follows 32 zero bytes.
create table audit_chain (
  tenant_id uuid references tenants on delete restrict,
  seq bigint not null,
  event_id uuid not null unique references audit_events on delete restrict,
  previous bytea not null check (octet_length(previous) = 32),
  hash bytea not null check (octet_length(hash) = 32),
  constraint audit_chain_place unique nulls not distinct (tenant_id, seq)
);
comment on table audit_chain is 'Append only. tenant_id is null in the chain of the platform; seq counts from 1 without gaps, in the order of commits.';

alter table audit_chain enable row level security;
alter table audit_chain force row level security;
create policy core_read on audit_chain for select to portolan_core using (true);
create policy core_write on audit_chain for insert to portolan_core with check (true);
create policy own_read on audit_chain for select to portolan_tenant, portolan_node using (tenant_id = app_tenant());
create policy own_write on audit_chain for insert to portolan_tenant, portolan_node with check (tenant_id = app_tenant());
grant select, insert on audit_chain to portolan_core, portolan_tenant, portolan_node;

-- A compact JSON array of texts: another program needs no more than SHA-256 to check a chain. The same text is made by
-- portolan_storage::audit::entry_text, and a test holds both together.
create function audit_entry_text(e audit_events, seq bigint) returns text language sql stable
  set search_path = pg_catalog, public
  as $$
    select array_to_json(array[
      seq::text, e.id::text, to_char(e.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.tenant_id::text, e.actor_kind,
      e.actor_id::text, e.action, e.target_kind, e.target_id, e.outcome, e.request_id, e.ip_block, e.detail::text])::text
  $$;

-- Runs when the transaction commits, so that the lock of a chain is held for the commit alone and order in the chain is order of
-- commits. Entries of an older release are chained too.
create function chain_audit_event() returns trigger language plpgsql
  set search_path = pg_catalog, public
  as $$
declare
  head record;
  place bigint;
  before bytea;
begin
  perform pg_advisory_xact_lock(1635083369, hashtext(coalesce(new.tenant_id::text, 'platform')));
  if new.tenant_id is null then
    select c.seq, c.hash into head from audit_chain c where c.tenant_id is null order by c.seq desc limit 1;
  else
    select c.seq, c.hash into head from audit_chain c where c.tenant_id = new.tenant_id order by c.seq desc limit 1;
  end if;
  place := coalesce(head.seq, 0) + 1;
  before := coalesce(head.hash, decode(repeat('00', 32), 'hex'));
  insert into audit_chain (tenant_id, seq, event_id, previous, hash)
  values (new.tenant_id, place, new.id, before, sha256(before || convert_to(audit_entry_text(new, place), 'UTF8')));
  return null;
end $$;

-- Before rows of now, in the order in which they were written. No entry can be written meanwhile.
lock table audit_events in share row exclusive mode;
alter table audit_events no force row level security;
alter table audit_chain no force row level security;
do $$
declare
  e audit_events;
  chain uuid;
  place bigint := 0;
  before bytea;
begin
  for e in select * from audit_events order by tenant_id nulls first, at, id loop
    if place = 0 or chain is distinct from e.tenant_id then
      chain := e.tenant_id;
      place := 0;
      before := decode(repeat('00', 32), 'hex');
    end if;
    place := place + 1;
    insert into audit_chain (tenant_id, seq, event_id, previous, hash)
    values (chain, place, e.id, before, sha256(before || convert_to(audit_entry_text(e, place), 'UTF8')))
    returning hash into before;
  end loop;
end $$;
alter table audit_chain force row level security;
alter table audit_events force row level security;
create constraint trigger audit_events_chain after insert on audit_events
  deferrable initially deferred for each row execute function chain_audit_event();

-- An operator's command, and what has no person: both name themselves in `detail`.
alter table audit_events drop constraint audit_events_actor_kind_check;
alter table audit_events add constraint audit_events_actor_kind_check
  check (actor_kind in ('user', 'anonymous', 'system', 'operator', 'service_account', 'api_key'));
