import { Button, Checkbox, Group, Stack } from '@mantine/core';
import { IconBookmark, IconPlayerPlay } from '@tabler/icons-react';
import { useState } from 'react';
import type { CapturedCall } from '../../../../../captured-call';
import { ArgumentsEditor, draftOf } from '../../../../../components/arguments-editor';
import { Status, Tag } from '../../../../../components/badges';
import { InlineCode } from '../../../../../components/inline-code';
import { Panel } from '../../../../../components/page';
import { isObject, resolve, type Schema, startingValue } from '../../../../../json-schema';
import type { Connection } from '../../../../../mcp/connection';
import type { McpTask, McpTool, Members } from '../../../../../mcp/messages';
import { Outcome } from './outcome';
import { Pick } from './pick';
import classes from './playground.module.css';
import { ReplayDiff } from './replay';
import type { Playground } from './use-playground';
import { useRun } from './use-run';

/** Life of a task that the playground asks for. */
const taskTtl = 15 * 60_000;

/** A call as it can be saved. */
export interface Call {
  method: 'tools/call' | 'prompts/get' | 'resources/read';
  params: Members;
}

const hints = (tool: McpTool) => (isObject(tool.annotations) ? tool.annotations : {});

export function Tools({
  play,
  connection,
  captured,
  onSave,
}: {
  play: Playground;
  connection: Connection;
  /** The call whose arguments are filled in. */
  captured?: CapturedCall;
  onSave?: (call: Call) => void;
}) {
  const { tools } = play.offer;
  const [name, setName] = useState(captured?.tool);
  const tool = tools.find((one) => one.name === name) ?? tools[0];
  return (
    <Pick
      noun="tools"
      entries={tools.map((one) => ({
        key: one.name,
        title: one.name,
        note: one.title ?? one.description?.split('\n')[0],
        mark: hints(one).readOnlyHint ? undefined : hints(one).destructiveHint ? (
          <Tag tone="bad">destructive</Tag>
        ) : undefined,
      }))}
      chosen={tool?.name}
      onChoose={setName}
      empty="This server has no tools for this person."
    >
      {tool && (
        <ToolCall
          key={tool.name}
          tool={tool}
          play={play}
          connection={connection}
          captured={captured?.tool === tool.name ? captured : undefined}
          onSave={onSave}
        />
      )}
    </Pick>
  );
}

function ToolCall({
  tool,
  play,
  connection,
  captured,
  onSave,
}: {
  tool: McpTool;
  play: Playground;
  connection: Connection;
  captured?: CapturedCall;
  onSave?: (call: Call) => void;
}) {
  const schema = (isObject(tool.inputSchema) ? tool.inputSchema : {}) as Schema;
  const [draft, setDraft] = useState(() =>
    draftOf(captured?.arguments ?? startingValue(resolve(schema, schema), schema)),
  );
  const [asTask, setAsTask] = useState(false);
  const { run, start, cancel } = useRun();
  const support = tool.execution?.taskSupport;
  const takesTasks = connection.era === '2025-11-25' && (support === 'optional' || support === 'required');
  const task = takesTasks && (asTask || support === 'required');

  function call() {
    if (draft.fault) return;
    void start(async ({ signal, onProgress }) => {
      const result = await connection.request(
        'tools/call',
        { name: tool.name, arguments: draft.value },
        {
          signal,
          onProgress,
          inputSchema: tool.inputSchema,
          ...(task && { taskTtl }),
        },
      );
      const made = taskOf(result);
      if (made) play.putTask({ task: made });
      return result;
    });
  }

  return (
    <Stack gap="lg">
      <Panel title={<code>{tool.name}</code>}>
        {tool.description && (
          <p className={classes.text}>
            <InlineCode text={tool.description} />
          </p>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            call();
          }}
          noValidate
        >
          <ArgumentsEditor schema={schema} draft={draft} onChange={setDraft} />
          {takesTasks && (
            <Checkbox
              mt="md"
              label="Run as a task"
              description={support === 'required' ? 'This tool runs as a task only.' : undefined}
              checked={task}
              disabled={support === 'required'}
              onChange={(event) => setAsTask(event.currentTarget.checked)}
            />
          )}
          <Group mt="lg" gap="md">
            <Button
              type="submit"
              loading={run.state === 'running'}
              disabled={draft.fault !== null}
              leftSection={<IconPlayerPlay size={16} aria-hidden />}
            >
              {captured ? 'Replay' : 'Run'}
            </Button>
            {onSave && (
              <Button
                variant="default"
                disabled={draft.fault !== null}
                leftSection={<IconBookmark size={16} aria-hidden />}
                onClick={() =>
                  onSave({ method: 'tools/call', params: { name: tool.name, arguments: draft.value } })
                }
              >
                Save call
              </Button>
            )}
            {hints(tool).destructiveHint === true && hints(tool).readOnlyHint !== true && (
              <Status tone="warn">This tool changes data.</Status>
            )}
          </Group>
        </form>
      </Panel>
      <Outcome run={run} onCancel={cancel} />
      {captured && <ReplayDiff call={captured} run={run} />}
    </Stack>
  );
}

/** The task that a result announces, in the words of either era. */
export function taskOf(result: Members): McpTask | undefined {
  const inner = isObject(result.task) ? result.task : result.resultType === 'task' ? result : undefined;
  return inner && typeof inner.taskId === 'string' ? (inner as McpTask) : undefined;
}
