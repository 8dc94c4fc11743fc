-- The flight recorder keeps a step once that a looping client repeats (auth.md X2).
alter table connect_events add column repeats int not null default 0, add column last_at timestamptz;
comment on column connect_events.repeats is 'How often the step came again just so: a refresh that is refused for the same reason.';
comment on column connect_events.last_at is 'When it came again last.';
