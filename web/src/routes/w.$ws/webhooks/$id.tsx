import { Alert, Button, Group } from '@mantine/core';
import { IconPlayerPause, IconPlayerPlay, IconRefresh, IconSend } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import {
  useDeleteWebhook,
  useRotateWebhook,
  useSwitchWebhook,
  useTestWebhook,
  type Webhook,
  webhookQuery,
} from '../../../api/webhooks';
import { Ago } from '../../../components/ago';
import { Confirm } from '../../../components/confirm';
import { ManagedBy } from '../../../components/managed-by';
import { Facts, Failed, Loading, Page, Panel } from '../../../components/page';
import { Restricted } from '../../../components/restricted';
import { SecretDialog, type Shown } from '../../../components/secret';
import { toastDone, toastFailed } from '../../../components/toast';
import { useSession } from '../../../session';
import { formatDateTime } from '../../../time';
import { ShowAsYaml } from '../-show-as-yaml';
import { Deliveries } from './-deliveries';
import { ChangeWebhookDialog, MoveWebhookDialog } from './-edit-webhook';
import { WebhookStatus } from './-webhook-status';

export const Route = createFileRoute('/w/$ws/webhooks/$id')({
  component: () => (
    <Restricted needs="administer" title="Webhook endpoint">
      <WebhookPage />
    </Restricted>
  ),
});

type Asked = 'rotate' | 'delete' | 'events' | 'target';

function WebhookPage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  const ws = workspace.slug;
  const back = { label: 'Webhooks', to: '/w/$ws/webhooks', params: { ws } } as const;
  const query = useQuery(webhookQuery(ws, id));
  if (query.data) return <Endpoint ws={ws} webhook={query.data} back={back} />;
  return (
    <Page title="Webhook endpoint" back={back}>
      <Panel>
        {query.error ? <Failed error={query.error} retry={() => void query.refetch()} /> : <Loading />}
      </Panel>
    </Page>
  );
}

function Endpoint({
  ws,
  webhook,
  back,
}: {
  ws: string;
  webhook: Webhook;
  back: Parameters<typeof Page>[0]['back'];
}) {
  const test = useTestWebhook(ws, webhook.id);
  const flip = useSwitchWebhook(ws, webhook.id);
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  const active = webhook.state === 'active';
  return (
    <Page
      title={webhook.description || 'Webhook endpoint'}
      back={back}
      beside={
        <>
          <WebhookStatus webhook={webhook} />
          <ManagedBy owner={webhook.managed_by} />
        </>
      }
      lede={webhook.url}
      actions={
        <Group gap="sm">
          {webhook.format === 'standard' && <ShowAsYaml kind="webhook" of={webhook.url} />}
          <Button
            variant="default"
            leftSection={active ? <IconPlayerPause size={17} /> : <IconPlayerPlay size={17} />}
            loading={flip.isPending}
            onClick={() =>
              flip.mutate(active ? 'pause' : 'resume', {
                onSuccess: () => toastDone(active ? 'Paused. Deliveries wait.' : 'Resumed.'),
                onError: toastFailed,
              })
            }
          >
            {active ? 'Pause' : 'Resume'}
          </Button>
          <Button
            leftSection={<IconSend size={17} />}
            disabled={!active}
            loading={test.isPending}
            onClick={() =>
              test.mutate(undefined, {
                onSuccess: () => toastDone('A test message is on its way.'),
                onError: toastFailed,
              })
            }
          >
            Send test
          </Button>
        </Group>
      }
    >
      {webhook.state === 'disabled' && (
        <Alert color="red" data-tone="red" title="This endpoint gets no messages">
          {webhook.disabled_reason === 'gone'
            ? 'It answered 410 Gone.'
            : 'Its deliveries failed for five days.'}{' '}
          Resume it when it takes messages again. Then send what it missed with Replay missed.
        </Alert>
      )}
      <Settings webhook={webhook} ask={setAsked} />
      <Deliveries ws={ws} webhook={webhook} />
      <ChangeWebhookDialog ws={ws} webhook={webhook} opened={asked === 'events'} close={close} />
      <MoveWebhookDialog ws={ws} webhook={webhook} opened={asked === 'target'} close={close} />
      <Rotation ws={ws} id={webhook.id} opened={asked === 'rotate'} close={close} />
      <Deletion ws={ws} webhook={webhook} opened={asked === 'delete'} close={close} />
    </Page>
  );
}

