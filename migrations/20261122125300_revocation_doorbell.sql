-- Nodes read revocations twice a second; the doorbell makes them look at once (auth.md 4.1: refused everywhere within a second). It
-- rings at commit, whoever writes a row.
create function tell_of_revocation() returns trigger language plpgsql as $$
begin
  perform pg_notify('portolan_revocations', '');
  return null;
end $$;
create trigger revocations_doorbell after insert on revocations for each statement execute function tell_of_revocation();
