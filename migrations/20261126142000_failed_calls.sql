-- Failures of a workspace are read newest first and grouped by cause (METER-13). Writes to a partition wait while its part of the index is built; counts
-- are not written there, and nodes queue entries of the log meanwhile.
grant create on schema public to portolan_keeper;
set local role portolan_keeper;
create index call_log_failed on call_log (tenant_id, at desc) where outcome <> 0;
reset role;
revoke create on schema public from portolan_keeper;
