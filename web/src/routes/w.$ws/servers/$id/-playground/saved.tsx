import { ActionIcon, Button, Group, Stack } from '@mantine/core';
import {
  IconBookmark,
  IconDownload,
  IconPencil,
  IconPlayerPlay,
  IconPlayerTrackNext,
  IconTrash,
} from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  type SavedCall,
  savedCallsQuery,
  useDeleteSavedCall,
  useSaveCall,
} from '../../../../../api/saved-calls';
import { Status } from '../../../../../components/badges';
import { Empty, Loaded, Panel } from '../../../../../components/page';
import { toastFailed, toastUndo } from '../../../../../components/toast';
import { checked, type Finding } from '../../../../../mcp/assertions';
import type { Connection } from '../../../../../mcp/connection';
import { McpError, type Members } from '../../../../../mcp/messages';
import { useMay, useSession } from '../../../../../session';
import { formatDuration } from '../../../../../time';
import classes from './playground.module.css';
import { SaveDialog } from './save-dialog';
import type { Playground } from './use-playground';

interface Verdict {
  findings: Finding[];
  tookMs: number;
  error: string | undefined;
}

/** Calls once and holds the answer against the assertions. A fault of the connection is thrown. */
async function tryCall(connection: Connection, play: Playground, call: SavedCall): Promise<Verdict> {
  const tool =
    call.method === 'tools/call' ? play.offer.tools.find((one) => one.name === call.params.name) : undefined;
  const begun = performance.now();
  let result: Members | undefined;
  let error: string | undefined;
  try {
    result = await connection.request(call.method, call.params, { inputSchema: tool?.inputSchema });
  } catch (cause) {
    if (!(cause instanceof McpError)) throw cause;
    error = `${cause.code}: ${cause.message}`;
  }
  const tookMs = performance.now() - begun;
  return {
    findings: checked(call.expect, { result, tookMs, outputSchema: tool?.outputSchema }),
    tookMs,
    error,
  };
}

const passed = ({ findings }: Verdict) => findings.every((one) => one.holds);

/** The saved calls as a file for the command line. */
function download(items: SavedCall[], name: string) {
  const calls = items.map(({ name, method, params, expect }) => ({ name, method, params, expect }));
  const text = `${JSON.stringify({ version: 1, calls }, null, 2)}\n`;
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = `${name}-calls.json`;
  anchor.click();
  URL.revokeObjectURL(url);
}

export function Saved({
  play,
  connection,
  server,
}: {
  play: Playground;
  connection: Connection | undefined;
  server: { id: string; slug: string };
}) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const calls = useQuery(savedCallsQuery(workspace.slug, server.id));
  const remove = useDeleteSavedCall(workspace.slug, server.id);
  const save = useSaveCall(workspace.slug, server.id);
  const [verdicts, setVerdicts] = useState<Record<string, Verdict>>({});
  const [running, setRunning] = useState<string>();
  const [editing, setEditing] = useState<SavedCall>();

  async function run(items: SavedCall[]) {
    if (!connection) return;
    try {
      for (const call of items) {
        setRunning(call.id);
        const verdict = await tryCall(connection, play, call);
        setVerdicts((before) => ({ ...before, [call.id]: verdict }));
      }
    } catch (cause) {
      toastFailed(cause);
    } finally {
      setRunning(undefined);
    }
  }

  function drop({ id, name, method, params, expect }: SavedCall) {
    remove.mutate(id, {
      onSuccess: () =>
        toastUndo(
          `“${name}” was deleted.`,
          () => save.mutateAsync({ body: { name, method, params, expect } }),
          'Restored.',
        ),
      onError: toastFailed,
    });
  }

  return (
    <Loaded query={calls}>
      {({ items }) =>
        items.length === 0 ? (
          <Panel>
            <Empty icon={<IconBookmark size={24} />} title="No saved calls">
              Run a tool, prompt or resource and choose “Save call”. Saved calls check their answers, here and
              in a pipeline.
            </Empty>
          </Panel>
        ) : (
          <Stack gap="lg">
            <Group gap="sm">
              <Button
                leftSection={<IconPlayerTrackNext size={16} aria-hidden />}
                disabled={!connection}
                loading={running !== undefined}
                onClick={() => void run(items)}
              >
                Run all
              </Button>
              <Button
                variant="default"
                leftSection={<IconDownload size={16} aria-hidden />}
                onClick={() => download(items, server.slug)}
              >
                Download
              </Button>
              <Summary items={items} verdicts={verdicts} />
            </Group>
            <ul className={classes.saved} aria-label="Saved calls">
              {items.map((call) => (
                <SavedRow
                  key={call.id}
                  call={call}
                  verdict={verdicts[call.id]}
                  busy={running === call.id}
                  canRun={connection !== undefined && running === undefined}
                  edits={edits}
                  onRun={() => void run([call])}
                  onEdit={() => setEditing(call)}
                  onDelete={() => drop(call)}
                />
              ))}
            </ul>
            {editing && (
              <SaveDialog
                server={server.id}
                call={editing}
                saved={editing}
                onClose={() => setEditing(undefined)}
              />
            )}
          </Stack>
        )
      }
    </Loaded>
  );
}

