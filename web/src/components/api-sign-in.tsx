import {
  Button,
  PasswordInput,
  SegmentedControl,
  Select,
  Stack,
  TagsInput,
  Text,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { ApiError } from '../api/http';
import { type SignIn, type SignInForm, signInQuery, useSetSignIn } from '../api/sign-in';
import type { SecurityHint } from '../api/sources';
import { useSession } from '../session';
import { CodeBlock } from './copy';
import { Facts, Loaded } from './page';
import { SharingChoice } from './sharing';
import { Submit, useFaultFocus } from './submit';
import { toastDone } from './toast';
import { Unsaved, useChanged } from './unsaved';

/** How an API that is not signed in to yet is to be: what its document says of it is filled in. */
export function NewApiSignIn({ id, hint }: { id: string; hint?: SecurityHint }) {
  const { workspace } = useSession();
  const signIn = useQuery(signInQuery(workspace.slug, id));
  return (
    <Loaded query={signIn} lines={6}>
      {(state) => <ApiSignInForm id={id} state={state} hint={hint} />}
    </Loaded>
  );
}

type How = 'issuer' | 'addresses';
type Field =
  | 'issuer'
  | 'authorization_endpoint'
  | 'token_endpoint'
  | 'revocation_endpoint'
  | 'client_id'
  | 'client_secret';
type Draft = Record<Field, string>;

function begin({ server }: SignIn, hint: SecurityHint | undefined): { how: How; draft: Draft } {
  const known = server ?? {
    issuer: hint?.issuer,
    authorization_endpoint: hint?.authorization_url,
    token_endpoint: hint?.token_url,
    revocation_endpoint: undefined,
  };
  const hasAddresses = Boolean(known.authorization_endpoint || known.token_endpoint);
  return {
    how: !known.issuer && hasAddresses ? 'addresses' : 'issuer',
    draft: {
      issuer: known.issuer ?? '',
      authorization_endpoint: known.authorization_endpoint ?? '',
      token_endpoint: known.token_endpoint ?? '',
      revocation_endpoint: known.revocation_endpoint ?? '',
      client_id: '',
      client_secret: '',
    },
  };
}

/** What of the authorization server is to be said: nothing, if it is the one that is known. */
function serverOf(how: How, draft: Draft, { server }: SignIn): SignInForm['server'] {
  if (how === 'issuer') {
    const issuer = draft.issuer.trim();
    return issuer === server?.issuer ? undefined : { issuer };
  }
  const authorization_endpoint = draft.authorization_endpoint.trim();
  const token_endpoint = draft.token_endpoint.trim();
  const revocation_endpoint = draft.revocation_endpoint.trim();
  const same =
    server &&
    !server.issuer &&
    server.authorization_endpoint === authorization_endpoint &&
    server.token_endpoint === token_endpoint &&
    (server.revocation_endpoint ?? '') === revocation_endpoint;
  if (same) return undefined;
  return {
    authorization_endpoint,
    token_endpoint,
    ...(revocation_endpoint ? { revocation_endpoint } : {}),
  };
}

const origins: Record<string, string> = {
  document: 'Client ID metadata document',
  registered: 'Registered dynamically',
  entered: 'Entered here',
};

/** The authorization server of an API, and who the workspace is there. */
export function ApiSignInForm({ id, state, hint }: { id: string; state: SignIn; hint?: SecurityHint }) {
  const { workspace } = useSession();
  const set = useSetSignIn(workspace.slug, id);
  const [start] = useState(() => begin(state, hint));
  const [how, setHow] = useState<How>(start.how);
  const [draft, setDraft] = useState<Draft>(start.draft);
  const [sharing, setSharing] = useState(state.sharing ?? 'person');
  const [auth, setAuth] = useState<'basic' | 'post'>('basic');
  const [scopes, setScopes] = useState(state.scope ? state.scope.split(' ') : []);
  const [faults, setFaults] = useState<Partial<Record<Field, string>>>({});
  const [saves, setSaves] = useState(0);
  const isNew = !state.sharing;

  const text = (field: Field) => ({
    value: draft[field],
    onChange: (event: { currentTarget: { value: string } }) => {
      const { value } = event.currentTarget;
      setDraft((old) => ({ ...old, [field]: value }));
      setFaults((old) => ({ ...old, [field]: undefined }));
    },
    error: faults[field],
    autoComplete: field === 'client_secret' ? 'new-password' : 'off',
    spellCheck: false,
  });

  const changed = useChanged([how, draft, sharing, auth, scopes], saves);
  const form = useFaultFocus(Object.values(faults).some(Boolean) ? faults : null);

  function submit(event: FormEvent) {
    event.preventDefault();
    const server = serverOf(how, draft, state);
    const found: Partial<Record<Field, string>> = {};
    const address = (field: Field, message: string) => {
      if (!URL.canParse(draft[field].trim())) found[field] = message;
    };
    if (how === 'issuer')
      address('issuer', 'Enter the issuer exactly as the service publishes it: https://…');
    else {
      address('authorization_endpoint', 'Enter the complete URL of the authorization endpoint.');
      address('token_endpoint', 'Enter the complete URL of the token endpoint.');
      if (draft.revocation_endpoint.trim()) {
        address('revocation_endpoint', 'Enter a complete URL, or leave this empty.');
      }
      // Registration needs metadata of the server.
      if (!draft.client_id.trim() && (!state.client || server)) found.client_id = 'Enter the client ID.';
    }
    if (draft.client_secret && !draft.client_id.trim()) found.client_id = 'Enter the ID of this client too.';
    setFaults(found);
    if (Object.keys(found).length > 0) return;
    set.mutate(
      {
        sharing,
        method: 'code',
        ...(scopes.length > 0 ? { scope: scopes.join(' ') } : {}),
        ...(server ? { server } : {}),
        ...(draft.client_id.trim()
          ? {
              client: {
                client_id: draft.client_id.trim(),
                ...(draft.client_secret ? { client_secret: draft.client_secret, auth } : {}),
              },
            }
          : {}),
      },
      {
        onSuccess: () => {
          setDraft((old) => ({ ...old, client_id: '', client_secret: '' }));
          setSaves((old) => old + 1);
          toastDone('Sign-in saved.');
        },
        onError: (error) => {
          const field = error instanceof ApiError ? error.field?.split('.')[1] : undefined;
          if (field && field in draft) setFaults({ [field]: error.message });
        },
      },
    );
  }

  const names = hint?.scopes ?? [];
  return (
    <form ref={form} onSubmit={submit} noValidate>
      <Unsaved when={changed && !set.isPending} tabs />
      <Stack gap="md">
        {isNew && <SharingChoice value={sharing} onChange={setSharing} looks={false} />}
        <SegmentedControl
          aria-label="How to find the authorization server"
          value={how}
          onChange={(chosen) => setHow(chosen as How)}
          data={[
            { value: 'issuer', label: 'By issuer' },
            { value: 'addresses', label: 'By endpoint URLs' },
          ]}
        />
        {how === 'issuer' ? (
          <TextInput
            label="Issuer"
            description="Exactly as the service publishes it. Portolan reads the rest from its metadata."
            placeholder="https://login.example.com"
            inputMode="url"
            {...text('issuer')}
          />
        ) : (
          <>
            <TextInput
              label="Authorization URL"
              description="Where users sign in and allow access"
              placeholder="https://login.example.com/oauth/authorize"
              inputMode="url"
              {...text('authorization_endpoint')}
            />
            <TextInput
              label="Token URL"
              placeholder="https://login.example.com/oauth/token"
              inputMode="url"
              {...text('token_endpoint')}
            />
            <TextInput
              label="Revocation URL"
              description="Optional. Tokens are revoked here when an account is disconnected."
              inputMode="url"
              {...text('revocation_endpoint')}
            />
          </>
        )}
        <div>
          <Text size="sm" fw={500} mb={4}>
            Redirect URI to register there
          </Text>
          <CodeBlock code={state.redirect_uri} label="Redirect URI" wrap />
        </div>
        {state.client && (
          <Facts
            items={[
              ['Client ID', <code key="id">{state.client.client_id}</code>],
              ['Registration', origins[state.client.kind] ?? state.client.kind],
            ]}
          />
        )}
        <TextInput
          label={state.client ? 'Another client ID' : 'Client ID'}
          description={
            how === 'issuer' ? 'Leave empty if the service lets Portolan register itself.' : undefined
          }
          {...text('client_id')}
        />
        <PasswordInput
          label="Client secret"
          description="Optional. Encrypted at rest. It can’t be viewed again."
          {...text('client_secret')}
        />
        <Select
          label="Client authentication"
          description="How the client secret is sent to the token URL"
          data={[
            { value: 'basic', label: 'Authorization header (basic)' },
            { value: 'post', label: 'In the request body (post)' },
          ]}
          value={auth}
          onChange={(value) => value && setAuth(value as typeof auth)}
          allowDeselect={false}
        />
        <TagsInput
          label="Scopes"
          description={
            names.length > 0
              ? 'What the accounts grant. The suggestions come from the document.'
              : 'What the accounts grant. Leave empty for the service’s default.'
          }
          data={names}
          value={scopes}
          onChange={setScopes}
          splitChars={[' ', ',']}
        />
        {!isNew && (
          <Text size="sm" c="dimmed">
            Changing the authorization server deletes the client and every connected account, including those
            of users.
          </Text>
        )}
        <Submit error={set.error} title="The sign-in was not saved">
          <Button type="submit" variant={isNew ? 'filled' : 'default'} loading={set.isPending}>
            {isNew ? 'Save sign-in' : 'Save'}
          </Button>
        </Submit>
      </Stack>
    </form>
  );
}
