-- How much the answers take that are kept for each token (API-13): by hour, so that a claim reads a few rows however many answers there are.
-- A new table: legal while the previous release runs.
create table idempotent_bytes (
  token_id uuid not null references access_tokens on delete cascade,
  hour timestamptz not null,
  bytes bigint not null check (bytes >= 0),
  primary key (token_id, hour)
);
create index idempotent_bytes_age on idempotent_bytes (hour);
comment on table idempotent_bytes is 'Bytes of kept answers, by token and the hour in which their requests began. A row ends with the last of its answers.';

alter table idempotent_bytes enable row level security;
alter table idempotent_bytes force row level security;
create policy core on idempotent_bytes to portolan_core using (true) with check (true);
grant select, insert, update, delete on idempotent_bytes to portolan_core;
