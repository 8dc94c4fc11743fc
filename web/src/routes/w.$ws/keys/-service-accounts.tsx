import { Button, SegmentedControl, Textarea, TextInput } from '@mantine/core';
import { IconRobot } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  type NewAccount,
  type ServiceAccount,
  serviceAccountsQuery,
  useAddSecret,
  useChangeAccount,
  useCreateAccount,
  useDeleteAccount,
  useRevokeSecret,
} from '../../../api/keys';
import { Ago } from '../../../components/ago';
import { Status } from '../../../components/badges';
import { ClientSecrets } from '../../../components/client-secrets';
import { Confirm } from '../../../components/confirm';
import { useFields } from '../../../components/form';
import { FormDialog } from '../../../components/form-dialog';
import type { Issuing } from '../../../components/issued';
import { Empty, Loaded, Panel } from '../../../components/page';
import { Refused } from '../../../components/refused';
import type { Shown } from '../../../components/secret';
import { SwitchAndDelete } from '../../../components/switch-and-delete';
import { cell, Table } from '../../../components/table';
import { toastDone } from '../../../components/toast';
import { publicKeysFault, publicKeysField, readPublicKeys } from '../../../public-keys';
import { formatDate } from '../../../time';
import { AccessSelect, reach, whole } from './-access';
import { ApiAccessDialog, ApiAccessRemoval, ApiAccessState } from './-api-access';

