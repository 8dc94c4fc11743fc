import {
  Button,
  Group,
  NumberInput,
  SegmentedControl,
  Select,
  Stack,
  Textarea,
  TextInput,
} from '@mantine/core';
import { IconKey, IconPlus, IconRobot } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { ApiError } from '../api/http';
import {
  type ApiKey,
  apiKeysQuery,
  type ServiceAccount,
  serviceAccountsQuery,
  useAddSecret,
  useChangeAccount,
  useCreateAccount,
  useCreateKey,
  useDeleteAccount,
  useRevokeKey,
  useRevokeSecret,
} from '../api/keys';
import { serversQuery } from '../api/servers';
import { Ago } from '../components/ago';
import { Status, Tag } from '../components/badges';
import { Confirm } from '../components/confirm';
import { Dialog } from '../components/dialog';
import { Empty, Loaded, Page, Panel } from '../components/page';
import { Refused } from '../components/refused';
import { SecretDialog, type Shown } from '../components/secret';
import { SwitchAndDelete } from '../components/switch-and-delete';
import { cell, Table } from '../components/table';
import { toastDone } from '../components/toast';
import { useMay, useSession } from '../session';
import { formatDate } from '../time';

/** Describes what a key or an account may use. */
export function reach(resource: string | undefined): ReactNode {
  if (!resource) return 'Whole workspace';
  return <code>{resource.replace(window.location.origin, '')}</code>;
}

const fieldOf = (error: unknown) => (error instanceof ApiError ? error.field : undefined);
const textAt = (error: unknown, field: string) =>
  fieldOf(error) === field && error instanceof Error ? error.message : null;

export function KeysPage() {
  const { workspace } = useSession();
  const administers = useMay('administer');
  const calls = useMay('call_tools');
  const [making, setMaking] = useState<'key' | 'account'>();
  const [shown, setShown] = useState<Shown>();
  return (
    <Page
      title="Keys"
      lede="For programs: API keys for clients without OAuth, and service accounts that act without a user."
      actions={
        calls && (
          <Group gap="sm">
            {administers && (
              <Button
                variant="default"
                leftSection={<IconRobot size={17} />}
                onClick={() => setMaking('account')}
              >
                New service account
              </Button>
            )}
            <Button leftSection={<IconPlus size={17} />} onClick={() => setMaking('key')}>
              New API key
            </Button>
          </Group>
        )
      }
    >
      <Keys ws={workspace.slug} />
      {administers && <Accounts ws={workspace.slug} show={setShown} />}
      <NewKeyDialog
        ws={workspace.slug}
        opened={making === 'key'}
        close={() => setMaking(undefined)}
        show={setShown}
      />
      <NewAccountDialog
        ws={workspace.slug}
        opened={making === 'account'}
        close={() => setMaking(undefined)}
        show={setShown}
      />
      <SecretDialog shown={shown} close={() => setShown(undefined)} />
    </Page>
  );
}

function Keys({ ws }: { ws: string }) {
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

function Accounts({ ws, show }: { ws: string; show: (shown: Shown) => void }) {
  const accounts = useQuery(serviceAccountsQuery(ws));
  const change = useChangeAccount(ws);
  const remove = useDeleteAccount(ws);
  const addSecret = useAddSecret(ws);
  const revokeSecret = useRevokeSecret(ws);
  const [ending, setEnding] = useState<ServiceAccount>();
  const [secret, setSecret] = useState<{ account: ServiceAccount; id: string; hint: string }>();
  const error = change.error ?? remove.error ?? addSecret.error ?? revokeSecret.error;
  const forget = () => {
    for (const one of [change, remove, addSecret, revokeSecret]) one.reset();
  };
  return (
    <Panel
      title="Service accounts"
      note="Use the OAuth client-credentials grant. The client ID is the account ID."
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
                      <Stack gap={2}>
                        {account.secrets.map((one) => (
                          <Group key={one.id} gap="xs">
                            <code>{one.hint}…</code>
                            <Button
                              variant="subtle"
                              color="red"
                              size="compact-xs"
                              aria-label={`Revoke the secret ${one.hint} of ${account.name}`}
                              onClick={() => setSecret({ account, id: one.id, hint: one.hint })}
                            >
                              Revoke
                            </Button>
                          </Group>
                        ))}
                        {account.secrets.length < 2 && (
                          <div>
                            <Button
                              variant="subtle"
                              size="compact-xs"
                              aria-label={`Rotate secret of ${account.name}`}
                              loading={addSecret.isPending && addSecret.variables === account.id}
                              onClick={() => {
                                forget();
                                addSecret.mutate(account.id, {
                                  onSuccess: ({ client_secret }) =>
                                    show({
                                      title: `New secret of ${account.name}`,
                                      values: [{ label: 'Client secret', value: client_secret }],
                                      note: 'Both secrets work until you revoke the old one.',
                                    }),
                                });
                              }}
                            >
                              Rotate secret
                            </Button>
                          </div>
                        )}
                      </Stack>
                    )}
                  </td>
                  <td data-wide>
                    {reach(account.resource)}
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
                    />
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
      <Confirm
        title="Revoke this secret?"
        word="Revoke"
        opened={secret !== undefined}
        close={() => setSecret(undefined)}
        busy={revokeSecret.isPending}
        act={() => {
          if (!secret) return;
          forget();
          revokeSecret.mutate(
            { id: secret.account.id, secret: secret.id },
            {
              onSuccess: () => toastDone('The secret was revoked.'),
              onSettled: () => setSecret(undefined),
            },
          );
        }}
      >
        The secret {secret?.hint}… of {secret?.account.name} stops working, and tokens issued before are
        refused within a second. The account can get new tokens with its other secret.
      </Confirm>
    </Panel>
  );
}

