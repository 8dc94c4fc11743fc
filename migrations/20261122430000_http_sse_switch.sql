-- HTTP+SSE, the transport of 2024-11-05, is deprecated and served all the same; a workspace may turn it off.
alter table tenants add column http_sse boolean not null default true;
comment on column tenants.http_sse is 'Whether its servers are served by HTTP+SSE too, the transport of 2024-11-05 (…/sse, …/messages).';
