-- From where a refresh token was presented (S-10; docs/adr/0006): the lost-answer window beyond 120 s is for the same network only.

alter table refresh_tokens add column presented_network bytea check (octet_length(presented_network) = 32);
comment on column refresh_tokens.presented_network is 'SHA-256 of the token and the address block (/24, /64) that presented it when it was superseded. The token is in it, so that the table alone does not tell the block. Null: superseded by a release before this column.';

alter table refresh_families add column elsewhere_at timestamptz;
comment on column refresh_families.elsewhere_at is 'The last time a superseded token was presented by another network than the one that superseded it. The person is told.';

-- As rotate_refresh_tokens with seven arguments, which stays for the release before; this one also writes presented_network.
create function rotate_refresh_tokens(
  a_families uuid[], a_generations int[], a_heads bytea[], a_successors bytea[], a_sealed bytea[], a_now timestamptz[],
  a_idle_expires_at timestamptz[], a_networks bytea[]
) returns setof bigint language plpgsql
set join_collapse_limit = 1 set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  opened text;
begin
  if current_setting('role') = 'none' then
    opened := set_config('role', 'portolan_core', true);
  end if;
  return query
    -- The row of the family decides, and whoever changes a token of it holds that. Who holds it is not waited for: the others have nothing to do
    -- with that, and two calls that hold families which the other one wants would wait for ever.
    with free as materialized (
      select asked.*
      from unnest(a_families, a_generations, a_heads, a_successors, a_sealed, a_now, a_idle_expires_at, a_networks)
          with ordinality as asked (family, generation, head, successor, sealed, moment, idle_expires_at, network, place)
        join refresh_families f on f.id = asked.family
        join refresh_tokens t on t.digest = asked.head
      where f.generation = asked.generation and f.head_digest = asked.head and f.revoked_at is null
        and t.family_id is not distinct from asked.family and t.superseded_at is null
      for update of f skip locked
    ), turned as (
      -- Of two with one head one is taken.
      update refresh_families f
      set generation = free.generation + 1, head_digest = free.successor, idle_expires_at = free.idle_expires_at, last_used_at = free.moment
      from free where f.id = free.family
      returning free.*
    ), superseded as (
      update refresh_tokens t
      set superseded_at = turned.moment, presented_at = coalesce(t.presented_at, turned.moment), successor_sealed = turned.sealed,
        presented_network = turned.network
      from turned where t.digest = turned.head
      returning turned.*
    ), made as (
      insert into refresh_tokens (digest, family_id, generation, issued_at)
      select successor, family, generation + 1, moment from superseded
    )
    select turned.place from turned;
end $$;
comment on function rotate_refresh_tokens(uuid[], int[], bytea[], bytea[], bytea[], timestamptz[], timestamptz[], bytea[]) is 'K8: makes a successor the head of each family in place of its head. Answers for which it did: not where that is not the head, the family was revoked, or somebody holds it. Nothing of such a family is changed.';
