-- Links that were mailed to a person: one for a new password, one to undo a change of address (auth.md L9, L10).
create table account_links (
  id uuid primary key,
  purpose text not null check (purpose in ('reset', 'undo')),
  user_id uuid not null references users on delete cascade,
  address text not null,
  address_norm text not null,
  digest bytea not null unique check (octet_length(digest) = 32),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create unique index account_links_live on account_links (user_id, purpose) where used_at is null;
create index account_links_expiry on account_links (expires_at);
comment on table account_links is 'One live link a person and purpose: a newer one uses the older up.';
comment on column account_links.address is 'undo: the address to go back to. reset: the address that asked.';

-- Changes of address that wait for the code that went to the new one.
create table email_changes (
  id uuid primary key,
  user_id uuid not null unique references users on delete cascade,
  address text not null,
  address_norm text not null,
  code_mac bytea not null check (octet_length(code_mac) = 32),
  session_id uuid not null references browser_sessions on delete cascade,
  attempts int not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
comment on table email_changes is 'One a person; gone when it is done or replaced.';

grant select, insert, update, delete on account_links, email_changes to portolan_core;

alter table verifications add column continue_invitation uuid;
comment on column verifications.continue_invitation is 'Invitation to go on with after sign-up.';
