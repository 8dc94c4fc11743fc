-- What a refresh costs (auth.md K8, K16; docs/adr/0031).

-- Nothing asks by it: purging looks at the end of a family, whichever comes first. It was written by every refresh, and made each of them
-- write the other indexes of the row too.
drop index refresh_families_idle;

-- A rotation changes two rows where they stand, if their pages have room: a family, and the token that grows by its sealed successor to
-- more than twice its size.
alter table refresh_families set (fillfactor = 80);
alter table refresh_tokens set (fillfactor = 45);

alter table refresh_families add column last_used_at timestamptz;
comment on column refresh_families.last_used_at is 'The last refresh. It stands here and not in the grant, because a refresh writes this row anyway and does not wait for whoever revokes the grant.';
comment on column grants.last_used_at is 'The code was redeemed, or a release before refresh_families.last_used_at refreshed. The later of the two counts.';

-- Two functions that refreshes call, each a transaction by itself where no door is open: then it opens the one of portolan_core, for that
-- transaction only. They have the rights of their caller. Inside a door they have no other rights than the door gives.

create function grant_state(
  a_grant uuid, a_token bytea, a_client text,
  out client_ref uuid, out client_id text, out client_kind text, out client_tenant uuid, out client_name text, out client_metadata jsonb,
  out client_metadata_digest bytea, out client_auth_method text, out client_grant_types text[], out client_status text,
  out client_redirect_uris text[],
  out family_id uuid, out family_generation int, out family_idle_expires_at timestamptz, out family_expires_at timestamptz,
  out family_revoked_at timestamptz,
  out token_generation int, out token_superseded_at timestamptz, out token_successor_sealed bytea, out token_replays int,
  out head_presented boolean,
  out grant_id uuid, out grant_tenant uuid, out grant_user uuid, out grant_client uuid, out grant_scopes text[], out grant_resource text,
  out grant_auth_time timestamptz, out grant_expires_at timestamptz, out grant_revoked_at timestamptz, out grant_amr text[],
  out is_key_bound boolean,
  out second_factor text, out client_rule text, out client_decision text, out is_by_provider boolean, out is_admitted_by_provider boolean,
  out user_epoch int, out tenant_epoch int, out member_epoch int, out is_active boolean
) language plpgsql stable as $$
#variable_conflict use_column
declare
  opened text;
  confined boolean;
  came_by uuid;
  provider uuid;
  enforced timestamptz;
  user_status text;
  user_verified timestamptz;
  tenant_status text;
  member_status text;
  member_role text;
begin
  if current_setting('role') = 'none' then
    opened := set_config('role', 'portolan_core', true);
  end if;

  if a_client is not null then
    select c.id, c.client_id, c.kind, c.tenant_id, c.name, c.metadata, c.metadata_digest, c.auth_method, c.grant_types, c.status,
        array(select r.uri from oauth_client_redirects r where r.client_ref = c.id order by r.uri)
      into client_ref, client_id, client_kind, client_tenant, client_name, client_metadata, client_metadata_digest, client_auth_method,
        client_grant_types, client_status, client_redirect_uris
      from oauth_clients c where c.client_id = a_client and c.status <> 'deleted';
    if not found then
      return;
    end if;
  end if;

  grant_id := a_grant;
  if a_token is not null then
    -- Every row is found by a unique key, one after the other: a planner that may join them goes by the family alone, which has few tokens
    -- on average, and thousands when it has lived for long.
    select t.family_id, t.generation, t.superseded_at, t.successor_sealed, t.replays, t.presented_at is not null
      into family_id, token_generation, token_superseded_at, token_successor_sealed, token_replays, head_presented
      from refresh_tokens t where t.digest = a_token;
    if not found then
      return;
    end if;
    select f.grant_id, f.generation, f.idle_expires_at, f.expires_at, f.revoked_at
      into grant_id, family_generation, family_idle_expires_at, family_expires_at, family_revoked_at
      from refresh_families f where f.id = grant_state.family_id;
    if token_generation <> family_generation then
      select h.presented_at is not null into head_presented
        from refresh_tokens h where h.family_id = grant_state.family_id and h.generation = family_generation;
    end if;
  end if;

  select g.tenant_id, g.user_id, g.client_ref, g.scopes, g.resource, g.auth_time, g.expires_at, g.revoked_at, g.amr,
      coalesce(g.client_snapshot->>'auth_method' = 'private_key_jwt', false), g.sso_confined, g.sso_provider
    into grant_tenant, grant_user, grant_client, grant_scopes, grant_resource, grant_auth_time, grant_expires_at, grant_revoked_at,
      grant_amr, is_key_bound, confined, came_by
    from grants g where g.id = grant_state.grant_id;
  if not found then
    grant_id := null;
    return;
  end if;
  select w.epoch, w.status, w.policy->>'second_factor', w.policy->>'clients'
    into tenant_epoch, tenant_status, second_factor, client_rule
    from tenants w where w.id = grant_tenant;
  select m.epoch, m.status, m.role into member_epoch, member_status, member_role
    from memberships m where m.tenant_id = grant_tenant and m.user_id = grant_user;
  select u.epoch, u.status, u.verified_at into user_epoch, user_status, user_verified from users u where u.id = grant_user;
  select d.decision into client_decision
    from client_decisions d where d.tenant_id = grant_tenant and d.client_ref = grant_client;
  select p.id, p.enforced_at into provider, enforced
    from identity_providers p where p.tenant_id = grant_tenant and p.off_at is null;
  is_by_provider := coalesce(confined and provider = came_by, false);
  is_admitted_by_provider := not (enforced is not null and came_by is distinct from provider
    and (grant_amr && array['hwk', 'swk'] and member_status = 'active' and member_role = 'owner') is not true);
  is_active := coalesce(user_status = 'active' and user_verified is not null and tenant_status = 'active' and member_status = 'active'
    and member_role <> 'viewer', false);
end $$;
comment on function grant_state is 'A grant, or that of a refresh token, and what decides whether it may act now (K16); with the client of a wire id. What is not there is null.';

create function rotate_refresh_token(
  a_family uuid, a_generation int, a_head bytea, a_successor bytea, a_sealed bytea, a_now timestamptz, a_idle_expires_at timestamptz
) returns boolean language plpgsql as $$
declare
  opened text;
begin
  if current_setting('role') = 'none' then
    opened := set_config('role', 'portolan_core', true);
  end if;
  -- The row of the family decides. Of two who come at once the second one waits for the first, and finds another head.
  update refresh_families f
    set generation = a_generation + 1, head_digest = a_successor, idle_expires_at = a_idle_expires_at, last_used_at = a_now
    where f.id = a_family and f.generation = a_generation and f.head_digest = a_head and f.revoked_at is null;
  if not found then
    return false;
  end if;
  update refresh_tokens t
    set superseded_at = a_now, presented_at = coalesce(t.presented_at, a_now), successor_sealed = a_sealed
    where t.digest = a_head and t.family_id = a_family and t.superseded_at is null;
  if not found then
    raise exception 'the head of a family is not a token of it' using errcode = 'data_corrupted';
  end if;
  insert into refresh_tokens (digest, family_id, generation, issued_at) values (a_successor, a_family, a_generation + 1, a_now);
  return true;
end $$;
comment on function rotate_refresh_token is 'K8: makes a successor the head of a family in place of the head, all of it or nothing. False if that is not the head, or the family was revoked.';
