-- Requests of the management API that are carried out once (API-13).

create table idempotent_requests (
  token_id uuid not null references access_tokens on delete cascade,
  key_digest bytea not null check (octet_length(key_digest) = 32),
  request_digest bytea not null check (octet_length(request_digest) = 32),
  started_at timestamptz not null,
  answer bytea,
  primary key (token_id, key_digest)
);
create index idempotent_requests_age on idempotent_requests (started_at);
comment on table idempotent_requests is 'One row a key of a token. A row ends 24 hours after its request, and with its token.';
comment on column idempotent_requests.answer is 'Status, content type and body, sealed; null while the request is carried out.';

alter table idempotent_requests enable row level security;
alter table idempotent_requests force row level security;
create policy core on idempotent_requests to portolan_core using (true) with check (true);
grant select, insert, update, delete on idempotent_requests to portolan_core;
