-- Webhooks in the file of a workspace (CONF-14): the file that owns an endpoint (CONF-6).

alter table webhook_endpoints add column managed_by text check (length(managed_by) between 1 and 64);
comment on column webhook_endpoints.managed_by is 'Name of the file that the endpoint was applied from; null if none.';
