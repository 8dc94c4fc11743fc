import { Button, Checkbox, Group, NumberInput, Select, Stack, TextInput } from '@mantine/core';
import { IconTerminal2 } from '@tabler/icons-react';
import type { UseMutationResult, UseQueryResult } from '@tanstack/react-query';
import { useState } from 'react';
import { type AccessToken, type ApiScope, scopes } from '../api/access-tokens';
import type { Schemas } from '../api/http';
import { formatDate } from '../time';
import { Ago } from './ago';
import { Tag } from './badges';
import { Confirm } from './confirm';
import { Dialog } from './dialog';
import { useFields } from './form';
import { Empty, Loaded, Panel } from './page';
import { Refused } from './refused';
import type { Shown } from './secret';
import { cell, Table } from './table';
import { toastDone } from './toast';

const everyWorkspace = 'all';

/** Tokens of the management API, each with its scopes. */
export function AccessTokens({
  tokens,
  revoke,
  empty,
}: {
  tokens: UseQueryResult<{ items: AccessToken[] }>;
  revoke: UseMutationResult<unknown, Error, string>;
  empty: string;
}) {
  const [ending, setEnding] = useState<AccessToken>();
  return (
    <Panel title="Access tokens" flush>
      <Refused error={revoke.error} title="The token was not revoked" />
      <Loaded query={tokens}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconTerminal2 size={24} />} title="No access tokens">
              {empty}
            </Empty>
          ) : (
            <Table
              label="Access tokens"
              head={
                <>
                  <th>Token</th>
                  <th>Access</th>
                  <th>Last used</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </>
              }
            >
              {items.map((token) => (
                <tr key={token.id}>
                  <td data-wide>
                    <span className={cell.main}>{token.name}</span>
                    <div className={cell.sub}>
                      <code>{token.hint}…</code>
                    </div>
                  </td>
                  <td data-wide>
                    {token.scopes.join(', ')} {token.role && <Tag>{token.role}</Tag>}
                    <div className={cell.sub}>
                      {!token.role && `${token.workspace ?? 'every workspace'}, `}
                      expires {formatDate(token.expires_at)}
                      {token.role && token.created_by && `, made by ${token.created_by}`}
                    </div>
                  </td>
                  <td data-label="Last used">
                    {token.last_used_at ? <Ago at={token.last_used_at} /> : 'never'}
                  </td>
                  <td data-align="right">
                    <Button
                      variant="subtle"
                      color="red"
                      size="compact-sm"
                      aria-label={`Revoke ${token.name}`}
                      onClick={() => setEnding(token)}
                    >
                      Revoke
                    </Button>
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      <Confirm
        title="Revoke this token?"
        word="Revoke"
        opened={ending !== undefined}
        close={() => setEnding(undefined)}
        busy={revoke.isPending}
        act={() => {
          if (!ending) return;
          revoke.mutate(ending.id, {
            onSuccess: () => toastDone(`${ending.name} was revoked.`),
            onSettled: () => setEnding(undefined),
          });
        }}
      >
        Programs that use {ending?.name} are refused from their next request on. This can’t be undone.
      </Confirm>
    </Panel>
  );
}

export interface WantedToken {
  name: string;
  scopes: ApiScope[];
  days: number;
  role: Schemas['Role'];
  workspace: string | undefined;
}

/** The form of a new token. `roles` are offered for a workspace, `workspaces` for a person. */
export function NewTokenDialog({
  opened,
  close,
  show,
  create,
  send,
  roles,
  workspaces,
}: {
  opened: boolean;
  close: () => void;
  show: (shown: Shown) => void;
  create: { error: unknown; isPending: boolean; reset: () => void };
  send: (wanted: WantedToken, made: (created: Schemas['CreatedAccessToken']) => void) => void;
  roles?: Schemas['Role'][];
  workspaces?: { slug: string; name: string }[];
}) {
  const form = useFields({
    initialValues: {
      name: '',
      scopes: [] as string[],
      days: 90 as number | string,
      role: 'viewer' as string,
      workspace: everyWorkspace,
    },
    error: create.error,
  });
  const name = form.values.name.trim();

  function leave() {
    create.reset();
    const { days, role, workspace } = form.values;
    form.restart({ days, role, workspace });
    close();
  }

  function submit(values: typeof form.values) {
    if (name === '' || values.scopes.length === 0) return;
    const wanted = {
      name,
      scopes: values.scopes as ApiScope[],
      days: Number(values.days) || 0,
      role: values.role as Schemas['Role'],
      workspace: values.workspace === everyWorkspace ? undefined : values.workspace,
    };
    send(wanted, ({ token, secret }) => {
      leave();
      show({
        title: `Access token “${token.name}”`,
        values: [
          { label: 'Access token', value: secret },
          { label: 'Header', value: `Authorization: Bearer ${secret}` },
        ],
      });
    });
  }

  return (
    <Dialog kept={create.isPending} opened={opened} onClose={leave} title="New access token">
      <form ref={form.ref} onSubmit={form.onSubmit(submit)} noValidate>
        <Stack gap="md">
          <Refused error={form.refusal} title="The token was not created" />
          <TextInput
            label="Name"
            description="What this token is for."
            {...form.getInputProps('name')}
            maxLength={80}
            data-autofocus
          />
          {roles && (
            <Select
              label="Role"
              description="It acts as the workspace, with this role."
              data={roles}
              allowDeselect={false}
              {...form.getInputProps('role')}
            />
          )}
          {workspaces && (
            <Select
              label="Workspace"
              description="It acts as you, never with more than your role."
              data={[
                { value: everyWorkspace, label: 'Every workspace of yours' },
                ...workspaces.map((one) => ({ value: one.slug, label: one.name })),
              ]}
              allowDeselect={false}
              {...form.getInputProps('workspace')}
            />
          )}
          <Checkbox.Group
            label="Scopes"
            description="Writing includes reading the same things."
            {...form.getInputProps('scopes')}
          >
            <Stack gap="xs" mt="xs">
              {Object.entries(scopes).map(([scope, meaning]) => (
                <Checkbox key={scope} value={scope} label={scope} description={meaning} />
              ))}
            </Stack>
          </Checkbox.Group>
          <NumberInput
            label="Expires in (days)"
            description="Maximum 365."
            min={1}
            max={365}
            {...form.getInputProps('days')}
          />
          <Group justify="flex-end">
            <Button variant="default" disabled={create.isPending} onClick={leave}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={create.isPending}
              disabled={name === '' || form.values.scopes.length === 0}
            >
              Create token
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