const whole = 'all';

function ReachSelect({
  ws,
  value,
  onChange,
  error,
}: {
  ws: string;
  value: string;
  onChange: (value: string) => void;
  error: string | null;
}) {
  const servers = useQuery(serversQuery(ws));
  const options = servers.data?.items.map((one) => ({ value: one.id, label: one.name })) ?? [];
  return (
    <Select
      label="Access"
      data={[{ value: whole, label: 'Whole workspace' }, ...options]}
      value={value}
      allowDeselect={false}
      onChange={(chosen) => chosen && onChange(chosen)}
      error={error}
    />
  );
}

function NewKeyDialog({
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
  const [name, setName] = useState('');
  const [holder, setHolder] = useState('me');
  const [server, setServer] = useState(whole);
  const [days, setDays] = useState(90);
  const [networks, setNetworks] = useState('');

  function leave() {
    create.reset();
    setName('');
    setNetworks('');
    close();
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    if (name.trim() === '') return;
    create.mutate(
      {
        name: name.trim(),
        days,
        networks: networks.split(/[\s,]+/).filter((one) => one !== ''),
        ...(holder !== 'me' && { service_account_id: holder }),
        ...(server !== whole && { server_id: server }),
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

  const field = fieldOf(create.error);
  return (
    <Dialog kept={create.isPending} opened={opened} onClose={leave} title="New API key">
      <form onSubmit={submit} noValidate>
        <Stack gap="md">
          {!['name', 'networks', 'days', 'server_id'].includes(field ?? '') && (
            <Refused error={create.error} title="The key was not created" />
          )}
          <TextInput
            label="Name"
            description="What this key is for."
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={textAt(create.error, 'name')}
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
              value={holder}
              allowDeselect={false}
              onChange={(chosen) => chosen && setHolder(chosen)}
            />
          )}
          <ReachSelect
            ws={ws}
            value={server}
            onChange={setServer}
            error={textAt(create.error, 'server_id')}
          />
          <NumberInput
            label="Expires in (days)"
            description="Maximum 366."
            value={days}
            onChange={(value) => setDays(Number(value) || 0)}
            min={1}
            max={366}
            error={textAt(create.error, 'days')}
          />
          <TextInput
            label="Allowed networks"
            description="CIDR, such as 192.0.2.0/24. Leave empty for any."
            value={networks}
            onChange={(event) => setNetworks(event.currentTarget.value)}
            error={textAt(create.error, 'networks')}
          />
          <Group justify="flex-end">
            <Button variant="default" disabled={create.isPending} onClick={leave}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending} disabled={name.trim() === ''}>
              Create key
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

function NewAccountDialog({
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
  const create = useCreateAccount(ws);
  const [name, setName] = useState('');
  const [auth, setAuth] = useState<'client_secret' | 'private_key_jwt'>('client_secret');
  const [keys, setKeys] = useState('');
  const [server, setServer] = useState(whole);
  const [unreadable, setUnreadable] = useState<string | null>(null);

  function leave() {
    create.reset();
    setName('');
    setKeys('');
    setUnreadable(null);
    close();
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    if (name.trim() === '') return;
    let proof = {};
    if (auth === 'private_key_jwt') {
      const text = keys.trim();
      if (text.startsWith('https://')) proof = { jwks_uri: text };
      else {
        try {
          proof = { jwks: JSON.parse(text) as Record<string, unknown> };
        } catch {
          setUnreadable('Enter an https URL or a JWK set in JSON.');
          return;
        }
      }
    }
    setUnreadable(null);
    create.mutate(
      { name: name.trim(), auth, ...proof, ...(server !== whole && { server_id: server }) },
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

  const field = fieldOf(create.error);
  return (
    <Dialog kept={create.isPending} opened={opened} onClose={leave} title="New service account">
      <form onSubmit={submit} noValidate>
        <Stack gap="md">
          {!['name', 'jwks', 'jwks_uri'].includes(field ?? '') && (
            <Refused error={create.error} title="The account was not created" />
          )}
          <TextInput
            label="Name"
            description="What this account is for. It belongs to the workspace and stays if you leave."
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={textAt(create.error, 'name')}
            maxLength={80}
            data-autofocus
          />
          <SegmentedControl
            aria-label="Client authentication"
            data={[
              { value: 'client_secret', label: 'Client secret' },
              { value: 'private_key_jwt', label: 'Private key (JWT)' },
            ]}
            value={auth}
            onChange={(value) => setAuth(value as typeof auth)}
          />
          {auth === 'private_key_jwt' && (
            <Textarea
              label="Public keys"
              description="A JWK set as JSON, or its https URL. The private key stays with the program."
              value={keys}
              onChange={(event) => setKeys(event.currentTarget.value)}
              error={unreadable ?? textAt(create.error, 'jwks') ?? textAt(create.error, 'jwks_uri')}
              rows={6}
            />
          )}
          <ReachSelect
            ws={ws}
            value={server}
            onChange={setServer}
            error={textAt(create.error, 'server_id')}
          />
          <Group justify="flex-end">
            <Button variant="default" disabled={create.isPending} onClick={leave}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending} disabled={name.trim() === ''}>
              Create account
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
