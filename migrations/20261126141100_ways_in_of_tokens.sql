-- Whether a personal token was made in a session that began with an identity or a passkey, which can be removed (API-4). New columns that
-- may be null: legal while the previous release runs.
alter table browser_sessions add column way_in uuid;
comment on column browser_sessions.way_in is 'The identity link or the passkey that the session began with; null for a password or a mailed code.';
alter table access_tokens add column way_in uuid;
comment on column access_tokens.way_in is 'The way in of the session that made a personal token: the token ends when its person removes it.';
