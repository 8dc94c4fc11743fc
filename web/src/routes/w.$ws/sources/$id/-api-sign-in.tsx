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
import {
  type Sharing,
  type SignIn,
  type SignInForm,
  signInQuery,
  useSetSignIn,
} from '../../../../api/sign-in';
import type { SecurityHint } from '../../../../api/sources';
import { CodeBlock } from '../../../../components/copy';
import { useFields } from '../../../../components/form';
import { Facts, Loaded } from '../../../../components/page';
import { SharingChoice } from '../../../../components/sharing';
import { Submit } from '../../../../components/submit';
import { toastDone } from '../../../../components/toast';
import { Unsaved } from '../../../../components/unsaved';
import { useSession } from '../../../../session';

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
type Draft = Record<Field, string> & {
  how: How;
  sharing: Sharing;
  auth: 'basic' | 'post';
  scopes: string[];
};

function begin({ server, sharing, scope }: SignIn, hint: SecurityHint | undefined): Draft {
  const known = server ?? {
    issuer: hint?.issuer,
    authorization_endpoint: hint?.authorization_url,
    token_endpoint: hint?.token_url,
    revocation_endpoint: undefined,
  };
  const hasAddresses = Boolean(known.authorization_endpoint || known.token_endpoint);
  return {
    how: !known.issuer && hasAddresses ? 'addresses' : 'issuer',
    sharing: sharing ?? 'person',
    issuer: known.issuer ?? '',
    authorization_endpoint: known.authorization_endpoint ?? '',
    token_endpoint: known.token_endpoint ?? '',
    revocation_endpoint: known.revocation_endpoint ?? '',
    client_id: '',
    client_secret: '',
    auth: 'basic',
    scopes: scope ? scope.split(' ') : [],
  };
}

/** What of the authorization server is to be said: nothing, if it is the one that is known. */
function serverOf(draft: Draft, { server }: SignIn): SignInForm['server'] {
  if (draft.how === 'issuer') {
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

/** The faults of a draft by field; each says how to correct it. */
function faultsOf(draft: Draft, state: SignIn): Partial<Record<Field, string>> {
  const found: Partial<Record<Field, string>> = {};
  const address = (field: Field, message: string) => {
    if (!URL.canParse(draft[field].trim())) found[field] = message;
  };
  const client_id = draft.client_id.trim();
  if (draft.how === 'issuer') {
    address('issuer', 'Enter the issuer exactly as the service publishes it: https://…');
  } else {
    address('authorization_endpoint', 'Enter the complete URL of the authorization endpoint.');
    address('token_endpoint', 'Enter the complete URL of the token endpoint.');
    if (draft.revocation_endpoint.trim()) {
      address('revocation_endpoint', 'Enter a complete URL, or leave this empty.');
    }
    // Registration needs metadata of the server.
    if (!client_id && (!state.client || serverOf(draft, state))) found.client_id = 'Enter the client ID.';
  }
  if (draft.client_secret && !client_id) found.client_id = 'Enter the ID of this client too.';
  return found;
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
  const form = useFields({
    initialValues: begin(state, hint),
    validate: (values) => faultsOf(values, state),
    error: set.error,
    place: ({ field }) => field?.split('.')[1],
  });
  const { how, sharing } = form.values;
  const isNew = !state.sharing;

  const text = (field: Field) => ({
    ...form.getInputProps(field),
    autoComplete: field === 'client_secret' ? 'new-password' : 'off',
    spellCheck: false,
  });

  function send(values: Draft) {
    const { auth, scopes, client_secret } = values;
    const server = serverOf(values, state);
    const client_id = values.client_id.trim();
    set.mutate(
      {
        sharing,
        method: 'code',
        ...(scopes.length > 0 ? { scope: scopes.join(' ') } : {}),
        ...(server ? { server } : {}),
        ...(client_id ? { client: { client_id, ...(client_secret ? { client_secret, auth } : {}) } } : {}),
      },
      {
        onSuccess: () => {
          form.setValues({ client_id: '', client_secret: '' });
          form.resetDirty();
          toastDone('Sign-in saved.');
        },
      },
    );
  }

  const names = hint?.scopes ?? [];
  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Unsaved when={form.isChanged() && !set.isPending} tabs />
      <Stack gap="md">
        {isNew && (
          <SharingChoice
            value={sharing}
            onChange={(next) => form.setFieldValue('sharing', next)}
            looks={false}
          />
        )}
        <SegmentedControl
          aria-label="How to find the authorization server"
          {...form.getInputProps('how')}
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
          allowDeselect={false}
          {...form.getInputProps('auth')}
        />
        <TagsInput
          label="Scopes"
          description={
            names.length > 0
              ? 'What the accounts grant. The suggestions come from the document.'
              : 'What the accounts grant. Leave empty for the service’s default.'
          }
          data={names}
          {...form.getInputProps('scopes')}
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
