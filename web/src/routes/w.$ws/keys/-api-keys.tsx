import { Button, Group, NumberInput, Select, Stack, TextInput } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  type ApiKey,
  apiKeysQuery,
  serviceAccountsQuery,
  useCreateKey,
  useRevokeKey,
} from '../../../api/keys';
import { Ago } from '../../../components/ago';
import { Tag } from '../../../components/badges';
import { Confirm } from '../../../components/confirm';
import { Dialog } from '../../../components/dialog';
import { useFields } from '../../../components/form';
import { Empty, Loaded, Panel } from '../../../components/page';
import { Refused } from '../../../components/refused';
import type { Shown } from '../../../components/secret';
import { cell, Table } from '../../../components/table';
import { toastDone } from '../../../components/toast';
import { useMay, useSession } from '../../../session';
import { formatDate } from '../../../time';
import { AccessSelect, reach, whole } from './-access';

/** The keys of the workspace, each with what it may use. */
export function ApiKeys({ ws }: { ws: string }) {
  const { me } = useSession();
  const keys = useQuery(apiKeysQuery(ws));
  const revoke = useRevokeKey(ws);
  const [ending, setEnding] = useState<ApiKey>();
  return (
    <Panel title="API keys" flush>
      <Refused error={revoke.error} title="The key was not revoked" />
      <Loaded query={keys}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconKey size={24} />} title="No API keys">
              Clients send the key as a bearer token to a server’s URL. It works until it expires or is
              revoked.
            </Empty>
          ) : (
            <Table
              label="API keys"
              head={
                <>
                  <th>Key</th>
                  <th>Acts as</th>
                  <th>Access</th>
                  <th>Last used</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </>
              }
            >
              {items.map((key) => (
                <tr key={key.id}>
                  <td data-wide>
                    <span className={cell.main}>{key.name}</span>
                    <div className={cell.sub}>
                      <code>{key.hint}…</code>
                    </div>
                  </td>
                  <td data-wide>
                    {key.holder_name} {key.holder === me.user.id && <Tag>you</Tag>}
                    {key.holder.startsWith('svc_') && <Tag>service account</Tag>}
                  </td>
                  <td data-wide>
                    {reach(key.resource)}
                    <div className={cell.sub}>
                      expires {formatDate(key.expires_at)}
                      {key.networks.length > 0 && `, from ${key.networks.join(', ')}`}
                    </div>
                  </td>
                  <td data-label="Last used">{key.last_used_at ? <Ago at={key.last_used_at} /> : 'never'}</td>
                  <td data-align="right">
                    <Button
                      variant="subtle"
                      color="red"
                      size="compact-sm"
                      aria-label={`Revoke ${key.name}`}
                      onClick={() => setEnding(key)}
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
        title="Revoke this key?"
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
        Clients that use {ending?.name} are refused within a second, and their streams are closed. This can’t
        be undone.
      </Confirm>
    </Panel>
  );
}

export function NewKeyDialog({
  ws,
  opened,
  close,
  show,
}: {
  ws: string;
  opened: boolean;
  close: () => void;
  show: (shown: Shown) => void;
}) {
  const administers = useMay('administer');
  const create = useCreateKey(ws);
  const accounts = useQuery({ ...serviceAccountsQuery(ws), enabled: administers && opened });
  const form = useFields({
    initialValues: { name: '', holder: 'me', server_id: whole, days: 90 as number | string, networks: '' },
    error: create.error,
  });
  const name = form.values.name.trim();

  function leave() {
    create.reset();
    const { holder, server_id, days } = form.values;
    form.restart({ holder, server_id, days });
    close();
  }

  function send({ holder, server_id, days, networks }: typeof form.values) {
    if (name === '') return;
    create.mutate(
      {
        name,
        days: Number(days) || 0,
        networks: networks.split(/[\s,]+/).filter((one) => one !== ''),
        ...(holder !== 'me' && { service_account_id: holder }),
        ...(server_id !== whole && { server_id }),
      },
      {
        onSuccess: ({ key, secret }) => {
          leave();
          show({
            title: `API key “${key.name}”`,
            values: [
              { label: 'API key', value: secret },
              { label: 'Header', value: `Authorization: Bearer ${secret}` },
            ],
          });
        },
      },
    );
  }

  return (
    <Dialog kept={create.isPending} opened={opened} onClose={leave} title="New API key">
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Stack gap="md">
          <Refused error={form.refusal} title="The key was not created" />
          <TextInput
            label="Name"
            description="What this key is for."
            {...form.getInputProps('name')}
            maxLength={80}
            data-autofocus
          />
          {administers && (accounts.data?.items.length ?? 0) > 0 && (
            <Select
              label="Acts as"
              data={[
                { value: 'me', label: 'You' },
                ...(accounts.data?.items.map((one) => ({ value: one.id, label: one.name })) ?? []),
              ]}
              allowDeselect={false}
              {...form.getInputProps('holder')}
            />
          )}
          <AccessSelect ws={ws} {...form.getInputProps('server_id')} />
          <NumberInput
            label="Expires in (days)"
            description="Maximum 366."
            min={1}
            max={366}
            {...form.getInputProps('days')}
          />
          <TextInput
            label="Allowed networks"
            description="CIDR, such as 192.0.2.0/24. Leave empty for any."
            {...form.getInputProps('networks')}
          />
          <Group justify="flex-end">
            <Button variant="default" disabled={create.isPending} onClick={leave}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending} disabled={name === ''}>
              Create key
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
