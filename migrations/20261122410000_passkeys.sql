-- Passkeys (auth.md L13).

create table webauthn_credentials (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  credential_id bytea not null unique check (octet_length(credential_id) between 1 and 1023),
  public_key bytea not null check (octet_length(public_key) <= 2048),
  rp_id text not null,
  name text not null check (char_length(name) between 1 and 60),
  aaguid uuid not null,
  backup_eligible boolean not null,
  backup_state boolean not null,
  sign_count bigint not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  suspected_at timestamptz
);
create index webauthn_credentials_user on webauthn_credentials (user_id);
comment on table webauthn_credentials is 'Public keys of authenticators. Nothing in here signs anybody in.';
comment on column webauthn_credentials.public_key is 'In COSE form, as the authenticator gave it.';
comment on column webauthn_credentials.rp_id is 'The host that it is bound to. Of another one than today''s it opens nothing, and counts for nothing.';
comment on column webauthn_credentials.backup_eligible is 'The key may be copied among the devices of its person. Never changes.';
comment on column webauthn_credentials.sign_count is 'Only grows, unless the authenticator does not count at all: decided by the update that raises it, on whichever node.';
comment on column webauthn_credentials.suspected_at is 'When a signature came whose count was not greater than one before: somebody may have a copy.';

create table webauthn_challenges (
  digest bytea primary key check (octet_length(digest) = 32),
  purpose text not null check (purpose in ('register', 'sign_in', 'second_factor', 'confirm')),
  browser_digest bytea not null check (octet_length(browser_digest) = 32),
  user_id uuid references users on delete cascade,
  expires_at timestamptz not null,
  used_at timestamptz,
  check ((purpose = 'sign_in') = (user_id is null))
);
create index webauthn_challenges_expiry on webauthn_challenges (expires_at);
create index webauthn_challenges_browser on webauthn_challenges (browser_digest, purpose) where used_at is null;
comment on table webauthn_challenges is 'What an authenticator was asked to sign: once, within five minutes, in the browser that asked, and for what it asked.';

grant select, insert, update, delete on webauthn_credentials, webauthn_challenges to portolan_core;
