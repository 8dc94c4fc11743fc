-- What was deleted stays for 30 days (storage::trash). Only comments and indexes change: legal while the
-- previous release runs, which removes such rows after 20 minutes.
comment on column sources.deleted_at is 'Deleting can be undone for 30 days; then the janitor removes the row.';
create index sources_deleted on sources (tenant_id, deleted_at) where deleted_at is not null;
create index servers_deleted on servers (tenant_id, deleted_at) where deleted_at is not null;
create index prompts_deleted on prompts (tenant_id, deleted_at) where deleted_at is not null;
create index resources_deleted on resources (tenant_id, deleted_at) where deleted_at is not null;
