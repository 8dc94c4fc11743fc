-- The next deliveries of an endpoint, without a look at all that are due (HOOK-14). Legal while the previous release runs.
create index webhook_deliveries_next on webhook_deliveries (tenant_id, endpoint_id, next_at, event_id) where state = 'pending';