function Settings({ webhook, ask }: { webhook: Webhook; ask: (asked: Asked) => void }) {
  const until = webhook.previous_secret_until;
  return (
    <Panel
      title="Settings"
      aside={
        <Group gap="xs">
          <Button size="compact-sm" variant="default" onClick={() => ask('events')}>
            Change events
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => ask('target')}>
            Change URL
          </Button>
          {webhook.format === 'standard' && (
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconRefresh size={15} />}
              onClick={() => ask('rotate')}
            >
              Rotate secret
            </Button>
          )}
          <Button size="compact-sm" variant="subtle" color="red" onClick={() => ask('delete')}>
            Delete
          </Button>
        </Group>
      }
    >
      <Facts
        items={[
          ['Format', webhook.format === 'slack' ? 'Slack' : 'Signed JSON (Standard Webhooks)'],
          ['Events', webhook.events.join(', ')],
          ['Headers', webhook.header_names.length > 0 ? webhook.header_names.join(', ') : 'none'],
          ['Added', <Ago key="added" at={webhook.created_at} />],
          ...(webhook.failing_since
            ? ([['Failing since', <Ago key="failing" at={webhook.failing_since} />]] as [string, ReactNode][])
            : []),
          ...(until
            ? ([['Previous secret', `signs too, until ${formatDateTime(until)}`]] as [string, string][])
            : []),
        ]}
      />
    </Panel>
  );
}

function Rotation({ ws, id, opened, close }: { ws: string; id: string; opened: boolean; close: () => void }) {
  const rotate = useRotateWebhook(ws, id);
  const [shown, setShown] = useState<Shown>();
  return (
    <>
      <Confirm
        title="Rotate the signing secret?"
        word="Rotate"
        opened={opened}
        close={() => {
          rotate.reset();
          close();
        }}
        busy={rotate.isPending}
        error={rotate.error}
        failed="The secret was not rotated"
        act={() =>
          rotate.mutate(undefined, {
            onSuccess: ({ secret }) => {
              close();
              if (!secret) return;
              setShown({
                title: 'New signing secret',
                values: [{ label: 'Signing secret', value: secret }],
                kept: 'It is encrypted at rest and can’t be viewed again. Rotate it if it is lost.',
                note: 'For 24 hours messages carry the signatures of both secrets.',
              });
            },
          })
        }
      >
        The endpoint gets a new secret. The present one signs messages for 24 more hours.
      </Confirm>
      <SecretDialog shown={shown} close={() => setShown(undefined)} />
    </>
  );
}

function Deletion({
  ws,
  webhook,
  opened,
  close,
}: {
  ws: string;
  webhook: Webhook;
  opened: boolean;
  close: () => void;
}) {
  const navigate = useNavigate();
  const remove = useDeleteWebhook(ws);
  return (
    <Confirm
      title="Delete this endpoint?"
      word="Delete"
      opened={opened}
      close={() => {
        remove.reset();
        close();
      }}
      busy={remove.isPending}
      error={remove.error}
      failed="The endpoint was not deleted"
      act={() =>
        remove.mutate(webhook.id, {
          onSuccess: () => {
            toastDone('The endpoint was deleted.');
            void navigate({ to: '/w/$ws/webhooks', params: { ws } });
          },
        })
      }
    >
      {webhook.url} gets no more messages, and the log of its deliveries is deleted. This can’t be undone.
    </Confirm>
  );
}
