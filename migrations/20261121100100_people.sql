create table users (
  id uuid primary key,
  display_name text not null,
  status text not null check (status in ('active', 'locked', 'deactivated', 'erased')),
  epoch int not null default 0,
  created_at timestamptz not null,
  verified_at timestamptz,
  last_login_at timestamptz
);
comment on table users is 'People. Global: a person may be a member of several tenants.';
comment on column users.epoch is 'Raised to invalidate every access token of the person (auth.md 4.2).';

create table user_emails (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  address text not null,
  address_norm text not null,
  verified_at timestamptz,
  is_primary boolean not null,
  created_at timestamptz not null
);
create unique index user_emails_verified on user_emails (address_norm) where verified_at is not null;
create unique index user_emails_primary on user_emails (user_id) where is_primary;
create index user_emails_address on user_emails (address_norm);
comment on table user_emails is 'Unverified addresses may coexist, so that nobody can squat one.';

create table user_passwords (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  phc text not null,
  created_at timestamptz not null,
  retired_at timestamptz
);
create unique index user_passwords_current on user_passwords (user_id) where retired_at is null;

create table browser_sessions (
  id uuid primary key,
  user_id uuid not null references users on delete cascade,
  token_digest bytea not null unique check (octet_length(token_digest) = 32),
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  auth_time timestamptz not null,
  amr text[] not null,
  ip_block text,
  ua_label text,
  ended_at timestamptz,
  end_reason text
);
create index browser_sessions_live on browser_sessions (user_id) where ended_at is null;
create index browser_sessions_expiry on browser_sessions (expires_at);

create table verifications (
  id uuid primary key,
  purpose text not null check (purpose in ('email')),
  user_id uuid not null references users on delete cascade,
  address_norm text not null,
  code_mac bytea not null check (octet_length(code_mac) = 32),
  browser_digest bytea not null check (octet_length(browser_digest) = 32),
  continue_request uuid,
  attempts int not null default 0,
  sends int not null default 1,
  sent_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  created_at timestamptz not null
);
create index verifications_user on verifications (user_id);
comment on column verifications.code_mac is 'HMAC of the 8-digit code under a purpose key: a code is short, a bare digest could be tried out.';
comment on column verifications.continue_request is 'Authorization request to go on with after sign-up.';

create table mails (
  id uuid primary key,
  to_address text not null,
  subject text not null,
  body_text text not null,
  created_at timestamptz not null,
  sent_at timestamptz
);
create index mails_recent on mails (created_at desc);
comment on table mails is 'Outgoing mail queue; shown on a page in dev. Purged after 7 days.';

grant select, insert, update, delete on users, user_emails, user_passwords, browser_sessions, verifications, mails to portolan_core;
