import { Button, Stack } from '@mantine/core';
import { IconPlus, IconWebhook } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { type Webhook, webhooksQuery } from '../../../api/webhooks';
import { Tag } from '../../../components/badges';
import { CodeBlock } from '../../../components/copy';
import { HelpLink } from '../../../components/help-link';
import { TextLink } from '../../../components/link-button';
import { Empty, Loaded, Page, Panel } from '../../../components/page';
import { Restricted } from '../../../components/restricted';
import { SecretDialog, type Shown } from '../../../components/secret';
import { cell, Table } from '../../../components/table';
import { useSession } from '../../../session';
import { NewWebhookDialog } from './-new-webhook';
import { WebhookStatus } from './-webhook-status';

export const Route = createFileRoute('/w/$ws/webhooks/')({
  component: () => (
    <Restricted needs="administer" title="Webhooks">
      <WebhooksPage />
    </Restricted>
  ),
});

function WebhooksPage() {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const navigate = useNavigate();
  const webhooks = useQuery(webhooksQuery(ws));
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<{ id: string; shown: Shown }>();
  const open = (id: string) => void navigate({ to: '/w/$ws/webhooks/$id', params: { ws, id } });
  return (
    <Page
      title="Webhooks"
      help="webhooks"
      lede="Events of the workspace, sent to your own HTTP endpoints and to Slack."
      actions={
        <Button leftSection={<IconPlus size={17} />} onClick={() => setMaking(true)}>
          Add endpoint
        </Button>
      }
    >
      <Panel flush>
        <Loaded query={webhooks}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty
                icon={<IconWebhook size={24} />}
                title="No endpoints yet"
                actions={<Button onClick={() => setMaking(true)}>Add endpoint</Button>}
              >
                An endpoint receives each event that you choose, signed, within seconds of the change.
              </Empty>
            ) : (
              <WebhookTable ws={ws} items={items} />
            )
          }
        </Loaded>
      </Panel>
      <ListenPanel ws={ws} />
      <NewWebhookDialog
        ws={ws}
        opened={making}
        close={() => setMaking(false)}
        made={({ endpoint, secret }) => {
          setMaking(false);
          if (!secret) open(endpoint.id);
          else
            setMade({
              id: endpoint.id,
              shown: {
                title: 'Endpoint added',
                values: [{ label: 'Signing secret', value: secret }],
                kept: 'It is encrypted at rest and can’t be viewed again. Rotate it if it is lost.',
              },
            });
        }}
      />
      <SecretDialog
        shown={made?.shown}
        close={() => {
          if (made) open(made.id);
          setMade(undefined);
        }}
      />
    </Page>
  );
}

/** The commands that bring events to a machine without a public address. */
function ListenPanel({ ws }: { ws: string }) {
  const commands = [
    `export PORTOLAN_URL=${window.location.origin}`,
    `export PORTOLAN_WORKSPACE=${ws}`,
    'portolan login',
    'portolan webhooks listen --forward http://localhost:3000/hook',
  ].join('\n');
  return (
    <Panel
      title="Try it on your machine"
      note="Events of this workspace, signed as deliveries are, at a receiver without a public address."
      aside={<HelpLink to="webhooks#on-your-own-machine">Learn more</HelpLink>}
    >
      <Stack gap="md">
        <span>
          <code>portolan login</code> signs you in with this browser. <code>portolan webhooks listen</code>{' '}
          prints each event, and the secret by which your receiver verifies.
        </span>
        <CodeBlock code={commands} label="commands" wrap />
        <span>
          A pipeline or a server has no browser. Set <code>PORTOLAN_TOKEN</code> there instead of{' '}
          <code>portolan login</code>: an access token of the page{' '}
          <TextLink to="/w/$ws/keys" params={{ ws }} underline="always">
            Keys
          </TextLink>
          , with the role Admin and the scope <code>workspace:read</code>.
        </span>
      </Stack>
    </Panel>
  );
}

function WebhookTable({ ws, items }: { ws: string; items: Webhook[] }) {
  return (
    <Table
      label="Webhook endpoints"
      head={
        <>
          <th>Endpoint</th>
          <th>Events</th>
          <th>State</th>
        </>
      }
    >
      {items.map((webhook) => (
        <tr key={webhook.id}>
          <td data-wide data-grow>
            <Link to="/w/$ws/webhooks/$id" params={{ ws, id: webhook.id }} className={cell.main}>
              {webhook.url}
            </Link>
            <div className={cell.sub}>
              {webhook.format === 'slack' && <Tag>Slack</Tag>} {webhook.description}
            </div>
          </td>
          <td data-label="Events" title={webhook.events.join(', ')}>
            {webhook.events.length === 1 ? webhook.events[0] : `${webhook.events.length} types`}
          </td>
          <td data-label="State">
            <WebhookStatus webhook={webhook} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
