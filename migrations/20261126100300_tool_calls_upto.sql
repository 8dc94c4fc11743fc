-- Where the copy ends. The lock waits for statements that have taken an id and are not committed, and lasts as long as this one statement: every row
-- up to here is there for good, and nodes of the previous release go on to write after it.
lock table tool_calls in share mode;
alter table tool_calls no force row level security;
insert into tool_calls_carried select coalesce(max(id), 0) from tool_calls;
alter table tool_calls force row level security;
