-- What refers to a client is looked for when registrations that nobody ever allowed anything go: without these each would be a walk
-- through the whole table.
drop index grants_client;
create index grants_of_client on grants (client_ref);
create index authorization_requests_of_client on authorization_requests (client_ref);
create index authorization_codes_of_client on authorization_codes (client_ref);
create index client_documents_of_client on client_documents (client_ref);
