import { Button, Tabs } from '@mantine/core';
import { IconExternalLink } from '@tabler/icons-react';
import type { ClientConnection } from '../api/servers';
import classes from './connection.module.css';
import { CodeBlock, CopyButton } from './copy';

export function ServerUrl({ url }: { url: string }) {
  return (
    <div className={classes.url}>
      <code>{url}</code>
      <CopyButton text={url} label="Copy the server's URL" />
    </div>
  );
}

/** Only these may be opened from a page: a link of another kind is shown as text, never followed. */
const safeLink = /^(https:|cursor:|vscode:|vscode-insiders:)/;

export function ConnectionTabs({ clients }: { clients: ClientConnection[] }) {
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