/** The service accounts of the workspace, each with its secrets. */
export function ServiceAccounts({ ws, show }: { ws: string; show: (shown: Shown) => void }) {
  const accounts = useQuery(serviceAccountsQuery(ws));
  const change = useChangeAccount(ws);
  const remove = useDeleteAccount(ws);
  const addSecret = useAddSecret(ws);
  const revokeSecret = useRevokeSecret(ws);
  const [ending, setEnding] = useState<ServiceAccount>();
  const [access, setAccess] = useState<{ what: 'change' | 'take'; id: string }>();
  // The account as the list has it now: a change of its access shows in the dialog.
  const accessOf = (what: 'change' | 'take') =>
    access?.what === what ? accounts.data?.items.find(({ id }) => id === access.id) : undefined;
  const error = change.error ?? remove.error ?? addSecret.error ?? revokeSecret.error;
  const forget = () => {
    for (const one of [change, remove, addSecret, revokeSecret]) one.reset();
  };
  return (
    <Panel
      title="Service accounts"
      note="Use the OAuth client-credentials grant, for MCP servers and, with access, for the management API. The client ID is the account ID."
      flush
    >
      <Refused error={error} title="Nothing was changed" />
      <Loaded query={accounts}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconRobot size={24} />} title="No service accounts">
              Create one for a program that calls tools without a user.
            </Empty>
          ) : (
            <Table
              label="Service accounts"
              head={
                <>
                  <th>Account</th>
                  <th>Client authentication</th>
                  <th>Access</th>
                  <th>Last token</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </>
              }
            >
              {items.map((account) => (
                <tr key={account.id}>
                  <td data-wide>
                    <span className={cell.main}>{account.name}</span>{' '}
                    {!account.enabled && <Status tone="warn">Disabled</Status>}
                    <div className={cell.sub}>
                      <code className={cell.id}>{account.id}</code>
                    </div>
                  </td>
                  <td data-wide>
                    {account.auth === 'private_key_jwt' ? (
                      <>
                        Private key (JWT){' '}
                        <div className={cell.sub}>{account.jwks_uri ?? 'public keys stored here'}</div>
                      </>
                    ) : (
                      <ClientSecrets
                        owner={account}
                        add={addSecret}
                        revoke={revokeSecret}
                        start={forget}
                        show={show}
                      >
                        , and tokens issued before are refused within a second. The account can get new tokens
                        with its other secret.
                      </ClientSecrets>
                    )}
                  </td>
                  <td data-wide>
                    {reach(account.resource)}
                    <ApiAccessState access={account.api_access} />
                    <div className={cell.sub}>
                      created {formatDate(account.created_at)}
                      {account.created_by && `, created by ${account.created_by}`}
                    </div>
                  </td>
                  <td data-label="Last token">
                    {account.last_used_at ? <Ago at={account.last_used_at} /> : 'never'}
                  </td>
                  <td data-align="right">
                    <SwitchAndDelete
                      name={account.name}
                      enabled={account.enabled}
                      busy={change.isPending && change.variables.id === account.id}
                      turn={(enabled, options) => {
                        forget();
                        change.mutate({ id: account.id, enabled }, options);
                      }}
                      remove={() => setEnding(account)}
                    >
                      <Button
                        variant="subtle"
                        size="compact-sm"
                        aria-label={`Management API access of ${account.name}`}
                        onClick={() => setAccess({ what: 'change', id: account.id })}
                      >
                        API access
                      </Button>
                    </SwitchAndDelete>
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      <Confirm
        title="Delete this service account?"
        word="Delete"
        opened={ending !== undefined}
        close={() => setEnding(undefined)}
        busy={remove.isPending}
        act={() => {
          if (!ending) return;
          forget();
          remove.mutate(ending.id, {
            onSuccess: () => toastDone(`${ending.name} was deleted.`),
            onSettled: () => setEnding(undefined),
          });
        }}
      >
        The tokens, secrets and API keys of {ending?.name} are refused within a second. This can’t be undone.
        To keep it, disable it instead.
      </Confirm>
      <ApiAccessDialog
        ws={ws}
        account={accessOf('change')}
        close={() => setAccess(undefined)}
        take={() => setAccess((now) => now && { ...now, what: 'take' })}
      />
      <ApiAccessRemoval ws={ws} account={accessOf('take')} close={() => setAccess(undefined)} />
    </Panel>
  );
}

export function NewAccountDialog({ ws, opened, close, show }: Issuing & { ws: string }) {
  const create = useCreateAccount(ws);
  const form = useFields({
    initialValues: { name: '', auth: 'client_secret' as NewAccount['auth'], keys: '', server_id: whole },
    validate: ({ auth, keys }) => ({ keys: auth === 'private_key_jwt' && publicKeysFault(keys) }),
    error: create.error,
    place: publicKeysField,
  });
  const { auth } = form.values;
  const name = form.values.name.trim();

  function leave() {
    create.reset();
    form.restart({ auth, server_id: form.values.server_id });
    close();
  }

  function send({ keys, server_id }: typeof form.values) {
    if (name === '') return;
    create.mutate(
      {
        name,
        auth,
        ...(auth === 'private_key_jwt' && readPublicKeys(keys)),
        ...(server_id !== whole && { server_id }),
      },
      {
        onSuccess: ({ account, client_secret, token_endpoint }) => {
          leave();
          show({
            title: `Service account “${account.name}”`,
            values: [
              { label: 'Client ID', value: account.id },
              ...(client_secret ? [{ label: 'Client secret', value: client_secret }] : []),
              { label: 'Token endpoint', value: token_endpoint },
            ],
          });
        },
      },
    );
  }

  return (
    <FormDialog
      title="New service account"
      opened={opened}
      leave={leave}
      form={{ ref: form.ref, onSubmit: form.onSubmit(send) }}
      busy={create.isPending}
      word="Create account"
      ready={name !== ''}
      refusal={form.refusal}
      failed="The account was not created"
    >
      <TextInput
        label="Name"
        description="What this account is for. It belongs to the workspace and stays if you leave."
        {...form.getInputProps('name')}
        maxLength={80}
        data-autofocus
      />
      <SegmentedControl
        aria-label="Client authentication"
        data={[
          { value: 'client_secret', label: 'Client secret' },
          { value: 'private_key_jwt', label: 'Private key (JWT)' },
        ]}
        {...form.getInputProps('auth')}
      />
      {auth === 'private_key_jwt' && (
        <Textarea
          label="Public keys"
          description="A JWK set as JSON, or its https URL. The private key stays with the program."
          rows={6}
          {...form.getInputProps('keys')}
        />
      )}
      <AccessSelect ws={ws} {...form.getInputProps('server_id')} />
    </FormDialog>
  );
}
