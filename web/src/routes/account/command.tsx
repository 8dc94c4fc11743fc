import { Anchor, Button, Group, Radio, Select, Stack } from '@mantine/core';
import { IconTerminal2 } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useRouterState } from '@tanstack/react-router';
import { useState } from 'react';
import { type ApiScope, useCreateCommandToken } from '../../api/access-tokens';
import { type Me, meQuery } from '../../api/me';
import { type CommandRequest, readCommandRequest, returnAddress } from '../../command-request';
import { Empty, Facts, Failed, Loading, Page, Panel } from '../../components/page';
import { Refused } from '../../components/refused';
import { PlainShell } from '../../components/shell';

export const Route = createFileRoute('/account/command')({ component: CommandPage });

const everyWorkspace = 'all';

const presets = {
  apply: {
    label: 'Plan and apply files',
    scopes: ['registry:write', 'credentials:write', 'workspace:read', 'webhooks:write'],
  },
  read: { label: 'Export files and listen to events', scopes: ['registry:read', 'workspace:read'] },
} satisfies Record<string, { label: string; scopes: ApiScope[] }>;

type Preset = keyof typeof presets;

/** A person gives `portolan login` a token of their own. */
function CommandPage() {
  const me = useQuery(meQuery);
  const search = useRouterState({ select: (state) => state.location.searchStr });
  const request = readCommandRequest(search);
  if (me.error && !me.data) {
    return (
      <PlainShell>
        <Failed error={me.error} retry={() => void me.refetch()} />
      </PlainShell>
    );
  }
  if (!me.data) return <Loading lines={5} />;
  return (
    <PlainShell me={me.data}>
      {request ? (
        <Confirmation me={me.data} request={request} page={`/account/command${search}`} />
      ) : (
        <Empty page icon={<IconTerminal2 size={24} />} title="No command is waiting">
          Run <code>portolan login</code> in a terminal. It opens this page.
        </Empty>
      )}
    </PlainShell>
  );
}

function Confirmation({ me, request, page }: { me: Me; request: CommandRequest; page: string }) {
  const create = useCreateCommandToken();
  const proposed = me.workspaces.find((one) => one.slug === request.workspace) ?? only(me.workspaces);
  const [workspace, setWorkspace] = useState(proposed?.slug ?? everyWorkspace);
  const [preset, setPreset] = useState<Preset>('apply');
  const [days, setDays] = useState('30');
  const [left, setLeft] = useState(false);
  const leave = (answer: Record<string, string>) => {
    setLeft(true);
    window.location.assign(returnAddress(request, answer));
  };
  if (left) {
    return (
      <Empty page icon={<IconTerminal2 size={24} />} title="Back to the terminal">
        The command has the answer. If nothing happens there, run it again.
      </Empty>
    );
  }
  const confirm = () =>
    create.mutate(
      {
        name: `portolan on ${request.name}`,
        scopes: presets[preset].scopes,
        days: Number(days),
        code_challenge: request.challenge,
        page,
        ...(workspace !== everyWorkspace && { workspace }),
      },
      { onSuccess: ({ code }) => leave({ code }) },
    );
  return (
    <Page
      title="Sign in a command"
      help="configuration-as-code#sign-in"
      lede={
        <>
          <code>portolan login</code> on <strong>{request.name}</strong> asks for an access token of yours.
          Continue only if you ran it just now, on this computer.
        </>
      }
    >
      <Panel title="Access">
        <Stack gap="md">
          <Refused error={create.error} title="The token was not created" />
          <Facts
            items={[
              ['You', me.user.email],
              ['The answer goes to', <code key="to">{`127.0.0.1:${request.port}`}</code>],
            ]}
          />
          <Select
            label="Workspace"
            description="The command acts as you, never with more than your role."
            data={[
              { value: everyWorkspace, label: 'Every workspace of yours' },
              ...me.workspaces.map((one) => ({ value: one.slug, label: one.name })),
            ]}
            allowDeselect={false}
            value={workspace}
            onChange={(value) => setWorkspace(value ?? everyWorkspace)}
          />
          <Radio.Group label="Scopes" value={preset} onChange={(value) => setPreset(value as Preset)}>
            <Stack gap="xs" mt="xs">
              {Object.entries(presets).map(([value, { label, scopes }]) => (
                <Radio key={value} value={value} label={label} description={scopes.join(', ')} />
              ))}
            </Stack>
          </Radio.Group>
          <Select
            label="Expires in"
            data={[
              { value: '1', label: '1 day' },
              { value: '7', label: '7 days' },
              { value: '30', label: '30 days' },
              { value: '90', label: '90 days' },
            ]}
            allowDeselect={false}
            value={days}
            onChange={(value) => setDays(value ?? '30')}
          />
          <Group justify="flex-end">
            <Button
              variant="default"
              disabled={create.isPending}
              onClick={() => leave({ error: 'access_denied' })}
            >
              Cancel
            </Button>
            <Button loading={create.isPending} onClick={confirm}>
              Sign in the command
            </Button>
          </Group>
          <span>
            <code>portolan logout</code> ends the token. You can also revoke it on the page{' '}
            <Anchor href="/account/access-tokens" fz="inherit" underline="always">
              Access tokens
            </Anchor>
            .
          </span>
        </Stack>
      </Panel>
    </Page>
  );
}

const only = <Thing,>(things: Thing[]): Thing | undefined => (things.length === 1 ? things[0] : undefined);
