-- APIs are signed in to as MCP servers are. Those name their authorization server; for an API somebody names it.
alter table upstream_sign_ins add column server jsonb;
comment on column upstream_sign_ins.server is 'Metadata of the authorization server (RFC 8414), entered or read from where its issuer says. Null for MCP servers, which name their own at each connection.';
