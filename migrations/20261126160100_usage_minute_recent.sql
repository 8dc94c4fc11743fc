-- The latest minutes of all workspaces are read each minute (HOOK-24). Rows come in the order of time, so that a
-- summary of blocks is enough: some kB a partition. The fold waits while the index is built; nodes go on to flush.
grant create on schema public to portolan_keeper;
set local role portolan_keeper;
create index usage_minute_recent on usage_minute using brin (minute) with (pages_per_range = 32, autosummarize = on);
reset role;
revoke create on schema public from portolan_keeper;
