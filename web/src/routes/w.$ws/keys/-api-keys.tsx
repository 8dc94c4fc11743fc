import { NumberInput, Select, TextInput } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import {
  type ApiKey,
  apiKeysQuery,
  serviceAccountsQuery,
  useCreateKey,
  useRevokeKey,
} from '../../../api/keys';
import { Tag } from '../../../components/badges';
import { useFields } from '../../../components/form';
import { FormDialog } from '../../../components/form-dialog';
import { bearer, IssuedList, type Issuing } from '../../../components/issued';
import { cell } from '../../../components/table';
import { useMay, useSession } from '../../../session';
import { formatDate } from '../../../time';
import { AccessSelect, reach, whole } from './-access';

/** The keys of the workspace, each with what it may use. */
export function ApiKeys({ ws }: { ws: string }) {
  const { me } = useSession();
  const keys = useQuery(apiKeysQuery(ws));
  const revoke = useRevokeKey(ws);
  return (
    <IssuedList
      title="API keys"
      noun="key"
      query={keys}
      revoke={revoke}
      icon={<IconKey size={24} />}
      none="No API keys"
      empty="Clients send the key as a bearer token to a server’s URL. It works until it expires or is revoked."
      columns={[
        { head: 'Acts as', of: (key) => <Holder apiKey={key} me={me.user.id} /> },
        { head: 'Access', of: (key) => <Reach apiKey={key} /> },
      ]}
      consequence="within a second, and their streams are closed"
    />
  );
}

function Holder({ apiKey: { holder, holder_name }, me }: { apiKey: ApiKey; me: string }) {
  return (
    <>
      {holder_name} {holder === me && <Tag>you</Tag>}
      {holder.startsWith('svc_') && <Tag>service account</Tag>}
    </>
  );
}

function Reach({ apiKey: { resource, expires_at, networks } }: { apiKey: ApiKey }) {
  return (
    <>
      {reach(resource)}
      <div className={cell.sub}>
        expires {formatDate(expires_at)}
        {networks.length > 0 && `, from ${networks.join(', ')}`}
      </div>
    </>
  );
}

export function NewKeyDialog({ ws, opened, close, show }: Issuing & { ws: string }) {
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
          show(bearer('API key', key.name, secret));
        },
      },
    );
  }

  return (
    <FormDialog
      title="New API key"
      opened={opened}
      leave={leave}
      form={{ ref: form.ref, onSubmit: form.onSubmit(send) }}
      busy={create.isPending}
      word="Create key"
      ready={name !== ''}
      refusal={form.refusal}
      failed="The key was not created"
    >
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
    </FormDialog>
  );
}
