-- Suspension and deletion (M6). A tenant that is being deleted can be restored until `delete_after`; then its data keys are destroyed, its rows go,
-- its slugs become tombstones, and row and audit log stay.
alter table tenants
  add column suspended_at timestamptz,
  add column suspend_reason text,
  add column delete_after timestamptz;
create index tenants_deleting on tenants (delete_after) where status = 'deleting';
comment on column tenants.suspended_at is 'Stopped by an operator, who may have deleted it too: only an operator takes that back.';
comment on column tenants.suspend_reason is 'What its members are told.';

-- M1 with an end: the last owner of a tenant that is gone may go.
create or replace function keep_an_owner() returns trigger language plpgsql as $$
begin
  perform 1 from tenants where id = old.tenant_id and status <> 'deleted' for no key update;
  if found
     and not exists (select 1 from memberships where tenant_id = old.tenant_id and role = 'owner' and status = 'active') then
    raise exception 'a tenant needs an owner' using errcode = 'check_violation', constraint = 'memberships_owner';
  end if;
  return null;
end $$;

-- Everything that a tenant has, in every table that knows tenants, also in those that come later. What must stay, or dies by itself, is
-- named. Rows that others refer to go in a later round.
create function purge_tenant(doomed uuid) returns void language plpgsql
  set search_path = pg_catalog, public
  as $$
declare
  place record;
  left_over boolean;
begin
  update tenants set status = 'deleted', name = '', policy = '{}', suspend_reason = null
   where id = doomed and status = 'deleting';
  if not found then
    raise exception 'this tenant is not being deleted';
  end if;
  for round in 1..10 loop
    left_over := false;
    for place in
      select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
       where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
         and c.relname not in ('tenant_slugs', 'audit_events', 'audit_chain', 'revocations')
       order by c.relname
    loop
      begin
        execute format('delete from %I where tenant_id = $1', place.relname) using doomed;
      exception when foreign_key_violation or restrict_violation then
        left_over := true;
      end;
    end loop;
    exit when not left_over;
  end loop;
  if left_over then
    raise exception 'rows of this tenant are in the way of others';
  end if;
  update tenant_slugs set state = 'tombstone' where tenant_id = doomed;
end $$;
