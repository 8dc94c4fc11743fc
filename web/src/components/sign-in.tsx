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
import type { Source } from '../api/sources';
import { useMay, useSession } from '../session';
import { Ago } from './ago';
import { ApiSignInForm } from './api-sign-in';
import { Facts, Loaded, Panel } from './page';
import { Refused } from './refused';
import { SharingChoice } from './sharing';
import { toastDone, toastFailed } from './toast';

const host = (issuer: string) => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

const reasons: Record<string, string> = {
  expired: 'Its key has expired and cannot be renewed.',
  ended: 'The service does not renew its key any more.',
  refused: 'The server does not take its keys any more.',
  client:
    'The service does not know the client any more. Connecting again registers a new one; one that was entered is entered anew.',
};

/** How a source is signed in to by OAuth, and the accounts at it. Nothing, for an API that is not. */
export function SignInPanel({ source }: { source: Source }) {
  const { workspace } = useSession();
  const signIn = useQuery(signInQuery(workspace.slug, source.id));
  return (
    <Loaded query={signIn} lines={4}>
      {(state) => <Known source={source} state={state} />}
    </Loaded>
  );
}

function Known({ source, state }: { source: Source; state: SignIn }) {
  const { workspace } = useSession();
  const { id } = source;
  const isMcp = source.kind === 'mcp';
  const edits = useMay('edit_registry');
  const set = useSetSignIn(workspace.slug, id);
  const remove = useRemoveSignIn(workspace.slug, id);
  const { sharing } = state;
  if (!sharing) {
    if (!edits || !isMcp) return null;
    return (
      <Panel
        title="Or sign in to the server"
        note={
          source.credential
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
  // At an API nothing is done with an account of the workspace where each person has their own.
  const withAccount = isMcp || sharing === 'workspace' || Boolean(state.connection);
  return (
    <Stack gap="lg">
      {withAccount && <Account id={id} state={state} isMcp={isMcp} />}
      {state.own && <Own own={state.own} />}
      {edits && (
        <Panel title="Whose account">
          <Stack gap="md">
            <SharingChoice
              value={sharing}
              disabled={set.isPending}
              looks={isMcp}
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
      {edits && isMcp && <Client id={id} sharing={sharing} state={state} />}
      {edits && !isMcp && (
        <Panel
          title="Authorization server and client"
          note="Who issues the keys of the accounts, and who this workspace is there."
        >
          <div style={{ maxWidth: 560 }}>
            <ApiSignInForm
              key={`${sharing} ${state.scope ?? ''}`}
              id={id}
              state={state}
              hint={source.security.find((one) => one.kind === 'oauth_authorization_code')}
            />
          </div>
        </Panel>
      )}
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
                onSuccess: () => toastDone(`The ${isMcp ? 'server' : 'API'} is not signed in to any more.`),
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

/** The own account of who looks at the page. */
function Own({ own }: { own: NonNullable<SignIn['own']> }) {
  const words = {
    none: 'You have connected none yet. Until you do, tools that you call ask you for it.',
    ok: 'It is connected. Calls that you make use it, and nobody else’s do.',
    over: 'It has to be connected again: its key is not good any more.',
  };
  const standing = !own.status ? 'none' : own.status === 'ok' ? 'ok' : 'over';
  return (
    <Panel title="Your own account">
      <Stack gap="md">
        <Text size="sm">{words[standing]}</Text>
        <Group>
          <Button
            component="a"
            href={own.connect_url}
            target="_blank"
            rel="noreferrer"
            variant={standing === 'ok' ? 'default' : 'filled'}
          >
            {standing === 'none' ? 'Connect my account' : 'Connect mine again'}
          </Button>
          <Button component="a" href="/account/linked" variant="subtle">
            My linked accounts
          </Button>
        </Group>
      </Stack>
    </Panel>
  );
}

function Account({ id, state, isMcp }: { id: string; state: SignIn; isMcp: boolean }) {
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
        <Refused error={connect.error} title="Not connected" />
        {broken && (
          <Alert color="yellow" data-tone="yellow" title="It has to be connected again">
            {reasons[connection.reason ?? ''] ?? 'Its key is not good any more.'}
          </Alert>
        )}
        {!broken && connection?.wanted_scope && (
          <Alert
            color="yellow"
            data-tone="yellow"
            title={isMcp ? 'The server wants more' : 'The API wants more'}
          >
            A call needed <code>{connection.wanted_scope}</code>. Connect again to allow it.
          </Alert>
        )}
        {connection ? (
          <Facts items={facts} />
        ) : (
          <Text size="sm">
            {isMcp
              ? 'Until one is, the server is not looked at and its tools do not answer.'
              : 'Until one is, its tools do not answer.'}
          </Text>
        )}
        {edits && (
          <Group>
            {(isMcp || state.sharing === 'workspace') && (
              <Button
                onClick={go}
                loading={connect.isPending}
                variant={connection && !broken ? 'default' : 'filled'}
              >
                {connection ? 'Connect again' : 'Connect an account'}
              </Button>
            )}
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
          <Refused error={set.error} title="Not saved" />
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
