import {
  Alert,
  Button,
  Group,
  PasswordInput,
  SegmentedControl,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import {
  type Sharing,
  type SignIn,
  signInQuery,
  useConnect,
  useDisconnect,
  useRemoveSignIn,
  useSetSignIn,
} from '../api/sign-in';
import { useMay, useSession } from '../session';
import { Ago } from './ago';
import { Facts, Loaded, Panel } from './page';
import { toastDone, toastFailed } from './toast';

const host = (issuer: string) => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

const reasons: Record<string, string> = {
  expired: 'Its key has expired and cannot be renewed.',
  ended: 'The service does not renew its key any more.',
  refused: 'The server does not take its keys any more.',
  client:
    'The service does not know the client any more. Connecting again registers a new one; one that was entered is entered anew.',
};

/** Whose accounts calls use, in words. */
export function SharingChoice({
  value,
  onChange,
  disabled,
}: {
  value: Sharing;
  onChange: (value: Sharing) => void;
  disabled?: boolean;
}) {
  return (
    <div>
      <SegmentedControl
        aria-label="Whose account calls use"
        value={value}
        disabled={disabled}
        onChange={(chosen) => onChange(chosen as Sharing)}
        data={[
          { value: 'workspace', label: 'One account for all' },
          { value: 'person', label: 'Each person connects their own' },
        ]}
      />
      <Text size="sm" c="dimmed" mt={6}>
        {value === 'workspace'
          ? 'Whoever may call the tools acts as the account that is connected here.'
          : 'Who calls a tool for the first time is shown a link to connect their own account. The account that is connected here only looks at what the server offers.'}
      </Text>
    </div>
  );
}

/** How an MCP server is signed in to by OAuth, and the account of the workspace. */
export function SignInPanel({ id, hasCredential }: { id: string; hasCredential: boolean }) {
  const { workspace } = useSession();
  const signIn = useQuery(signInQuery(workspace.slug, id));
  return (
    <Loaded query={signIn} lines={4}>
      {(state) => <Known id={id} state={state} hasCredential={hasCredential} />}
    </Loaded>
  );
}

function Known({ id, state, hasCredential }: { id: string; state: SignIn; hasCredential: boolean }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const set = useSetSignIn(workspace.slug, id);
  const remove = useRemoveSignIn(workspace.slug, id);
  const { sharing } = state;
  if (!sharing) {
    if (!edits) return null;
    return (
      <Panel
        title="Or sign in to the server"
        note={
          hasCredential
            ? 'Signing in takes the place of the credential above.'
            : 'For servers that open after a sign-in at their own authorization server (OAuth).'
        }
      >
        <Button
          variant="default"
          loading={set.isPending}
          onClick={() => set.mutate({ sharing: 'workspace' }, { onError: toastFailed })}
        >
          Use sign-in
        </Button>
      </Panel>
    );
  }
  return (
    <Stack gap="lg">
      <Account id={id} state={state} />
      {edits && (
        <Panel title="Whose account">
          <Stack gap="md">
            <SharingChoice
              value={sharing}
              disabled={set.isPending}
              onChange={(chosen) =>
                set.mutate(
                  { sharing: chosen, method: state.method, ...(state.scope ? { scope: state.scope } : {}) },
                  { onSuccess: () => toastDone('Saved.'), onError: toastFailed },
                )
              }
            />
            {sharing === 'person' && (
              <Text size="sm">
                {state.linked_persons === 1
                  ? '1 person has connected their account.'
                  : `${state.linked_persons} people have connected their account.`}
              </Text>
            )}
          </Stack>
        </Panel>
      )}
      {edits && <Client id={id} sharing={sharing} state={state} />}
      {edits && (
        <Panel
          title="Stop signing in"
          note="Forgets the client and every connected account, those of people too."
        >
          <Button
            color="red"
            variant="light"
            loading={remove.isPending}
            onClick={() =>
              remove.mutate(undefined, {
                onSuccess: () => toastDone('The server is not signed in to any more.'),
                onError: toastFailed,
              })
            }
          >
            Forget all of it
          </Button>
        </Panel>
      )}
    </Stack>
  );
}

function Account({ id, state }: { id: string; state: SignIn }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const connect = useConnect(workspace.slug);
  const disconnect = useDisconnect(workspace.slug, id);
  const { connection } = state;
  const broken = connection?.status === 'needs_sign_in';
  const facts: [string, ReactNode][] = [];
  if (connection) {
    facts.push(['At', host(connection.issuer)]);
    if (connection.connected_by) facts.push(['Connected by', connection.connected_by]);
    facts.push(['Connected', <Ago key="at" at={connection.connected_at} />]);
    if (connection.scope) facts.push(['May', <code key="scope">{connection.scope}</code>]);
    facts.push([
      'Key',
      connection.renewable ? (
        <span key="key">
          renewed by itself
          {connection.refreshed_at && (
            <>
              , last <Ago at={connection.refreshed_at} />
            </>
          )}
        </span>
      ) : (
        <span key="key">
          until <Ago at={connection.expires_at} />, then somebody signs in again
        </span>
      ),
    ]);
  }
  const go = () =>
    connect.mutate(id, {
      onSuccess: (begun) => {
        if (begun.url) window.location.assign(begun.url);
        else toastDone('Connected.');
      },
    });
  return (
    <Panel title={connection ? 'Connected account' : 'No account is connected'}>
      <Stack gap="md">
        {connect.error && (
          <Alert color="red" data-tone="red" role="alert" title="Not connected">
            {connect.error.message}
          </Alert>
        )}
        {broken && (
          <Alert color="yellow" data-tone="yellow" title="It has to be connected again">
            {reasons[connection.reason ?? ''] ?? 'Its key is not good any more.'}
          </Alert>
        )}
        {!broken && connection?.wanted_scope && (
          <Alert color="yellow" data-tone="yellow" title="The server wants more">
            A call needed <code>{connection.wanted_scope}</code>. Connect again to allow it.
          </Alert>
        )}
        {connection ? (
          <Facts items={facts} />
        ) : (
          <Text size="sm">Until one is, the server is not looked at and its tools do not answer.</Text>
        )}
        {edits && (
          <Group>
            <Button
              onClick={go}
              loading={connect.isPending}
              variant={connection && !broken ? 'default' : 'filled'}
            >
              {connection ? 'Connect again' : 'Connect an account'}
            </Button>
            {connection && (
              <Button
                variant="subtle"
                color="red"
                loading={disconnect.isPending}
                onClick={() =>
                  disconnect.mutate(undefined, {
                    onSuccess: () => toastDone('Disconnected.'),
                    onError: toastFailed,
                  })
                }
              >
                Disconnect
              </Button>
            )}
          </Group>
        )}
      </Stack>
    </Panel>
  );
}

const kinds: Record<string, string> = {
  document: 'names itself by an address of Portolan',
  registered: 'registered itself',
  entered: 'was entered here',
};

function Client({ id, sharing, state }: { id: string; sharing: Sharing; state: SignIn }) {
  const { workspace } = useSession();
  const set = useSetSignIn(workspace.slug, id);
  const [clientId, setClientId] = useState('');
  const [secret, setSecret] = useState('');
  const [key, setKey] = useState('');
  const [scope, setScope] = useState(state.scope ?? '');
  const [method, setMethod] = useState(state.method);

  function submit(event: FormEvent) {
    event.preventDefault();
    const entered = clientId.trim() !== '';
    set.mutate(
      {
        sharing,
        method,
        ...(scope.trim() ? { scope: scope.trim() } : {}),
        ...(entered
          ? {
              client: {
                client_id: clientId.trim(),
                ...(secret ? { client_secret: secret } : {}),
                ...(key ? { private_key: key } : {}),
              },
            }
          : {}),
      },
      {
        onSuccess: () => {
          setClientId('');
          setSecret('');
          setKey('');
          toastDone('Saved.');
        },
      },
    );
  }

  return (
    <Panel
      title="Client"
      note="Most servers let Portolan make itself known. Enter a client only if the server's operator gave you one."
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="md" maw={560}>
          {set.error && (
            <Alert color="red" data-tone="red" role="alert" title="Not saved">
              {set.error.message}
            </Alert>
          )}
          {state.client && (
            <Facts
              items={[
                ['Client id', <code key="id">{state.client.client_id}</code>],
                ['It', kinds[state.client.kind] ?? state.client.kind],
              ]}
            />
          )}
          <SegmentedControl
            aria-label="How the account is connected"
            value={method}
            onChange={(chosen) => setMethod(chosen as SignIn['method'])}
            data={[
              { value: 'code', label: 'Somebody signs in' },
              { value: 'client_credentials', label: 'By the client itself' },
            ]}
          />
          <TextInput
            label="Client id"
            value={clientId}
            onChange={(event) => setClientId(event.currentTarget.value)}
          />
          <PasswordInput
            label="Client secret"
            description="If it has one. Sealed at rest, never shown again."
            value={secret}
            autoComplete="off"
            onChange={(event) => setSecret(event.currentTarget.value)}
          />
          <Textarea
            label="Private key"
            description="In PEM, for servers that know the client by its public key."
            value={key}
            rows={6}
            onChange={(event) => setKey(event.currentTarget.value)}
          />
          <TextInput
            label="Scopes"
            description="Separated by spaces. Leave it empty to ask for what the server names."
            value={scope}
            onChange={(event) => setScope(event.currentTarget.value)}
          />
          <Text size="sm">
            Redirect address to register there: <code>{state.redirect_uri}</code>
          </Text>
          <div>
            <Button type="submit" variant="default" loading={set.isPending}>
              Save
            </Button>
          </div>
        </Stack>
      </form>
    </Panel>
  );
}
