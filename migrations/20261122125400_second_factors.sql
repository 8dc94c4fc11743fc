create table totp_credentials (
  user_id uuid primary key references users on delete cascade,
  secret_sealed bytea not null,
  last_step bigint not null default 0,
  created_at timestamptz not null,
  confirmed_at timestamptz
);
comment on table totp_credentials is 'Authenticator app of a person. Counts from the moment that one code of it was right (L11).';
comment on column totp_credentials.last_step is 'Each code is good once, on whichever node: only a later step is accepted.';

create table recovery_codes (
  user_id uuid not null references users on delete cascade,
  code_mac bytea not null check (octet_length(code_mac) = 32),
  used_at timestamptz,
  primary key (user_id, code_mac)
);
comment on table recovery_codes is 'For when the app is lost, each once (L12). A new set replaces the old one.';

grant select, insert, update, delete on totp_credentials, recovery_codes to portolan_core;
