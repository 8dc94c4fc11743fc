-- Access of service accounts to the management API (API-23 to API-26). A new table, and columns that may be null: legal while
-- the previous release runs. That release does not compare epochs, so there a token outlives a revoked secret by 15 minutes
-- at most.

create table api_access (
  tenant_id uuid not null,
  account_id uuid not null,
  role text not null check (role in ('admin', 'developer', 'member', 'viewer')),
  scopes text[] not null check (cardinality(scopes) between 1 and 32),
  changed_at timestamptz not null,
  last_used_at timestamptz,
  primary key (tenant_id, account_id),
  foreign key (tenant_id, account_id) references service_accounts (tenant_id, id) on delete cascade
);
comment on table api_access is 'API-23: what a token of the management API may do that a service account gets. No row: it gets none.';
comment on column api_access.changed_at is 'A change is a new row under the same id: tokens of the former one go with it.';

alter table api_access enable row level security;
alter table api_access force row level security;
create policy core on api_access to portolan_core using (true) with check (true);
grant select, insert, update, delete on api_access to portolan_core;

alter table access_tokens
  add column account_id uuid,
  add column account_epoch int,
  add constraint access_tokens_account foreign key (tenant_id, account_id)
    references api_access (tenant_id, account_id) on delete cascade,
  add constraint access_tokens_account_epoch
    check (num_nonnulls(account_id, account_epoch) in (0, 2) and num_nonnulls(account_id, pipeline_id) <= 1);
create index access_tokens_account on access_tokens (tenant_id, account_id) where account_id is not null;
comment on column access_tokens.account_id is 'The service account that got the token; the token ends with its access (API-25).';
comment on column access_tokens.account_epoch is 'service_accounts.epoch at the proof: a token with another one is refused (API-25).';
