import { Button, Group, Radio, Stack, TextInput } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useState } from 'react';
import {
  type AdmissionRule,
  clientsQuery,
  type RuleEffect,
  type SeenClient,
  useAllowClient,
  useDecideClient,
  useDismissAskers,
  useSetRule,
} from '../../../api/clients';
import { Ago } from '../../../components/ago';
import { Status, Tag } from '../../../components/badges';
import { Confirm } from '../../../components/confirm';
import { useFields } from '../../../components/form';
import { Empty, Loaded, Page, Panel } from '../../../components/page';
import { Refused } from '../../../components/refused';
import { Restricted } from '../../../components/restricted';
import { cell, Table } from '../../../components/table';
import classes from '../../../components/table.module.css';
import { toastDone } from '../../../components/toast';
import { Unsaved } from '../../../components/unsaved';
import { useSession } from '../../../session';
import { formatDate } from '../../../time';
import { RegisteredClients } from './-registered';

export const Route = createFileRoute('/w/$ws/clients/')({
  component: ClientsPage,
});

const rules: { value: AdmissionRule; label: string; note: string }[] = [
  { value: 'any', label: 'Any client', note: 'Each user decides on the consent page.' },
  {
    value: 'verified',
    label: 'Verified clients',
    note: 'Clients whose publisher is verified by domain.',
  },
  {
    value: 'list',
    label: 'Clients on the list',
    note: 'Clients allowed below and clients registered here.',
  },
  {
    value: 'approval',
    label: 'After approval',
    note: 'Like the list, and users can request other clients. Administrators get an email.',
  },
];

const ends = ({ clients, apps }: RuleEffect) =>
  `${apps === 1 ? 'One connection' : `${apps} connections`} of ${clients === 1 ? 'one client' : `${clients} clients`} ${apps === 1 ? 'ends' : 'end'}`;

const connections = (count: number) =>
  count === 1 ? 'One connection ended.' : `${count} connections ended.`;

function ClientsPage() {
  const { workspace } = useSession();
  return (
    <Restricted needs="administer" title="AI clients">
      <Page
        title="AI clients"
        help="console#ai-clients"
        lede="Which AI clients can connect to this workspace. Changes apply immediately, including to connected clients."
      >
        <Admission ws={workspace.slug} />
        <RegisteredClients ws={workspace.slug} />
      </Page>
    </Restricted>
  );
}

function Admission({ ws }: { ws: string }) {
  const admission = useQuery(clientsQuery(ws));
  return (
    <>
      <Panel title="Client policy">
        <Loaded query={admission}>
          {({ rule, effects }) => <Rule ws={ws} rule={rule} effects={effects} />}
        </Loaded>
      </Panel>
      <Panel
        title="Clients"
        note="Connected, requested, allowed or blocked clients. A decision overrides the policy."
        flush
      >
        <Loaded query={admission}>{({ clients }) => <Seen ws={ws} clients={clients} />}</Loaded>
      </Panel>
    </>
  );
}

function Rule({ ws, rule, effects }: { ws: string; rule: AdmissionRule; effects: RuleEffect[] }) {
  const set = useSetRule(ws);
  // Empty while nothing is chosen: then the rule of the server is shown.
  const form = useFields({ initialValues: { rule: '' as AdmissionRule | '' } });
  const [asking, setAsking] = useState(false);
  const value = form.values.rule || rule;
  const effect = effects.find((one) => one.rule === value);
  return (
    <Stack gap="md">
      <Unsaved when={value !== rule && !set.isPending} />
      <Radio.Group {...form.getInputProps('rule')} value={value} aria-label="Client policy">
        <Stack gap="sm">
          {rules.map(({ value: one, label, note }) => (
            <Radio key={one} value={one} label={label} description={note} />
          ))}
        </Stack>
      </Radio.Group>
      <Group>
        <Button disabled={value === rule} onClick={() => setAsking(true)}>
          Save
        </Button>
      </Group>
      <Confirm
        title="Change the client policy?"
        word="Change"
        opened={asking}
        close={() => setAsking(false)}
        busy={set.isPending}
        error={set.error}
        failed="The policy was not changed"
        act={() =>
          set.mutate(value, {
            onSuccess: ({ ended }) => {
              setAsking(false);
              form.restart();
              toastDone(ended > 0 ? `Policy changed. ${connections(ended)}` : 'Policy changed.');
            },
          })
        }
      >
        {effect && effect.apps > 0
          ? `${ends(effect)} within a second. The clients stay on the list below, where you can allow them. Users then have to reconnect them.`
          : 'No connected client is disconnected.'}
      </Confirm>
    </Stack>
  );
}

/** Shows the known facts about a client's maker. */
function Maker({ client }: { client: SeenClient }) {
  if (client.verified) return <Status tone="good">Published by {client.verified}</Status>;
  if (client.imitates) return <Tag tone="bad">imitates a known client</Tag>;
  return <Tag>unverified</Tag>;
}

function Standing({ client }: { client: SeenClient }) {
  if (client.decision === 'allowed') return <Status tone="good">Allowed</Status>;
  if (client.decision === 'blocked') return <Status tone="bad">Blocked</Status>;
  if (client.askers.length > 0) return <Status tone="warn">Requested</Status>;
  return client.admitted ? (
    <Status tone="quiet">Default policy</Status>
  ) : (
    <Status tone="warn">Not allowed</Status>
  );
}

