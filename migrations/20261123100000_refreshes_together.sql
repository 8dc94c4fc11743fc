-- Refreshes of the same moment are one look and one rotation, with one commit (docs/adr/0031).

-- Both functions take what is asked as columns, and answer for each by its place, counted from one. They find every row by a unique key, in the order
-- in which the statement names the tables, whatever the statistics say: so they are planned once, and a family that has lived for long costs what a
-- new one does ("is not distinct from" is what no index answers: a token is found by its digest, not among those of its family). What they set, the role too, is theirs alone: it ends with them. grant_state and rotate_refresh_token stay for the release before.

create function grant_states(a_grants uuid[], a_tokens bytea[], a_clients text[])
returns table (
  place bigint,
  client_ref uuid, client_id text, client_kind text, client_tenant uuid, client_name text, client_metadata jsonb,
  client_metadata_digest bytea, client_auth_method text, client_grant_types text[], client_status text, client_redirect_uris text[],
  family_id uuid, family_generation int, family_idle_expires_at timestamptz, family_expires_at timestamptz,
  family_revoked_at timestamptz,
  token_generation int, token_superseded_at timestamptz, token_successor_sealed bytea, token_replays int,
  head_presented boolean,
  grant_id uuid, grant_tenant uuid, grant_user uuid, grant_client uuid, grant_scopes text[], grant_resource text,
  grant_auth_time timestamptz, grant_expires_at timestamptz, grant_revoked_at timestamptz, grant_amr text[],
  is_key_bound boolean,
  second_factor text, client_rule text, client_decision text, is_by_provider boolean, is_admitted_by_provider boolean,
  user_epoch int, tenant_epoch int, member_epoch int, is_active boolean
) language plpgsql stable
set join_collapse_limit = 1 set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  opened text;
begin
  if current_setting('role') = 'none' then
    opened := set_config('role', 'portolan_core', true);
  end if;
  return query
    select asked.place,
      c.id, c.client_id, c.kind, c.tenant_id, c.name, c.metadata, c.metadata_digest, c.auth_method, c.grant_types, c.status,
      case when c.id is not null then array(select r.uri from oauth_client_redirects r where r.client_ref = c.id order by r.uri) end,
      f.id, f.generation, f.idle_expires_at, f.expires_at, f.revoked_at,
      t.generation, t.superseded_at, t.successor_sealed, t.replays,
      case when t.generation = f.generation then t.presented_at is not null
        else (select h.presented_at is not null from refresh_tokens h where h.family_id = f.id and h.generation = f.generation) end,
      g.id, g.tenant_id, g.user_id, g.client_ref, g.scopes, g.resource, g.auth_time, g.expires_at, g.revoked_at, g.amr,
      coalesce(g.client_snapshot->>'auth_method' = 'private_key_jwt', false),
      w.policy->>'second_factor', w.policy->>'clients', d.decision,
      coalesce(g.sso_confined and p.id = g.sso_provider, false),
      not (p.enforced_at is not null and g.sso_provider is distinct from p.id
        and (g.amr && array['hwk', 'swk'] and m.status = 'active' and m.role = 'owner') is not true),
      u.epoch, w.epoch, m.epoch,
      coalesce(u.status = 'active' and u.verified_at is not null and w.status = 'active' and m.status = 'active' and m.role <> 'viewer', false)
    from unnest(a_grants, a_tokens, a_clients) with ordinality as asked (id, token, client, place)
      left join oauth_clients c on c.client_id = asked.client and c.status <> 'deleted'
      left join refresh_tokens t on t.digest = asked.token
      left join refresh_families f on f.id = t.family_id
      join grants g on g.id = coalesce(f.grant_id, asked.id)
      join tenants w on w.id = g.tenant_id
      left join memberships m on m.tenant_id = g.tenant_id and m.user_id = g.user_id
      left join users u on u.id = g.user_id
      left join client_decisions d on d.tenant_id = g.tenant_id and d.client_ref = g.client_ref
      left join identity_providers p on p.tenant_id = g.tenant_id and p.off_at is null
    where (asked.client is null or c.id is not null) and (asked.token is null or f.id is not null);
end $$;
comment on function grant_states is 'Grants, or those of refresh tokens, and what decides whether they may act now (K16); each with the client of a wire id. What was asked for and is not there has no row.';

create function rotate_refresh_tokens(
  a_families uuid[], a_generations int[], a_heads bytea[], a_successors bytea[], a_sealed bytea[], a_now timestamptz[],
  a_idle_expires_at timestamptz[]
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
      from unnest(a_families, a_generations, a_heads, a_successors, a_sealed, a_now, a_idle_expires_at)
          with ordinality as asked (family, generation, head, successor, sealed, moment, idle_expires_at, place)
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
      set superseded_at = turned.moment, presented_at = coalesce(t.presented_at, turned.moment), successor_sealed = turned.sealed
      from turned where t.digest = turned.head
      returning turned.*
    ), made as (
      insert into refresh_tokens (digest, family_id, generation, issued_at)
      select successor, family, generation + 1, moment from superseded
    )
    select turned.place from turned;
end $$;
comment on function rotate_refresh_tokens is 'K8: makes a successor the head of each family in place of its head. Answers for which it did: not where that is not the head, the family was revoked, or somebody holds it. Nothing of such a family is changed.';
