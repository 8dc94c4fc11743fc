-- A sign-up leads on to where the person wanted to go, whatever that is: a page of the console or of the account, an account to connect.
-- The columns before it stay, and are written too, for nodes of the release before.
alter table verifications add column continue_target text check (length(continue_target) <= 2000);
comment on column verifications.continue_target is
  'Where to go on after sign-up, as the word that forms and links carry (login::Target). Absent: continue_request or continue_invitation, or the console.';
