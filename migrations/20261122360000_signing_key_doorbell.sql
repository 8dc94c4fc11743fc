-- Keys are published and removed within a second: nodes look at the table when it rings, and every minute anyway.
create function tell_of_signing_keys() returns trigger language plpgsql as $$
begin
  perform pg_notify('portolan_signing_keys', '');
  return null;
end $$;
create trigger signing_keys_doorbell after insert or update or delete on signing_keys
  for each statement execute function tell_of_signing_keys();
