import { Alert, Button, Group, Select, Stack, Switch, Textarea } from '@mantine/core';
import { IconChevronRight } from '@tabler/icons-react';
import { useState } from 'react';
import { CodeBlock } from '../../../../../components/copy';
import { Panel } from '../../../../../components/page';
import { toastDone, toastFailed } from '../../../../../components/toast';
import { type Level, levels } from '../../../../../mcp/messages';
import { formatClock } from '../../../../../time';
import classes from './playground.module.css';
import type { Playground } from './use-playground';

/** One root a line: a URI, and a name behind it. */
export function readRoots(text: string): { roots: { uri: string; name?: string }[] } | { fault: string } {
  const lines = text.split('\n').map((line) => line.trim());
  const roots = lines
    .filter((line) => line !== '')
    .map((line) => {
      const [uri = '', ...name] = line.split(/\s+/);
      return { uri, ...(name.length > 0 && { name: name.join(' ') }) };
    });
  const bad = roots.find(({ uri }) => !uri.startsWith('file://'));
  return bad ? { fault: `“${bad.uri}” does not begin with file://.` } : { roots };
}

/** The settings of the client. */
export function ClientPanel({ play }: { play: Playground }) {
  const { settings, setSettings, connection } = play;
  const locked = connection !== undefined;
  const [text, setText] = useState(() =>
    settings.roots.map(({ uri, name }) => [uri, name].filter(Boolean).join(' ')).join('\n'),
  );
  const [fault, setFault] = useState<string>();

  function saveRoots() {
    const read = readRoots(text);
    if ('fault' in read) return setFault(read.fault);
    setFault(undefined);
    play.setRoots(read.roots).then(() => toastDone('Roots saved.'), toastFailed);
  }

  return (
    <Stack gap="lg">
      <Panel title="Client">
        <Stack gap="md" maw={640}>
          {locked && (
            <p className={classes.text}>
              Capabilities are declared when the connection opens. Disconnect to change them.
            </p>
          )}
          <Switch
            label="Elicitation"
            description="The server may ask you, by a form or by a URL."
            checked={settings.elicitation}
            disabled={locked}
            onChange={(event) => setSettings({ ...settings, elicitation: event.currentTarget.checked })}
          />
          <Switch
            label="Sampling"
            description="The server may ask for a model’s answer. You write it."
            checked={settings.sampling}
            disabled={locked}
            onChange={(event) => setSettings({ ...settings, sampling: event.currentTarget.checked })}
          />
          <Switch
            label="Tasks"
            description="Calls that take long may become tasks."
            checked={settings.tasks}
            disabled={locked}
            onChange={(event) => setSettings({ ...settings, tasks: event.currentTarget.checked })}
          />
          <Select
            label="Log level"
            description="Messages of this level and above are sent."
            placeholder="None"
            clearable
            allowDeselect={false}
            clearButtonProps={{ 'aria-label': 'No log messages' }}
            data={[...levels]}
            value={settings.level}
            onChange={(level) => play.setLevel(level as Level | null).catch(toastFailed)}
          />
          <Textarea
            label="Roots"
            description="One in each line: a file:// URI, then a name."
            placeholder="file:///home/ann/project Project"
            rows={3}
            value={text}
            error={fault}
            onChange={(event) => setText(event.currentTarget.value)}
            spellCheck={false}
          />
          <Group>
            <Button variant="default" onClick={saveRoots}>
              Save roots
            </Button>
          </Group>
        </Stack>
      </Panel>
      {connection && (
        <Panel title="Server capabilities">
          <CodeBlock
            code={JSON.stringify(connection.server.capabilities, null, 2)}
            label="server capabilities"
            wrap
          />
        </Panel>
      )}
    </Stack>
  );
}

/** Notifications of the server, newest first. */
export function Notifications({ play }: { play: Playground }) {
  const { notices } = play;
  return (
    <Panel title="Notifications">
      {notices.length === 0 ? (
        <Alert color="gray">
          No notification yet. Log messages need a log level, updates a subscription.
        </Alert>
      ) : (
        <ul className={classes.exchanges} aria-label="Notifications">
          {notices.map(({ key, at, method, params }) => (
            <li key={key}>
              <details className={classes.exchange}>
                <summary className={classes.exchangeHead}>
                  <IconChevronRight size={15} aria-hidden className={classes.chevron} />
                  <code className={classes.exchangeLabel}>{method}</code>
                  <span className={classes.exchangeFigures}>
                    <span>{noticeWords(params)}</span>
                    <span>{formatClock(new Date(at).toISOString())}</span>
                  </span>
                </summary>
                <div className={classes.exchangeBody}>
                  <CodeBlock code={JSON.stringify(params, null, 2)} label="notification" wrap />
                </div>
              </details>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function noticeWords(params: Record<string, unknown>): string {
  if (typeof params.level === 'string') {
    return `${params.level}: ${typeof params.data === 'string' ? params.data : JSON.stringify(params.data)}`;
  }
  return typeof params.uri === 'string' ? params.uri : '';
}
