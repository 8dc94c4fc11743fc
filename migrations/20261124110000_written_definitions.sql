-- Definitions as they were written. `jsonb` sorts the members of an object and writes numbers anew; `json` keeps the text. The columns
-- beside stay what the release before reads and writes, and go in a later release.
alter table tools add column written json;
alter table prompts add column written json;
alter table resources add column written json;

comment on column tools.written is
  'What the jsonb columns hold, in the order and with the numbers in which it was written: `{"upstream": <definition>}` for a tool of an MCP server, else `{"inputSchema", "outputSchema", "annotations", "plan", "definition"}`. Null for what an earlier release wrote.';
comment on column prompts.written is 'The definition of an upstream as it came; null for what an earlier release wrote.';
comment on column resources.written is 'The definition of an upstream as it came; null for what an earlier release wrote.';

-- The release before writes the other columns alone: then what was written before does not hold any more.
create function forget_written() returns trigger language plpgsql as $$
begin
  if new.written::text is not distinct from old.written::text then
    new.written := null;
  end if;
  return new;
end $$;
create trigger tools_written before update of input_schema, output_schema, annotations, plan, definition on tools
  for each row when (old.written is not null and (
    new.input_schema is distinct from old.input_schema or new.output_schema is distinct from old.output_schema
    or new.annotations is distinct from old.annotations or new.plan is distinct from old.plan
    or new.definition is distinct from old.definition))
  execute function forget_written();
create trigger prompts_written before update of upstream on prompts
  for each row when (old.written is not null and new.upstream is distinct from old.upstream)
  execute function forget_written();
create trigger resources_written before update of upstream on resources
  for each row when (old.written is not null and new.upstream is distinct from old.upstream)
  execute function forget_written();
