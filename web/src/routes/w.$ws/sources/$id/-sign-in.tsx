import {
  Alert,
  Box,
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
import { type ReactNode, useState } from 'react';
import {
  type Sharing,
  type SignIn,
  signInQuery,
  useConnect,
  useDisconnect,
  useRemoveSignIn,
  useSetSignIn,
} from '../../../../api/sign-in';
import type { Source } from '../../../../api/sources';
import { Ago } from '../../../../components/ago';
import { Confirm } from '../../../../components/confirm';
import { useFields } from '../../../../components/form';
import { Facts, Loaded, Panel } from '../../../../components/page';
import { Refused } from '../../../../components/refused';
import { SharingChoice } from '../../../../components/sharing';
import { Submit } from '../../../../components/submit';
import { toastDone, toastFailed } from '../../../../components/toast';
import { Unsaved } from '../../../../components/unsaved';
import { useMay, useSession } from '../../../../session';
import { ApiSignInForm } from './-api-sign-in';

const host = (issuer: string) => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

const reasons: Record<string, string> = {
  expired: 'Its token has expired and can’t be refreshed.',
  ended: 'The service no longer refreshes its token.',
  refused: 'The server no longer accepts its token.',
  client:
    'The service no longer knows the client. Reconnect to register a new one; a client that you entered has to be entered again.',
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
  const [removing, setRemoving] = useState(false);
  const { sharing } = state;
  if (!sharing) {
    if (!edits || !isMcp) return null;
    return (
      <Panel
        title="Sign in to the server instead"
        note={
          source.credential
            ? 'Signing in replaces the credential above.'
            : 'For servers with their own OAuth authorization server.'
        }
      >
        <Button
          variant="default"
          loading={set.isPending}
          onClick={() => set.mutate({ sharing: 'workspace' }, { onError: toastFailed })}
        >
          Use OAuth sign-in
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
        <Panel title="Account used for calls">
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
                  ? '1 user has connected an account.'
                  : `${state.linked_persons} users have connected an account.`}
              </Text>
            )}
          </Stack>
        </Panel>
      )}
      {edits && isMcp && <Client id={id} sharing={sharing} state={state} />}
      {edits && !isMcp && (
        <Panel
          title="Authorization server and client"
          note="The server that issues the tokens, and the client of this workspace there."
        >
          <Box maw={560}>
            <ApiSignInForm
              key={`${sharing} ${state.scope ?? ''}`}
              id={id}
              state={state}
              hint={source.security.find((one) => one.kind === 'oauth_authorization_code')}
            />
          </Box>
        </Panel>
      )}
      {edits && (
        <Panel
          title="Remove the sign-in"
          note="Deletes the client and every connected account, including those of users."
        >
          <Button color="red" variant="light" onClick={() => setRemoving(true)}>
            Remove sign-in
          </Button>
          <Confirm
            title="Remove the sign-in?"
            word="Remove"
            opened={removing}
            close={() => setRemoving(false)}
            busy={remove.isPending}
            error={remove.error}
            failed="The sign-in was not removed"
            act={() => remove.mutate(undefined, { onSuccess: () => toastDone('The sign-in was removed.') })}
          >
            The client and every connected account are deleted, including those of users. Calls fail until you
            set up another sign-in or a credential. This can’t be undone.
          </Confirm>
        </Panel>
      )}
    </Stack>
  );
}