function Seen({ ws, clients }: { ws: string; clients: SeenClient[] }) {
  const decide = useDecideClient(ws);
  const dismiss = useDismissAskers(ws);
  const [blocking, setBlocking] = useState<SeenClient>();
  const act = (client: SeenClient, decision: 'allowed' | null) => {
    dismiss.reset();
    decide.mutate(
      { id: client.id, decision },
      {
        onSuccess: ({ ended }) => {
          const done =
            decision === 'allowed'
              ? `${client.name} can connect now.`
              : `The policy applies to ${client.name} again.`;
          toastDone(ended > 0 ? `${done} ${connections(ended)}` : done);
        },
      },
    );
  };
  return (
    <>
      <Refused error={decide.error ?? dismiss.error} title="Nothing was changed" />
      {clients.length === 0 ? (
        <Empty icon={<IconPlugConnected size={24} />} title="No clients yet">
          A client appears here when a user connects or requests it.
        </Empty>
      ) : (
        <Table
          label="Clients"
          head={
            <>
              <th>Client</th>
              <th>Status</th>
              <th>Users</th>
              <th>Last used</th>
              <th>
                <span className="visually-hidden">Actions</span>
              </th>
            </>
          }
        >
          {clients.map((client) => (
            <tr key={client.id}>
              <td data-wide>
                <span className={cell.main}>{client.name}</span> <Maker client={client} />
                <div className={`${cell.sub} ${cell.clamp}`}>
                  {client.host ? `Published at ${client.host}` : 'Self-registered'} ·{' '}
                  <code>{client.client_id}</code>
                </div>
              </td>
              <td data-wide>
                <Standing client={client} />
                {client.askers.map((asker) => (
                  <div key={asker.user_id} className={cell.sub}>
                    {asker.user_name || asker.user_email}, {formatDate(asker.asked_at)}
                  </div>
                ))}
              </td>
              <td data-label="Users">{client.people}</td>
              <td data-label="Last used">
                {client.last_used_at ? <Ago at={client.last_used_at} /> : 'never'}
              </td>
              <td data-align="right">
                <Group gap={4} justify="flex-end" wrap="nowrap">
                  {client.decision !== 'allowed' && (
                    <Button
                      variant="subtle"
                      size="compact-sm"
                      aria-label={`Allow ${client.name}`}
                      onClick={() => act(client, 'allowed')}
                    >
                      Allow
                    </Button>
                  )}
                  {client.decision && (
                    <Button
                      variant="subtle"
                      size="compact-sm"
                      aria-label={`Use the default policy for ${client.name}`}
                      onClick={() => act(client, null)}
                    >
                      Use the default policy
                    </Button>
                  )}
                  {client.askers.length > 0 && (
                    <Button
                      variant="subtle"
                      size="compact-sm"
                      aria-label={`Dismiss requests for ${client.name}`}
                      onClick={() => {
                        decide.reset();
                        dismiss.mutate(client.id, {
                          onSuccess: () => toastDone(`Requests for ${client.name} were dismissed.`),
                        });
                      }}
                    >
                      Dismiss
                    </Button>
                  )}
                  {client.decision !== 'blocked' && (
                    <Button
                      variant="subtle"
                      color="red"
                      size="compact-sm"
                      aria-label={`Block ${client.name}`}
                      onClick={() => setBlocking(client)}
                    >
                      Block
                    </Button>
                  )}
                </Group>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <AllowForm ws={ws} />
      <Confirm
        title="Block this client?"
        word="Block"
        opened={blocking !== undefined}
        close={() => setBlocking(undefined)}
        busy={decide.isPending}
        act={() => {
          if (!blocking) return;
          dismiss.reset();
          decide.mutate(
            { id: blocking.id, decision: 'blocked' },
            {
              onSuccess: ({ ended }) => toastDone(`${blocking.name} was blocked. ${connections(ended)}`),
              onSettled: () => setBlocking(undefined),
            },
          );
        }}
      >
        {blocking?.name} can’t connect to this workspace any more, and its connections end within a second.
      </Confirm>
    </>
  );
}

function AllowForm({ ws }: { ws: string }) {
  const allow = useAllowClient(ws);
  const form = useFields({ initialValues: { client_id: '' }, error: allow.error });
  const id = form.values.client_id.trim();
  function send() {
    if (id === '') return;
    allow.mutate(id, {
      onSuccess: () => {
        form.restart();
        toastDone('The client can connect now.');
      },
    });
  }
  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate className={classes.below}>
      <Refused error={form.refusal} title="The client was not allowed" />
      <Group align="flex-end" gap="sm">
        <TextInput
          label="Pre-approve a client"
          description="The URL of its client metadata, or the client ID shown on the consent page."
          placeholder="https://app.example/oauth/client.json"
          className={classes.grow}
          {...form.getInputProps('client_id')}
        />
        <Button type="submit" variant="default" disabled={id === ''} loading={allow.isPending}>
          Allow
        </Button>
      </Group>
    </form>
  );
}
