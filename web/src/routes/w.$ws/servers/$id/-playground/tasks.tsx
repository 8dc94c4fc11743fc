import { Button, Group, Stack } from '@mantine/core';
import { IconChecklist, IconRefresh, IconX } from '@tabler/icons-react';
import { useEffect } from 'react';
import { Status } from '../../../../../components/badges';
import { Empty, Facts, Panel } from '../../../../../components/page';
import { toastFailed } from '../../../../../components/toast';
import { isObject } from '../../../../../json-schema';
import type { Connection } from '../../../../../mcp/connection';
import type { McpTask } from '../../../../../mcp/messages';
import { StatelessConnection } from '../../../../../mcp/stateless';
import { ResultView } from './outcome';
import classes from './playground.module.css';
import { taskOf } from './tools';
import type { KnownTask, Playground } from './use-playground';

const ended = new Set(['completed', 'failed', 'cancelled']);
const pollMs = 1500;

const tones: Record<string, 'good' | 'bad' | 'warn' | 'quiet'> = {
  completed: 'good',
  failed: 'bad',
  cancelled: 'warn',
  input_required: 'warn',
};

/** Follows the tasks of this connection until each has ended; mounted while the connection is open. */
export function useTasks(play: Playground, connection: Connection | undefined) {
  const { tasks, putTask } = play;
  const open = tasks.filter((one) => !ended.has(one.task.status) || (!one.result && !one.fault));
  const next = open[0]?.task;
  useEffect(() => {
    if (!connection || !next) return;
    const leaving = new AbortController();
    const timer = setTimeout(
      () => {
        follow(connection, next, leaving.signal).then(putTask, (cause) => {
          if (leaving.signal.aborted) return;
          putTask({
            task: { ...next, status: 'failed' },
            fault: cause instanceof Error ? cause.message : 'Lost',
          });
        });
      },
      ended.has(next.status) ? 0 : pollMs,
    );
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [connection, next, putTask]);
}

/** Reads a task once, answers what it asks, and takes its result when it has ended. */
async function follow(connection: Connection, known: McpTask, signal: AbortSignal): Promise<KnownTask> {
  const { taskId } = known;
  const seen = await connection.request('tasks/get', { taskId }, { signal });
  const task = (taskOf(seen) ?? seen) as McpTask;
  if (connection instanceof StatelessConnection) {
    if (task.status === 'input_required' && isObject(task.inputRequests)) {
      const inputResponses = await connection.answers(task.inputRequests, signal);
      await connection.request('tasks/update', { taskId, inputResponses }, { signal });
    }
    if (isObject(task.error)) return { task, fault: String(task.error.message) };
    return isObject(task.result) ? { task, result: task.result } : noResult(task);
  }
  // In a session the questions of a task come on the stream of its result.
  if (ended.has(task.status) || task.status === 'input_required') {
    if (task.status === 'cancelled') return noResult(task);
    const result = await connection.request('tasks/result', { taskId }, { signal });
    const after = ended.has(task.status) ? task : { ...task, status: 'completed' };
    return { task: after, result };
  }
  return { task };
}

const noResult = (task: McpTask): KnownTask =>
  ended.has(task.status) ? { task, fault: task.statusMessage ?? 'It has no result.' } : { task };

export function Tasks({ play, connection }: { play: Playground; connection: Connection }) {
  const { tasks, putTask } = play;

  async function reload() {
    const listed = await connection.list<McpTask>('tasks/list', 'tasks');
    for (const task of listed.toReversed()) putTask({ task });
  }

  function cancel({ taskId }: McpTask) {
    connection.request('tasks/cancel', { taskId }).then(() => undefined, toastFailed);
  }

  return (
    <Stack gap="lg">
      {connection.era === '2025-11-25' && (
        <Group>
          <Button
            variant="default"
            leftSection={<IconRefresh size={16} aria-hidden />}
            onClick={() => reload().catch(toastFailed)}
          >
            List tasks
          </Button>
        </Group>
      )}
      {tasks.length === 0 && (
        <Panel>
          <Empty icon={<IconChecklist size={24} />} title="No tasks">
            {connection.era === '2025-11-25'
              ? 'Run a tool that takes tasks with “Run as a task”.'
              : 'The server decides which calls become tasks: those that take long.'}
          </Empty>
        </Panel>
      )}
      {tasks.map(({ task, result, fault }) => (
        <Panel
          key={task.taskId}
          title={<code>{task.taskId}</code>}
          aside={
            <Group gap="md">
              <Status tone={tones[task.status] ?? 'quiet'}>{task.status.replace('_', ' ')}</Status>
              {!ended.has(task.status) && (
                <Button
                  variant="default"
                  size="xs"
                  leftSection={<IconX size={14} aria-hidden />}
                  onClick={() => cancel(task)}
                >
                  Cancel
                </Button>
              )}
            </Group>
          }
        >
          <Facts
            items={[
              ['Created', task.createdAt ?? ''],
              ['Message', task.statusMessage ?? '–'],
            ]}
          />
          {fault && <p className={classes.text}>{fault}</p>}
          {result && <ResultView result={result} />}
        </Panel>
      ))}
    </Stack>
  );
}
