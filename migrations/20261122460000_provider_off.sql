-- An operator can turn a tenant's provider off without losing what was entered: for a tenant that is locked out by it.
alter table identity_providers add column off_at timestamptz,
  add constraint identity_providers_off_is_not_enforced check (off_at is null or enforced_at is null);
comment on column identity_providers.off_at is 'Since then it is as if there were none, until an admin enters it again.';
