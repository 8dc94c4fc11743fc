-- More limits can be set for a tenant. The previous release passes over names that it does not know.
alter table tenant_limits drop constraint tenant_limits_name_check;
alter table tenant_limits add constraint tenant_limits_name_check check (name in (
  'tenant_calls', 'client_requests', 'tool_calls', 'running_calls', 'open_streams',
  'stream_opens', 'session_streams', 'listens', 'parked_calls', 'tasks'));
comment on column tenant_limits.value is 'A minute for calls, requests and stream_opens, at once for the others.';
