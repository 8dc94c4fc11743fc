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
import { Refused } from './refused';
import { SharingChoice } from './sharing';
import { toastDone } from './toast';

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
  document: 'names itself by an address of Portolan',
  registered: 'registered itself',
  entered: 'was entered here',
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

  function submit(event: FormEvent) {
    event.preventDefault();
    const server = serverOf(how, draft, state);
    const found: Partial<Record<Field, string>> = {};
    const address = (field: Field, message: string) => {
      if (!URL.canParse(draft[field].trim())) found[field] = message;
    };
    if (how === 'issuer') address('issuer', 'Give the issuer as the service writes it: https://…');
    else {
      address('authorization_endpoint', 'Give the complete URL of the authorization endpoint.');
      address('token_endpoint', 'Give the complete URL of the token endpoint.');
      if (draft.revocation_endpoint.trim()) {
        address('revocation_endpoint', 'Give the complete URL, or leave it empty.');
      }
      // Without metadata nobody can register.
      if (!draft.client_id.trim() && (!state.client || server)) found.client_id = 'Give the client id.';
    }
    if (draft.client_secret && !draft.client_id.trim()) found.client_id = 'Give the id of this client too.';
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
          toastDone('Saved.');
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
    <form onSubmit={submit} noValidate>
      <Stack gap="md">
        <Refused error={set.error} title="Not saved" />
        {isNew && <SharingChoice value={sharing} onChange={setSharing} looks={false} />}
        <SegmentedControl
          aria-label="How the authorization server is named"
          value={how}
          onChange={(chosen) => setHow(chosen as How)}
          data={[
            { value: 'issuer', label: 'By its issuer' },
            { value: 'addresses', label: 'By its addresses' },
          ]}
        />
        {how === 'issuer' ? (
          <TextInput
            label="Issuer"
            description="Portolan reads the rest from its metadata. It must be written as the service writes it."
            placeholder="https://login.example.com"
            inputMode="url"
            {...text('issuer')}
          />
        ) : (
          <>
            <TextInput
              label="Authorization URL"
              description="Where people sign in and allow it"
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
              description="Optional: where keys are given back when an account is disconnected"
              inputMode="url"
              {...text('revocation_endpoint')}
            />
          </>
        )}
        <div>
          <Text size="sm" fw={500} mb={4}>
            Redirect address to register there
          </Text>
          <CodeBlock code={state.redirect_uri} label="Redirect address" wrap />
        </div>
        {state.client && (
          <Facts
            items={[
              ['Client id', <code key="id">{state.client.client_id}</code>],
              ['It', origins[state.client.kind] ?? state.client.kind],
            ]}
          />
        )}
        <TextInput
          label={state.client ? 'Another client id' : 'Client id'}
          description={
            how === 'issuer' ? 'Leave it empty if the service lets Portolan make itself known.' : undefined
          }
          {...text('client_id')}
        />
        <PasswordInput
          label="Client secret"
          description="If it has one. Sealed at rest, never shown again."
          {...text('client_secret')}
        />
        <Select
          label="How the client proves itself"
          description="With its secret, at the token URL"
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
              ? 'What the accounts allow. The document names those that are offered here.'
              : 'What the accounts allow. Leave it empty for what the service gives by itself.'
          }
          data={names}
          value={scopes}
          onChange={setScopes}
          splitChars={[' ', ',']}
        />
        {!isNew && (
          <Text size="sm" c="dimmed">
            With another authorization server the client and every connected account are forgotten, those of
            people too.
          </Text>
        )}
        <div>
          <Button type="submit" variant={isNew ? 'filled' : 'default'} loading={set.isPending}>
            {isNew ? 'Save the sign-in' : 'Save'}
          </Button>
        </div>
      </Stack>
    </form>
  );
}
