-- Delivery of mail. A message is due when `next_at` has come; taking it moves `next_at` on, so that two senders never hold the
-- same message, and one that dies with a message in its hands does not keep it.
alter table mails
  add column body_html text not null default '',
  add column attempts int not null default 0,
  add column next_at timestamptz not null default now(),
  add column failed_at timestamptz;
create index mails_due on mails (next_at) where sent_at is null and failed_at is null;
comment on column mails.attempts is 'Guard of delivery: who reports an outcome names the attempt that it was.';
comment on column mails.failed_at is 'Given up: refused for good, or too old.';
comment on table mails is 'Outgoing mail queue; shown on a page in dev. The text goes when a message is delivered, the row after 7 days.';
