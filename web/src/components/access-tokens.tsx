import { Checkbox, type CheckboxGroupProps, NumberInput, Select, Stack, TextInput } from '@mantine/core';
import { IconTerminal2 } from '@tabler/icons-react';
import type { UseMutationResult, UseQueryResult } from '@tanstack/react-query';
import { type AccessToken, type ApiScope, scopes } from '../api/access-tokens';
import type { Schemas } from '../api/http';
import { formatDate } from '../time';
import { Tag } from './badges';
import { useFields } from './form';
import { FormDialog } from './form-dialog';
import { bearer, IssuedList, type Issuing } from './issued';
import { cell } from './table';

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
  return (
    <IssuedList
      title="Access tokens"
      noun="token"
      query={tokens}
      revoke={revoke}
      icon={<IconTerminal2 size={24} />}
      none="No access tokens"
      empty={empty}
      columns={[{ head: 'Access', of: (token) => <Scopes token={token} /> }]}
      consequence="from their next request on"
    />
  );
}

function Scopes({ token }: { token: AccessToken }) {
  return (
    <>
      {token.scopes.join(', ')} {token.role && <Tag>{token.role}</Tag>}
      <div className={cell.sub}>
        {!token.role && `${token.workspace ?? 'every workspace'}, `}
        expires {formatDate(token.expires_at)}
        {token.role && token.created_by && `, made by ${token.created_by}`}
      </div>
    </>
  );
}

/** The scopes of the management API, to choose from. */
export function ScopeChoice(props: Omit<CheckboxGroupProps, 'children'>) {
  return (
    <Checkbox.Group label="Scopes" description="Writing includes reading the same things." {...props}>
      <Stack gap="xs" mt="xs">
        {Object.entries(scopes).map(([scope, meaning]) => (
          <Checkbox key={scope} value={scope} label={scope} description={meaning} />
        ))}
      </Stack>
    </Checkbox.Group>
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
}: Issuing & {
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
      show(bearer('Access token', token.name, secret));
    });
  }

  return (
    <FormDialog
      title="New access token"
      opened={opened}
      leave={leave}
      form={{ ref: form.ref, onSubmit: form.onSubmit(submit) }}
      busy={create.isPending}
      word="Create token"
      ready={name !== '' && form.values.scopes.length > 0}
      refusal={form.refusal}
      failed="The token was not created"
    >
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
      <ScopeChoice {...form.getInputProps('scopes')} />
      <NumberInput
        label="Expires in (days)"
        description="Maximum 365."
        min={1}
        max={365}
        {...form.getInputProps('days')}
      />
    </FormDialog>
  );
}
