import { Alert, Button, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  type Attachment,
  type AttachmentKey,
  attachmentQuery,
  useReplaceAttachmentKey,
} from '../../../../api/attachments';
import { Ago } from '../../../../components/ago';
import { Tag } from '../../../../components/badges';
import { CodeBlock } from '../../../../components/copy';
import { Facts, Loaded, Panel } from '../../../../components/page';
import { SecretDialog, type Shown } from '../../../../components/secret';
import { toastFailed } from '../../../../components/toast';
import { useMay, useSession } from '../../../../session';

/** The command that offers a server which speaks on its standard input and output. */
export const attachCommand = (address: string) => `portolan attach ${address} -- COMMAND`;

/** The key and its commands, which are shown once. */
export function shownKey({ key, address }: AttachmentKey): Shown {
  return {
    title: 'Key of the attached server',
    values: [
      { label: 'Key', value: key },
      {
        label: 'Commands',
        value: `export PORTOLAN_ATTACH_KEY=${key}\n${attachCommand(address)}`,
      },
    ],
    note: 'Replace COMMAND with the command of your MCP server, and run both lines on its machine.',
  };
}

const plural = (count: number, one: string) => (count === 1 ? `1 ${one}` : `${count} ${one}s`);

/** Whether programs offer the server, which, and how to start one. */
export function AttachmentPanel({ id }: { id: string }) {
  const { workspace } = useSession();
  const attachment = useQuery(attachmentQuery(workspace.slug, id));
  return (
    <Stack gap="lg">
      <Loaded query={attachment}>{(known) => <Known id={id} attachment={known} />}</Loaded>
    </Stack>
  );
}

function Known({ id, attachment }: { id: string; attachment: Attachment }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const replace = useReplaceAttachmentKey(workspace.slug, id);
  const [shown, setShown] = useState<Shown>();
  const { programs } = attachment;
  return (
    <>
      <Panel
        title={programs.length > 0 ? 'Connected' : 'Not connected'}
        note={
          programs.length > 0
            ? `${plural(programs.length, 'program')} ${programs.length === 1 ? 'offers' : 'offer'} this server.`
            : 'No program offers this server. Calls fail until one is started.'
        }
      >
        {programs.map((program) => (
          <Stack key={program.since} gap="sm" mb="md">
            {program.error && (
              <Alert color="yellow" data-tone="yellow" title="The program can’t use the server">
                {program.error}
              </Alert>
            )}
            <Facts
              items={[
                ['Program', <code key="version">{program.version}</code>],
                [
                  'State',
                  <Tag key="state" tone={program.is_ready ? undefined : 'warn'}>
                    {program.is_ready ? 'ready' : 'not ready'}
                  </Tag>,
                ],
                ['Connections', String(program.connections)],
                ['Since', <Ago key="since" at={program.since} />],
              ]}
            />
          </Stack>
        ))}
      </Panel>
      <Panel
        title="Start a program"
        note="Run it on the machine that reaches the server. It opens connections; it needs no open port."
        aside={
          edits && (
            <Button
              variant="default"
              loading={replace.isPending}
              onClick={() =>
                replace.mutate(undefined, {
                  onSuccess: (key) => setShown(shownKey(key)),
                  onError: toastFailed,
                })
              }
            >
              Replace key
            </Button>
          )
        }
      >
        <Stack gap="md">
          <CodeBlock label="Command" code={attachCommand(attachment.address)} wrap />
          <span>
            Set the key in the environment variable <code>PORTOLAN_ATTACH_KEY</code>. For a server that speaks
            HTTP, write <code>--url</code> and its URL instead of <code>-- COMMAND</code>. For an HTTP API,
            write <code>--openapi</code> with its OpenAPI document and <code>--base-url</code>.
          </span>
          <Facts
            items={[
              ['Name', <code key="name">{attachment.name}</code>],
              ['Key', <code key="hint">{attachment.key_hint}</code>],
              ['Created', <Ago key="created" at={attachment.key_created_at} />],
            ]}
          />
        </Stack>
      </Panel>
      <SecretDialog shown={shown} close={() => setShown(undefined)} />
    </>
  );
}
