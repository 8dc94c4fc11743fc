-- One fetch of a metadata document at a time in the whole cluster (auth.md C2, case 85).
create table client_fetches (
  url text primary key,
  holder uuid not null,
  deadline timestamptz not null
);
comment on table client_fetches is 'Who fetches this document now. Whoever finds the deadline passed takes its place.';
grant select, insert, update, delete on client_fetches to portolan_core;
