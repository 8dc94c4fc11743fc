-- Indexes for the purge of browser sessions: `on delete set null` finds their rows by these.
-- Only rows that still name a session are in them.
create index grants_session on grants (session_id) where session_id is not null;
create index authorization_requests_session on authorization_requests (session_id) where session_id is not null;
