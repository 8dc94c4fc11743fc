-- The purge of grants that ended, and of hints that no sign-in used for long (AUTH-3.4).
create index grants_ended on grants (least(revoked_at, expires_at));
create index workspace_hints_seen on workspace_hints (seen_at);
-- A grant takes its code and its last use with it.
create index authorization_codes_of_grant on authorization_codes (grant_id);
create index grant_uses_of_grant on grant_uses (grant_id);
