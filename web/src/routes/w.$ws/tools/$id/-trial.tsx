import { Alert, Box, Button, Group, SegmentedControl, Stack, Textarea } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { ApiError } from '../../../../api/http';
import { type Tool, useTryTool } from '../../../../api/tools';
import { Status } from '../../../../components/badges';
import { useFields } from '../../../../components/form';
import { Panel } from '../../../../components/page';
import { SchemaForm } from '../../../../components/schema-form';
import { TryResultView } from '../../../../components/try-result';
import { isObject, resolve, type Schema, startingValue } from '../../../../json-schema';
import { useMay, useSession } from '../../../../session';
import classes from './tool.module.css';

/** Arguments that are written as JSON, or what is wrong with them. */
function readArguments(text: string): { args: Record<string, unknown> } | { fault: string } {
  try {
    const args: unknown = JSON.parse(text.trim() === '' ? '{}' : text);
    return isObject(args) ? { args } : { fault: 'The arguments are one JSON object: { … }' };
  } catch (cause) {
    return { fault: cause instanceof Error ? cause.message : 'This is not JSON.' };
  }
}

/** Calls the tool with arguments from a form or from JSON, and shows the result. */
export function Trial({ tool }: { tool: Tool }) {
  const { workspace } = useSession();
  const calls = useMay('call_tools');
  const schema = (isObject(tool.input_schema) ? tool.input_schema : {}) as Schema;
  const run = useTryTool(workspace.slug, tool.id);
  const form = useFields({
    initialValues: {
      mode: 'form' as 'form' | 'json',
      args: startingValue(resolve(schema, schema), schema) as Record<string, unknown>,
      text: '{}',
    },
    validate: ({ mode, text }) => {
      const outcome = mode === 'json' ? readArguments(text) : { args: {} };
      return { text: 'fault' in outcome ? outcome.fault : null };
    },
  });
  const { mode } = form.values;

  /** The arguments move with the mode; JSON that cannot be read stays, with its fault. */
  function change(next: string) {
    const { args, text } = form.values;
    if (next === 'json') return form.setValues({ mode: 'json', text: JSON.stringify(args, null, 2) });
    const outcome = readArguments(text);
    if ('fault' in outcome) return form.setFieldError('text', outcome.fault);
    return form.setValues({ mode: 'form', args: outcome.args });
  }

  function send({ mode, args, text }: typeof form.values) {
    const outcome = mode === 'json' ? readArguments(text) : { args };
    if ('args' in outcome) run.mutate(outcome.args);
  }

  const refused = run.error instanceof ApiError ? run.error : null;
  return (
    <Stack gap="lg">
      <Panel
        title="Arguments"
        aside={
          <SegmentedControl
            size="xs"
            aria-label="Input mode"
            value={mode}
            onChange={change}
            data={[
              { value: 'form', label: 'Form' },
              { value: 'json', label: 'JSON' },
            ]}
          />
        }
      >
        <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
          {mode === 'form' ? (
            <Box maw={640}>
              <SchemaForm
                schema={schema}
                value={form.values.args}
                onChange={(args) => form.setFieldValue('args', args)}
                faults={run.data?.errors ?? []}
              />
            </Box>
          ) : (
            <Textarea
              aria-label="Arguments as JSON"
              rows={12}
              {...form.getInputProps('text')}
              onChange={(event) => {
                form.setFieldValue('text', event.currentTarget.value);
                form.clearFieldError('text');
              }}
              spellCheck={false}
              classNames={{ input: classes.json }}
            />
          )}
          <Group mt="lg" gap="md">
            <Button
              type="submit"
              loading={run.isPending}
              disabled={!calls || tool.state === 'removed'}
              leftSection={<IconPlayerPlay size={16} aria-hidden />}
            >
              Run
            </Button>
            {!calls && <span>Your role can view tools but not call them.</span>}
            {calls && hintsDestructive(tool) && <Status tone="warn">This tool changes data.</Status>}
          </Group>
        </form>
      </Panel>
      <div aria-live="polite">
        {refused && (
          <Alert color="red" data-tone="red" title="The call failed">
            {refused.message}
          </Alert>
        )}
        {run.data && (
          <Panel title="Result">
            <TryResultView result={run.data} />
          </Panel>
        )}
      </div>
    </Stack>
  );
}

const hintsDestructive = (tool: Tool) =>
  tool.annotations.destructiveHint === true && tool.annotations.readOnlyHint !== true;
