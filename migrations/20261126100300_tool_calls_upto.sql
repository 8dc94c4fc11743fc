-- Where the copy ends. The exclusive lock waits for statements that have taken an id and are not committed, and lasts as long as two short statements:
-- every row up to here is there for good, and nodes of the previous release go on to write after it. The owner reads the table until the copy is done.
alter table tool_calls no force row level security;
insert into tool_calls_carried select case when is_called then last_value else 0 end from tool_calls_id_seq;