/** The own account of who looks at the page. */
function Own({ own }: { own: NonNullable<SignIn['own']> }) {
  const words = {
    none: 'You haven’t connected an account yet. Tools that you call ask you for one.',
    ok: 'Connected. Only your own calls use it.',
    over: 'Reconnect it: its token is no longer valid.',
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
            {standing === 'none' ? 'Connect my account' : 'Reconnect my account'}
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
    facts.push(['Service', host(connection.issuer)]);
    if (connection.connected_by) facts.push(['Connected by', connection.connected_by]);
    facts.push(['Connected', <Ago key="at" at={connection.connected_at} />]);
    if (connection.scope) facts.push(['Scopes', <code key="scope">{connection.scope}</code>]);
    facts.push([
      'Token',
      connection.renewable ? (
        <span key="key">
          refreshed automatically
          {connection.refreshed_at && (
            <>
              , last <Ago at={connection.refreshed_at} />
            </>
          )}
        </span>
      ) : (
        <span key="key">
          expires <Ago at={connection.expires_at} />; then sign in again
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
    <Panel title={connection ? 'Connected account' : 'No account connected'}>
      <Stack gap="md">
        <Refused error={connect.error} title="Not connected" />
        {broken && (
          <Alert color="yellow" data-tone="yellow" title="Reconnect this account">
            {reasons[connection.reason ?? ''] ?? 'Its token is no longer valid.'}
          </Alert>
        )}
        {!broken && connection?.wanted_scope && (
          <Alert
            color="yellow"
            data-tone="yellow"
            title={isMcp ? 'The server requires more scopes' : 'The API requires more scopes'}
          >
            A call needed <code>{connection.wanted_scope}</code>. Reconnect to grant it.
          </Alert>
        )}
        {connection ? (
          <Facts items={facts} />
        ) : (
          <Text size="sm">
            {isMcp
              ? 'Connect an account to list the server’s tools and to call them.'
              : 'Connect an account to call its tools.'}
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
                {connection ? 'Reconnect' : 'Connect an account'}
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
  document: 'Client ID metadata document',
  registered: 'Registered dynamically',
  entered: 'Entered here',
};

function Client({ id, sharing, state }: { id: string; sharing: Sharing; state: SignIn }) {
  const { workspace } = useSession();
  const set = useSetSignIn(workspace.slug, id);
  const form = useFields({
    initialValues: {
      client_id: '',
      client_secret: '',
      private_key: '',
      scope: state.scope ?? '',
      method: state.method,
    },
    error: set.error,
    place: ({ field }) => field?.split('.').at(-1),
  });

  function send({ method, ...values }: typeof form.values) {
    const client_id = values.client_id.trim();
    const scope = values.scope.trim();
    const { client_secret, private_key } = values;
    set.mutate(
      {
        sharing,
        method,
        ...(scope ? { scope } : {}),
        ...(client_id
          ? {
              client: {
                client_id,
                ...(client_secret ? { client_secret } : {}),
                ...(private_key ? { private_key } : {}),
              },
            }
          : {}),
      },
      {
        onSuccess: () => {
          form.setValues({ client_id: '', client_secret: '', private_key: '' });
          form.resetDirty();
          toastDone('Client saved.');
        },
      },
    );
  }

  return (
    <Panel
      title="Client"
      note="Most servers let Portolan register itself. Enter a client only if the server’s operator gave you one."
    >
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Unsaved when={form.isChanged() && !set.isPending} tabs />
        <Stack gap="md" maw={560}>
          {state.client && (
            <Facts
              items={[
                ['Client ID', <code key="id">{state.client.client_id}</code>],
                ['Registration', kinds[state.client.kind] ?? state.client.kind],
              ]}
            />
          )}
          <SegmentedControl
            aria-label="How the account is connected"
            {...form.getInputProps('method')}
            data={[
              { value: 'code', label: 'A user signs in' },
              { value: 'client_credentials', label: 'Client credentials' },
            ]}
          />
          <TextInput label="Client ID" {...form.getInputProps('client_id')} />
          <PasswordInput
            label="Client secret"
            description="Optional. Encrypted at rest. It can’t be viewed again."
            autoComplete="off"
            {...form.getInputProps('client_secret')}
          />
          <Textarea
            label="Private key"
            description="PEM, for servers that authenticate the client by its public key."
            rows={6}
            {...form.getInputProps('private_key')}
          />
          <TextInput
            label="Scopes"
            description="Separated by spaces. Leave empty to request the scopes the server lists."
            {...form.getInputProps('scope')}
          />
          <Text size="sm">
            Redirect URI to register there: <code>{state.redirect_uri}</code>
          </Text>
          <Submit error={set.error} title="The client was not saved">
            <Button type="submit" variant="default" loading={set.isPending}>
              Save
            </Button>
          </Submit>
        </Stack>
      </form>
    </Panel>
  );
}