function Summary({ items, verdicts }: { items: SavedCall[]; verdicts: Record<string, Verdict> }) {
  const seen = items.flatMap(({ id }) => verdicts[id] ?? []);
  const failed = seen.filter((one) => !passed(one)).length;
  return (
    <span role="status">
      {seen.length > 0 && (
        <Status tone={failed > 0 ? 'bad' : 'good'}>
          {failed > 0 ? `${failed} of ${seen.length} failed` : `${seen.length} passed`}
        </Status>
      )}
    </span>
  );
}

function SavedRow({
  call,
  verdict,
  busy,
  canRun,
  edits,
  onRun,
  onEdit,
  onDelete,
}: {
  call: SavedCall;
  verdict: Verdict | undefined;
  busy: boolean;
  canRun: boolean;
  edits: boolean;
  onRun: () => void;
  onEdit: () => void;
  onDelete: () => void;
}) {
  return (
    <li className={classes.savedRow}>
      <Group justify="space-between" gap="sm">
        <div className={classes.grow}>
          <strong>{call.name}</strong>
          <p className={classes.small}>
            {call.method} <code>{String(call.params.name ?? call.params.uri)}</code>
          </p>
        </div>
        <Group gap="xs">
          {verdict && (
            <Status tone={passed(verdict) ? 'good' : 'bad'}>
              {passed(verdict) ? 'Passed' : 'Failed'} · {formatDuration(verdict.tookMs)}
            </Status>
          )}
          <ActionIcon
            variant="subtle"
            color="gray"
            size="lg"
            aria-label={`Run ${call.name}`}
            disabled={!canRun}
            loading={busy}
            onClick={onRun}
          >
            <IconPlayerPlay size={17} />
          </ActionIcon>
          {edits && (
            <>
              <ActionIcon
                variant="subtle"
                color="gray"
                size="lg"
                aria-label={`Change ${call.name}`}
                onClick={onEdit}
              >
                <IconPencil size={17} />
              </ActionIcon>
              <ActionIcon
                variant="subtle"
                color="gray"
                size="lg"
                aria-label={`Delete ${call.name}`}
                onClick={onDelete}
              >
                <IconTrash size={17} />
              </ActionIcon>
            </>
          )}
        </Group>
      </Group>
      {verdict && (
        <ul className={classes.findings} aria-label={`Assertions of ${call.name}`}>
          {verdict.error && <li>{verdict.error}</li>}
          {verdict.findings.map(({ what, holds, found }) => (
            <li key={what}>
              <Status tone={holds ? 'good' : 'bad'}>{holds ? 'holds' : 'fails'}</Status> {what}
              {found !== undefined && (
                <>
                  ; found <code>{found}</code>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
