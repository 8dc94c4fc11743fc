import { Alert, Button, Group, Tabs } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { Status } from '../../../../../components/badges';
import { CodeBlock } from '../../../../../components/copy';
import { JsonTree } from '../../../../../components/json-tree';
import { Panel } from '../../../../../components/page';
import { ResultBlocks } from '../../../../../components/result-blocks';
import { McpError, type Members } from '../../../../../mcp/messages';
import { formatDuration } from '../../../../../time';
import classes from './playground.module.css';
import type { Run } from './use-run';

/** How a request stands: running with progress, its result, or its error. */
export function Outcome({ run, onCancel }: { run: Run; onCancel: () => void }) {
  if (run.state === 'idle') return null;
  return (
    <Panel title="Result">
      <div aria-live="polite">
        {run.state === 'running' && <Running run={run} onCancel={onCancel} />}
        {run.state === 'cancelled' && <Status tone="warn">Cancelled</Status>}
        {run.state === 'failed' && <Failure error={run.error} durationMs={run.durationMs ?? 0} />}
      </div>
      {run.result && <ResultView result={run.result} durationMs={run.durationMs} />}
    </Panel>
  );
}

function Running({ run: { progress }, onCancel }: { run: Run; onCancel: () => void }) {
  const share = progress?.total ? ` of ${progress.total}` : '';
  return (
    <Group justify="space-between" gap="md">
      <Group gap="md">
        <Status tone="quiet">Running</Status>
        {progress && (
          <>
            <progress
              className={classes.progress}
              aria-label="Progress"
              value={progress.total ? progress.progress : undefined}
              max={progress.total}
            />
            <span>
              {progress.progress}
              {share} {progress.message}
            </span>
          </>
        )}
      </Group>
      <Button variant="default" size="xs" leftSection={<IconX size={15} aria-hidden />} onClick={onCancel}>
        Cancel
      </Button>
    </Group>
  );
}

function Failure({ error, durationMs }: { error: unknown; durationMs: number }) {
  const message = error instanceof Error ? error.message : 'The request failed.';
  return (
    <>
      <Group gap="md" mb="md">
        <Status tone="bad">{error instanceof McpError ? `Error ${error.code}` : 'Failed'}</Status>
        <span>{formatDuration(durationMs)}</span>
      </Group>
      <Alert color="red" data-tone="red">
        {message}
      </Alert>
      {error instanceof McpError && error.data !== undefined && (
        <div className={classes.below}>
          <CodeBlock code={JSON.stringify(error.data, null, 2)} label="data of the error" wrap />
        </div>
      )}
    </>
  );
}

/** A result of any method: contents first, then the structured result and the whole as JSON. */
export function ResultView({ result, durationMs }: { result: Members; durationMs?: number }) {
  const failed = result.isError === true;
  const structured = result.structuredContent;
  const blocks = Array.isArray(result.content)
    ? (result.content as Members[])
    : Array.isArray(result.contents)
      ? (result.contents as Members[]).map((resource) => ({ type: 'resource', resource }))
      : undefined;
  const first = structured !== undefined ? 'tree' : blocks ? 'content' : 'json';
  return (
    <>
      <Group gap="md" mb="md">
        <Status tone={failed ? 'bad' : 'good'}>{failed ? 'Error of the tool' : 'OK'}</Status>
        {durationMs !== undefined && <span>{formatDuration(durationMs)}</span>}
      </Group>
      <Tabs defaultValue={first} keepMounted={false}>
        <Tabs.List mb="sm" aria-label="Result">
          {structured !== undefined && <Tabs.Tab value="tree">Structured</Tabs.Tab>}
          {blocks && <Tabs.Tab value="content">Content</Tabs.Tab>}
          <Tabs.Tab value="json">JSON</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="tree">
          <JsonTree value={structured} label="Structured result" />
        </Tabs.Panel>
        {blocks && (
          <Tabs.Panel value="content">
            {blocks.length === 0 ? (
              <p className={classes.text}>No content.</p>
            ) : (
              <ResultBlocks blocks={blocks} />
            )}
          </Tabs.Panel>
        )}
        <Tabs.Panel value="json">
          <CodeBlock code={JSON.stringify(result, null, 2)} label="result as JSON" wrap />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
