-- Tokens of `portolan login` (CONF-15): a row waits for the one-time code of its command. New columns that may be null: legal while the
-- previous release runs, which sees a token of two minutes.
alter table access_tokens add column code_digest bytea check (octet_length(code_digest) = 32);
alter table access_tokens add column code_challenge bytea check (octet_length(code_challenge) = 32);
alter table access_tokens add column code_days int check (code_days between 1 and 365);
alter table access_tokens add constraint access_tokens_code check (num_nonnulls(code_digest, code_challenge, code_days) in (0, 3));
create unique index access_tokens_code_digest on access_tokens (code_digest) where code_digest is not null;
comment on column access_tokens.code_digest is 'SHA-256 of the code by which a command gets the token once; null when it was redeemed. Until then nothing has the token of this row.';
comment on column access_tokens.code_challenge is 'SHA-256 of the secret of that command (RFC 7636, S256).';
comment on column access_tokens.code_days is 'Life of the token from its creation, if the code is redeemed before expires_at.';
