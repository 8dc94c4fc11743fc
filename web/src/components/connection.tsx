import { Alert, Button, SegmentedControl, Stack, Tabs } from '@mantine/core';
import { IconExternalLink } from '@tabler/icons-react';
import { useState } from 'react';
import type { ClientConnection, Connection } from '../api/servers';
import classes from './connection.module.css';
import { CodeBlock, CopyButton } from './copy';

export function ServerUrl({ url }: { url: string }) {
  return (
    <div className={classes.url}>
      <code>{url}</code>
      <CopyButton text={url} label="Copy the server’s URL" />
    </div>
  );
}

/** Only these may be opened from a page: a link of another kind is shown as text, never followed. */
const safeLink = /^(https:|cursor:|vscode:|vscode-insiders:)/;

/** The default server has two addresses: its own, and the shorter one of the workspace. */
export function ConnectionGuide({ connection }: { connection: Connection }) {
  const [address, setAddress] = useState('server');
  const { short } = connection;
  if (!short) return <ConnectionTabs clients={connection.clients} />;
  const shown = address === 'server' ? connection : short;
  return (
    <Stack gap="lg">
      <div>
        <SegmentedControl
          aria-label="URL to connect to"
          value={address}
          onChange={setAddress}
          data={[
            { value: 'server', label: 'Server URL' },
            { value: 'workspace', label: 'Workspace URL' },
          ]}
        />
      </div>
      {shown === short && (
        <span>
          This is the default server: <code>{short.url}</code> points to it. If you choose another default
          server, the URL points there.
        </span>
      )}
      <ConnectionTabs clients={shown.clients} />
    </Stack>
  );
}

function ConnectionTabs({ clients }: { clients: ClientConnection[] }) {
  return (
    <Tabs defaultValue={clients[0]?.client} keepMounted={false}>
      <Tabs.List mb="lg">
        {clients.map((one) => (
          <Tabs.Tab key={one.client} value={one.client}>
            {one.label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {clients.map((one) => (
        <Tabs.Panel key={one.client} value={one.client}>
          {one.note && (
            <Alert color="yellow" mb="md">
              {one.note}
            </Alert>
          )}
          <ol className={classes.steps}>
            {one.steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ol>
          {one.snippet && <CodeBlock code={one.snippet} label={`snippet for ${one.label}`} />}
          {one.deep_link && safeLink.test(one.deep_link) && (
            <Button
              component="a"
              href={one.deep_link}
              mt="md"
              variant="default"
              leftSection={<IconExternalLink size={16} aria-hidden />}
            >
              Open in {one.label}
            </Button>
          )}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
