-- Tables whose partitions come and go while the service runs (ADR 44): their owner is a role of its own. Who makes and drops a partition has to
-- own its table, and no role that serves requests owns one. This role owns counts and the log of calls alone, and may make tables in the schema
-- of partitions alone.
do $$
begin
  begin
    create role portolan_keeper nologin noinherit nobypassrls;
  exception when duplicate_object or unique_violation then null;
  end;
  begin
    grant portolan_keeper to portolan_app;
  exception when unique_violation then null;
  end;
  -- A table is given to a role by a member of it.
  if not pg_has_role(current_user, 'portolan_keeper', 'member') then
    execute format('grant portolan_keeper to %I', current_user);
  end if;
end $$;
create schema partitions authorization portolan_keeper;
comment on schema partitions is 'Partitions of tables in public. Nobody has rights on them: rows are reached by the table.';
grant usage on schema public to portolan_keeper;
grant select on _sqlx_migrations to portolan_keeper;

create function make_partition(parent text, part text, lower timestamptz, upper timestamptz) returns boolean language plpgsql
  set search_path = pg_catalog, public as $$
begin
  if to_regclass(format('partitions.%I', part)) is not null then
    return false;
  end if;
  -- A table that is attached later locks its parent less than one that is made as a partition.
  execute format('create table partitions.%I (like public.%I including defaults including constraints)', part, parent);
  execute format('alter table partitions.%I enable row level security', part);
  execute format('alter table partitions.%I force row level security', part);
  execute format('alter table public.%I attach partition partitions.%I for values from (%L) to (%L)', parent, part, lower, upper);
  return true;
end $$;
comment on function make_partition is 'Makes a partition with row-level security and without rights; false if it is there.';

create function partitions_of(parent text) returns table (part text, lower timestamptz, upper timestamptz) language sql stable
  set search_path = pg_catalog, public as $$
  select c.relname::text, (regexp_match(bound, 'FROM \(''([^'']+)''\)'))[1]::timestamptz, (regexp_match(bound, 'TO \(''([^'']+)''\)'))[1]::timestamptz
    from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      cross join lateral pg_get_expr(c.relpartbound, c.oid) bound
   where i.inhparent = to_regclass(format('public.%I', parent))
   order by 2
$$;
comment on function partitions_of is 'Partitions of a table, oldest first.';

-- Readers go on; writers that still come wait, and find another partition.
create function close_partition(part text) returns void language plpgsql set search_path = pg_catalog, public as $$
begin
  execute format('lock table partitions.%I in exclusive mode', part);
end $$;

create function drop_partition(part text) returns void language plpgsql set search_path = pg_catalog, public as $$
begin
  execute format('drop table partitions.%I', part);
end $$;
